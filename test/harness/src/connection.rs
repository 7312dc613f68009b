//! One end of a connection; the input controls its peer, application and clock.
//!
//! An input is a configuration followed by steps. The first byte of each step selects an event and
//! its parameters: time passes, sections are submitted and withdrawn, packets of arbitrary bytes
//! and of arbitrary frames arrive, acknowledgements are true or false, the application reads or
//! does not.
//!
//! Checks after each step: counters are consistent, received data stays within the configured
//! memory, every departing packet is readable and within the limits, none carries bytes beyond
//! their deadline, numbers rise, and a false acknowledgement ends the connection while a true one
//! does not. Checks at the end: each section had one outcome, and each section of the peer was
//! delivered once.

use std::collections::BTreeMap;
use std::ops::Range;

use bytes::Bytes;
use comity_congestion::table::{Parameters, Setup, TABLE};
use comity_congestion::{Ecn, Report, Tag};
use comity_transport::datagram::{Config, Connection, Event, MIN_PAYLOAD, PathFrame, Violation};
use comity_transport::timeline::{
    Deliver, Delivery, DropPolicy, Elided, Importance, Outgoing, Payload, Reason, Reliability,
    SectionId, StreamId,
};
use comity_transport::wire::frame::{
    self, Ack, AckRange, AckRanges, Close, Content, Credit, Data, Dropped, EcnCounts, End, Floor,
    Frame, Framing, ReceiverReport, SectionHeader,
};
use comity_transport::wire::{CloseCode, Stamp};
use comity_units::{PacketNumber, Rate, Seed, Span, Time};

use crate::source::Source;

/// The maximum number of steps, so that every input ends.
const MAX_STEPS: usize = 400;
/// The maximum number of departures at one instant: far more than any window of these inputs.
const MAX_AT_ONCE: usize = 20_000;
/// The maximum number of deliveries at one step.
const MAX_DELIVERIES: usize = 4_096;

/// A payload that can be created from a length alone.
trait Fuzzed: Payload {
    fn of_length(length: u32) -> Self;
    fn byte(at: u32) -> u8 {
        (at.wrapping_mul(167) >> 3) as u8
    }
}

impl Fuzzed for Bytes {
    fn of_length(length: u32) -> Self {
        (0..length).map(Self::byte).collect::<Vec<u8>>().into()
    }
}

impl Fuzzed for Elided {
    fn of_length(length: u32) -> Self {
        Self(length)
    }
}

/// Whether packets contain the bytes of sections.
fn content<P: Payload>() -> Content {
    if P::ELIDED {
        Content::Elided
    } else {
        Content::Present
    }
}

/// One input.
pub fn check(input: &[u8]) {
    let mut source = Source::new(input);
    if source.u8() & 1 == 0 {
        run::<Bytes>(&mut source);
    } else {
        run::<Elided>(&mut source);
    }
}

fn run<P: Fuzzed>(source: &mut Source<'_>) {
    let Some(mut world) = World::<P>::new(source) else {
        return;
    };
    for _ in 0..MAX_STEPS {
        if source.is_empty() {
            break;
        }
        world.step(source);
        world.check();
    }
    world.finish();
}

fn config(source: &mut Source<'_>) -> Config {
    let bits = source.u8();
    let size = |bits: u8, base: u64| base << (4 * u32::from(bits & 3));
    let payload = MIN_PAYLOAD + u32::from(source.u8()) * 8;
    Config {
        reliability: match bits & 3 {
            0 => Reliability::Full,
            1 => Reliability::None,
            _ => Reliability::Timeline,
        },
        drop: match bits >> 2 & 3 {
            0 => DropPolicy::Never,
            1 => DropPolicy::Expired,
            _ => DropPolicy::Infeasible,
        },
        deliver: if bits >> 4 & 1 == 0 {
            Deliver::Early
        } else {
            Deliver::Paced
        },
        expect_deadlines: bits >> 5 & 1 == 0,
        pace_windows: bits >> 6 & 1 == 0,
        ecn: bits >> 7 == 0,
        payload,
        // Half of the configurations search for the path's packet size.
        base_payload: (payload / 8).is_multiple_of(2).then_some(MIN_PAYLOAD),
        receive_buffer: size(source.u8(), 1_000),
        receive_sections: 1 + u32::from(source.u8()),
        send_buffer: size(source.u8(), 1_000),
        send_sections: 1 + u32::from(source.u8()),
        seed: Seed::new(u64::from(source.u8())),
        ..Config::default()
    }
}

