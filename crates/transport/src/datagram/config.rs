//! What a connection is configured with.

use core::fmt;

use comity_units::{Rate, Seed, Span};

use crate::timeline::{Deliver, DropPolicy, Reliability};
use crate::wire::limits::{DATA_HEADER, TAG};
use crate::wire::parameters::{ACK_DELAY_DEFAULT, DATAGRAM_DEFAULT};

/// The settings of one end of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Config {
    /// How long lost bytes are sent again.
    pub reliability: Reliability,
    /// When this end gives sections up by itself.
    pub drop: DropPolicy,
    /// When this end hands sections to its application.
    pub deliver: Deliver,
    /// Whether an incomplete section of the peer becomes a gap at its deadline: whether the peer
    /// [enforces its deadlines](Self::enforces_deadlines), whatever this end does with its own.
    pub expect_deadlines: bool,
    /// The protected payload of a full packet in bytes: the datagram without headers and tag. Together with
    /// [`Config::overhead`] it must fit the path's MTU. At least [`MIN_PAYLOAD`].
    pub payload: u32,
    /// The protected payload that the path is known to carry, at least [`MIN_PAYLOAD`]: packets begin with it, larger
    /// ones up to [`Config::payload`] are tried first, and when the path swallows them packets have this size again.
    /// `None`: the path carries [`Config::payload`].
    pub base_payload: Option<u32>,
    /// What a packet has on the wire besides its protected payload: header and tag of the protocol (29), UDP
    /// (8) and IPv4 (20) or IPv6 (40).
    pub overhead: u32,
    /// An acknowledgement leaves at the latest after so many packets that ask for one.
    pub ack_frequency: u32,
    /// An acknowledgement leaves at the latest so long after the first packet that asks for one.
    pub ack_delay: Span,
    /// A packet leaves at the latest so long after the one before it, to keep state in the network alive.
    pub keep_alive: Span,
    /// The most that is sent, headers included, whatever the controller allows; [`Rate::MAX`] for no limit. At least
    /// [`MIN_RATE`]. Acknowledgements and probes do not wait for it, but sections wait for what they have used.
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
    /// The most bytes of sections that are collected or wait to be handed to the application.
    pub receive_buffer: u64,
    /// The most sections that are open at the receiver.
    pub receive_sections: u32,
    /// Whether packets with sections are filled up to [`Config::payload`], so that all have one size.
    pub pad: bool,
    /// The seed of the numbers that are left out.
    pub seed: Seed,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            reliability: Reliability::default(),
            drop: DropPolicy::default(),
            deliver: Deliver::default(),
            expect_deadlines: true,
            payload: DATAGRAM_DEFAULT as u32 - SEALING,
            base_payload: None,
            overhead: SEALING + 8 + 20,
            // Each costs a call of the system at both ends; holes and marks are told at once all the same, and laws
            // count bytes, not acknowledgements.
            ack_frequency: 4,
            ack_delay: ACK_DELAY_DEFAULT,
            keep_alive: Span::from_secs(1),
            max_rate: Rate::MAX,
            idle_timeout: Span::from_secs(5),
            pace_windows: true,
            ecn: true,
            send_buffer: 16 << 20,
            send_sections: 4_096,
            receive_buffer: 16 << 20,
            receive_sections: 4_096,
            pad: false,
            seed: Seed::new(0),
        }
    }
}

/// What a datagram has besides its protected payload: header and tag.
const SEALING: u32 = (DATA_HEADER + TAG) as u32;

/// The least that [`Config::max_rate`] may be.
pub const MIN_RATE: Rate = Rate::from_kbps(1);

/// The least protected payload: every frame but sections fits into it whole.
pub const MIN_PAYLOAD: u32 = 600;

/// The largest protected payload: what a UDP datagram can hold, roughly.
pub const MAX_PAYLOAD: u32 = 65_000;

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
    /// Whether sections are given up at their deadline when this end sends them.
    pub fn enforces_deadlines(&self) -> bool {
        self.reliability != Reliability::Full && self.drop != DropPolicy::Never
    }

    /// Checks the ranges.
    ///
    /// # Errors
    /// The first setting that is out of range.
    pub fn validate(&self) -> Result<(), ConfigError> {
        const DAY: u64 = 86_400_000_000_000;
        let checks = [
            (
                "payload (bytes)",
                u64::from(self.payload),
                u64::from(MIN_PAYLOAD),
                u64::from(MAX_PAYLOAD),
            ),
            (
                "base_payload (bytes)",
                u64::from(self.base_payload.unwrap_or(self.payload)),
                u64::from(MIN_PAYLOAD),
                u64::from(self.payload),
            ),
            (
                "ack_frequency (packets)",
                u64::from(self.ack_frequency),
                1,
                1_000,
            ),
            (
                "ack_delay (ns)",
                self.ack_delay.as_nanos(),
                0,
                1_000_000_000,
            ),
            (
                "keep_alive (ns)",
                self.keep_alive.as_nanos(),
                10_000_000,
                DAY,
            ),
            (
                "idle_timeout (ns)",
                self.idle_timeout.as_nanos(),
                100_000_000,
                DAY,
            ),
            (
                "max_rate (bit/s)",
                self.max_rate.as_bps(),
                MIN_RATE.as_bps(),
                u64::MAX,
            ),
            ("send_buffer (bytes)", self.send_buffer, 1, u64::MAX),
            ("send_sections", u64::from(self.send_sections), 1, 1 << 20),
            ("receive_buffer (bytes)", self.receive_buffer, 1, u64::MAX),
            (
                "receive_sections",
                u64::from(self.receive_sections),
                1,
                1 << 20,
            ),
        ];
        for (name, value, min, max) in checks {
            if value < min || value > max {
                return Err(ConfigError {
                    name,
                    value,
                    min,
                    max,
                });
            }
        }
        Ok(())
    }
}
