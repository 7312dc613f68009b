//! Time-lined TCP in a flow: the source of its sections and their fates.

use std::collections::VecDeque;

use comity_frames::{FrameType, Schedule, Selection};
use comity_tcp::Connection;
use comity_tcp::timeline::{GapStatistics, Piece, TimelineStatistics};
use comity_units::{Span, Time};

use super::observe::SectionEvent;
use super::producer::Producer;
use crate::network::TimelineSpec;
use crate::report::TimelineReport;

/// The sending end of a connection, as a source of sections has it.
pub trait SectionSender {
    /// Bytes submitted but not yet sent for the first time.
    fn unsent(&self) -> u64;

    /// Submits a section. Returns whether the connection accepted it.
    fn submit(&mut self, bytes: u32, deadline: Time) -> bool;
}

impl SectionSender for Connection {
    fn unsent(&self) -> u64 {
        Self::unsent(self)
    }

    fn submit(&mut self, bytes: u32, deadline: Time) -> bool {
        self.write_section(u64::from(bytes), deadline).is_ok()
    }
}

/// The source and the reader of a time-lined flow.
///
/// A greedy source always has a section ready after the one that is being sent. Section k, from 0,
/// expires k + 1 lifetimes after the start; if a section is sent early, the next one follows at
/// once. The source leaves out sections that expire before there is room for them. A section of
/// another source expires one lifetime after its source time; frames have the deadlines of their
/// groups (TLTCP, section 4).
#[derive(Debug)]
pub struct TimelineFlow {
    producer: Producer,
    life: Span,
    start: Time,
    /// Sections that the reader has not passed.
    open: VecDeque<Given>,
    /// The bytes submitted so far.
    given: u64,
    /// The end of the last section that the reader has passed.
    settled_to: u64,
    deadlines: GroupDeadlines,
    feedback: Option<Feedback>,
    has_stopped: bool,
    /// Sections of a source with source times so far, those left out included.
    produced: u64,
    /// The number after the last section in time.
    played_to: u64,
    /// Whether the last section that the reader has passed was not in time.
    is_interrupted: bool,
    counts: TimelineReport,
}

/// A submitted section.
#[derive(Clone, Copy, Debug)]
struct Given {
    /// Its number among all sections of the source.
    number: u64,
    end: u64,
    bytes: u64,
    deadline: Time,
    kind: FrameType,
    /// The choice of frames that its fate judges, if any.
    choice: Option<u32>,
    has_gap: bool,
}

/// The deadlines of frames, in the order of sending (TLTCP, section 4).
///
/// An intra frame and the predicted frames up to the next intra frame share one deadline: a
/// lifetime after the source time of the intra frame. A bidirectional frame is decoded from the two
/// references sent before it, and has the deadline of the earlier one.
///
/// # Source
/// Mukherjee and Brecht, "Time-lined TCP for the TCP-friendly Delivery of Streaming Media", ICNP
/// 2000, section 4.
///
/// Differs from the paper in: 1. the paper leaves the lifetime to the schedule of the application;
/// here one lifetime holds for all groups and counts from the source time. 2. the paper's example
/// names the deadlines of both groups at its first B frame; this follows the rule in the text. 3. a
/// B frame without two references before it, and a section that is no frame, expires a lifetime
/// after its own source time. 4. no frame expires later than that.
#[derive(Debug)]
struct GroupDeadlines {
    /// The deadlines of the last two references, the later one last.
    references: [Time; 2],
}

impl GroupDeadlines {
    const fn new() -> Self {
        Self {
            references: [Time::MAX; 2],
        }
    }

    /// The deadline of the next frame; `own` is a lifetime after its source time.
    fn next(&mut self, kind: FrameType, own: Time) -> Time {
        let [earlier, later] = self.references;
        let deadline = match kind {
            FrameType::Predicted { .. } => later,
            FrameType::Bidirectional { .. } => earlier,
            _ => own,
        };
        if kind.is_reference() {
            self.references = [later, deadline];
        }
        deadline.min(own)
    }
}