struct World<P: Payload> {
    now: Time,
    end: Connection<P>,
    /// The number of the peer's next packet.
    next: u64,
    /// The departed numbers in ascending order.
    sent: Vec<u64>,
    submitted: BTreeMap<(StreamId, SectionId), bool>,
    /// The delivered sections of each stream, as runs: the end by the start.
    delivered: BTreeMap<StreamId, BTreeMap<u64, u64>>,
    is_closed: bool,
    /// Whether to check the deadlines of departing bytes.
    is_strict: bool,
    out: Vec<u8>,
}

impl<P: Fuzzed> World<P> {
    fn new(source: &mut Source<'_>) -> Option<Self> {
        let row = TABLE.get(usize::from(source.u8()) % TABLE.len())?;
        let config = config(source);
        let setup = Setup::new(comity_units::DataSize::new(u64::from(config.payload)));
        let controller = row
            .build(&setup, &Parameters::new())
            .expect("defaults are valid");
        let meter = row
            .build_meter(&setup, &Parameters::new())
            .map(|meter| meter.expect("defaults are valid"));
        let now = Time::from_secs(1);
        let delay = Span::from_millis(u64::from(source.u8()));
        let end = Connection::new(config, delay, controller, meter, now).ok()?;
        Some(Self {
            now,
            end,
            next: 0,
            sent: Vec::new(),
            submitted: BTreeMap::new(),
            delivered: BTreeMap::new(),
            is_closed: false,
            is_strict: config.drop != DropPolicy::Never && config.reliability != Reliability::Full,
            out: Vec::new(),
        })
    }

    fn step(&mut self, source: &mut Source<'_>) {
        match source.u8() {
            0..=31 => self.pass(Span::from_micros(u64::from(source.u16()) * 20)),
            32..=63 => {
                let next = self.end.next_timer();
                if next < self.now + Span::from_secs(20) {
                    self.pass(next.saturating_since(self.now));
                }
            }
            64..=95 => self.submit(source),
            96..=103 => {
                let (stream, section) = (stream(source), SectionId(self.submitted.len() as u64));
                let section = SectionId(section.0.saturating_sub(u64::from(source.u8())));
                match source.u8() % 32 {
                    0 => drop(self.end.end(stream)),
                    1..=10 => self.skip(stream),
                    _ => drop(self.end.cancel(stream, section)),
                }
            }
            104..=106 => {
                let mut payload = source.counted().to_vec();
                payload.resize(payload.len().max(4), 0);
                self.arrive(source, &payload);
            }
            107 => self.lie(source),
            108..=170 => self.frames(source),
            171..=210 => self.truth(source),
            211..=226 => {
                self.read(MAX_DELIVERIES);
            }
            227..=234 => match source.u8() % 32 {
                0 => self.end.close(self.now, CloseCode::DONE, "enough"),
                1..=4 => {
                    let row = &TABLE[usize::from(source.u8()) % TABLE.len()];
                    let payload = u64::from(self.end.config().payload);
                    let setup = Setup::new(comity_units::DataSize::new(payload));
                    let controller = row.build(&setup, &Parameters::new());
                    self.end
                        .on_new_path(self.now, controller.expect("as above"));
                }
                5..=10 => self.end.ping(),
                11..=14 => self
                    .end
                    .set_initial_credit(source.number(), u32::from(source.u16())),
                _ => self.path_frame(source),
            },
            _ => self.pass(Span::from_millis(u64::from(source.u8()) * 2)),
        }
        self.transmit();
    }

    /// Lets time pass, and serves timers as they expire, up to a limit.
    fn pass(&mut self, span: Span) {
        let until = self.now + span;
        for _ in 0..64 {
            let next = self.end.next_timer();
            if next > until {
                break;
            }
            self.now = self.now.max(next);
            self.end.on_timer(self.now);
            self.transmit();
        }
        self.now = self.now.max(until);
        self.end.on_timer(self.now);
    }

