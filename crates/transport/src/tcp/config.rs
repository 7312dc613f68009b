//! Settings of a TCP endpoint.

use core::num::NonZeroU32;

use comity_congestion::RttConfig;
use comity_congestion::recovery::RecoveryConfig;
use comity_units::{Bytes, SeqNo, Span};

use super::timeline::TimelineConfig;

/// How one endpoint speaks TCP. Congestion control is given apart, as a controller.
///
/// Two named presets reproduce ns-2: [`Config::NS2_2_35`], the defaults of its last release, and
/// [`Config::NS2_2000`], those in force when the papers were run. [`Config::MODERN`] is what
/// current hosts do.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Config {
    /// The payload of a full segment, at least 1.
    pub mss: u32,
    /// The receive buffer: the largest window that is offered.
    pub receive_buffer: Bytes,
    /// Whether windows beyond 65,535 bytes may be offered (RFC 7323).
    pub window_scaling: bool,
    /// Whether segments carry timestamps and round trips are measured with them (RFC 7323).
    pub timestamps: bool,
    /// The tick of the clock behind the timestamps that this end sends: a microsecond to a second
    /// (RFC 7323, section 5.4, which begins at a millisecond). Round trips that are measured with
    /// timestamps are whole ticks.
    pub timestamp_tick: Span,
    /// Whether selective acknowledgements are offered and used (RFC 2018).
    pub sack: bool,
    /// Whether segments that arrive twice are reported, where selective acknowledgements are used
    /// (RFC 2883).
    pub duplicate_sack: bool,
    /// Whether marks of the network are asked for and answered (RFC 3168). Both ends have to be set
    /// so.
    pub ecn: bool,
    /// Whether the window is reduced when the flow sends again after it was idle for longer than
    /// its retransmission timeout (RFC 5681, section 4.1, in the form of RFC 2861).
    pub restart_after_idle: bool,
    /// When to hold an acknowledgement back; `None` answers every segment.
    pub delayed_ack: Option<DelayedAck>,
    /// Whether segments leave in groups that the host hands to its network interface as one. The
    /// last of a group says so (PSH), and is answered at once where it is full, so that
    /// acknowledgements stay in step with groups.
    pub segmentation_offload: bool,
    /// Whether the first two duplicate acknowledgements each release a new segment (RFC 3042).
    pub limited_transmit: bool,
    /// Whether the connection begins with a three-way handshake. Without one both ends are born
    /// established and know each other's settings, as ns-2's one-way agents are.
    pub handshake: bool,
    /// The first sequence number.
    pub initial_sequence: SeqNo,
    /// How losses are found and repaired.
    pub recovery: RecoveryConfig,
    /// How round trips are measured and when the retransmission timer expires.
    pub rtt: RttConfig,
    /// Whether the retransmission timer is restarted with the timeout from before the
    /// acknowledgement's round-trip sample (ns-2 before 2001) instead of after it.
    pub restart_timer_before_sample: bool,
    /// The most segments sent in answer to one event; `None` for no limit.
    pub max_burst: Option<u32>,
    /// How many expiries of the retransmission or the persist timer in a row, with no sign of life
    /// from the peer between them, end the connection (R2 of RFC 9293, section 3.8.3); `None` for
    /// never.
    pub give_up_after: Option<NonZeroU32>,
    /// Whether the controller has a half at the receiver (TCP-Real): data segments carry its tags,
    /// and acknowledgements what the peer's meter reports. Not negotiated: both ends have to be set
    /// so, and the receiving one be given its meter
    /// ([`Connection::with_meter`](super::Connection::with_meter)).
    pub metered: bool,
    /// Whether and how data is given in sections with deadlines; with a handshake, the peer has to
    /// agree.
    pub timeline: Option<TimelineConfig>,
    /// How long a closed connection remembers its sequence numbers: twice the maximum segment
    /// lifetime.
    pub time_wait: Span,
}

/// When an acknowledgement may be held back (RFC 1122, section 4.2.3.2; RFC 5681, section 4.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DelayedAck {
    /// How many full segments are answered by one acknowledgement, at least 2.
    pub segments: u8,
    /// How long an acknowledgement is held back at the most.
    pub timeout: Span,
    /// How many acknowledgements leave at once when a flow begins, so that its slow start is not
    /// slowed; again after a pause, and after a segment that arrives twice or is marked (quick
    /// acknowledgements of Linux).
    pub quick: u8,
}

impl Config {
    /// What current hosts do, after Linux 6: RACK-TLP with proportional rate reduction, SACK with
    /// duplicates, timestamps and window scaling, delayed acknowledgements of 40 ms after 16 quick
    /// ones, a restart after idle times, `SRTT + max(200 ms, 4 · RTTVAR)` for a retransmission
    /// timeout. Marks are off, as for a client there.
    pub const MODERN: Self = Self {
        mss: 1_448,
        receive_buffer: Bytes::new(6 << 20),
        window_scaling: true,
        timestamps: true,
        timestamp_tick: Span::from_micros(1),
        sack: true,
        delayed_ack: Some(DelayedAck {
            segments: 2,
            timeout: Span::from_millis(40),
            quick: 16,
        }),
        segmentation_offload: true,
        duplicate_sack: true,
        ecn: false,
        restart_after_idle: true,
        limited_transmit: true,
        handshake: true,
        initial_sequence: SeqNo::ZERO,
        recovery: RecoveryConfig::RACK,
        rtt: RttConfig::LINUX,
        restart_timer_before_sample: false,
        max_burst: None,
        give_up_after: None,
        metered: false,
        timeline: None,
        time_wait: Span::from_secs(60),
    };

    /// The defaults of ns-2.35: a handshake, limited transmit, ticks of 10 ms and a floor of 200
    /// ms, a window of 20 segments of 1460 bytes, every segment answered.
    pub const NS2_2_35: Self = Self {
        mss: 1_460,
        receive_buffer: Bytes::new(20 * 1_460),
        window_scaling: true,
        timestamps: false,
        sack: false,
        duplicate_sack: false,
        restart_after_idle: false,
        delayed_ack: None,
        segmentation_offload: false,
        limited_transmit: true,
        handshake: true,
        initial_sequence: SeqNo::ZERO,
        recovery: RecoveryConfig::RENO,
        rtt: RttConfig::NS2_2_35,
        ..Self::MODERN
    };

    /// ns-2 as in 1999 to 2001: no handshake, no limited transmit, ticks of 100 ms and no floor.
    pub const NS2_2000: Self = Self {
        limited_transmit: false,
        handshake: false,
        rtt: RttConfig::NS2_2000,
        restart_timer_before_sample: true,
        ..Self::NS2_2_35
    };
}

impl Default for Config {
    fn default() -> Self {
        Self::MODERN
    }
}
