//! Arrivals and their times: one computation for every transport.

use std::fmt::Write;

use serde::Serialize;

use crate::chunk::{Frame, Header, Kind};
use crate::source::Source;

/// Accepts the chunks that a transport delivers, in any order.
#[derive(Debug)]
pub struct Meter {
    source: Source,
    latency_ns: u64,
    frames: Vec<Frame>,
    progress: Vec<Progress>,
    /// The source's first frame on the clock, estimated from the first chunk that arrives.
    start_ns: Option<u64>,
    payload_bytes: u64,
    duplicate_bytes: u64,
    damaged_chunks: u64,
    foreign_chunks: u64,
}

/// The state of one frame.
#[derive(Clone, Debug, Default)]
struct Progress {
    given_ns: Option<u64>,
    first_ns: Option<u64>,
    completed_ns: Option<u64>,
    chunks: Vec<bool>,
    missing: u16,
}

impl Meter {
    pub fn new(source: Source, latency_ns: u64) -> Result<Self, String> {
        let frames = source.frames()?;
        let progress = frames.iter().map(|frame| Progress {
            chunks: vec![false; usize::from(frame.chunks())],
            missing: frame.chunks(),
            ..Progress::default()
        });
        Ok(Self {
            progress: progress.collect(),
            source,
            latency_ns,
            frames,
            start_ns: None,
            payload_bytes: 0,
            duplicate_bytes: 0,
            damaged_chunks: 0,
            foreign_chunks: 0,
        })
    }

    /// Counts one chunk, delivered at `now_ns`.
    pub fn on_chunk(&mut self, now_ns: u64, chunk: &[u8]) {
        let Ok(header) = Header::read(chunk) else {
            self.damaged_chunks += 1;
            return;
        };
        let number = header.frame as usize;
        let known = self.frames.get(number).zip(self.progress.get_mut(number));
        let Some((frame, progress)) = known else {
            self.foreign_chunks += 1;
            return;
        };
        // The other end has other parameters, or this is a chunk of another run.
        if (header.kind, header.size, header.chunks)
            != (frame.kind.code(), frame.size, frame.chunks())
        {
            self.foreign_chunks += 1;
            return;
        }
        let Some(has) = progress.chunks.get_mut(usize::from(header.index)) else {
            self.foreign_chunks += 1;
            return;
        };
        if self.start_ns.is_none() {
            self.start_ns = Some(
                header
                    .given_ns
                    .saturating_sub(self.source.due_ns(header.frame)),
            );
        }
        if std::mem::replace(has, true) {
            self.duplicate_bytes += chunk.len() as u64;
            return;
        }
        self.payload_bytes += chunk.len() as u64;
        progress.given_ns = Some(header.given_ns);
        progress.first_ns.get_or_insert(now_ns);
        progress.missing -= 1;
        if progress.missing == 0 {
            progress.completed_ns = Some(now_ns);
        }
    }

    /// Counts an unreadable chunk.
    pub fn on_damage(&mut self) {
        self.damaged_chunks += 1;
    }

    /// When the last frame is submitted, on the clock; `None` before the first chunk.
    pub fn source_ends_ns(&self) -> Option<u64> {
        Some(self.start_ns? + self.source.duration_ns())
    }

    fn delay_ns(&self, number: usize) -> Option<u64> {
        let progress = &self.progress[number];
        Some(progress.completed_ns?.saturating_sub(progress.given_ns?))
    }

    fn is_on_time(&self, number: usize) -> bool {
        self.delay_ns(number)
            .is_some_and(|delay| delay <= self.latency_ns)
    }

    /// Whether each frame and all of its dependencies were on time.
    fn decodable(&self) -> Vec<bool> {
        let mut decodable: Vec<bool> = Vec::with_capacity(self.frames.len());
        for (number, frame) in self.frames.iter().enumerate() {
            let has_needed = frame.needs.is_none_or(|needed| decodable[needed as usize]);
            decodable.push(has_needed && self.is_on_time(number));
        }
        decodable
    }

