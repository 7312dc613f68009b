//! Media bytes to sections, and back.
//!
//! A [`Reader`] takes the bytes of an MPEG transport stream, or of an MPEG-1 or MPEG-2 elementary
//! stream, in whatever pieces they come, and gives [`MediaSection`]s: access units and tables, each
//! with the time at which the source has it, its deadline, its [`Importance`], and the section that
//! it needs. A [`Shedder`] leaves out what the network has no room for. What arrives goes into a
//! [`TsWriter`], which gives a transport stream of whole access units for any player.
//!
//! ```text
//! bytes -> Reader -> MediaSection -> [Shedder] -> SourceClock -> transport ..> TsWriter -> bytes
//! ```
//!
//! Known kinds are H.264, H.265, MPEG-1 and MPEG-2 video, and MPEG audio and AAC. Streams of other
//! kinds are carried whole without being understood; a source that is no media at all is carried in
//! slices. A [`Notice`] says so. What was read as media and cannot be read on as such ends with a
//! [`ReadError`].
//!
//! ```
//! use comity_media::{Event, FrameType, Reader, ReaderConfig, TsWriter, WriterConfig};
//!
//! let file = include_bytes!("../tests/vectors/h264.ts");
//! let mut reader = Reader::new(ReaderConfig::default());
//! let mut writer = TsWriter::new(WriterConfig::default());
//! let mut copy = Vec::new();
//! let mut pictures = 0;
//!
//! // From a pipe, the pieces are what it gives.
//! for piece in file.chunks(1_316) {
//!     reader.push(piece)?;
//! }
//! reader.finish()?;
//! while let Some(event) = reader.poll() {
//!     let Event::Section(section) = event else { continue };
//!     pictures += u32::from(section.frame.is_picture());
//!     if section.frame == (FrameType::Bidirectional { referenced: false }) {
//!         continue; // Nothing needs it: the rest still runs.
//!     }
//!     writer.write(&section.payload, &mut copy)?;
//! }
//! writer.finish(&mut copy);
//! assert_eq!(pictures, 50);
//! assert!(copy.len() % 188 == 0 && copy.len() < file.len());
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
#![forbid(unsafe_code)]

mod clock;
mod codec;
mod header;
mod psi;
mod reader;
pub mod rtp;
mod section;
mod timeline;
mod writer;

pub use clock::SourceClock;
pub use comity_frames::{
    Count, DeadlineRule, Frame, FrameType, Importance, ShedAccount, Shedder, ShedderConfig, Verdict,
};
pub use header::{Header, HeaderError, PACKET, Times, Unit};
pub use reader::{ReadError, Reader, ReaderConfig};
pub use section::{Event, MediaSection, MissingUnit, Notice};
pub use writer::{TsWriter, WriterConfig, WriterStatistics};
