//! Explicit congestion notification: how a sender marks its packets and reacts to the echo of a
//! mark.

use comity_congestion::Ecn;

use super::super::segment::Flags;

/// The ECN state of departing segments, and the last reduction of the window.
#[derive(Debug, Default)]
pub(super) struct Marks {
    /// Whether the window was reduced for a mark, which the next new data has to report (CWR).
    owes_notice: bool,
    /// Whether the last segment carries new data, and whether it reports the reduction.
    is_capable: bool,
    is_notice: bool,
    /// The end of the data sent at the last reduction: another mark on it causes no further
    /// reduction.
    reduced_until: u64,
}

impl Marks {
    /// Records a departing segment. Only new data is sent as ECN-capable, neither retransmissions
    /// nor segments without payload (RFC 3168, sections 6.1.4 and 6.1.5).
    #[inline]
    pub(super) const fn on_sent(&mut self, is_new: bool) {
        self.is_capable = is_new;
        self.is_notice = is_new && self.owes_notice;
        self.owes_notice &= !is_new;
    }

    /// Whether the echo of a mark reduces the window; `una` is the first unacknowledged offset. One
    /// window of data causes one reduction (RFC 3168, section 6.1.2).
    #[inline]
    pub(super) const fn is_new(&self, una: u64) -> bool {
        self.is_behind_reduction(una) && una > 0
    }

    /// Records that the window is reduced for a mark. The next new data reports it.
    pub(super) const fn on_mark(&mut self) {
        self.owes_notice = true;
    }

    /// Records that the window is reduced, for a mark or a loss, with the data up to `max` sent.
    pub(super) const fn on_reduction(&mut self, max: u64) {
        self.reduced_until = max;
    }

    /// Whether `una` lies behind the data of the last reduction.
    pub(super) const fn is_behind_reduction(&self, una: u64) -> bool {
        una > self.reduced_until
    }

    /// The codepoint and the flags of the last segment.
    pub(super) fn of_last(&self) -> (Ecn, Flags) {
        let codepoint = if self.is_capable {
            Ecn::Capable0
        } else {
            Ecn::NotCapable
        };
        let flags = if self.is_notice {
            Flags::CWR
        } else {
            Flags::NONE
        };
        (codepoint, flags)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_next_new_segment_reports_a_reduction_once() {
        let mut marks = Marks::default();
        marks.on_sent(true);
        assert_eq!(marks.of_last(), (Ecn::Capable0, Flags::NONE));
        marks.on_mark();
        marks.on_sent(false);
        assert_eq!(marks.of_last(), (Ecn::NotCapable, Flags::NONE), "not new");
        marks.on_sent(true);
        assert_eq!(marks.of_last(), (Ecn::Capable0, Flags::CWR));
        marks.on_sent(true);
        assert_eq!(marks.of_last(), (Ecn::Capable0, Flags::NONE));
    }

    #[test]
    fn one_window_is_reduced_once() {
        let mut marks = Marks::default();
        assert!(!marks.is_new(0), "the SYN opens no window");
        assert!(marks.is_new(1));
        marks.on_reduction(10_001);
        assert!(!marks.is_new(10_001));
        assert!(marks.is_new(10_002));
    }
}
