//! The configuration of a connection.

use core::fmt;
use core::ops::RangeInclusive;

use comity_units::{Rate, Seed, Span};

use crate::timeline::{
    DEFAULT_BUFFER, DEFAULT_MAX_LATENCY, DEFAULT_SECTIONS, Deliver, DropPolicy, Reliability,
};
use crate::wire::limits::{DEFAULT_DATAGRAM, SEALING, UDP_IPV4};
use crate::wire::parameters::ACK_DELAY_DEFAULT;

/// The settings of one end of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Config {
    /// How long lost bytes are retransmitted.
    pub reliability: Reliability,
    /// When this end gives up sections by itself.
    pub drop: DropPolicy,
    /// When this end delivers sections to its application.
    pub deliver: Deliver,
    /// Whether an incomplete section of the peer becomes a gap at its deadline. To be set if the
    /// peer [enforces its deadlines](Self::enforces_deadlines), independently of the policy of this
    /// end.
    pub expect_deadlines: bool,
    /// The protected payload of a full packet in bytes: the datagram without headers and tag.
    /// Together with [`Config::overhead`] it must fit the path's MTU. At least [`MIN_PAYLOAD`].
    pub payload: u32,
    /// The protected payload that the path is known to carry, at least [`MIN_PAYLOAD`]. Packets
    /// begin with this size. The connection tries a larger size, up to [`Config::payload`], before
    /// it uses that size. It returns to this size if the path drops larger packets. `None`: the
    /// path carries [`Config::payload`].
    pub base_payload: Option<u32>,
    /// The bytes of a packet on the wire besides its protected payload:
    /// [`SEALING`](crate::wire::limits::SEALING), and the UDP and IP headers.
    pub overhead: u32,
    /// The maximum number of ACK-eliciting packets before an acknowledgement.
    pub ack_frequency: u32,
    /// The maximum delay of an acknowledgement after the first ACK-eliciting packet.
    pub ack_delay: Span,
    /// The maximum interval between packets, to keep state in the network alive.
    pub keep_alive: Span,
    /// The maximum sending rate, headers included, whatever the controller allows; [`Rate::MAX`]
    /// for no limit. Acknowledgements and probes do not wait for it, but count against it.
    pub max_rate: Rate,
    /// The time without received packets after which the connection ends.
    pub idle_timeout: Span,
    /// Whether windows are spread over the round-trip time if the controller does not pace.
    pub pace_windows: bool,
    /// Whether packets request ECN marks instead of drops.
    pub ecn: bool,
    /// The maximum bytes of sections that wait to be sent. Further submissions are refused.
    pub send_buffer: u64,
    /// The maximum number of sections that wait to be sent.
    pub send_sections: u32,
    /// The maximum bytes of sections that are incomplete or wait for the application. With 0, this
    /// end has no room for sections, and the peer's announcements of sections take no memory.
    pub receive_buffer: u64,
    /// The maximum number of open sections at the receiver.
    pub receive_sections: u32,
    /// The maximum time from the arrival of a section's first byte to its deadline. A later
    /// deadline counts as this one.
    pub max_latency: Span,
    /// How long received sections still wait for their deadlines after the peer closed or timed
    /// out.
    pub play_out: Span,
    /// Whether packets with sections are padded to [`Config::payload`], so that all have one size.
    pub pad: bool,
    /// Whether packets have tokens, and acknowledgements prove the arrival of the packets that they
    /// name. Requires the support of both ends.
    pub proofs: bool,
    /// The seed of the tokens and of the skipped numbers.
    pub seed: Seed,
}

impl Config {
    /// The defaults.
    pub const DEFAULT: Self = Self {
        reliability: Reliability::Timeline,
        drop: DropPolicy::Infeasible,
        deliver: Deliver::Paced,
        expect_deadlines: true,
        payload: DEFAULT_DATAGRAM as u32 - SEALING,
        base_payload: None,
        overhead: SEALING + UDP_IPV4,
        // Each acknowledgement costs a system call at both ends. Holes and marks are acknowledged
        // at once anyway, and controllers count bytes, not acknowledgements.
        ack_frequency: 4,
        ack_delay: ACK_DELAY_DEFAULT,
        keep_alive: Span::from_secs(1),
        max_rate: Rate::MAX,
        idle_timeout: Span::from_secs(5),
        pace_windows: true,
        ecn: true,
        send_buffer: DEFAULT_BUFFER,
        send_sections: DEFAULT_SECTIONS,
        receive_buffer: DEFAULT_BUFFER,
        receive_sections: DEFAULT_SECTIONS,
        max_latency: DEFAULT_MAX_LATENCY,
        play_out: Span::from_secs(1),
        pad: false,
        proofs: false,
        seed: Seed::new(0),
    };
}

impl Default for Config {
    fn default() -> Self {
        Self::DEFAULT
    }
}

/// The valid range of each setting.
pub mod bounds {
    use core::ops::RangeInclusive;

    use comity_units::{Rate, Span};

    use crate::wire::limits::DATA_HEADER;

    const DAY: Span = Span::from_secs(86_400);

