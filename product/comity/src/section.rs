//! Sections, gaps and their metadata.

use std::ops::Range;
use std::time::{Duration, Instant};

use bytes::Bytes;
pub use comity_transport::timeline::inbox::GapReason;
pub use comity_transport::timeline::outbox::Fate;
pub use comity_transport::timeline::{Importance, Outcome, Reason, SectionId, StreamId};

use comity_units::Time;

use crate::transport::{Delivery, Meta, Transport};

/// Media with one deadline: a video frame, a layer of it, a block of audio.
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
#[non_exhaustive]
pub struct Section {
    /// Its stream; 0 for applications with one stream.
    pub stream: StreamId,
    /// Its priority: when not everything can arrive in time, higher importance goes first.
    pub importance: Importance,
    /// Its capture time; `None` for the time of the call that sends it.
    pub source_time: Option<Instant>,
    /// The time from its source time to its deadline. `None` for the connection's latency;
    /// [`Duration::MAX`] for no deadline.
    pub deadline: Option<Duration>,
    /// An earlier section of the stream without which this one is worthless.
    pub needs: Option<SectionId>,
    /// Its bytes, at least one.
    pub payload: Bytes,
}

impl Section {
    /// A section of stream 0 with the present as its source time and the connection's latency as
    /// its deadline.
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

    /// Sets the stream.
    #[must_use]
    pub fn stream(self, stream: StreamId) -> Self {
        Self { stream, ..self }
    }

    /// Sets the importance.
    #[must_use]
    pub fn importance(self, importance: Importance) -> Self {
        Self { importance, ..self }
    }

    /// Sets the source time.
    #[must_use]
    pub fn source_time(self, time: Instant) -> Self {
        Self {
            source_time: Some(time),
            ..self
        }
    }

    /// Sets the deadline, counted from the source time; [`Duration::MAX`] for no deadline.
    #[must_use]
    pub fn deadline(self, deadline: Duration) -> Self {
        Self {
            deadline: Some(deadline),
            ..self
        }
    }

    /// Sets the earlier section of its stream without which this one is worthless.
    #[must_use]
    pub fn needs(self, section: SectionId) -> Self {
        Self {
            needs: Some(section),
            ..self
        }
    }
}

/// A received item. Each section of a stream is in exactly one item, in the order of the stream. At
/// its deadline, a section overtakes earlier incomplete ones with later deadlines.
#[derive(Clone, Debug)]
pub enum Item {
    /// A whole section.
    Section(Received),
    /// An incomplete section, or a run of sections without any arrived bytes.
    Gap(Gap),
}

/// The sender's description of a section, with times on this host's clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct About {
    /// Its priority.
    pub importance: Importance,
    /// Its capture time, within the accuracy of both clocks and the measured delay of the path.
    pub source_time: Instant,
    /// Its deadline; `None` for never.
    pub deadline: Option<Instant>,
    /// The earlier section that it needs.
    pub needs: Option<SectionId>,
    /// Its length in bytes.
    pub length: u32,
}

/// A section that arrived whole.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Received {
    /// Its stream.
    pub stream: StreamId,
    /// Its number in the stream.
    pub id: SectionId,
    /// The sender's description.
    pub about: About,
    /// When its last byte arrived.
    pub completed: Instant,
    /// Whether that was after its deadline.
    pub is_late: bool,
    /// Its bytes.
    pub payload: Bytes,
}

/// An incomplete section, or a run of sections without any arrived bytes.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Gap {
    /// Its stream.
    pub stream: StreamId,
    /// Its number in the stream; the first number of a run.
    pub id: SectionId,
    /// The number of sections, at least 1. A peer can skip any number of sections at once.
    pub count: u64,
    /// Why it is incomplete.
    pub reason: GapReason,
    /// The part that arrived; `None` if only the section's number is known.
    pub partial: Option<Partial>,
}

/// The arrived part of a section that never became complete: some media can use it.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Partial {
    /// The sender's description.
    pub about: About,
    /// Its bytes, with zeros in place of missing ones.
    pub payload: Bytes,
    /// The missing ranges, in order.
    pub missing: Vec<Range<u32>>,
}

impl Gap {
    /// The numbers of its sections. The gap of a hostile peer can span all section numbers.
    pub fn sections(&self) -> impl Iterator<Item = SectionId> + use<> {
        self.id.run(self.count)
    }
}

impl Item {
    /// Converts a delivery of a transport to an item, with its times as instants.
    ///
    /// This is for a host that drives a [`Transport`] itself;
    /// [`Connection::recv`](crate::Connection::recv) returns items. `instant` converts a time of
    /// the local clock to an instant; it returns `None` for never and for times that an instant
    /// cannot represent. `origin` replaces such source times and times of completion.
    #[doc(hidden)]
    pub fn from_delivery(
        delivery: Delivery<Bytes>,
        transport: &Transport,
        instant: impl Fn(Time) -> Option<Instant>,
        origin: Instant,
    ) -> Self {
        let about = |meta: &Meta| About {
            importance: meta.importance,
            source_time: instant(transport.to_local(meta.source_time)).unwrap_or(origin),
            deadline: instant(transport.to_local(meta.deadline)),
            needs: meta.needs,
            length: meta.length,
        };
        match delivery {
            Delivery::Section(section) => Self::Section(Received {
                stream: section.meta.stream,
                id: section.meta.section,
                about: about(&section.meta),
                completed: instant(section.completed).unwrap_or(origin),
                is_late: section.is_late,
                payload: section.payload,
            }),
            Delivery::Gap(gap) => Self::Gap(Gap {
                stream: gap.stream,
                id: gap.section,
                count: gap.count,
                reason: gap.reason,
                partial: gap.partial.map(|partial| Partial {
                    about: about(&partial.meta),
                    payload: partial.payload,
                    missing: partial.missing,
                }),
            }),
        }
    }

    /// The stream.
    pub fn stream(&self) -> StreamId {
        match self {
            Self::Section(section) => section.stream,
            Self::Gap(gap) => gap.stream,
        }
    }

    /// The number in the stream; the first number of a run.
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

    /// The bytes that it occupies while it waits for the application.
    pub(crate) fn size(&self) -> usize {
        match self {
            Self::Section(section) => section.payload.len(),
            Self::Gap(Gap { partial, .. }) => {
                partial.as_ref().map_or(0, |partial| partial.payload.len())
            }
        }
    }
}