    pub fn summary(&self) -> Summary {
        let decodable = self.decodable();
        let on_time: Vec<bool> = (0..self.frames.len())
            .map(|at| self.is_on_time(at))
            .collect();
        let delays = (0..self.frames.len()).filter_map(|at| self.delay_ns(at));
        let first = self
            .progress
            .iter()
            .filter_map(|progress| Some(progress.first_ns?.saturating_sub(progress.given_ns?)));
        let complete = self
            .progress
            .iter()
            .filter(|progress| progress.completed_ns.is_some())
            .count();
        let on_time_count = count(&on_time);
        let kinds = Kind::ALL
            .into_iter()
            .filter_map(|kind| self.kind(kind, &on_time, &decodable));
        Summary {
            latency_ms: self.latency_ns as f64 / 1e6,
            frames: self.frames.len() as u64,
            frames_on_time: on_time_count,
            frames_decodable: count(&decodable),
            frames_late: complete as u64 - on_time_count,
            frames_never_complete: (self.frames.len() - complete) as u64,
            on_time: share(on_time_count, self.frames.len() as u64),
            decodable: share(count(&decodable), self.frames.len() as u64),
            keys_on_time: self
                .kind(Kind::I, &on_time, &decodable)
                .map(|kind| kind.on_time),
            kinds: kinds.collect(),
            bytes: self.bytes(|_| true),
            bytes_on_time: self.bytes(|at| on_time[at]),
            bytes_decodable: self.bytes(|at| decodable[at]),
            bytes_received: self.payload_bytes,
            bytes_duplicate: self.duplicate_bytes,
            chunks_damaged: self.damaged_chunks,
            chunks_foreign: self.foreign_chunks,
            delay_ms: Percentiles::of(delays.collect()),
            first_chunk_delay_ms: Percentiles::of(first.collect()),
            worst_second: self.worst_second(&on_time),
            on_time_by_second: self.seconds(&on_time).collect(),
            source_start_ns: self.start_ns,
        }
    }

    fn kind(&self, kind: Kind, on_time: &[bool], decodable: &[bool]) -> Option<OfKind> {
        let all: Vec<usize> = (0..self.frames.len())
            .filter(|at| self.frames[*at].kind == kind)
            .collect();
        let of = |flags: &[bool]| all.iter().filter(|at| flags[**at]).count() as u64;
        (!all.is_empty()).then(|| OfKind {
            kind,
            frames: all.len() as u64,
            on_time: share(of(on_time), all.len() as u64),
            decodable: share(of(decodable), all.len() as u64),
        })
    }

    fn bytes(&self, counts: impl Fn(usize) -> bool) -> u64 {
        let counted = self.frames.iter().enumerate().filter(|(at, _)| counts(*at));
        counted.map(|(_, frame)| u64::from(frame.size)).sum()
    }

    /// The share of frames on time in each second of the source.
    fn seconds(&self, on_time: &[bool]) -> impl Iterator<Item = f64> {
        let seconds = on_time.chunks(self.source.fps as usize);
        seconds.map(|flags| share(count(flags), flags.len() as u64))
    }

    fn worst_second(&self, on_time: &[bool]) -> WorstSecond {
        let seconds = self.seconds(on_time).enumerate();
        seconds
            .map(|(second, on_time)| WorstSecond {
                second: second as u64,
                on_time,
            })
            .min_by(|one, other| one.on_time.total_cmp(&other.on_time))
            .expect("a source has at least one frame")
    }

    /// A table of all frames in CSV; times are in milliseconds after the first frame.
    pub fn per_frame(&self) -> String {
        let mut table =
            "number,kind,size,needs,given_ms,first_ms,completed_ms,delay_ms,on_time,decodable\n"
                .to_owned();
        let start = self.start_ns.unwrap_or(0);
        let ms = |time: Option<u64>| {
            time.map(|time| format!("{:.3}", (time as f64 - start as f64) / 1e6))
                .unwrap_or_default()
        };
        let decodable = self.decodable();
        for (at, (frame, progress)) in self.frames.iter().zip(&self.progress).enumerate() {
            let needs = frame
                .needs
                .map(|needed| needed.to_string())
                .unwrap_or_default();
            let delay = self
                .delay_ns(at)
                .map(|delay| format!("{:.3}", delay as f64 / 1e6))
                .unwrap_or_default();
            writeln!(
                table,
                "{},{},{},{needs},{},{},{},{delay},{},{}",
                frame.number,
                frame.kind,
                frame.size,
                ms(progress.given_ns),
                ms(progress.first_ns),
                ms(progress.completed_ns),
                u8::from(self.is_on_time(at)),
                u8::from(decodable[at])
            )
            .expect("a string takes everything");
        }
        table
    }
}