    /// The largest datagram in bytes, close to the limit of UDP.
    pub const MAX_DATAGRAM: u32 = 65_000;
    /// [`Config::payload`](super::Config::payload) in bytes. Every frame except sections fits into
    /// the minimum as a whole. The maximum is that of a packet without protection.
    pub const PAYLOAD: RangeInclusive<u32> = 600..=MAX_DATAGRAM - DATA_HEADER as u32;
    /// [`Config::ack_frequency`](super::Config::ack_frequency) in packets.
    pub const ACK_FREQUENCY: RangeInclusive<u32> = 1..=1_000;
    /// [`Config::ack_delay`](super::Config::ack_delay).
    pub const ACK_DELAY: RangeInclusive<Span> = Span::ZERO..=Span::from_secs(1);
    /// [`Config::keep_alive`](super::Config::keep_alive).
    pub const KEEP_ALIVE: RangeInclusive<Span> = Span::from_millis(10)..=DAY;
    /// [`Config::idle_timeout`](super::Config::idle_timeout).
    pub const IDLE_TIMEOUT: RangeInclusive<Span> = Span::from_millis(100)..=DAY;
    /// [`Config::max_rate`](super::Config::max_rate).
    pub const MAX_RATE: RangeInclusive<Rate> = Rate::from_kbps(1)..=Rate::MAX;
    /// [`Config::send_buffer`](super::Config::send_buffer) in bytes.
    pub const BUFFER: RangeInclusive<u64> = 1..=1 << 32;
    /// [`Config::receive_buffer`](super::Config::receive_buffer) in bytes.
    pub const RECEIVE_BUFFER: RangeInclusive<u64> = 0..=*BUFFER.end();
    /// [`Config::max_latency`](super::Config::max_latency).
    pub const MAX_LATENCY: RangeInclusive<Span> = Span::from_millis(1)..=Span::from_secs(3_600);
    /// [`Config::send_sections`](super::Config::send_sections) and
    /// [`Config::receive_sections`](super::Config::receive_sections).
    pub const SECTIONS: RangeInclusive<u32> = 1..=1 << 20;
}

/// The minimum protected payload.
pub const MIN_PAYLOAD: u32 = *bounds::PAYLOAD.start();

/// A setting is out of range.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ConfigError {
    /// The setting's name.
    pub name: &'static str,
    /// Its value.
    pub value: u64,
    /// The minimum.
    pub min: u64,
    /// The maximum.
    pub max: u64,
}

impl fmt::Display for ConfigError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            name,
            value,
            min,
            max,
        } = self;
        write!(f, "{name} is {value}, expected {min} to {max}")
    }
}

impl core::error::Error for ConfigError {}

impl Config {
    /// Whether this end has room for the peer's sections.
    pub const fn takes_sections(&self) -> bool {
        self.receive_buffer > 0
    }

    /// Whether this end abandons its sections at their deadlines.
    pub fn enforces_deadlines(&self) -> bool {
        self.reliability != Reliability::Full && self.drop != DropPolicy::Never
    }

    /// Checks the ranges.
    ///
    /// # Errors
    /// The first setting that is out of range.
    pub fn validate(&self) -> Result<(), ConfigError> {
        let whole =
            |range: RangeInclusive<u32>| u64::from(*range.start())..=u64::from(*range.end());
        let span = |range: RangeInclusive<Span>| range.start().as_nanos()..=range.end().as_nanos();
        let base = self.base_payload.unwrap_or(self.payload);
        let rate = bounds::MAX_RATE.start().as_bps()..=bounds::MAX_RATE.end().as_bps();
        let checks = [
            (
                "payload (bytes)",
                self.payload.into(),
                whole(bounds::PAYLOAD),
            ),
            (
                "base_payload (bytes)",
                base.into(),
                whole(MIN_PAYLOAD..=self.payload),
            ),
            (
                "ack_frequency (packets)",
                self.ack_frequency.into(),
                whole(bounds::ACK_FREQUENCY),
            ),
            (
                "ack_delay (ns)",
                self.ack_delay.as_nanos(),
                span(bounds::ACK_DELAY),
            ),
            (
                "keep_alive (ns)",
                self.keep_alive.as_nanos(),
                span(bounds::KEEP_ALIVE),
            ),
            (
                "idle_timeout (ns)",
                self.idle_timeout.as_nanos(),
                span(bounds::IDLE_TIMEOUT),
            ),
            ("max_rate (bit/s)", self.max_rate.as_bps(), rate),
            ("send_buffer (bytes)", self.send_buffer, bounds::BUFFER),
            (
                "send_sections",
                self.send_sections.into(),
                whole(bounds::SECTIONS),
            ),
            (
                "receive_buffer (bytes)",
                self.receive_buffer,
                bounds::RECEIVE_BUFFER,
            ),
            (
                "receive_sections",
                self.receive_sections.into(),
                whole(bounds::SECTIONS),
            ),
            (
                "max_latency (ns)",
                self.max_latency.as_nanos(),
                span(bounds::MAX_LATENCY),
            ),
        ];
        for (name, value, range) in checks {
            if !range.contains(&value) {
                return Err(ConfigError {
                    name,
                    value,
                    min: *range.start(),
                    max: *range.end(),
                });
            }
        }
        Ok(())
    }
}
