//! Live sources, in virtual time: what leaves the receiver, and when.

use std::collections::BTreeMap;

use comity_media::{
    Event, Jump, JumpedTimes, MediaSection, Notice, Output, PACKET, Pacer, ReadError, Reader,
    ReaderConfig, TsWriter, WriterConfig, live_deadline,
};
use comity_units::{Span, Time};

use crate::layouts::{SECTION, at_constant_rate, is_layout};
use crate::times::{unstamp, with_heads, without_references};
use crate::{CLIP, ts};

const VIDEO: u16 = 256;
const SOUND: u16 = 257;
pub(crate) const LATENCY: Span = Span::from_millis(300);
/// What 99 of 100 packets may take beside the latency.
pub(crate) const MORE: Span = Span::from_millis(30);
/// How much earlier a packet of the clip leaves than the latency after it came, at most: within a
/// layout they leave evenly.
const UNEVEN: Span = Span::from_millis(25);
/// The first pictures end where the next ones begin.
const BEGINNING: Time = Time::from_millis(200);
/// The size of a datagram.
const DATAGRAM: usize = 7 * PACKET;
/// After so long without a datagram, a sender takes a source to be silent whose usual pauses are
/// half as long.
const SILENCE: Span = Span::from_millis(60);

/// The times of a source.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Which {
    All,
    References,
    Stamps,
    StampsOf(u16),
}

impl Which {
    fn has_references(self) -> bool {
        matches!(self, Self::All | Self::References)
    }

    fn has_stamps(self, pid: u16) -> bool {
        matches!(self, Self::All | Self::Stamps) || self == Self::StampsOf(pid)
    }
}

/// A stream as it arrives at a sender, packet by packet.
pub(crate) struct Source {
    pub(crate) stream: Vec<u8>,
    /// Those of a datagram are one.
    pub(crate) arrivals: Vec<Time>,
    spread: Span,
    /// Whether units may be missing in it.
    pub(crate) is_damaged: bool,
    /// After so long without a datagram, its sender takes it to be silent.
    silence: Span,
}

impl Source {
    fn new(stream: Vec<u8>, mut arrivals: Vec<Time>, spread: Span) -> Self {
        for arrivals in arrivals.chunks_mut(7) {
            arrivals.fill(arrivals[arrivals.len() - 1]);
        }
        Self {
            stream,
            arrivals,
            spread,
            is_damaged: false,
            silence: SILENCE,
        }
    }

    /// The clip, by its clock references.
    fn clip() -> Self {
        let clocks: Vec<(usize, u64)> = (0..)
            .zip(ts::packets(CLIP))
            .filter_map(|(index, packet)| Some((index, packet.clock?)))
            .collect();
        let begin = clocks[0].1;
        let count = CLIP.len() / PACKET;
        let mut arrivals = vec![Time::ZERO; count];
        for pair in clocks.windows(2) {
            let [(from, clock), (to, next)] = [pair[0], pair[1]];
            for (within, arrival) in (0..).zip(&mut arrivals[from..to]) {
                let passed = (next - clock) * within / (to - from) as u64;
                *arrival = Time::from_nanos((clock - begin + passed) * 1_000 / 27);
            }
        }
        let last = clocks[clocks.len() - 1];
        arrivals[last.0..].fill(Time::from_nanos((last.1 - begin) * 1_000 / 27));
        Self::new(CLIP.to_vec(), arrivals, UNEVEN)
    }

    /// The same in a multiplex of 1.5 Mb/s.
    pub(crate) fn multiplex() -> Self {
        Self::multiplex_with(1)
    }

    /// The same with so many null packets for each packet, on the average.
    pub(crate) fn multiplex_with(nulls: usize) -> Self {
        let stream = at_constant_rate(CLIP, nulls);
        let packets = (stream.len() / PACKET) as u64;
        let arrival = |index| Time::from_nanos(index * 188 * 8 * 10_000 / 15);
        Self::new(stream, (0..packets).map(arrival).collect(), Span::ZERO)
    }

