//! The fates of all sections, counted in constant memory.

use comity::Fate;
use comity::transport::{Delivery, Transport, TransportEvent};
use comity_units::{Span, Time};

/// The sums over all connections so far.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Totals {
    pub(crate) submitted: u64,
    pub(crate) on_time: u64,
    pub(crate) late: u64,
    pub(crate) gaps: u64,
    /// Sections that no receiver could report: it was killed or had lost its sender before.
    pub(crate) unreported: u64,
    pub(crate) connections: u64,
    pub(crate) key_updates: u64,
    pub(crate) moves: u64,
    pub(crate) black_holes: u64,
    pub(crate) suspended: u64,
    pub(crate) killed: u64,
}

/// The sections of one end of a connection, at both ends. Each stream has one latency, so its
/// sections come in the order of their numbers.
#[derive(Debug, Default)]
pub(crate) struct Counts {
    submitted: u64,
    /// The next number in the receiver's reports.
    next: u64,
    on_time: u64,
    late: u64,
    gaps: u64,
    outcomes: u64,
    acknowledged: u64,
    /// The number of the next section at the last two checks, and their times.
    before: [(Time, u64); 2],
}

/// The longest time for which sections may be on their way when a connection ends: until the
/// silence of the peer ends it, and two checks more.
const ON_THE_WAY: Span = Span::from_secs(30);

/// The bytes of a section.
pub(crate) fn payload(number: u64, length: usize) -> Vec<u8> {
    vec![number as u8; length]
}

impl Counts {
    pub(crate) fn submitted(&self) -> u64 {
        self.submitted
    }

    pub(crate) fn submit(&mut self, now: Time, number: u64) {
        assert_eq!(number, self.submitted);
        self.submitted += 1;
        if now.saturating_since(self.before[1].0) >= ON_THE_WAY {
            self.before = [self.before[1], (now, number)];
        }
    }

    /// Takes what the receiver's transport reports.
    pub(crate) fn receive(&mut self, now: Time, transport: &mut Transport) {
        while let Some(delivery) = transport.poll_delivery(now) {
            match delivery {
                Delivery::Section(section) => {
                    let number = section.meta.section.0;
                    assert_eq!(number, self.next, "in order, each once");
                    let is_right = |byte: &u8| *byte == number as u8;
                    assert!(section.payload.iter().all(is_right), "{number}");
                    assert_eq!(section.payload.len(), section.meta.length as usize);
                    self.next += 1;
                    match section.is_late {
                        true => self.late += 1,
                        false => self.on_time += 1,
                    }
                }
                Delivery::Gap(gap) => {
                    assert_eq!(gap.section.0, self.next, "in order, each once");
                    self.next += gap.count;
                    self.gaps += gap.count;
                }
            }
        }
        assert!(self.next <= self.submitted, "{self:?}");
    }

    /// Takes what the sender's transport reports.
    pub(crate) fn gather(&mut self, now: Time, transport: &mut Transport) {
        while let Some(event) = transport.poll_event(now) {
            if let TransportEvent::Outcome(outcome) = event {
                self.outcomes += 1;
                self.acknowledged += u64::from(outcome.fate == Fate::Acknowledged);
            }
        }
        assert!(self.outcomes <= self.submitted, "{self:?}");
    }

    /// Checks that no section is on its way.
    pub(crate) fn check_settled(&self) {
        assert_eq!(
            (self.next, self.outcomes),
            (self.submitted, self.submitted),
            "{self:?}"
        );
    }

    /// Checks a sender that has ended by itself: it reports all sections.
    pub(crate) fn check_sender(&self) {
        assert_eq!(self.outcomes, self.submitted, "{self:?}");
    }

    /// Checks a receiver that has ended by itself: it has reported all sections that it
    /// acknowledged.
    pub(crate) fn check_receiver(&self) {
        assert!(self.acknowledged <= self.next, "{self:?}");
    }

    /// Adds the sections of a connection that is over, or settled.
    pub(crate) fn add_to(&self, totals: &mut Totals) {
        totals.submitted += self.submitted;
        totals.on_time += self.on_time;
        totals.late += self.late;
        totals.gaps += self.gaps;
        assert_eq!(self.next, self.on_time + self.late + self.gaps);
        totals.unreported += self.submitted - self.next;
        // Only sections that were on their way can be missing from the receiver's reports.
        assert!(self.next >= self.before[0].1, "{self:?}");
    }
}
