//! Settings of a TCP endpoint.

use core::num::NonZeroU32;

use comity_congestion::RttConfig;
use comity_congestion::recovery::RecoveryConfig;
use comity_units::{DataSize, Seed, SeqNo, Span};

use super::timeline::TimelineConfig;

/// The settings of one TCP endpoint. The congestion controller is a separate argument.
///
/// Two presets reproduce ns-2: [`Config::NS2_2_35`] has the defaults of its last release, and
/// [`Config::NS2_2000`] those at the time of the papers. [`Config::MODERN`] follows current hosts.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Config {
    /// The payload of a full segment, at least 1.
    pub mss: u32,
    /// The receive buffer: the largest offered window.
    pub receive_buffer: DataSize,
    /// Whether to offer windows beyond 65,535 bytes (RFC 7323).
    pub window_scaling: bool,
    /// Whether segments carry timestamps, which then measure round trips (RFC 7323).
    pub timestamps: bool,
    /// The tick of this end's timestamp clock, from a microsecond to a second (RFC 7323, section
    /// 5.4, begins at a millisecond). Round trips measured with timestamps are whole ticks.
    pub timestamp_tick: Span,
    /// Whether to offer and use selective acknowledgements (RFC 2018).
    pub sack: bool,
    /// Whether to report duplicate segments, if selective acknowledgements are in use (RFC 2883).
    pub duplicate_sack: bool,
    /// The maximum number of SACK blocks in a segment. The space of the options may limit it
    /// further: beside timestamps three fit (RFC 2018, section 3).
    pub max_sack_blocks: u8,
    /// Whether to use explicit congestion notification (RFC 3168). Both ends must set it.
    pub ecn: bool,
    /// Whether to reduce the window when sending resumes after an idle time longer than the
    /// retransmission timeout (RFC 5681, section 4.1, in the form of RFC 2861).
    pub restart_after_idle: bool,
    /// When to delay an acknowledgement; `None` acknowledges every segment at once.
    pub delayed_ack: Option<DelayedAck>,
    /// Whether the host hands segments to its network interface in groups. The last segment of a
    /// group has the PSH flag. The receiver acknowledges it at once if it is full, which keeps
    /// acknowledgements in step with groups.
    pub segmentation_offload: bool,
    /// Whether the first two duplicate acknowledgements each release a new segment (RFC 3042).
    pub limited_transmit: bool,
    /// Whether the connection begins with a three-way handshake. Without one, both ends start
    /// established and are assumed to have the same settings, as with ns-2's one-way agents.
    pub handshake: bool,
    /// The first sequence number.
    pub initial_sequence: SeqNo,
    /// How losses are found and repaired.
    pub recovery: RecoveryConfig,
    /// How round trips are measured and when the retransmission timer expires.
    pub rtt: RttConfig,
    /// Whether the retransmission timer restarts before the acknowledgement's round-trip sample
    /// updates the timeout (ns-2 before 2001) instead of after it.
    pub restart_timer_before_sample: bool,
    /// The maximum number of segments sent in response to one event; `None` for no limit.
    pub max_burst: Option<u32>,
    /// How many consecutive expiries of the retransmission or the persist timer end the connection,
    /// without a sign of life from the peer between them (R2 of RFC 9293, section 3.8.3); `None`
    /// for never.
    pub give_up_after: Option<NonZeroU32>,
    /// Whether the controller has a half at the receiver (TCP-Real). Data segments then carry its
    /// tags, and acknowledgements carry the reports of the peer's meter. It is not negotiated: both
    /// ends must set it, and the receiving end needs its meter
    /// ([`Connection::with_meter`](super::Connection::with_meter)).
    pub metered: bool,
    /// Whether and how the stream has sections with deadlines. With a handshake, the peer has to
    /// agree.
    pub timeline: Option<TimelineConfig>,
    /// How long a closed connection stays in TIME-WAIT: twice the maximum segment lifetime.
    pub time_wait: Span,
    /// Whether to skip a segment now and then, to test whether the peer reports the hole. A peer
    /// that acknowledges the segment before it left hides losses; the connection then ends
    /// ([`Connection::was_deceived`](super::Connection::was_deceived)). The seed selects the
    /// segments, and the peer must not know it.
    pub skip_segments: Option<Seed>,
}

/// When to delay an acknowledgement (RFC 1122, section 4.2.3.2; RFC 5681, section 4.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DelayedAck {
    /// How many full segments one acknowledgement covers, at least 2.
    pub segments: u8,
    /// The longest delay of an acknowledgement.
    pub timeout: Span,
    /// How many acknowledgements leave without delay when a flow begins, so that they do not slow
    /// its slow start. The count restarts after a pause, and after a duplicate or marked segment
    /// (quick acknowledgements of Linux).
    pub quick: u8,
}

impl DelayedAck {
    /// 4.4BSD: every second segment, or after 200 ms (`tcp_fasttimo`; Stevens, TCP/IP Illustrated
    /// 2, chapter 25). Differs in: the delay begins with the segment, where BSD's ends at a tick
    /// and so is 100 ms on average.
    pub const BSD: Self = Self {
        segments: 2,
        timeout: Span::from_millis(200),
        quick: 0,
    };
}

impl Config {
    /// The behaviour of current hosts, after Linux 6: RACK-TLP with proportional rate reduction,
    /// SACK with duplicates, timestamps and window scaling, delayed acknowledgements of 40 ms after
    /// 16 quick ones, a restart after idle times, `SRTT + max(200 ms, 4 · RTTVAR)` for a
    /// retransmission timeout. ECN is off, as for a Linux client.
    pub const MODERN: Self = Self {
        mss: 1_448,
        receive_buffer: DataSize::new(6 << 20),
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
        max_sack_blocks: 4,
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
        skip_segments: None,
    };

    /// The defaults of ns-2.35: a handshake, limited transmit, ticks of 10 ms and a floor of 200
    /// ms, a window of 20 segments of 1460 bytes, an acknowledgement for every segment.
    pub const NS2_2_35: Self = Self {
        mss: 1_460,
        receive_buffer: DataSize::new(20 * 1_460),
        window_scaling: true,
        timestamps: false,
        sack: false,
        duplicate_sack: false,
        max_sack_blocks: 3,
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