    /// Moves these times, as a function of the arrival, in ticks of 90 kHz.
    fn shift(mut self, which: Which, by: impl Fn(Time) -> i64) -> Self {
        for (packet, arrival) in self.stream.chunks_mut(PACKET).zip(&self.arrivals) {
            let by = by(*arrival);
            let pid = u16::from_be_bytes([packet[1] & 0x1f, packet[2]]);
            let has_field = packet[3] & 0x20 != 0;
            if has_field && packet[4] > 0 && packet[5] & 0x10 != 0 && which.has_references() {
                let bits = packet[6..12].iter();
                let bits = bits.fold(0_u64, |bits, &byte| bits << 8 | u64::from(byte));
                let base = (bits >> 15).wrapping_add_signed(by) % (1 << 33);
                let bits = base << 15 | bits & 0x7fff;
                packet[6..12].copy_from_slice(&bits.to_be_bytes()[2..]);
            }
            let start = if has_field {
                5 + usize::from(packet[4])
            } else {
                4
            };
            let begins = packet[1] & 0x40 != 0 && packet[start..].starts_with(&[0, 0, 1]);
            if begins && which.has_stamps(pid) {
                let head = &mut packet[start..];
                for (flag, at) in [(0x80, 9), (0x40, 14)] {
                    if head[7] & flag != 0 {
                        shift_stamp(&mut head[at..at + 5], by);
                    }
                }
            }
        }
        self
    }

    /// Delays what arrives between two moments up to the second one.
    fn held(mut self, from: u64, to: u64) -> Self {
        let (from, to) = (Time::from_millis(from), Time::from_millis(to));
        for arrival in &mut self.arrivals {
            if (from..to).contains(arrival) {
                *arrival = to;
            }
        }
        self
    }

    /// Delays all that arrives from this moment on.
    fn paused(mut self, from: u64, by: Span) -> Self {
        for arrival in &mut self.arrivals {
            if *arrival >= Time::from_millis(from) {
                *arrival += by;
            }
        }
        self
    }

    /// The sections of the source, each with its deadline as it is submitted when it is known, and
    /// the notices.
    pub(crate) fn read(&self) -> (Vec<(Time, MediaSection)>, Vec<Notice>) {
        let mut reader = Reader::new(ReaderConfig {
            layouts: true,
            ..ReaderConfig::default()
        });
        let (mut sections, mut notices) = (Vec::new(), Vec::new());
        let datagrams = self.stream.chunks(DATAGRAM);
        let mut arrivals = self
            .arrivals
            .chunks(7)
            .map(|arrivals| arrivals[arrivals.len() - 1]);
        let mut take = |reader: &mut Reader, now: Time| {
            for event in std::iter::from_fn(|| reader.poll()) {
                match event {
                    Event::Section(section) => {
                        let arriving = now.saturating_since(section.source_time);
                        assert!(section.source_time <= now, "{arriving}");
                        let after = live_deadline(arriving, LATENCY, Span::ZERO);
                        let due = section.source_time + after + section.deadline;
                        sections.push((due, section));
                    }
                    Event::Notice(notice) => notices.push(notice),
                    Event::Missing(missing) => assert!(self.is_damaged, "{missing:?}"),
                }
            }
        };
        let mut next = arrivals.next();
        for datagram in datagrams {
            let Some(now) = next else { break };
            reader.push_arrived(datagram, now).unwrap();
            take(&mut reader, now);
            next = arrivals.next();
            let silent = now + self.silence;
            let until = next.unwrap_or(silent).min(silent);
            while let Some(wakeup) = reader.next_wakeup().filter(|wakeup| *wakeup < until) {
                assert!(wakeup > now);
                reader.on_wakeup(wakeup);
                assert!(reader.next_wakeup().is_none_or(|next| next > wakeup));
                take(&mut reader, wakeup);
            }
            if next.is_none_or(|next| next > silent) {
                reader.on_silence(silent).unwrap();
                take(&mut reader, silent);
            }
        }
        reader.finish().unwrap();
        let last = self.arrivals[self.arrivals.len() - 1] + SILENCE;
        take(&mut reader, last);
        (sections, notices)
    }

    /// The delay of each packet if each section is delivered at its deadline, and the notices. The
    /// output equals the input.
    pub(crate) fn delays(&self) -> (Vec<Span>, Vec<Notice>) {
        let (mut sections, notices) = self.read();
        sections.sort_by_key(|&(due, _)| due);
        let mut writer = TsWriter::new(WriterConfig::default());
        let mut pacer = Pacer::new(DATAGRAM);
        let (mut out, mut departures) = (Vec::new(), Vec::new());
        for (due, section) in &sections {
            let MediaSection {
                stream,
                number,
                payload,
                ..
            } = section;
            let mut bytes = Vec::new();
            writer
                .write_section(*stream, *number, payload, &mut bytes)
                .unwrap();
            pacer.push(*due, &bytes, writer.spacing());
            for datagram in pacer.datagrams() {
                let packets = datagram.bytes.len() / PACKET;
                departures.extend(std::iter::repeat_n(datagram.departure, packets));
                out.extend(datagram.bytes);
            }
        }
        assert!(
            out == self.stream,
            "{} of {} bytes",
            out.len(),
            self.stream.len()
        );
        let all = departures.iter().zip(&self.arrivals);
        let delays = all
            .map(|(left, came)| left.saturating_since(*came))
            .collect();
        (delays, notices)
    }

