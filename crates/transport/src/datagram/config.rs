//! What a connection is configured with.

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
    /// When this end gives sections up by itself.
    pub drop: DropPolicy,
    /// When this end hands sections to its application.
    pub deliver: Deliver,
    /// Whether an incomplete section of the peer becomes a gap at its deadline: whether the peer
    /// [enforces its deadlines](Self::enforces_deadlines), whatever this end does with its own.
    pub expect_deadlines: bool,
    /// The protected payload of a full packet in bytes: the datagram without headers and tag.
    /// Together with [`Config::overhead`] it must fit the path's MTU. At least [`MIN_PAYLOAD`].
    pub payload: u32,
    /// The protected payload that the path is known to carry, at least [`MIN_PAYLOAD`]: packets
    /// begin with it, larger ones up to [`Config::payload`] are tried first, and when the path
    /// swallows them packets have this size again. `None`: the path carries [`Config::payload`].
    pub base_payload: Option<u32>,
    /// What a packet has on the wire besides its protected payload:
    /// [`SEALING`](crate::wire::limits::SEALING), and the headers of UDP and IP.
    pub overhead: u32,
    /// An acknowledgement leaves at the latest after so many packets that ask for one.
    pub ack_frequency: u32,
    /// An acknowledgement leaves at the latest so long after the first packet that asks for one.
    pub ack_delay: Span,
    /// A packet leaves at the latest so long after the one before it, to keep state in the network
    /// alive.
    pub keep_alive: Span,
    /// The most that is sent, headers included, whatever the controller allows; [`Rate::MAX`] for
    /// no limit. Acknowledgements and probes do not wait for it, but sections wait for what they
    /// have used.
    pub max_rate: Rate,
    /// The connection ends when nothing has arrived for so long.
    pub idle_timeout: Span,
    /// Whether windows are spread over the round trip where the controller itself does not pace.
    pub pace_windows: bool,
    /// Whether packets ask the network to mark instead of drop.
    pub ecn: bool,
    /// The most bytes of sections that wait to be sent; beyond it a submission is refused.
    pub send_buffer: u64,
    /// The most sections that wait to be sent.
    pub send_sections: u32,
    /// The most bytes of sections that are collected or wait to be handed to the application. 0: it
    /// has no room for any, and nothing that the peer says of sections takes memory.
    pub receive_buffer: u64,
    /// The most sections that are open at the receiver.
    pub receive_sections: u32,
    /// How far the deadline of a received section may lie behind the arrival of its first byte. A
    /// later one counts as this one.
    pub max_latency: Span,
    /// How long after the peer's end, or its silence, received sections still wait for their
    /// deadlines.
    pub play_out: Span,
    /// Whether packets with sections are filled up to [`Config::payload`], so that all have one
    /// size.
    pub pad: bool,
    /// Whether packets have tokens, and acknowledgements prove that the packets arrived which they
    /// name: whether both ends know how.
    pub proofs: bool,
    /// The seed of the tokens and of the numbers that are left out.
    pub seed: Seed,
}

impl Config {
    /// What holds where nobody says otherwise.
    pub const DEFAULT: Self = Self {
        reliability: Reliability::Timeline,
        drop: DropPolicy::Infeasible,
        deliver: Deliver::Paced,
        expect_deadlines: true,
        payload: DEFAULT_DATAGRAM as u32 - SEALING,
        base_payload: None,
        overhead: SEALING + UDP_IPV4,
        // Each costs a call of the system at both ends; holes and marks are acknowledged at once
        // all the same, and controllers count bytes, not acknowledgements.
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

/// What each setting may be.
pub mod bounds {
    use core::ops::RangeInclusive;

    use comity_units::{Rate, Span};

    use crate::wire::limits::DATA_HEADER;

    const DAY: Span = Span::from_secs(86_400);

    /// The largest datagram in bytes: UDP just carries it.
    pub const MAX_DATAGRAM: u32 = 65_000;
    /// [`Config::payload`](super::Config::payload) in bytes. Every frame but sections fits into the
    /// least one whole; the largest is that of a packet without protection.
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

/// The least protected payload.
pub const MIN_PAYLOAD: u32 = *bounds::PAYLOAD.start();

/// A setting is out of range.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ConfigError {
    /// The setting's name.
    pub name: &'static str,
    /// What it was.
    pub value: u64,
    /// The least that it may be.
    pub min: u64,
    /// The most that it may be.
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
    /// Whether this end has room for sections of the peer.
    pub const fn takes_sections(&self) -> bool {
        self.receive_buffer > 0
    }

    /// Whether sections are abandoned at their deadline when this end sends them.
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
