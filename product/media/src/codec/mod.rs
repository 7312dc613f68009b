//! The frame type of an access unit, from the first bytes of its slices.

mod audio;
mod bits;
mod h264;
mod h265;
mod message;
mod mpeg2;
mod picture;

pub(crate) use audio::{AudioFrame, HEADER as AUDIO_HEADER, audio_frame, may_begin_frame};
pub(crate) use bits::start_codes;
pub(crate) use h265::H265State;
pub(crate) use mpeg2::{Headers, picture_header, sequence_header};
pub(crate) use picture::{Beginning, Class, Mark, Structure};

use comity_frames::FrameType;

/// The known kinds of an elementary stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Codec {
    Mpeg2,
    H264,
    H265,
    /// MPEG-1 and MPEG-2 audio, and AAC in ADTS: its frames contain their length.
    Audio,
    /// AAC in LATM, AC-3 and E-AC-3: each PES packet is carried whole.
    WholeAudio,
}

impl Codec {
    pub(crate) const fn has_pictures(self) -> bool {
        matches!(self, Self::Mpeg2 | Self::H264 | Self::H265)
    }
}

/// How a stream type of ISO/IEC 13818-1 table 2-34 is carried.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Carriage {
    Known(Codec),
    /// PES packets of an unknown kind.
    Opaque,
    /// Sections of tables.
    Tables,
}

pub(crate) const fn carriage(stream_type: u8) -> Carriage {
    match stream_type {
        0x01 | 0x02 => Carriage::Known(Codec::Mpeg2),
        0x1b => Carriage::Known(Codec::H264),
        0x24 => Carriage::Known(Codec::H265),
        0x03 | 0x04 | 0x0f => Carriage::Known(Codec::Audio),
        // LATM, and the values of ATSC for AC-3 and E-AC-3 (A/53 part 3, A/52 annex G).
        0x11 | 0x81 | 0x87 => Carriage::Known(Codec::WholeAudio),
        // Private sections, DSM-CC, metadata sections, and SCTE 35's splice information.
        0x05 | 0x0a..=0x0d | 0x16 | SPLICES => Carriage::Tables,
        _ => Carriage::Opaque,
    }
}

/// The stream type of splice information (SCTE 35).
pub(crate) const SPLICES: u8 = 0x86;

/// Whether a stream of this type is only decoded together with another one: SVC, MVC, and parts of
/// H.265 for a higher rate, quality or resolution.
pub(crate) const fn is_enhancement(stream_type: u8) -> bool {
    matches!(stream_type, 0x1f | 0x20 | 0x25 | 0x28..=0x2b)
}

/// The number of bytes after a start code prefix that [`Marker::mark`] needs.
const MARKED_BY: usize = 20;
/// The same for a sequence parameter set of H.264 with all scaling lists.
const SEQUENCE_MARKED_BY: usize = 1_024;

/// Whether the result of [`Marker::mark`] for these bytes after a start code prefix may change when
/// more bytes follow.
pub(crate) fn is_open(codec: Codec, start: &[u8]) -> bool {
    let needed = match codec {
        Codec::H264 if h264::is_sequence(start) => SEQUENCE_MARKED_BY,
        _ => MARKED_BY,
    };
    start.len() < needed && start_codes(start).next().is_none()
}

/// Interprets start codes.
#[derive(Debug, Default)]
pub(crate) struct Marker {
    sequence: h264::Sequence,
}

impl Marker {
    /// The meaning of the start code before these bytes.
    pub(crate) fn mark(&mut self, codec: Codec, start: &[u8]) -> Mark {
        match codec {
            Codec::Mpeg2 => mpeg2::mark(start),
            Codec::H264 => h264::mark(start, &mut self.sequence),
            Codec::H265 => h265::mark(start),
            Codec::Audio | Codec::WholeAudio => Mark::Other,
        }
    }
}

/// Classifies a unit for its stream.
///
/// `random_access` comes from the transport stream; `h265` comes from the stream's earlier units.
pub(crate) fn classify(
    codec: Codec,
    unit: &[u8],
    random_access: bool,
    h265: &mut H265State,
) -> Class {
    match codec {
        Codec::Mpeg2 => mpeg2::walk(unit).class(random_access),
        Codec::H264 => h264::walk(unit).class(random_access),
        Codec::H265 => h265::walk(unit, h265).class(random_access),
        Codec::Audio | Codec::WholeAudio => Class::of(FrameType::Audio),
    }
}

/// Whether an access unit begins with these bytes. Otherwise, a PES packet without a time stamp
/// continues the previous unit.
pub(crate) fn begins_unit(codec: Codec, bytes: &[u8]) -> bool {
    let Some(at) = start_codes(bytes).next() else {
        return false;
    };
    if bytes.iter().take(at - 3).any(|&byte| byte != 0) {
        return false;
    }
    let start = bytes.get(at..).unwrap_or_default();
    match codec {
        Codec::Mpeg2 => mpeg2::begins_unit(start),
        Codec::H264 => h264::begins_unit(start),
        Codec::H265 => h265::begins_unit(start),
        Codec::Audio | Codec::WholeAudio => true,
    }
}