    fn submit(&mut self, source: &mut Source<'_>) {
        let length = match source.u8() {
            long @ 250.. => u32::from(long - 249) * 10_000,
            short => u32::from(short) * 40 + 1,
        };
        let deadline = match source.u8() {
            0 => Time::MAX,
            1 => Time::from_nanos(source.number()),
            near => self.now + Span::from_millis(u64::from(near)),
        };
        let source_time = match source.u8() {
            0 => Time::from_nanos(source.number()),
            _ => self.now,
        };
        let needs = match source.u8() {
            0 => Some(SectionId(u64::from(source.u8()))),
            _ => None,
        };
        let section = Outgoing {
            stream: stream(source),
            importance: Importance(source.u8()),
            source_time,
            deadline,
            needs,
            payload: P::of_length(length),
        };
        let stream = section.stream;
        if let Ok(id) = self.end.submit(self.now, section) {
            assert!(self.end.is_open(), "accepted after the end");
            assert_eq!(self.submitted.insert((stream, id), false), None);
        }
    }

    /// Skips a number of the stream; it has no outcome.
    fn skip(&mut self, stream: StreamId) {
        if let Ok(id) = self.end.skip(stream, Reason::Shed) {
            assert!(self.end.is_open(), "accepted after the end");
            assert_eq!(self.submitted.insert((stream, id), true), None);
        }
    }

    /// A packet with this payload arrives, with a number near the last one or anywhere.
    fn arrive(&mut self, source: &mut Source<'_>, payload: &[u8]) {
        let number = match source.u8() {
            255 => source.number() >> 2,
            far @ 200.. => self.next.saturating_add(u64::from(far - 199)),
            back @ 180.. => self.next.saturating_sub(u64::from(back - 179)),
            _ => self.next,
        };
        self.next = self.next.max(number.saturating_add(1)).min(1 << 62);
        let ecn = match source.u8() % 8 {
            0 => Ecn::CongestionExperienced,
            1 => Ecn::Capable1,
            2 => Ecn::NotCapable,
            _ => Ecn::Capable0,
        };
        let was_open = self.end.is_open();
        let result = self
            .end
            .on_packet(self.now, PacketNumber::new(number), ecn, payload);
        if was_open {
            assert!(result.is_ok() || !self.end.is_open(), "{result:?}");
        } else {
            assert_eq!(result, Ok(()));
        }
    }

    fn frames(&mut self, source: &mut Source<'_>) {
        let departure = match source.u8() {
            0 => source.number() as u32,
            back @ 1..=20 => self.micros().wrapping_sub(u32::from(back) * 5_000),
            _ => self.micros(),
        };
        let mut payload = Vec::new();
        frame::encode_departure(Stamp::from_micros(departure), &mut payload);
        for _ in 0..=source.u8() % 8 {
            self.push_frame(source, &mut payload);
        }
        if payload.len() > 4 {
            self.arrive(source, &payload);
        }
    }

    fn micros(&self) -> u32 {
        (self.now.as_nanos() / 1_000) as u32
    }

    /// Acknowledges a few of the recent packets, and nothing else.
    fn truth(&mut self, source: &mut Source<'_>) {
        let count = self.sent.len();
        let end = count.saturating_sub(usize::from(source.u8() % 32));
        let begin = end.saturating_sub(1 + usize::from(source.u8()));
        let holes = source.u8();
        let mut numbers: Vec<u64> = self.sent[begin..end].to_vec();
        if holes.is_multiple_of(4) {
            let step = usize::from(holes / 4) + 2;
            numbers = numbers.into_iter().step_by(step).collect();
        }
        let mut ranges: Vec<AckRange> = Vec::new();
        for number in numbers.into_iter().rev().map(PacketNumber::new) {
            match ranges.last_mut() {
                Some(last) if number.next() == last.first => last.first = number,
                _ => ranges.push(AckRange {
                    first: number,
                    last: number,
                }),
            }
        }
        ranges.truncate(128);
        let was_open = self.end.is_open();
        self.acknowledge(source, &ranges);
        assert_eq!(
            self.end.is_open(),
            was_open,
            "a true acknowledgement is no violation"
        );
    }

    /// Acknowledges a number that was skipped, or never used.
    fn lie(&mut self, source: &mut Source<'_>) {
        let next = self.sent.last().map_or(0, |last| last + 1);
        let number = match source.u8() {
            // The number after the last departure may have been skipped already: either way it is
            // false.
            ahead @ 0..=127 => next + u64::from(ahead),
            back => {
                let last = self.sent.len().saturating_sub(usize::from(back) * 8 + 1);
                let gap = self.sent[last..]
                    .windows(2)
                    .find(|pair| pair[1] > pair[0] + 1)
                    .map(|pair| pair[0] + 1);
                match gap {
                    Some(number) => number,
                    None => return,
                }
            }
        };
        let number = PacketNumber::new(number);
        let first = match source.u8() % 2 {
            0 => number,
            _ => PacketNumber::new(number.get().saturating_sub(3)),
        };
        self.acknowledge(
            source,
            &[AckRange {
                first,
                last: number,
            }],
        );
        assert!(
            !self.end.is_open(),
            "a false acknowledgement of {number} is detected"
        );
    }

