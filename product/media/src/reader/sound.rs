//! PES packets of audio, cut into the frames that are its access units.

use core::ops::Range;

use super::unit::{Damage, Fault, Marks, Units, Whole};
use crate::codec::{AUDIO_HEADER, AudioFrame, audio_frame, may_begin_frame};
use crate::header::Times;
use crate::work;

/// Cuts the PES packets of one audio stream into frames.
///
/// A time stamp belongs to the first frame that begins in its PES packet (ISO/IEC 13818-1 2.4.3.7).
/// The presentation times of later frames follow from the samples of the frames before them. A
/// frame that continues in the next PES packet belongs to the packet in which it begins.
///
/// A PES packet without frames of a known syntax stays one unit. The rest after the last frame of a
/// packet is one unit too. A frame with missing bytes ends where the next one begins.
#[derive(Debug, Default)]
pub(super) struct Sound {
    /// The frame that continues in the next PES packet.
    carried: Option<Whole>,
    clock: Option<FrameClock>,
    has_frames: bool,
    has_reported: bool,
}

/// When the next frame is presented.
#[derive(Clone, Copy, Debug)]
struct FrameClock {
    stamp: Times,
    /// The distance from it, in samples of this rate.
    samples: u64,
    rate: u32,
}

impl FrameClock {
    fn now(&self) -> Times {
        let ticks = self.samples.saturating_mul(90_000) / u64::from(self.rate.max(1));
        self.stamp.later(ticks)
    }

    fn advance(&mut self, frame: AudioFrame) {
        if self.rate != frame.rate {
            (self.stamp, self.samples, self.rate) = (self.now(), 0, frame.rate);
        }
        self.samples = self.samples.saturating_add(u64::from(frame.samples));
    }
}

impl Sound {
    /// The number of frame bytes held.
    pub(super) fn held(&self) -> usize {
        self.carried.as_ref().map_or(0, |unit| unit.bytes.len())
    }

    /// Handles missing data between PES packets: returns the incomplete frame, and whether there
    /// was one.
    pub(super) fn interrupt(&mut self, out: &mut Units) -> bool {
        self.clock = None;
        let carried = self.carried.take();
        let is_cut = carried.is_some();
        out.extend(carried.map(|unit| {
            Ok(Whole {
                damaged: true,
                ..unit
            })
        }));
        is_cut
    }

    /// Drops the incomplete frame.
    pub(super) fn clear(&mut self) {
        self.carried = None;
        self.clock = None;
    }

    /// Handles the end of the source: returns the incomplete last frame.
    pub(super) fn finish(&mut self, out: &mut Units) {
        if let Some(unit) = self.carried.take() {
            out.push(Ok(unit));
        }
        self.clock = None;
    }

    /// The number of bytes up to the end of the last whole frame, if these bytes come next.
    pub(super) fn whole_frames(&self, bytes: &[u8]) -> usize {
        let mut at = 0;
        if let Some(Whole { bytes: carried, .. }) = &self.carried {
            let header = carried.iter().chain(bytes).take(AUDIO_HEADER);
            let header: Vec<u8> = header.copied().collect();
            work::count(header.len());
            let length = audio_frame(&header).map(|frame| frame.length);
            match length.and_then(|length| length.checked_sub(carried.len())) {
                Some(rest) if rest <= bytes.len() => at = rest,
                _ => return 0,
            }
        }
        while let Some(frame) = bytes.get(at..).and_then(audio_frame)
            && at + frame.length <= bytes.len()
        {
            at += frame.length;
        }
        at
    }

    /// Adds a PES packet, or its first whole frames. If `is_missing`, data before it is missing.
    pub(super) fn take(
        &mut self,
        packet: Whole,
        damage: &Damage,
        is_missing: bool,
        out: &mut Units,
    ) {
        if is_missing {
            self.interrupt(out);
        }
        self.cut(packet, damage, (is_missing, false), out);
    }

    /// Adds the rest of a PES packet, after its first whole frames.
    pub(super) fn take_rest(&mut self, packet: Whole, damage: &Damage, out: &mut Units) {
        match packet.bytes.is_empty() {
            true if damage.is_none() => {}
            true => drop(self.interrupt(out)),
            false => self.cut(packet, damage, (false, true), out),
        }
    }

