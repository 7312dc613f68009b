//! The sections of a TCP flow: their source, and their fates at the reader.

use std::io;
use std::pin::pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Waker};

use comity_sim::host::{SectionSender, TimelineFlow};
use comity_sim::report::TimelineReport;
use comity_tcp::timeline::{GapStatistics, Piece, TimelineStatistics};
use comity_tcp_host::Section;
use comity_tcp_host::net::{Stack, TcpStream};
use comity_units::{Span, Time};

use crate::clock::RunClock;

/// The interval between checks whether a greedy source needs another section.
const REFILL: Span = Span::from_millis(1);

/// The sections of a flow, which both ends share.
#[derive(Clone, Debug)]
pub(crate) struct Timeline(Arc<Mutex<Shared>>);

#[derive(Debug)]
struct Shared {
    flow: TimelineFlow,
    sent: TimelineStatistics,
    missing: GapStatistics,
}

impl Timeline {
    pub(crate) fn new(flow: TimelineFlow) -> Self {
        Self(Arc::new(Mutex::new(Shared {
            flow,
            sent: TimelineStatistics::default(),
            missing: GapStatistics::default(),
        })))
    }

    fn shared(&self) -> MutexGuard<'_, Shared> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Submits the sections that are due. Returns when to call again.
    pub(crate) fn submit(&self, now: Time, sender: &mut Submitter<'_>) -> Time {
        // The reader waits for the lock, so it finds every section already recorded.
        let flow = &mut self.shared().flow;
        if flow.is_greedy() {
            flow.fill(now, sender);
            return now + REFILL;
        }
        flow.produce(now, sender)
    }

    /// Records a piece of the stream that the reader received.
    pub(crate) fn read(&self, now: Time, piece: Piece) {
        self.shared().flow.read(now, piece, |_| {});
    }

    /// Stores the sender's counters, and returns the fates of the sections so far.
    pub(crate) fn sent(&self, sent: TimelineStatistics) -> TimelineReport {
        let mut shared = self.shared();
        shared.sent = sent;
        shared.flow.report(shared.sent, shared.missing)
    }

    /// Stores the reader's counters, and returns the fates of the sections so far.
    pub(crate) fn missed(&self, missing: GapStatistics) -> TimelineReport {
        let mut shared = self.shared();
        shared.missing = missing;
        shared.flow.report(shared.sent, shared.missing)
    }
}

/// The sending end of a connection, for sections of zeros.
#[derive(Debug)]
pub(crate) struct Submitter<'a> {
    pub(crate) stack: &'a Stack,
    pub(crate) stream: &'a TcpStream,
    pub(crate) clock: &'a RunClock,
    /// Whether the sender drops expired sections.
    pub(crate) drops_expired: bool,
}

impl Submitter<'_> {
    /// Converts a deadline to the time of the stack.
    fn deadline(&self, deadline: Time) -> Time {
        match self.drops_expired && !deadline.is_never() {
            true => self.stack.now() + deadline.saturating_since(self.clock.now()),
            false => Time::MAX,
        }
    }

    /// Submits a section if the connection has room for it now.
    fn attempt(&self, bytes: u32, deadline: Time) -> io::Result<bool> {
        let zeros = vec![0; bytes as usize];
        let sections = [Section {
            bytes: &zeros,
            deadline: self.deadline(deadline),
        }];
        let sending = pin!(self.stream.send_sections(&sections));
        match sending.poll(&mut Context::from_waker(Waker::noop())) {
            std::task::Poll::Ready(submitted) => submitted.map(|count| count == 1),
            std::task::Poll::Pending => Ok(false),
        }
    }
}

impl SectionSender for Submitter<'_> {
    fn unsent(&self) -> u64 {
        let statistics = self.stream.section_statistics();
        statistics.map_or(u64::MAX, |statistics| statistics.unsent_bytes)
    }

    fn submit(&mut self, bytes: u32, deadline: Time) -> bool {
        // A connection that has ended refuses sections. Its next sample, or its end, reports why.
        self.attempt(bytes, deadline).unwrap_or(false)
    }
}