    /// Checks that packets take as long as they may, and returns what the sender said.
    fn check(&self, name: &str) -> Vec<Notice> {
        self.check_within(name, MORE)
    }

    pub(crate) fn check_within(&self, name: &str, more: Span) -> Vec<Notice> {
        let (delays, notices) = self.delays();
        let mut settled: Vec<Span> = { delays.iter().zip(&self.arrivals) }
            .filter(|(_, came)| **came >= BEGINNING)
            .map(|(delay, _)| *delay)
            .collect();
        settled.sort_unstable();
        let [least, usual, most] = [0, settled.len() * 99 / 100, settled.len() - 1];
        let [least, usual, most] = [least, usual, most].map(|at| settled[at]);
        assert!(least + self.spread >= LATENCY, "{name}: {least}");
        assert!(usual <= LATENCY + more, "{name}: {usual}");
        assert!(
            most <= LATENCY + more + Span::from_millis(10),
            "{name}: {most}"
        );
        notices
    }
}

fn shift_stamp(stamp: &mut [u8], by: i64) {
    let [a, b, c, d, e] = [0, 1, 2, 3, 4].map(|at: usize| u64::from(stamp[at]));
    let value = (a >> 1 & 7) << 30 | b << 22 | (c >> 1) << 15 | d << 7 | e >> 1;
    let value = value.wrapping_add_signed(by) % (1 << 33);
    stamp[0] = stamp[0] & 0xf1 | ((value >> 30) as u8) << 1;
    stamp[1] = (value >> 22) as u8;
    stamp[2] = (value >> 14) as u8 | 1;
    stamp[3] = (value >> 7) as u8;
    stamp[4] = (value << 1) as u8 | 1;
}

/// The jumps among the notices, in milliseconds ahead.
fn jumps(notices: &[Notice]) -> BTreeMap<(u16, bool), Vec<i64>> {
    let mut jumps: BTreeMap<(u16, bool), Vec<i64>> = BTreeMap::new();
    for notice in notices {
        let &Notice::Discontinuity { pid, times, by } = notice else {
            panic!("{notice:?}");
        };
        let millis = |span: Span| (span.as_secs_f64() * 1e3).round() as i64;
        let by = match by {
            Jump::Ahead(by) => millis(by),
            Jump::Back(by) => -millis(by),
        };
        let is_reference = times == JumpedTimes::References;
        jumps.entry((pid, is_reference)).or_default().push(by);
    }
    jumps
}

/// Whatever the times of a live source do, each packet leaves the receiver at its arrival plus the
/// latency, within 100 ms. What jumped is named, and nothing else is.
#[test]
fn times_that_jump_delay_nothing_and_are_named() {
    let all = [500, 3_000, 9_000, 3_600_000, -400, -3_000, -9_000];
    let cases = all.map(|by| (Which::All, by)).into_iter().chain([
        (Which::References, 3_000),
        (Which::References, -1_000),
        (Which::Stamps, 3_000),
        (Which::Stamps, -1_000),
        (Which::StampsOf(VIDEO), 9_000),
        (Which::StampsOf(SOUND), 3_000),
        (Which::StampsOf(SOUND), 500),
    ]);
    for (which, by) in cases {
        for (kind, source) in [("clip", Source::clip()), ("multiplex", Source::multiplex())] {
            let name = format!("{kind}, {which:?}, {by} ms");
            let at = Time::from_millis(4_000);
            let jumped = source.shift(which, |now| if now < at { 0 } else { 90 * by });
            let notices = jumped.check(&name);
            let mut expected = Vec::new();
            expected.extend(which.has_stamps(VIDEO).then_some((VIDEO, false)));
            expected.extend(which.has_references().then_some((VIDEO, true)));
            expected.extend(which.has_stamps(SOUND).then_some((SOUND, false)));
            let reported = jumps(&notices);
            assert!(reported.keys().eq(&expected), "{name}: {reported:?}");
            for (what, reported) in reported {
                // A frame of sound more or less: its times are rounded.
                let is_it = reported.len() == 1 && (reported[0] - by).abs() <= 45;
                assert!(is_it, "{name}: {what:?} {reported:?}");
            }
        }
    }
}

