//! Converts media bytes to sections, and sections to media bytes.
//!
//! A [`Reader`] accepts the bytes of an MPEG transport stream, or of an MPEG-1 or MPEG-2 elementary
//! stream, in pieces of any size. It returns [`MediaSection`]s: access units and tables, each with
//! its source time, its deadline, its [`Importance`], and the section that it depends on. A
//! [`Shedder`] drops sections that exceed the network's capacity. A [`TsWriter`] turns the received
//! sections into a transport stream of whole access units for any player.
//!
//! ```text
//! bytes -> Reader -> MediaSection -> [Shedder] -> transport ..> TsWriter -> bytes
//! ```
//!
//! It parses H.264, H.265, MPEG-1 and MPEG-2 video, and MPEG audio and AAC. It carries the packets
//! of other streams whole, and cuts a source that is not media into slices. A [`Notice`] reports
//! both. If a stream becomes unreadable, the reader returns a [`ReadError`].
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
//! // A pipe returns pieces of any size.
//! for piece in file.chunks(1_316) {
//!     reader.push(piece)?;
//! }
//! reader.finish()?;
//! while let Some(event) = reader.poll() {
//!     let Event::Section(section) = event else { continue };
//!     pictures += u32::from(section.frame.is_picture());
//!     if section.frame == (FrameType::Bidirectional { referenced: false }) {
//!         continue; // Nothing depends on it: the other sections still decode.
//!     }
//!     writer.write(&section.payload, &mut copy)?;
//! }
//! writer.finish(&mut copy);
//! assert_eq!(pictures, 50);
//! assert!(copy.len() % 188 == 0 && copy.len() < file.len());
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
#![forbid(unsafe_code)]

mod allowance;
mod association;
pub mod check;
mod clock;
mod codec;
mod entry;
mod header;
mod latest;
mod layout;
mod pacer;
mod pes;
mod psi;
mod reader;
pub mod rtp;
mod section;
mod timeline;
mod work;
mod writer;

pub use comity_frames::{
    Count, DeadlineRule, Frame, FrameType, Importance, ShedCounters, Shedder, ShedderConfig,
};
pub use entry::{Entry, current_table};
pub use header::{Header, HeaderError, PACKET, Times, Unit, is_packets};
pub use latest::LatestTables;
pub use layout::{
    LAYOUT_FEATURE, SectionName, is_announcement, is_layouts, named_sections, needs_layouts,
    section_name,
};
pub use pacer::{Datagram, Pacer, Spacing};
pub use reader::{Damaged, ReadError, Reader, ReaderConfig};
pub use section::{Event, Jump, JumpedTimes, MediaSection, MissingUnit, Notice, live_deadline};
pub use writer::{Output, TsWriter, WriterConfig, WriterStatistics};
