//! The protected part of a packet: a departure, then frames.
//!
//! ```text
//! payload = departure : u32 (microseconds), frame, frame, ...
//! frame   = type : u8, fields
//! ```
//!
//! [`decode`] reads the departure and returns an iterator over the frames, which borrow from the
//! payload. [`Frame::encode`] appends one frame, and [`Frame::size`] returns its size in advance.
//! [`SectionHeader::fitting`] returns how much section data fits into the rest of a packet.
//!
//! | type | frame | content |
//! |---|---|---|
//! | 0x00 | Padding | nothing |
//! | 0x01 | Ping | requests an acknowledgement |
//! | 0x02, 0x03 | [`Ack`] | the packets that arrived; 0x03 with ECN counts |
//! | 0x08 | [`Floor`] | all sections below are obsolete |
//! | 0x09 | [`Dropped`] | the rest of a section will not arrive |
//! | 0x0a | [`Credit`] | the limit of data in flight |
//! | 0x0b | [`Tag`] | the controller's mark on this packet |
//! | 0x0c | [`Report`] | the meter's report to the controller |
//! | 0x0d | [`ReceiverReport`] | the receiver's statistics |
//! | 0x0e, 0x0f | PathChallenge, PathResponse | whether a path works both ways |
//! | 0x10 | [`Close`] | the connection ends |
//! | 0x11 | [`End`] | a stream has no more sections |
//! | 0x12 | Blocked | the peer's credit holds sections back |
//! | 0x20 to 0x2f | [`Section`] | bytes of a section; [`SectionHeader`] explains each bit of the type |
//! | 0x30 to 0x3f | [`Ack`] | the packets that arrived, with a proof |

mod ack;
mod control;
mod feedback;
mod section;
mod types;

use alloc::vec::Vec;
use core::iter::FusedIterator;

use comity_congestion::{Report, Tag};

use self::types::{
    ACK, ACK_ECN, BLOCKED, CLOSE, CREDIT, DROP, END, FEEDBACK, FLOOR, PADDING, PATH_CHALLENGE,
    PATH_RESPONSE, PING, PROVED_ACK, PROVED_ACK_LAST, RECEIVER_REPORT, SECTION, SECTION_LAST, TAG,
};
use super::cursor::{Reader, Sink, Writer, appended, measured};
use super::{DecodeError, EncodeError, Part, Problem, Stamp};

pub use super::kinds::FrameKind;
pub use ack::{Ack, AckRange, AckRanges, AckRangesError, AckRangesIter, EcnCounts, PROOF_MASK};
pub use control::{Close, Credit, Dropped, End, Floor};
pub use feedback::ReceiverReport;
pub use section::{BegunHeader, Content, Data, Framing, Section, SectionHeader};