#[test]
fn a_source_whose_clock_drifts_or_that_was_held_up_delays_nothing_more() {
    let drift = |source: Source, parts: i64| {
        let by =
            move |now: Time| i64::try_from(now.as_nanos() / 100_000).unwrap() * 9 * parts / 1_000;
        // The pacer goes by what came latest in 10 s.
        let more = MORE + Span::from_millis(10 * u64::from(source.spread == Span::ZERO));
        let notices = source.shift(Which::All, by).check_within("drift", more);
        assert_eq!(notices, [], "{parts}");
    };
    for parts in [50, -50] {
        // In 10 s as far as a clock that is off by 0.01 % is in an hour and a half.
        drift(Source::clip(), parts);
        drift(Source::multiplex(), parts / 50);
    }
    for millis in [300, 900, 2_000] {
        let held = Source::clip().held(4_000, 4_000 + millis);
        assert_eq!(held.check("held up"), [], "{millis} ms");
        let paused = Source::clip().paused(4_000, Span::from_millis(millis));
        assert_eq!(paused.check("paused"), [], "{millis} ms");
    }
}

/// A new stream of a source whose clock is set ahead has one jump, which it marks, and leaves as
/// soon as before: its references fill no time that the source did not take.
#[test]
fn a_jump_ahead_is_one_in_a_new_stream_and_delays_nothing() {
    for millis in [500, 1_000, 3_000, 9_000, 20_000] {
        let at = Time::from_millis(4_000);
        let jumped = |now: Time| if now < at { 0 } else { 90 * millis };
        let (mut sections, _) = Source::clip().shift(Which::All, jumped).read();
        sections.sort_by_key(|&(due, _)| due);
        let mut writer = TsWriter::new(WriterConfig {
            output: Output::Remultiplexed,
            ..WriterConfig::default()
        });
        let mut pacer = Pacer::new(DATAGRAM);
        let (mut out, mut most) = (Vec::new(), Span::ZERO);
        for (due, section) in &sections {
            let (stream, number) = (section.stream, section.number);
            let mut bytes = Vec::new();
            writer
                .write_section(stream, number, &section.payload, &mut bytes)
                .unwrap();
            pacer.push(*due, &bytes, writer.spacing());
            for datagram in pacer.datagrams() {
                most = most.max(datagram.departure.saturating_since(*due));
                out.extend(datagram.bytes);
            }
        }
        let mut rest = Vec::new();
        writer.finish(&mut rest);
        out.extend(rest);
        assert_eq!(ts::check(&out, 0x1000, VIDEO), 1, "{millis} ms");
        // As long as a burst of a stream without a constant rate may take.
        assert!(most <= Span::from_millis(80), "{millis} ms: {most}");
    }
}

/// A stored source has no arrivals that tell a step of its clock from time that passes: its
/// sections are sent by its times. References of its new stream fill no time in which nothing came.
#[test]
fn a_step_of_a_stored_source_is_one_in_a_new_stream_and_delays_nothing() {
    for (millis, jumps) in [
        (500, 0),
        (900, 0),
        (1_100, 1),
        (3_000, 1),
        (9_000, 1),
        (20_000, 1),
    ] {
        let at = Time::from_millis(4_000);
        let jumped = |now: Time| if now < at { 0 } else { 90 * millis };
        let source = Source::clip().shift(Which::All, jumped);
        let (sections, _) = crate::read(&source.stream);
        let (mut writer, mut pacer) =
            (TsWriter::new(WriterConfig::default()), Pacer::new(DATAGRAM));
        let (mut out, mut now, mut most) = (Vec::new(), Time::ZERO, Span::ZERO);
        for section in &sections {
            now = now.max(section.source_time);
            let mut bytes = Vec::new();
            writer.write(&section.payload, &mut bytes).unwrap();
            pacer.push(now, &bytes, writer.spacing());
            for datagram in pacer.datagrams() {
                most = most.max(datagram.departure.saturating_since(now));
                out.extend(datagram.bytes);
            }
        }
        writer.finish(&mut out);
        assert_eq!(ts::check(&out, 0x1000, VIDEO), jumps, "{millis} ms");
        // As long as a burst of a stream without a constant rate may take.
        assert!(most <= Span::from_millis(80), "{millis} ms: {most}");
    }
}

