//! Filters the reports of the peer's meter.

use comity_congestion::{Report, Tag};
use comity_units::PacketNumber;

/// Rejects reports that are out of date, or about an earlier path.
///
/// The peer's meter knows nothing about a new path until it has received a packet with a tag on
/// that path. The acknowledgement of such a packet shows this.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct FeedbackFilter {
    /// The last tag that left.
    last_tag: Tag,
    /// The newest packet that brought a report.
    reported_by: Option<PacketNumber>,
    counted: Counted,
}

/// The reports that count.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Counted {
    /// All.
    #[default]
    All,
    /// None: the path has changed, and no tag has left since.
    AfterNextTag,
    /// Those that arrive after the acknowledgement of this packet or a later one. This packet has
    /// the first tag on the new path.
    After(PacketNumber),
}

impl FeedbackFilter {
    /// The last tag that left.
    pub(super) const fn last_tag(&self) -> Tag {
        self.last_tag
    }

    pub(super) const fn on_new_path(&mut self) {
        self.counted = Counted::AfterNextTag;
    }

    /// The controller assigned this tag.
    pub(super) const fn on_tag(&mut self, tag: Tag) {
        self.last_tag = tag;
    }

    /// The packet `number` carries the tag.
    pub(super) fn on_tag_sent(&mut self, number: PacketNumber) {
        if self.counted == Counted::AfterNextTag {
            self.counted = Counted::After(number);
        }
    }

    /// Whether the report in the packet `number` counts. `acknowledged` is the newest packet that
    /// the peer has acknowledged.
    ///
    /// A report that arrives after a newer report is out of date, unless it names its round.
    pub(super) fn accepts(
        &mut self,
        number: PacketNumber,
        report: &Report,
        acknowledged: Option<PacketNumber>,
    ) -> bool {
        let names_round = matches!(report, Report::Count { .. });
        if !names_round && self.reported_by.is_some_and(|by| number < by) {
            return false;
        }
        self.reported_by = self.reported_by.max(Some(number));
        match self.counted {
            Counted::After(first) if acknowledged >= Some(first) => self.counted = Counted::All,
            Counted::All | Counted::AfterNextTag | Counted::After(_) => {}
        }
        self.counted == Counted::All
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const STATE: Report = Report::Wave { level: 3 };
    const ROUND: Report = Report::Count {
        round: 1,
        packets: 9,
    };

    const fn packet(number: u64) -> PacketNumber {
        PacketNumber::new(number)
    }

    #[test]
    fn a_report_that_was_overtaken_counts_only_with_its_round() {
        let mut filter = FeedbackFilter::default();
        assert!(filter.accepts(packet(5), &STATE, None));
        assert!(!filter.accepts(packet(4), &STATE, None));
        assert!(filter.accepts(packet(4), &ROUND, None));
        assert!(
            filter.accepts(packet(5), &STATE, None),
            "of the same packet"
        );
    }

    #[test]
    fn on_a_new_path_reports_count_once_its_first_tag_is_acknowledged() {
        let mut filter = FeedbackFilter::default();
        filter.on_new_path();
        assert!(!filter.accepts(packet(1), &STATE, Some(packet(9))));
        filter.on_tag_sent(packet(10));
        filter.on_tag_sent(packet(12));
        assert!(!filter.accepts(packet(2), &STATE, Some(packet(9))));
        assert!(filter.accepts(packet(3), &STATE, Some(packet(10))));
        assert!(
            filter.accepts(packet(4), &STATE, None),
            "from now on all do"
        );
    }
}
