//! What applications send and receive.

use std::ops::Range;
use std::time::{Duration, Instant};

use bytes::Bytes;
pub use comity_transport::timeline::inbox::GapReason;
pub use comity_transport::timeline::outbox::Fate;
pub use comity_transport::timeline::{Importance, Outcome, Reason, SectionId, StreamId};

/// What is given with one deadline: a video frame, a layer of it, a block of sound.
///
/// ```
/// use comity::{Importance, Section};
/// use std::time::Duration;
///
/// let frame = Section::new("an encoded picture")
///     .importance(Importance(200))
///     .deadline(Duration::from_millis(80));
/// assert_eq!(frame.payload.len(), 18);
/// ```
#[derive(Clone, Debug)]
pub struct Section {
    /// The stream that it continues; 0 for applications with one.
    pub stream: StreamId,
    /// How much it matters: when not everything can arrive in time, the higher one does.
    pub importance: Importance,
    /// When it came into being; `None` for the moment in which it is sent.
    pub source_time: Option<Instant>,
    /// By when it must have arrived, after its source time. `None` for the connection's latency;
    /// [`Duration::MAX`] for no deadline.
    pub deadline: Option<Duration>,
    /// An earlier section of the stream without which this one is worthless.
    pub needs: Option<SectionId>,
    /// Its bytes, at least one.
    pub payload: Bytes,
}

impl Section {
    /// A section of stream 0 that came into being now, with the connection's latency as its
    /// deadline.
    pub fn new(payload: impl Into<Bytes>) -> Self {
        Self {
            stream: StreamId(0),
            importance: Importance::default(),
            source_time: None,
            deadline: None,
            needs: None,
            payload: payload.into(),
        }
    }

    /// Of another stream.
    #[must_use]
    pub fn stream(self, stream: StreamId) -> Self {
        Self { stream, ..self }
    }

    /// With another importance.
    #[must_use]
    pub fn importance(self, importance: Importance) -> Self {
        Self { importance, ..self }
    }

    /// That came into being at `time`.
    #[must_use]
    pub fn source_time(self, time: Instant) -> Self {
        Self {
            source_time: Some(time),
            ..self
        }
    }

    /// That must have arrived so long after its source time; [`Duration::MAX`] for no deadline.
    #[must_use]
    pub fn deadline(self, deadline: Duration) -> Self {
        Self {
            deadline: Some(deadline),
            ..self
        }
    }

    /// That is worthless without this earlier section of its stream.
    #[must_use]
    pub fn needs(self, section: SectionId) -> Self {
        Self {
            needs: Some(section),
            ..self
        }
    }
}

/// What is received; each section of a stream exactly once, in the order of the stream.
#[derive(Clone, Debug)]
pub enum Item {
    /// All of a section.
    Section(Received),
    /// Not all of a section.
    Gap(Gap),
}

/// What the sender said of a section, with its times on this host's clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct About {
    /// How much it matters.
    pub importance: Importance,
    /// When it came into being, as far as the two clocks and the delay of the path can be known.
    pub source_time: Instant,
    /// By when it had to arrive; `None` for never.
    pub deadline: Option<Instant>,
    /// The earlier section that it needs.
    pub needs: Option<SectionId>,
    /// Its length in bytes.
    pub length: u32,
}

/// A section that arrived whole.
#[derive(Clone, Debug)]
pub struct Received {
    /// Its stream.
    pub stream: StreamId,
    /// Its number in the stream.
    pub id: SectionId,
    /// What the sender said of it.
    pub about: About,
    /// When it was complete.
    pub completed: Instant,
    /// Whether that was after its deadline.
    pub is_late: bool,
    /// Its bytes.
    pub payload: Bytes,
}

/// A section of which something is missing.
#[derive(Clone, Debug)]
pub struct Gap {
    /// Its stream.
    pub stream: StreamId,
    /// Its number in the stream.
    pub id: SectionId,
    /// Why it is not whole.
    pub reason: GapReason,
    /// What had arrived; `None` when nothing is known of it but that it existed.
    pub partial: Option<Partial>,
}

/// What had arrived of a section that never was complete: some media can use it.
#[derive(Clone, Debug)]
pub struct Partial {
    /// What the sender said of it.
    pub about: About,
    /// Its bytes, zero where they are missing.
    pub payload: Bytes,
    /// The missing positions, in order.
    pub missing: Vec<Range<u32>>,
}

impl Item {
    /// The stream.
    pub fn stream(&self) -> StreamId {
        match self {
            Self::Section(section) => section.stream,
            Self::Gap(gap) => gap.stream,
        }
    }

    /// The number in the stream.
    pub fn id(&self) -> SectionId {
        match self {
            Self::Section(section) => section.id,
            Self::Gap(gap) => gap.id,
        }
    }

    /// The section, if it is whole.
    pub fn into_section(self) -> Option<Received> {
        match self {
            Self::Section(section) => Some(section),
            Self::Gap(_) => None,
        }
    }

    /// The bytes that it takes while it waits to be received.
    pub(crate) fn size(&self) -> usize {
        match self {
            Self::Section(section) => section.payload.len(),
            Self::Gap(Gap { partial, .. }) => {
                partial.as_ref().map_or(0, |partial| partial.payload.len())
            }
        }
    }
}