fn count(flags: &[bool]) -> u64 {
    flags.iter().filter(|flag| **flag).count() as u64
}

fn share(part: u64, whole: u64) -> f64 {
    part as f64 / whole as f64
}

/// The results of a run. Shares are from 0 to 1.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Summary {
    pub latency_ms: f64,
    pub frames: u64,
    /// Complete within the latency after their submission.
    pub frames_on_time: u64,
    /// On time, together with all of their dependencies.
    pub frames_decodable: u64,
    /// Complete after the latency.
    pub frames_late: u64,
    pub frames_never_complete: u64,
    pub on_time: f64,
    pub decodable: f64,
    /// `None` if the source has no key frames.
    pub keys_on_time: Option<f64>,
    pub kinds: Vec<OfKind>,
    /// Of all frames of the source.
    pub bytes: u64,
    pub bytes_on_time: u64,
    pub bytes_decodable: u64,
    /// Of all delivered chunks, without duplicates.
    pub bytes_received: u64,
    /// Of duplicate chunks.
    pub bytes_duplicate: u64,
    pub chunks_damaged: u64,
    /// Chunks that belong to no frame of this source: the ends have different parameters.
    pub chunks_foreign: u64,
    /// Of all complete frames, from submission to completion.
    pub delay_ms: Option<Percentiles>,
    /// Of all frames with any arrival, from submission to the first chunk.
    pub first_chunk_delay_ms: Option<Percentiles>,
    /// The second of the source with the smallest share on time.
    pub worst_second: WorstSecond,
    pub on_time_by_second: Vec<f64>,
    /// When the first frame was submitted, on `CLOCK_MONOTONIC`.
    pub source_start_ns: Option<u64>,
}

#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct OfKind {
    pub kind: Kind,
    pub frames: u64,
    pub on_time: f64,
    pub decodable: f64,
}

#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct WorstSecond {
    pub second: u64,
    pub on_time: f64,
}

/// Nearest-rank percentiles, in milliseconds.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Percentiles {
    pub p50: f64,
    pub p95: f64,
    pub p99: f64,
    pub max: f64,
}