    fn acknowledge(&mut self, source: &mut Source<'_>, ranges: &[AckRange]) {
        let Ok(ranges) = AckRanges::new(ranges) else {
            return;
        };
        let ecn = match source.u8() {
            0 => Some(EcnCounts {
                ect0: source.number() >> 2,
                ect1: source.number() >> 2,
                ce: source.number() >> 2,
            }),
            _ => None,
        };
        let ack = Frame::Ack(Ack {
            proof: None,
            ranges,
            delay: Span::from_micros(source.number() >> 12),
            arrival: Stamp::from_micros(match source.u8() {
                0 => source.number() as u32,
                _ => self.micros(),
            }),
            ecn,
        });
        let mut payload = Vec::new();
        frame::encode_departure(Stamp::from_micros(self.micros()), &mut payload);
        ack.encode(&mut payload).expect("within the limits");
        // Under an unused number: otherwise it would be a duplicate.
        let result = self.end.on_packet(
            self.now,
            PacketNumber::new(self.next),
            Ecn::NotCapable,
            &payload,
        );
        self.next = (self.next + 1).min(1 << 62);
        assert!(
            matches!(result, Ok(()) | Err(Violation::AcknowledgedUnsent { .. })),
            "{result:?}"
        );
    }

    fn path_frame(&mut self, source: &mut Source<'_>) {
        let bytes = [source.u8(); 8];
        let frame = match source.u8() % 2 {
            0 => PathFrame::Challenge(bytes),
            _ => PathFrame::Response(bytes),
        };
        self.out.clear();
        let length = usize::from(source.u16());
        let (end, out) = (&mut self.end, &mut self.out);
        if let Some(sent) = end.write_path_frame(self.now, frame, length, out) {
            self.left(sent.number, sent.payload);
        }
        while self.end.poll_path_frame().is_some() {}
    }

    /// Sends everything that may leave.
    fn transmit(&mut self) {
        for _ in 0..MAX_AT_ONCE {
            self.out.clear();
            let Some(sent) = self.end.poll_transmit(self.now, &mut self.out) else {
                assert!(
                    self.out.is_empty(),
                    "nothing is written without a departure"
                );
                self.poll_events();
                return;
            };
            self.left(sent.number, sent.payload);
        }
        panic!("packets without end at {}", self.now);
    }

    /// Checks a departed packet; its payload is in the buffer.
    fn left(&mut self, number: PacketNumber, size: u32) {
        let number = number.get();
        assert!(self.sent.last().is_none_or(|&last| last < number));
        self.sent.push(number);
        assert!(size <= self.end.config().payload, "{size} bytes");
        let payload = frame::decode(&self.out, content::<P>()).expect("our own");
        let mut elided = 0;
        for frame in payload.frames {
            if let Frame::Section(section) = frame.expect("our own") {
                if let Data::Elided(length) = section.data {
                    elided += section.framing.elided(length);
                }
                let deadline = section.header.deadline;
                let since = Time::ZERO + self.now.saturating_since(Time::from_secs(1));
                // Deadlines are written in whole microseconds, rounded down.
                let is_live = deadline + Span::from_micros(1) > since;
                assert!(is_live || !self.is_strict, "late by {}", self.now);
            }
        }
        assert_eq!(self.out.len() + elided, size as usize);
    }

    fn poll_events(&mut self) {
        while let Some(event) = self.end.poll_event() {
            assert!(!self.is_closed, "{event:?} after the end");
            match event {
                Event::Closed(_) => self.is_closed = true,
                Event::Outcome(outcome) => {
                    let key = (outcome.stream, outcome.section);
                    assert_eq!(self.submitted.insert(key, true), Some(false), "{outcome:?}");
                }
                Event::TargetBitrate(_) => {}
                Event::PathSize { payload, most } => {
                    assert!(
                        (MIN_PAYLOAD..=most).contains(&payload),
                        "{payload} of {most}"
                    );
                }
            }
        }
    }

