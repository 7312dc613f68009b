//! TCP in virtual time: two ends over a path ([`Pair`]), or one end against a script ([`Script`]).

mod notation;
mod pair;
mod script;

use std::sync::Arc;

use comity_congestion::controllers::{DecreaseBasis, Fixed, Increase, Reno, RenoConfig, Rounding};
use comity_congestion::recovery::RecoveryConfig;
use comity_congestion::{Controller, Pacing, RttConfig};
use comity_tcp::timeline::TimelineConfig;
use comity_tcp::{Config, Connection};
use comity_units::{DataSize, SeqNo, Span};

pub use notation::{NotationError, parse, render};
pub use pair::{Chaos, Fate, Pair, Path, Record, Side};
pub use script::Script;

/// Settings for calculations by hand: segments of 100 bytes, a buffer of 10,000, no options, an
/// acknowledgement for every segment, no limited transmit, the timer of RFC 6298 with a floor of
/// one second.
pub const PLAIN: Config = Config {
    mss: 100,
    receive_buffer: DataSize::new(10_000),
    window_scaling: false,
    timestamps: false,
    timestamp_tick: Span::from_micros(1),
    sack: false,
    duplicate_sack: false,
    max_sack_blocks: 3,
    ecn: false,
    restart_after_idle: false,
    delayed_ack: None,
    segmentation_offload: false,
    limited_transmit: false,
    handshake: true,
    initial_sequence: SeqNo::ZERO,
    recovery: RecoveryConfig::NEW_RENO,
    rtt: RttConfig::RFC6298,
    restart_timer_before_sample: false,
    max_burst: None,
    give_up_after: None,
    metered: false,
    timeline: None,
    time_wait: Span::from_secs(60),
    skip_segments: None,
};

/// [`PLAIN`] without a handshake: both ends start established.
pub const BORN: Config = Config {
    handshake: false,
    ..PLAIN
};

/// The sender and receiver of the TLTCP paper's examples: packets of one byte, starting with the
/// number 10.
pub const TIMELINED: Config = Config {
    mss: 1,
    receive_buffer: DataSize::new(40),
    initial_sequence: SeqNo::new(9),
    recovery: RecoveryConfig::RENO,
    timeline: Some(TimelineConfig::PAPER),
    ..BORN
};

/// A controller with a constant window of `window` bytes.
pub fn fixed(window: u64) -> Box<dyn Controller> {
    Box::new(Fixed::new(
        DataSize::new(1),
        DataSize::new(window),
        Pacing::Unpaced,
    ))
}

/// A controller without a limit of its own beside the receiver's, which paces as `pacing` requires.
pub fn paced(pacing: Pacing) -> Box<dyn Controller> {
    Box::new(Fixed::new(DataSize::new(1), DataSize::MAX, pacing))
}

/// Reno's controller with segments of `mss` bytes: an initial window of `window` segments,
/// avoidance from `threshold` segments on, one segment per acknowledgement in slow start, exact
/// halves of the bytes in flight.
pub fn reno(mss: u32, window: u64, threshold: u64) -> Box<dyn Controller> {
    let mss = DataSize::new(u64::from(mss));
    Box::new(Reno::new(RenoConfig {
        mss,
        initial_window: mss * window,
        initial_ssthresh: mss * threshold,
        max_window: DataSize::MAX,
        increase: Increase::PerAck,
        decrease_basis: DecreaseBasis::Flight,
        rounding: Rounding::Exact,
        grow_when_limited: false,
        undo: false,
        weight: 1.0,
    }))
}

/// Creates an end that opens.
pub fn opener(config: Config, controller: Box<dyn Controller>) -> Connection {
    Connection::connect(Arc::new(config), controller)
}

/// Creates an end that listens.
pub fn listener(config: Config, controller: Box<dyn Controller>) -> Connection {
    Connection::listen(Arc::new(config), controller)
}
