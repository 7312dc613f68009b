//! Sources of sections.

use std::sync::Arc;

use comity_frames::{Arrival, DeadlineRule, FrameType, Group};
use comity_units::{DataSize, Rate, Span, Time};

use super::schedule::Schedule;
use crate::frames::{AdaptiveEncoder, Encoder, Frame};

/// A source of sections.
#[derive(Debug)]
pub(super) enum Producer {
    /// As many of this size as the transport accepts.
    Greedy(u32),
    /// One of this size at each time of a calendar.
    Schedule(Schedule, u32),
    /// Frames of a synthetic encoder.
    Encoder(Encoder),
    /// Frames of a synthetic encoder that follows the target bitrate.
    Adaptive(Box<AdaptiveEncoder>),
    /// Frames of a list, from the start of the flow.
    List {
        frames: Arc<[Frame]>,
        next: usize,
        start: Time,
    },
}

impl Producer {
    /// The source time of the next section; [`Time::MAX`] if there is none or if the source is
    /// greedy.
    pub(super) fn peek(&self) -> Time {
        match self {
            Self::Greedy(_) => Time::MAX,
            Self::Schedule(schedule, _) => schedule.peek(),
            Self::Encoder(encoder) => encoder.peek(),
            Self::Adaptive(encoder) => encoder.peek(),
            Self::List {
                frames,
                next,
                start,
            } => frames
                .get(*next)
                .map_or(Time::MAX, |frame| *start + frame.at),
        }
    }

    /// The next section. `target` is the current target bitrate of the transport, if it has one.
    pub(super) fn next(&mut self, target: Option<Rate>) -> Option<(u32, FrameType)> {
        match self {
            Self::Greedy(bytes) => Some((*bytes, FrameType::Slice)),
            Self::Schedule(schedule, bytes) => {
                schedule.advance();
                Some((*bytes, FrameType::Slice))
            }
            Self::Encoder(encoder) => Some(encoder.next()),
            Self::Adaptive(encoder) => Some(encoder.next(target)),
            Self::List { frames, next, .. } => {
                let frame = frames.get(*next)?;
                *next += 1;
                Some((frame.bytes, frame.frame_type))
            }
        }
    }
}

/// The frames of a producer with numbers, dependencies and importance, as from a media reader.
#[derive(Debug)]
pub(super) struct FrameSource {
    pub(super) producer: Producer,
    group: Group,
    number: u64,
}

impl FrameSource {
    pub(super) const fn new(producer: Producer) -> Self {
        Self {
            producer,
            group: Group::new(DeadlineRule::Each),
            number: 0,
        }
    }

    /// The next frame, whose source time is `source_time`, at the current target bitrate.
    pub(super) fn next(
        &mut self,
        source_time: Time,
        target: Option<Rate>,
    ) -> Option<comity_frames::Frame> {
        let (bytes, frame_type) = self.producer.next(target)?;
        let number = self.number;
        self.number += 1;
        let member = self.group.push(Arrival {
            number,
            frame_type,
            // Encoders that write P frames as B frames reorder nothing.
            presentation: match frame_type {
                FrameType::Bidirectional { referenced: false } => None,
                _ => Some(source_time.as_nanos() / 1_000 * 9 / 100),
            },
            source_time,
            reordering: Span::ZERO,
            begins_refresh: false,
        });
        Some(member.frame(0, number, DataSize::new(u64::from(bytes))))
    }
}