    fn read(&mut self, most: usize) -> bool {
        for _ in 0..most {
            let Some(delivery) = self.end.poll_delivery(self.now) else {
                return true;
            };
            let (stream, section, count) = match &delivery {
                Delivery::Section(received) => {
                    assert_eq!(received.payload.len(), received.meta.length);
                    (received.meta.stream, received.meta.section, 1)
                }
                Delivery::Gap(gap) => {
                    if let Some(partial) = &gap.partial {
                        assert!(!partial.missing.is_empty(), "a gap has a hole");
                        assert_eq!(gap.count, 1, "a run of gaps has no bytes");
                    }
                    (gap.stream, gap.section, gap.count)
                }
            };
            let runs = self.delivered.entry(stream).or_default();
            add(runs, section.0..section.0 + count);
        }
        false
    }

    fn check(&mut self) {
        let config = self.end.config();
        let statistics = self.end.statistics();
        let bytes = &statistics.outbox.bytes;
        assert_eq!(bytes.submitted, bytes.sum());
        let sections = &statistics.outbox.sections;
        assert_eq!(sections.submitted, sections.sum());
        assert_eq!(sections.submitted, self.submitted.len() as u64);
        assert_eq!(statistics.inbox.received, statistics.inbox.sum());
        assert!(statistics.inbox.held <= config.receive_buffer);
        assert!(bytes.queued <= config.send_buffer);
        if self.is_strict {
            assert_eq!(statistics.sent.late_bytes, 0);
        }
        if let Some(rate) = statistics.path.pacing_rate {
            assert!(rate > Rate::ZERO || self.end.backlog() == 0 || statistics.sent.packets > 0);
        }
    }

    /// The connection ends: everything is settled.
    fn finish(&mut self) {
        self.end.close(self.now, CloseCode::DONE, "");
        self.transmit();
        self.check();
        assert!(self.is_closed, "the end is reported");
        for (key, is_settled) in &self.submitted {
            assert!(is_settled, "{key:?} had no outcome");
        }
        // The sections of each stream once, from the first to the last.
        if self.read(1 << 16) {
            for (stream, sections) in &self.delivered {
                assert!(
                    sections.len() == 1 && sections.contains_key(&0),
                    "holes in {stream}"
                );
            }
        }
        for _ in 0..8 {
            self.pass(Span::from_secs(10));
        }
        assert!(self.end.is_closed() && self.end.next_timer() == Time::MAX);
    }
}

/// A few streams are frequent, and any is possible.
fn stream(source: &mut Source<'_>) -> StreamId {
    match source.u8() {
        255 => StreamId(source.u16()),
        few => StreamId(u16::from(few % 4)),
    }
}

/// Adds numbers that are not in the set.
fn add(runs: &mut BTreeMap<u64, u64>, new: Range<u64>) {
    let next = runs.range(new.start..).next();
    let mut end = new.end;
    match next.map(|(&start, &end)| (start, end)) {
        Some((start, _)) if start < end => panic!("{new:?} and {start}.. came twice"),
        Some((start, last)) if start == end => {
            runs.remove(&start);
            end = last;
        }
        _ => {}
    }
    match runs.range_mut(..new.start).next_back() {
        Some((start, last)) if *last > new.start => {
            panic!("{start}..{last} and {new:?} came twice")
        }
        Some((_, last)) if *last == new.start => *last = end,
        _ => drop(runs.insert(new.start, end)),
    }
}

impl<P: Fuzzed> World<P> {
    /// The number of a section of the peer: near the last delivery, or any.
    fn section(&self, source: &mut Source<'_>, stream: StreamId) -> u64 {
        let last = self
            .delivered
            .get(&stream)
            .and_then(BTreeMap::last_key_value);
        let near = last.map_or(0, |(_, &end)| end - 1);
        match source.u8() {
            255 => source.number() >> 16,
            back @ 240.. => near.saturating_sub(u64::from(back - 239)),
            few => near + u64::from(few) % u64::from(self.end.config().receive_sections.min(40)),
        }
    }