/// One frame. It borrows from the payload it was read from, or from the data to be written.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Frame<'a> {
    /// Consecutive zero bytes. A decoder returns neither two of these in a row nor an empty one.
    Padding {
        /// How many.
        length: usize,
    },
    /// Requests an acknowledgement.
    Ping,
    /// Which packets arrived.
    Ack(Ack<'a>),
    /// Bytes of a section.
    Section(Section<'a>),
    /// All sections below it are obsolete.
    Floor(Floor),
    /// The rest of a section will not arrive.
    Dropped(Dropped),
    /// The limit of data in flight.
    Credit(Credit),
    /// The controller's mark on this packet.
    Tag(Tag),
    /// The meter's report to the controller.
    Feedback(Report),
    /// The receiver's statistics.
    ReceiverReport(ReceiverReport),
    /// Requests the same bytes in a response.
    PathChallenge([u8; 8]),
    /// The bytes of a PathChallenge.
    PathResponse([u8; 8]),
    /// The connection ends.
    Close(Close<'a>),
    /// A stream has no more sections.
    End(End),
    /// The peer's credit holds sections back; requests another Credit frame.
    Blocked,
}

impl<'a> Frame<'a> {
    /// Its kind.
    #[must_use]
    pub const fn kind(&self) -> FrameKind {
        match self {
            Self::Padding { .. } => FrameKind::Padding,
            Self::Ping => FrameKind::Ping,
            Self::Ack(_) => FrameKind::Ack,
            Self::Section(_) => FrameKind::Section,
            Self::Floor(_) => FrameKind::Floor,
            Self::Dropped(_) => FrameKind::Dropped,
            Self::Credit(_) => FrameKind::Credit,
            Self::Tag(_) => FrameKind::Tag,
            Self::Feedback(_) => FrameKind::Feedback,
            Self::ReceiverReport(_) => FrameKind::ReceiverReport,
            Self::PathChallenge(_) => FrameKind::PathChallenge,
            Self::PathResponse(_) => FrameKind::PathResponse,
            Self::Close(_) => FrameKind::Close,
            Self::End(_) => FrameKind::End,
            Self::Blocked => FrameKind::Blocked,
        }
    }

    /// The size on the wire, [elided](Data::Elided) section data included.
    ///
    /// Meaningless for a frame that [`Frame::encode`] refuses.
    #[must_use]
    pub fn size(&self) -> usize {
        measured(|count| self.write(count))
    }

    /// Appends the frame. A section [framed](Framing::ToEnd) by the end of the payload must be the
    /// last frame.
    ///
    /// # Errors
    /// [`EncodeError`] if [`decode`] would refuse a value; nothing is appended then.
    pub fn encode(&self, out: &mut Vec<u8>) -> Result<(), EncodeError> {
        appended(out, |out| self.write(out))
    }

    fn write<S: Sink>(&self, sink: &mut S) -> Result<(), EncodeError> {
        let mut out = Writer::new(sink, Part::Frame(self.kind()));
        match self {
            Self::Padding { length } => out.zeros(*length),
            Self::Ping => out.u8(PING),
            Self::Ack(ack) => ack.write(&mut out)?,
            Self::Section(section) => section.write(&mut out)?,
            Self::Floor(floor) => floor.write(&mut out)?,
            Self::Dropped(dropped) => dropped.write(&mut out)?,
            Self::Credit(credit) => credit.write(&mut out)?,
            Self::Tag(tag) => feedback::write_tag(tag, &mut out)?,
            Self::Feedback(report) => feedback::write_report(report, &mut out)?,
            Self::ReceiverReport(report) => report.write(&mut out)?,
            Self::PathChallenge(bytes) => {
                out.u8(PATH_CHALLENGE);
                out.bytes(bytes);
            }
            Self::PathResponse(bytes) => {
                out.u8(PATH_RESPONSE);
                out.bytes(bytes);
            }
            Self::Close(close) => close.write(&mut out)?,
            Self::End(end) => end.write(&mut out)?,
            Self::Blocked => out.u8(BLOCKED),
        }
        Ok(())
    }

    fn read(input: &mut Reader<'a>, content: Content) -> Result<Self, DecodeError> {
        input.enter(Part::Payload);
        let offset = input.offset();
        let kind = input.u8(FRAME_TYPE)?;
        let mut enter = |kind| input.enter(Part::Frame(kind));
        Ok(match kind {
            PADDING => {
                enter(FrameKind::Padding);
                let rest = input.rest();
                let more = rest
                    .iter()
                    .position(|&byte| byte != 0)
                    .unwrap_or(rest.len());
                input.bytes("zeros", more)?;
                Self::Padding { length: more + 1 }
            }
            PING => Self::Ping,
            ACK | ACK_ECN | PROVED_ACK..=PROVED_ACK_LAST => {
                enter(FrameKind::Ack);
                Self::Ack(Ack::read(input, kind)?)
            }
            SECTION..=SECTION_LAST => {
                enter(FrameKind::Section);
                Self::Section(Section::read(input, kind, content)?)
            }
            FLOOR => {
                enter(FrameKind::Floor);
                Self::Floor(Floor::read(input)?)
            }
            DROP => {
                enter(FrameKind::Dropped);
                Self::Dropped(Dropped::read(input)?)
            }
            CREDIT => {
                enter(FrameKind::Credit);
                Self::Credit(Credit::read(input)?)
            }
            TAG => {
                enter(FrameKind::Tag);
                Self::Tag(feedback::read_tag(input)?)
            }
            FEEDBACK => {
                enter(FrameKind::Feedback);
                Self::Feedback(feedback::read_report(input)?)
            }
            RECEIVER_REPORT => {
                enter(FrameKind::ReceiverReport);
                Self::ReceiverReport(ReceiverReport::read(input)?)
            }
            PATH_CHALLENGE => {
                enter(FrameKind::PathChallenge);
                Self::PathChallenge(input.u64("challenge")?.to_be_bytes())
            }
            PATH_RESPONSE => {
                enter(FrameKind::PathResponse);
                Self::PathResponse(input.u64("challenge")?.to_be_bytes())
            }
            CLOSE => {
                enter(FrameKind::Close);
                Self::Close(Close::read(input)?)
            }
            END => {
                enter(FrameKind::End);
                Self::End(End::read(input)?)
            }
            BLOCKED => Self::Blocked,
            _ => {
                let value = u64::from(kind);
                return Err(input.error_at(offset, FRAME_TYPE, Problem::Unknown { value }));
            }
        })
    }
}

const FRAME_TYPE: &str = "frame type";

/// Appends the field before the frames: the departure of the packet, on the sender's clock.
pub fn encode_departure(departure: Stamp, out: &mut Vec<u8>) {
    out.extend_from_slice(&departure.as_micros().to_be_bytes());
}

/// A decoded payload after removal of the protection.
#[derive(Clone, Debug)]
pub struct Payload<'a> {
    /// When the packet departed, on the sender's clock.
    pub departure: Stamp,
    /// Its frames.
    pub frames: Frames<'a>,
}

/// Reads the departure of a payload; the returned iterator reads the frames.
///
/// * `content`: whether the bytes of sections follow their lengths.
///
/// # Errors
/// [`DecodeError`] if the departure is truncated, or no frame follows it. The iterator returns
/// errors in frames. Never panics.
pub fn decode(payload: &[u8], content: Content) -> Result<Payload<'_>, DecodeError> {
    let mut input = Reader::new(payload, Part::Payload);
    let departure = Stamp::from_micros(input.u32("departure")?);
    if input.is_empty() {
        return Err(input.error(
            FRAME_TYPE,
            Problem::Truncated {
                needed: 1,
                available: 0,
            },
        ));
    }
    let frames = Frames { input, content };
    Ok(Payload { departure, frames })
}

/// The frames of a payload, in order. An error ends the iteration.
#[derive(Clone, Debug)]
pub struct Frames<'a> {
    input: Reader<'a>,
    content: Content,
}

impl<'a> Iterator for Frames<'a> {
    type Item = Result<Frame<'a>, DecodeError>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.input.is_empty() {
            return None;
        }
        let frame = Frame::read(&mut self.input, self.content);
        if frame.is_err() {
            self.input.abandon();
        }
        Some(frame)
    }
}

impl FusedIterator for Frames<'_> {}