    /// Cuts a PES packet into frames. The rest of one continues where a frame ended.
    fn cut(
        &mut self,
        mut packet: Whole,
        damage: &Damage,
        (is_missing, is_rest): (bool, bool),
        out: &mut Units,
    ) {
        let mut head = self.carried.take();
        let begins_at = head.as_ref().map_or(0, |unit| unit.bytes.len());
        let carried = head.as_mut().map(|unit| core::mem::take(&mut unit.bytes));
        let bytes = match carried {
            Some(carried) => {
                work::count(carried.len() + packet.bytes.len());
                [carried.as_slice(), &packet.bytes].concat()
            }
            None => core::mem::take(&mut packet.bytes),
        };
        let mut shifted = Damage::default();
        shifted.append(begins_at, damage);
        let damage = shifted;
        if packet.marks.discontinuity {
            self.clock = None;
        }
        let mut at = 0;
        if head.is_none() && !is_rest && !begins_frame(&bytes) {
            let first = first_frame(&bytes, 0);
            let damaged = packet.damaged || is_missing || damage.is_in(0..first);
            if first == bytes.len() {
                self.clock = None;
                return self.give_rest(
                    Whole {
                        bytes,
                        damaged,
                        ..packet
                    },
                    out,
                );
            }
            out.push(Ok(packet.continued(bytes_of(&bytes, 0..first), damaged)));
            at = first;
        }
        let mut is_first = true;
        while let Some(rest) = bytes.get(at..).filter(|rest| !rest.is_empty()) {
            let mut unit = match head.take() {
                Some(unit) if at < begins_at => unit,
                _ => {
                    let is_first = core::mem::replace(&mut is_first, false);
                    self.begin(&packet, is_first)
                }
            };
            let frame = audio_frame(rest);
            let end = frame.map_or(bytes.len(), |frame| at + frame.length);
            let damaged_at = { damage.start() }
                .filter(|_| damage.is_inside(at..end.min(bytes.len() + 1)))
                .map(|start| start.max(at + 1));
            let is_next = |end: usize| match bytes.get(end..) {
                Some(behind) => behind.is_empty() || begins_frame(behind),
                None => false,
            };
            match (frame, damaged_at) {
                (Some(frame), damaged)
                    if end <= bytes.len() && (damaged.is_none() || is_next(end)) =>
                {
                    unit.bytes = bytes_of(&bytes, at..end);
                    unit.damaged |= damaged.is_some();
                    at = end;
                    self.has_frames = true;
                    if let Some(clock) = &mut self.clock {
                        clock.advance(frame);
                    }
                    out.push(Ok(unit));
                }
                // The frame is incomplete, whatever its length field contains. Another frame may
                // follow.
                (_, Some(start)) => {
                    let next = first_frame(&bytes, start);
                    unit.bytes = bytes_of(&bytes, at..next);
                    unit.damaged = true;
                    at = next;
                    self.clock = None;
                    out.push(Ok(unit));
                }
                (frame, None) => {
                    unit.bytes = rest.to_vec();
                    if frame.is_some() || may_begin_frame(rest) {
                        self.carried = Some(unit);
                    } else {
                        self.clock = None;
                        self.give_rest(unit, out);
                    }
                    break;
                }
            }
        }
        if damage.reaches(bytes.len()) {
            self.interrupt(out);
        }
    }

    /// A unit that begins in this PES packet, as its first unit or a later one.
    fn begin(&mut self, packet: &Whole, is_first: bool) -> Whole {
        if is_first && packet.times != Times::None {
            self.clock = Some(FrameClock {
                stamp: packet.times,
                samples: 0,
                rate: 0,
            });
        }
        Whole {
            times: self.clock.map_or(Times::None, |clock| clock.now()),
            marks: if is_first {
                packet.marks
            } else {
                Marks::default()
            },
            bytes: Vec::new(),
            ..*packet
        }
    }

    /// Returns data outside of frames as one unit.
    fn give_rest(&mut self, unit: Whole, out: &mut Units) {
        let is_odd = self.has_frames && !unit.damaged;
        if is_odd && !core::mem::replace(&mut self.has_reported, true) {
            out.push(Err(Fault::NoFrame));
        }
        out.push(Ok(unit));
    }
}

fn bytes_of(bytes: &[u8], range: Range<usize>) -> Vec<u8> {
    bytes.get(range).unwrap_or_default().to_vec()
}

fn begins_frame(bytes: &[u8]) -> bool {
    audio_frame(bytes).is_some() || may_begin_frame(bytes)
}

/// The position of the first frame at or after `from`, where an earlier frame ended; the end of the
/// bytes if there is none. Another frame or the end of the bytes must follow the frame.
fn first_frame(bytes: &[u8], from: usize) -> usize {
    let is_frame = |at: &usize| {
        let rest = bytes.get(*at..).unwrap_or_default();
        let behind = audio_frame(rest).and_then(|frame| rest.get(frame.length..));
        behind.is_some_and(|behind| behind.is_empty() || audio_frame(behind).is_some())
    };
    (from..bytes.len()).find(is_frame).unwrap_or(bytes.len())
}