/// The reports of the reader, and the choice of frames that they lead to.
///
/// The reader reports once an interval. A report is no packet: it reaches the source after the
/// delay of the reverse path and meets no queue.
#[derive(Debug)]
struct Feedback {
    interval: Span,
    reverse_delay: Span,
    selection: Selection,
    next_report: Time,
    /// The content of the next report. It covers the newest choice with a settled frame.
    current: Shares,
    /// Reports in flight, with their arrival times.
    reports: VecDeque<(Time, Shares)>,
}

/// How many frames of one choice were in time, and how many were not.
#[derive(Clone, Copy, Debug, Default)]
struct Shares {
    choice: u32,
    in_time: u64,
    missed: u64,
}

impl Feedback {
    fn new(interval: Span, reverse_delay: Span, start: Time) -> Self {
        Self {
            interval,
            reverse_delay,
            selection: Selection::default(),
            next_report: start + interval,
            current: Shares::default(),
            reports: VecDeque::new(),
        }
    }

    /// Sends the reports that are due.
    fn report(&mut self, now: Time) {
        while self.next_report <= now {
            let next = Shares {
                choice: self.current.choice,
                ..Shares::default()
            };
            let shares = core::mem::replace(&mut self.current, next);
            self.reports
                .push_back((self.next_report + self.reverse_delay, shares));
            self.next_report += self.interval;
        }
    }

    /// Records that the reader has passed a frame of this choice.
    fn on_settled(&mut self, now: Time, choice: u32, is_in_time: bool) {
        self.report(now);
        if choice != self.current.choice {
            self.current = Shares {
                choice,
                ..Shares::default()
            };
        }
        self.current.in_time += u64::from(is_in_time);
        self.current.missed += u64::from(!is_in_time);
    }

    /// The frames that the source submits at `now`, by the reports that have reached it; it has
    /// submitted `given` bytes.
    fn schedule(&mut self, now: Time, given: u64) -> Schedule {
        self.report(now);
        while let Some(&(at, shares)) = self.reports.front()
            && at <= now
        {
            self.reports.pop_front();
            if shares.choice == self.selection.choice() {
                let Shares {
                    in_time, missed, ..
                } = shares;
                self.selection.on_report(in_time, missed, given);
            }
        }
        self.selection.schedule()
    }
}

impl TimelineFlow {
    /// Creates a source that begins at `start`; reports of its reader take `reverse_delay`.
    pub(in crate::engine) fn new(
        producer: Producer,
        spec: &TimelineSpec,
        start: Time,
        reverse_delay: Span,
    ) -> Self {
        let feedback = spec
            .feedback
            .map(|interval| Feedback::new(interval, reverse_delay, start));
        Self {
            producer,
            life: spec.deadline,
            start,
            open: VecDeque::new(),
            given: 0,
            settled_to: 0,
            deadlines: GroupDeadlines::new(),
            feedback,
            has_stopped: false,
            produced: 0,
            played_to: 0,
            is_interrupted: false,
            counts: TimelineReport::default(),
        }
    }

    /// Whether only packets and timers make it act.
    pub const fn is_greedy(&self) -> bool {
        matches!(self.producer, Producer::Greedy(_))
    }

    /// The source time of the next section; [`Time::MAX`] if there is none or if the source is
    /// greedy.
    pub fn next_emission(&self) -> Time {
        self.producer.peek()
    }

    /// The source submits nothing more.
    pub const fn stop(&mut self) {
        self.has_stopped = true;
    }

