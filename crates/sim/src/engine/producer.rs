//! What gives sections, and when.

use std::sync::Arc;

use comity_units::Time;

use super::schedule::Schedule;
use crate::frames::{Encoder, Frame, FrameKind};

/// What gives sections.
#[derive(Debug)]
pub(super) enum Producer {
    /// As many of this size as are taken.
    Greedy(u32),
    /// One of this size at each time of a calendar.
    Schedule(Schedule, u32),
    /// Frames of a synthetic encoder.
    Encoder(Encoder),
    /// Frames of a list, from the start of the flow.
    List {
        frames: Arc<[Frame]>,
        next: usize,
        start: Time,
    },
}

impl Producer {
    /// When the next section comes into being; [`Time::MAX`] for never, or whenever there is room.
    pub(super) fn peek(&self) -> Time {
        match self {
            Self::Greedy(_) => Time::MAX,
            Self::Schedule(schedule, _) => schedule.peek(),
            Self::Encoder(encoder) => encoder.peek(),
            Self::List {
                frames,
                next,
                start,
            } => frames
                .get(*next)
                .map_or(Time::MAX, |frame| *start + frame.at),
        }
    }

    /// The next section.
    pub(super) fn next(&mut self) -> Option<(u32, FrameKind)> {
        match self {
            Self::Greedy(bytes) => Some((*bytes, FrameKind::Other)),
            Self::Schedule(schedule, bytes) => {
                schedule.advance();
                Some((*bytes, FrameKind::Other))
            }
            Self::Encoder(encoder) => Some(encoder.next()),
            Self::List { frames, next, .. } => {
                let frame = frames.get(*next)?;
                *next += 1;
                Some((frame.bytes, frame.kind))
            }
        }
    }
}