impl Percentiles {
    /// `None` of nothing.
    pub fn of(mut values_ns: Vec<u64>) -> Option<Self> {
        values_ns.sort_unstable();
        let max = *values_ns.last()?;
        let at = |percent: usize| {
            let rank = (values_ns.len() * percent).div_ceil(100).max(1);
            values_ns[rank - 1] as f64 / 1e6
        };
        Some(Self {
            p50: at(50),
            p95: at(95),
            p99: at(99),
            max: max as f64 / 1e6,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::chunk::{SIZE, write_frame};
    use crate::source::Pattern;

    const MS: u64 = 1_000_000;
    const START: u64 = 5_000 * MS;

    /// Four frames a second for two seconds: I P B B, I P B B, 200 kb/s, so 25,000 bytes a group.
    fn meter() -> Meter {
        let source = Source {
            rate: "200kbps".parse().expect("a rate"),
            fps: 4,
            seconds: 2,
            pattern: Pattern::Key,
            key_ratio: 2.0,
            seed: 1,
        };
        Meter::new(source, 100 * MS).expect("frames")
    }

    /// Delivers the chunks of a frame, each after its delay; the last delay counts for the rest.
    fn deliver(meter: &mut Meter, number: u32, delays_ms: &[u64], skip: Option<usize>) {
        let given = START + u64::from(number) * 250 * MS;
        let bytes = write_frame(&meter.frames[number as usize], given);
        for (index, chunk) in bytes.chunks(SIZE).enumerate() {
            if skip != Some(index) {
                let delay = delays_ms.get(index).or(delays_ms.last()).expect("a delay");
                meter.on_chunk(given + delay * MS, chunk);
            }
        }
    }

    #[test]
    fn a_script_of_arrivals_gives_the_numbers_worked_out_by_hand() {
        let mut meter = meter();
        deliver(&mut meter, 0, &[20, 60], None); // I: complete after 60
        deliver(&mut meter, 1, &[30, 101], None); // P: late
        deliver(&mut meter, 2, &[40], None); // B: on time, but it depends on 1
        deliver(&mut meter, 4, &[100], None); // I: exactly on time
        deliver(&mut meter, 5, &[50], None); // P
        deliver(&mut meter, 5, &[55], None); // duplicate
        deliver(&mut meter, 6, &[10], Some(0)); // B: never complete
        deliver(&mut meter, 7, &[90], None); // B
        meter.on_chunk(START, &[7; 40]);

        let summary = meter.summary();
        assert_eq!(summary.frames, 8);
        assert_eq!((summary.frames_on_time, summary.frames_decodable), (5, 4));
        assert_eq!((summary.frames_late, summary.frames_never_complete), (1, 2));
        assert_eq!((summary.on_time, summary.decodable), (0.625, 0.5));
        assert_eq!(summary.keys_on_time, Some(1.0));
        let kinds: Vec<_> = summary
            .kinds
            .iter()
            .map(|kind| (kind.kind, kind.frames, kind.on_time, kind.decodable))
            .collect();
        assert_eq!(
            kinds,
            [
                (Kind::I, 2, 1.0, 1.0),
                (Kind::P, 2, 0.5, 0.5),
                (Kind::B, 4, 0.5, 0.25)
            ]
        );
        // Delays of complete frames: 40 50 60 90 100 101.
        let expected = Percentiles {
            p50: 60.0,
            p95: 101.0,
            p99: 101.0,
            max: 101.0,
        };
        assert_eq!(summary.delay_ms, Some(expected));
        // First chunks: 10 20 30 40 50 90 100.
        assert_eq!(
            summary
                .first_chunk_delay_ms
                .map(|delay| (delay.p50, delay.max)),
            Some((40.0, 100.0))
        );
        assert_eq!(
            summary.worst_second,
            WorstSecond {
                second: 0,
                on_time: 0.5
            }
        );
        assert_eq!(summary.on_time_by_second, [0.5, 0.75]);
        assert_eq!(summary.source_start_ns, Some(START));
        assert_eq!(meter.source_ends_ns(), Some(START + 2_000 * MS));

        let sizes: Vec<u64> = meter
            .frames
            .iter()
            .map(|frame| u64::from(frame.size))
            .collect();
        assert_eq!(summary.bytes, sizes.iter().sum::<u64>());
        assert!((summary.bytes as f64 - 50_000.0).abs() < 100.0);
        assert_eq!(
            summary.bytes_on_time,
            sizes[0] + sizes[2] + sizes[4] + sizes[5] + sizes[7]
        );
        assert_eq!(
            summary.bytes_decodable,
            sizes[0] + sizes[4] + sizes[5] + sizes[7]
        );
        assert_eq!(
            summary.bytes_received,
            summary.bytes - sizes[3] - SIZE as u64
        );
        assert_eq!(summary.bytes_duplicate, sizes[5]);
        assert_eq!((summary.chunks_damaged, summary.chunks_foreign), (1, 0));

        let table = meter.per_frame();
        let lines: Vec<_> = table.lines().collect();
        assert_eq!(lines.len(), 9);
        assert_eq!(
            lines[2],
            format!("1,P,{},0,250.000,280.000,351.000,101.000,0,0", sizes[1])
        );
        assert_eq!(lines[4], format!("3,B,{},1,,,,,0,0", sizes[3]));
    }

    #[test]
    fn chunks_of_another_source_are_distinguished() {
        let mut meter = meter();
        let mut frame = meter.frames[0];
        frame.size += 1;
        meter.on_chunk(START, &write_frame(&frame, START)[..SIZE]);
        frame.number = 8;
        meter.on_chunk(START, &write_frame(&frame, START)[..SIZE]);
        let summary = meter.summary();
        assert_eq!((summary.chunks_foreign, summary.bytes_received), (2, 0));
        assert_eq!((summary.delay_ms, summary.source_start_ns), (None, None));
        assert_eq!(
            (summary.frames_never_complete, summary.worst_second.on_time),
            (8, 0.0)
        );
    }
}