    /// Submits sections until a greedy source has a whole one ready. Returns whether it submitted
    /// any.
    pub fn fill(&mut self, now: Time, connection: &mut impl SectionSender) -> bool {
        let Producer::Greedy(bytes) = self.producer else {
            return false;
        };
        let before = self.counts.given;
        while !self.has_stopped && connection.unsent() < u64::from(bytes) {
            let lives = now.saturating_since(self.start).as_nanos() / self.life.as_nanos().max(1);
            let section = self.counts.given + self.counts.left_out;
            // These sections expired before there was room for them.
            self.counts.left_out += lives.saturating_sub(section);
            let number = section.max(lives);
            let deadline = self.start + self.life * (number + 1);
            if !self.give(connection, number, bytes, deadline, FrameType::Slice) {
                break;
            }
        }
        self.counts.given > before
    }

    /// Submits all sections with a source time up to `now`. Returns the next source time.
    pub fn produce(&mut self, now: Time, connection: &mut impl SectionSender) -> Time {
        let schedule = match &mut self.feedback {
            Some(feedback) => feedback.schedule(now, self.given),
            None => Schedule::All,
        };
        while self.producer.peek() <= now
            && let Some((bytes, kind)) = self.producer.next(None)
        {
            let deadline = self.deadlines.next(kind, now + self.life);
            if schedule.takes(kind) {
                self.give(connection, self.produced, bytes, deadline, kind);
            } else {
                self.counts.left_out += 1;
            }
            self.produced += 1;
        }
        self.producer.peek()
    }

    fn give(
        &mut self,
        connection: &mut impl SectionSender,
        number: u64,
        bytes: u32,
        deadline: Time,
        kind: FrameType,
    ) -> bool {
        let unsent = connection.unsent();
        let is_taken = connection.submit(bytes, deadline);
        if is_taken {
            let choice = self
                .feedback
                .as_ref()
                .and_then(|feedback| feedback.selection.judged(self.given, unsent));
            self.given += u64::from(bytes);
            self.counts.given += 1;
            self.open.push_back(Given {
                number,
                end: self.given,
                bytes: bytes.into(),
                deadline,
                kind,
                choice,
                has_gap: false,
            });
        } else {
            self.counts.refused += 1;
        }
        is_taken
    }

    /// The reader takes a piece of the stream. `on_settled` gets the sections that it ends.
    pub fn read(&mut self, now: Time, piece: Piece, mut on_settled: impl FnMut(&SectionEvent)) {
        let (Piece::Data { offset, length } | Piece::Gap { offset, length }) = piece;
        let is_gap = matches!(piece, Piece::Gap { .. });
        let end = offset + length;
        while let Some(section) = self.open.front_mut() {
            // An empty section has no gap, and a piece that ends with a section does not touch the
            // next one.
            section.has_gap |= is_gap && offset.max(self.settled_to) < end.min(section.end);
            if section.end > end {
                break;
            }
            let section = *section;
            self.open.pop_front();
            self.settled_to = section.end;
            on_settled(&self.settle(now, section));
        }
    }

    fn settle(&mut self, now: Time, section: Given) -> SectionEvent {
        let is_in_time = !section.has_gap && now <= section.deadline;
        let counts = &mut self.counts;
        match (section.has_gap, is_in_time) {
            (true, _) => counts.broken += 1,
            (false, true) => counts.in_time += 1,
            (false, false) => counts.late += 1,
        }
        let passed = section.number + u64::from(!is_in_time);
        let missed = passed - self.played_to;
        counts.interruptions += u64::from(missed > 0 && !self.is_interrupted);
        counts.longest_interruption = counts.longest_interruption.max(missed);
        self.is_interrupted = !is_in_time;
        if is_in_time {
            self.played_to = section.number + 1;
        }
        let of_kind = match section.kind {
            FrameType::Key | FrameType::Intra => &mut counts.intra_in_time,
            FrameType::Predicted { .. } => &mut counts.predicted_in_time,
            FrameType::Bidirectional { .. } => &mut counts.bidirectional_in_time,
            _ => &mut counts.other_in_time,
        };
        *of_kind += u64::from(is_in_time);
        if let Some(feedback) = &mut self.feedback
            && let Some(choice) = section.choice
        {
            feedback.on_settled(now, choice, is_in_time);
        }
        SectionEvent {
            now,
            frame_type: section.kind,
            bytes: section.bytes,
            deadline: section.deadline,
            completed: (!section.has_gap).then_some(now),
        }
    }