    /// Appends a frame of any kind, if its fields are valid.
    fn push_frame(&self, source: &mut Source<'_>, out: &mut Vec<u8>) {
        let token = [source.u8(); 8];
        let stream = stream(source);
        let frame = match source.u8() % 20 {
            0 => Frame::Padding {
                length: usize::from(source.u8()),
            },
            1 if token[0] < 128 => Frame::Ping,
            1 => Frame::Blocked,
            2 => Frame::Floor(Floor {
                stream: stream.0,
                floor: self.section(source, stream),
            }),
            3 => Frame::Dropped(Dropped {
                stream: stream.0,
                section: self.section(source, stream),
                reason: Reason::ALL[usize::from(source.u8()) % Reason::ALL.len()],
            }),
            4 if token[0] < 16 => Frame::End(End {
                stream: stream.0,
                sections: self.section(source, stream),
            }),
            5 => Frame::Credit(Credit {
                bytes: source.number() >> 2,
                sections: u32::from(source.u16()),
            }),
            6 => Frame::Tag(match source.u8() % 3 {
                0 => Tag::Wave {
                    wave: source.u16(),
                    segments: source.u16(),
                    position: source.u16(),
                },
                1 => Tag::Numbered {
                    number: source.number() as u32,
                    rtt: Span::from_micros(source.number()),
                },
                _ => Tag::Round {
                    round: source.number() as u32,
                    rtt: Span::from_micros(source.number()),
                },
            }),
            7 => Frame::Feedback(match source.u8() % 3 {
                0 => Report::Wave {
                    level: source.u16(),
                },
                1 => Report::LossEvents {
                    rate: source.number() as f64 / u64::MAX as f64,
                    received: Rate::from_bps(source.number()),
                },
                _ => Report::Count {
                    round: source.number() as u32,
                    packets: source.number() as u32,
                },
            }),
            8 => Frame::ReceiverReport(ReceiverReport {
                complete: source.number(),
                on_time: source.number(),
                late: source.number(),
                with_gaps: source.number(),
                bytes: source.number(),
                packets: source.number(),
                duplicates: source.number(),
                one_way_latest_us: source.number() as i64,
                one_way_least_us: source.number() as i64,
                jitter: Span::from_micros(source.number()),
                buffered: source.number(),
                drift_ppb: source.number() as i64,
            }),
            9 => Frame::PathChallenge(token),
            10 => Frame::PathResponse(token),
            11 if token[0] == 0 => Frame::Close(Close {
                code: CloseCode::new(source.number() >> 2),
                reason: "so",
            }),
            _ => return self.push_section(source, stream, out),
        };
        // An invalid frame is skipped.
        let _ = frame.encode(out);
    }

    fn push_section(&self, source: &mut Source<'_>, stream: StreamId, out: &mut Vec<u8>) {
        let number = self.section(source, stream);
        // Two pieces of one section mostly agree about it.
        let (mut fixed, mut any) = ([0; 8], *source);
        for (at, byte) in fixed.iter_mut().enumerate() {
            let which = number
                .wrapping_mul(8)
                .wrapping_add(u64::from(stream.0) * 131);
            let mixed = which
                .wrapping_add(at as u64)
                .wrapping_mul(0x9e37_79b9_7f4a_7c15);
            *byte = (mixed >> 56) as u8;
        }
        let mut fixed = Source::new(&fixed);
        let kind = source.u8();
        let meta = match kind {
            255 => &mut any,
            _ => &mut fixed,
        };
        let total = match meta.u8() {
            0 => meta.number() as u32 & 0x03ff_ffff,
            long @ 1..=16 => u32::from(long) * 200,
            few => u32::from(few),
        };
        let source_time = match meta.u8() {
            0 => Time::from_micros(meta.number() >> 11),
            few => Time::from_millis(u64::from(few)),
        };
        let deadline = match meta.u8() {
            0..=7 => Time::MAX,
            8 => Time::from_micros(meta.number() >> 11),
            few => source_time + Span::from_millis(u64::from(few) * 8),
        };
        let needs = match meta.u8() {
            few @ 0..=31 => number.checked_sub(u64::from(few)),
            _ => None,
        };
        let importance = meta.u8();
        let header = SectionHeader {
            stream: stream.0,
            section: number,
            floor: match kind {
                near @ 240.. => number.saturating_sub(u64::from(near - 240)),
                _ => 0,
            },
            offset: match source.u8() {
                back @ 128.. => total.saturating_sub(u32::from(back - 127)),
                front @ 64.. => u32::from(front - 63),
                _ => 0,
            },
            total,
            source_time,
            deadline,
            importance,
            needs,
            is_retransmission: false,
        };
        let left = total.saturating_sub(header.offset);
        let length = match source.u8() {
            short @ 128.. => u32::from(short - 127).min(left),
            _ => left.min(1_000),
        };
        let content = content::<P>();
        let is_written = header.encode(length, Framing::Length, content, out).is_ok();
        if is_written && content == Content::Present {
            out.extend((0..length).map(|at| at as u8));
        }
    }
}