/// A datagram of sound at 64 kb/s has 165 ms of it. No packet waits for those of the next one.
#[test]
fn packets_of_a_slow_source_wait_for_no_later_ones() {
    for millis in [165, 330] {
        let sound = CLIP
            .chunks(PACKET)
            .filter(|packet| u16::from_be_bytes([packet[1] & 0x1f, packet[2]]) != VIDEO);
        let stream: Vec<u8> = sound.flatten().copied().collect();
        let packets = (stream.len() / PACKET) as u64;
        let arrivals = (0..packets).map(|index| Time::from_millis(millis * (index / 7)));
        let source = Source {
            silence: Span::from_millis(2 * millis),
            ..Source::new(stream, arrivals.collect(), UNEVEN)
        };
        assert_eq!(source.check("a slow source"), [], "{millis} ms");
    }
}

/// Layouts of a live source leave after 20 ms, so there are more than of a stored one.
#[test]
fn layouts_of_a_live_source_cost_little() {
    let (sections, _) = Source::clip().read();
    let length = |layouts: bool| -> usize {
        { sections.iter() }
            .filter(|(_, section)| is_layout(section) == layouts)
            .map(|(_, section)| section.payload.len() + SECTION)
            .sum()
    };
    // The clip has half a megabit per second. At a higher rate, the share is smaller.
    let share = length(true) as f64 / length(false) as f64;
    assert!((0.01..0.03).contains(&share), "{share}");
}

/// Without any times, a stored source cannot be paced and is refused in the end. A live one needs
/// none.
#[test]
fn a_live_source_needs_no_times() {
    let mut stream = without_references(CLIP.to_vec());
    with_heads(&mut stream, &[VIDEO, SOUND], unstamp);
    let source = stream.repeat(20);
    let mut stored = Reader::new(ReaderConfig::default());
    let refused = stored.push(&source);
    assert!(matches!(refused, Err(ReadError::NoTime { .. })));
    let mut live = Reader::new(ReaderConfig::default());
    let (mut now, mut sections, mut notices) = (Time::ZERO, 0, Vec::new());
    for datagram in source.chunks(DATAGRAM) {
        now += Span::from_millis(1);
        live.push_arrived(datagram, now).unwrap();
        for event in std::iter::from_fn(|| live.poll()) {
            match event {
                Event::Section(section) => {
                    assert_eq!(section.source_time, now);
                    sections += 1;
                }
                Event::Notice(notice) => notices.push(notice),
                Event::Missing(missing) => assert_eq!(missing.source_time, now),
            }
        }
    }
    live.finish().unwrap();
    notices.extend(crate::part(std::iter::from_fn(|| live.poll()).collect()).1);
    // The counters jump where the clip begins again, and nothing else is said.
    let is_splice =
        |notice: &Notice| matches!(notice, Notice::Break { .. } | Notice::Damaged { .. });
    assert!(notices.iter().all(is_splice), "{notices:?}");
    assert!(sections > 20 * 250, "{sections}");
}

/// The source begins a minute after the sender, its clock at zero, and pauses within a picture.
#[test]
fn the_times_of_a_live_source_are_arrivals_whatever_its_clock_says() {
    for layouts in [true, false] {
        let mut reader = Reader::new(ReaderConfig {
            layouts,
            ..ReaderConfig::default()
        });
        let mut sections = 0;
        for (at, datagram) in (0..).zip(CLIP.chunks(DATAGRAM)) {
            let paused = if at > 251 { 500 } else { 0 };
            let now = Time::from_millis(60_000 + 5 * at + paused);
            reader.push_arrived(datagram, now).unwrap();
            if at == 251 {
                reader.on_silence(now + SILENCE).unwrap();
            }
            for event in std::iter::from_fn(|| reader.poll()) {
                if let Event::Section(section) = event {
                    let longest = Span::from_millis(if layouts { 800 } else { 0 });
                    let known = section.source_time + longest;
                    let earliest = Time::from_millis(60_000);
                    assert!(section.source_time >= earliest, "{}", section.source_time);
                    assert!(section.source_time <= now + SILENCE && known >= now);
                    sections += 1;
                }
            }
        }
        assert!(sections > 700, "{sections}");
    }
}