    /// The fates of the sections, and the counters of the two ends.
    pub fn report(&self, sent: TimelineStatistics, missing: GapStatistics) -> TimelineReport {
        TimelineReport {
            expired: sent.expired,
            jumps: sent.jumps,
            discarded_bytes: sent.discarded_bytes,
            obsolete_bytes: sent.obsolete_bytes,
            pseudo_retransmissions: sent.pseudo_retransmissions,
            replacements: sent.replacements,
            notices: sent.notices,
            gaps: missing.gaps,
            gap_bytes: missing.bytes,
            ..self.counts
        }
    }

    pub(super) fn heap_memory(&self) -> usize {
        size_of::<Self>() + self.open.capacity() * size_of::<Given>()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::frames::parse_frames;

    const I: FrameType = FrameType::Key;
    const P: FrameType = FrameType::Predicted { referenced: true };
    const B: FrameType = FrameType::Bidirectional { referenced: false };

    const LIFE: Span = Span::from_secs(2);

    /// The deadlines of frames with these source times.
    fn deadlines(frames: &[(Time, FrameType)]) -> Vec<Time> {
        let mut deadlines = GroupDeadlines::new();
        frames
            .iter()
            .map(|&(at, kind)| deadlines.next(kind, at + LIFE))
            .collect()
    }

    #[test]
    fn the_stream_of_the_paper_has_the_deadlines_of_its_table() {
        // Sent as I11 P11 P21 I12 B11 P12 I13 B12, one frame every 40 ms. The first group has d1,
        // and so has B11, sent after I12 (the paper displays it between P11 and P21; both positions
        // give d1). The second group has d2, and so has B12, between P12 and I13.
        let stream: Vec<_> = [I, P, P, I, B, P, I, B]
            .into_iter()
            .zip(0..)
            .map(|(kind, number)| (Time::from_millis(40 * number), kind))
            .collect();
        let [d1, d2, d3] = [2_000, 2_120, 2_240].map(Time::from_millis);
        assert_eq!(deadlines(&stream), [d1, d1, d1, d2, d1, d2, d3, d2]);
    }

    /// The paper's rule, by the order of display. A group is an intra frame and the predicted
    /// frames up to the next one. A bidirectional frame needs the nearest such frames before and
    /// after it, and has the deadline of the earlier one.
    fn by_display(frames: &[(Time, FrameType)]) -> Vec<Time> {
        let mut display = Vec::new();
        let mut held = None;
        for (number, &(_, kind)) in frames.iter().enumerate() {
            if kind == B {
                display.push(number);
            } else {
                display.extend(held.replace(number));
            }
        }
        display.extend(held);
        let due_of_group = |number: usize| {
            let first = frames[..=number].iter().rev().find(|frame| frame.1 == I);
            first.expect("a stream begins with a group").0 + LIFE
        };
        let mut due = vec![Time::MAX; frames.len()];
        for (index, &number) in display.iter().enumerate() {
            due[number] = if frames[number].1 == B {
                let is_reference = |number: &&usize| frames[**number].1 != B;
                let before = display[..index].iter().rev().find(is_reference);
                let after = display[index..].iter().find(is_reference);
                let needed = before.into_iter().chain(after);
                needed
                    .map(|&number| due_of_group(number))
                    .min()
                    .expect("a frame between two")
            } else {
                due_of_group(number)
            };
        }
        due
    }

    #[test]
    fn a_real_mpeg_1_stream_has_the_deadlines_of_the_rule() {
        let path = concat!(
            env!("CARGO_MANIFEST_DIR"),
            "/../../experiments/tltcp/mpeg1_frames.csv"
        );
        let text = std::fs::read_to_string(path).expect("the frames are there");
        let frames: Vec<_> = parse_frames(&text)
            .expect("the frames can be read")
            .into_iter()
            .map(|frame| (Time::ZERO + frame.at, frame.frame_type))
            .collect();
        let count = |kind| frames.iter().filter(|frame| frame.1 == kind).count();
        assert_eq!([count(I), count(P), count(B)], [101, 400, 999]);
        let found = deadlines(&frames);
        assert_eq!(found, by_display(&frames));
        // B frames are sent after the intra frame of the next group, which is due later.
        let steps_back = found.windows(2).filter(|pair| pair[1] < pair[0]).count();
        assert_eq!(steps_back, 100);
        let due: std::collections::BTreeSet<_> = found.into_iter().collect();
        // The first group lacks the two leading B frames; the others have 15 frames each.
        let groups = (0..100).map(|group| 520 + 600 * group);
        let expected = core::iter::once(0)
            .chain(groups)
            .map(|at| Time::from_millis(at) + LIFE);
        assert!(due.into_iter().eq(expected));
    }

    #[test]
    fn an_interval_with_a_frame_missed_is_no_calm_one() {
        let interval = Span::from_secs(1);
        let reverse_delay = Span::from_millis(300);
        let mut feedback = Feedback::new(interval, reverse_delay, Time::ZERO);
        let mut second = |in_time: u64, missed: u64| {
            let end = feedback.next_report;
            for number in 0..in_time + missed {
                let before = end.saturating_sub(Span::from_millis(1));
                let choice = feedback.selection.choice();
                feedback.on_settled(before, choice, number < in_time);
            }
            // The report has not arrived yet.
            let under_way = (end + reverse_delay).saturating_sub(Span::from_nanos(1));
            let before = feedback.schedule(under_way, 0);
            (before, feedback.schedule(end + reverse_delay, 0))
        };
        assert_eq!(second(94, 6), (Schedule::All, Schedule::IntraAndPredicted));
        let less = (Schedule::IntraAndPredicted, Schedule::IntraAndPredicted);
        for _ in 0..4 {
            assert_eq!(second(100, 0), less);
        }
        // 96 % keeps the choice but restarts the count.
        assert_eq!(second(96, 4), less);
        for _ in 0..4 {
            assert_eq!(second(100, 0), less);
        }
        assert_eq!(second(100, 0), (Schedule::IntraAndPredicted, Schedule::All));
    }

    /// Frames of the previous choice settle late. A report of them alone changes nothing; a report
    /// of both counts only the new ones.
    #[test]
    fn a_choice_is_judged_by_its_own_frames() {
        let interval = Span::from_secs(1);
        let mut feedback = Feedback::new(interval, Span::ZERO, Time::ZERO);
        let mut second = |of_choice: &[(u32, u64, u64)]| {
            let end = feedback.next_report;
            for &(choice, in_time, missed) in of_choice {
                for number in 0..in_time + missed {
                    let before = end.saturating_sub(Span::from_millis(1));
                    feedback.on_settled(before, choice, number < in_time);
                }
            }
            feedback.schedule(end, 0)
        };
        assert_eq!(second(&[(0, 50, 10)]), Schedule::IntraAndPredicted);
        assert_eq!(second(&[(0, 0, 40)]), Schedule::IntraAndPredicted);
        assert_eq!(
            second(&[(0, 0, 20), (1, 30, 0)]),
            Schedule::IntraAndPredicted
        );
        assert_eq!(second(&[]), Schedule::IntraAndPredicted);
        assert_eq!(second(&[(1, 20, 10)]), Schedule::Intra);
    }

    /// At the report of the misses the source has submitted 9,000 bytes; 5,000 of them are unsent.
    /// It then submits a P frame of 1,000 bytes, and another one when 4,500 bytes are unsent, 3,500
    /// of them older. Both are late, and do not judge the choice of I and P.
    #[test]
    fn frames_behind_those_of_an_earlier_choice_do_not_judge_it() {
        let interval = Span::from_secs(1);
        let mut feedback = Feedback::new(interval, Span::ZERO, Time::ZERO);
        let at = Time::from_secs;
        let judged = |feedback: &Feedback, frames: [(u64, u64); 4]| {
            frames.map(|(given, unsent)| feedback.selection.judged(given, unsent))
        };
        let first = [(0, 0), (3_000, 2_000), (6_000, 6_000), (9_000, 5_000)];
        assert_eq!(judged(&feedback, first), [Some(0); 4]);
        for is_in_time in [true, false, false] {
            feedback.on_settled(at(0), 0, is_in_time);
        }
        assert_eq!(feedback.schedule(at(1), 9_000), Schedule::IntraAndPredicted);
        // The last frame queues behind 2,000 bytes of this choice and none of another.
        let second = [
            (9_000, 5_000),
            (10_000, 4_500),
            (11_000, 2_001),
            (11_000, 2_000),
        ];
        assert_eq!(judged(&feedback, second), [None, None, None, Some(1)]);
        // Both are late, and the reader has no frame that judges the new choice.
        for (second, schedule) in [
            (2, Schedule::IntraAndPredicted),
            (3, Schedule::IntraAndPredicted),
        ] {
            assert_eq!(feedback.schedule(at(second), 12_000), schedule);
        }
        // A late frame that did not queue behind an earlier choice judges its own: the third choice
        // begins at 13,000 bytes.
        feedback.on_settled(at(3), 1, false);
        assert_eq!(feedback.schedule(at(4), 13_000), Schedule::Intra);
        let third = [(13_000, 0), (13_000, 1), (14_000, 1_000), (14_000, 1_001)];
        let [own, behind] = [Some(2), None];
        assert_eq!(judged(&feedback, third), [own, behind, own, behind]);
    }

    #[test]
    fn a_section_without_bytes_has_no_gap() {
        use std::sync::Arc;

        use comity_congestion::Pacing;
        use comity_congestion::controllers::Fixed;
        use comity_tcp::timeline::TimelineConfig;
        use comity_tcp::{Config, Segment};
        use comity_units::DataSize;

        let config = Arc::new(Config {
            timeline: Some(TimelineConfig::PAPER),
            ..Config::NS2_2000
        });
        let controller = Fixed::new(DataSize::new(1), DataSize::new(10_000), Pacing::Unpaced);
        let mut source = Connection::connect(Arc::clone(&config), Box::new(controller));
        let mut sink = Connection::listen_to_receive(config);
        let spec = TimelineSpec {
            section: DataSize::new(1),
            deadline: LIFE,
            feedback: None,
        };
        let producer = Producer::Greedy(1);
        let mut flow = TimelineFlow::new(producer, &spec, Time::ZERO, Span::ZERO);
        let over = Time::from_secs(1);
        // The sections with the numbers 1, 4 and 5 are left out.
        let sections = [
            (0, 0, over),
            (2, 700, over),
            (3, 0, over),
            (6, 500, Time::MAX),
        ];
        for (number, bytes, deadline) in sections {
            assert!(flow.give(&mut source, number, bytes, deadline, FrameType::Slice));
        }
        let segments: Vec<Segment> = std::iter::from_fn(|| source.poll_transmit(over)).collect();
        for segment in &segments {
            sink.on_segment(over, segment);
            while let Some(piece) = sink.read_piece(u64::MAX) {
                flow.read(over, piece, |_| {});
            }
        }
        let counts = flow.counts;
        assert_eq!((counts.given, counts.in_time, counts.broken), (4, 3, 1));
        // 1 and 2, then 4 and 5.
        assert_eq!((counts.interruptions, counts.longest_interruption), (2, 2));
    }
}
