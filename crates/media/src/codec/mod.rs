//! The frame type of an access unit, from the first bytes of its slices.

mod audio;
mod bits;
mod h264;
mod h265;
mod mpeg2;

pub(crate) use audio::{AudioFrame, audio_frame, may_begin_frame};
pub(crate) use bits::start_codes;
pub(crate) use h265::ExtraSliceBits;
pub(crate) use mpeg2::{Headers, picture_header, sequence_header};

use comity_frames::{FrameType, Importance};

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
        0x05 | 0x0a..=0x0d | 0x16 | 0x86 => Carriage::Tables,
        _ => Carriage::Opaque,
    }
}

/// How a picture depends on others, from its slices: the most dependent slice decides.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum SliceKind {
    Intra,
    Predicted,
    Bidirectional,
}

/// One coded picture (or field) of a unit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Picture {
    kind: SliceKind,
    referenced: bool,
    key: bool,
}

impl Picture {
    const fn frame(self) -> FrameType {
        let referenced = self.referenced;
        match self.kind {
            SliceKind::Intra if self.key => FrameType::Key,
            SliceKind::Intra => FrameType::Intra,
            SliceKind::Predicted => FrameType::Predicted { referenced },
            SliceKind::Bidirectional => FrameType::Bidirectional { referenced },
        }
    }
}

/// The part of a frame that a coded picture holds, as far as its first bytes show.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Structure {
    Frame,
    TopField,
    BottomField,
    /// A later extension determines it ([`Mark::Field`]).
    Open,
}

/// The beginning of a coded picture, which distinguishes a second field from the next picture.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Beginning {
    /// `frame_num`, or `temporal_reference`, which both fields of a frame share.
    pub(crate) frame: u32,
    pub(crate) structure: Structure,
}

/// The meaning of a start code for the boundaries of units.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Mark {
    /// Nothing.
    Other,
    /// It precedes a picture.
    Header,
    /// A picture begins.
    Picture(Beginning),
    /// The present picture is a field.
    Field,
    /// The present picture continues.
    Continued,
}

/// How many bytes after a start code prefix [`Marker::mark`] needs, except for a sequence parameter
/// set.
pub(crate) const MARKED_BY: usize = 20;

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

/// The results of scanning a unit.
#[derive(Debug, Default)]
pub(crate) struct Findings {
    pictures: Vec<Picture>,
    parameters: bool,
}

impl Findings {
    /// The type of the whole unit: that of its most depended-on picture. A unit with two fields, or
    /// with several pictures that the source did not separate, is kept or dropped as a whole.
    fn frame(&self, random_access: bool) -> Option<FrameType> {
        let frames = self.pictures.iter().map(|picture| picture.frame());
        let strongest =
            frames.max_by_key(|&frame| (Importance::of(frame, 0), frame == FrameType::Key));
        match strongest {
            Some(FrameType::Intra) if random_access => Some(FrameType::Key),
            None if self.parameters => Some(FrameType::Parameters),
            other => other,
        }
    }
}

/// The type of a video unit, or `None` if it has neither a picture nor a parameter set.
///
/// `random_access` comes from the transport stream; `extra` comes from the stream's earlier units.
pub(crate) fn classify(
    codec: Codec,
    unit: &[u8],
    random_access: bool,
    extra: &mut ExtraSliceBits,
) -> Option<FrameType> {
    match codec {
        Codec::Mpeg2 => mpeg2::walk(unit).frame(random_access),
        Codec::H264 => h264::walk(unit).frame(random_access),
        Codec::H265 => h265::walk(unit, extra).frame(random_access),
        Codec::Audio | Codec::WholeAudio => Some(FrameType::Audio),
    }
}

/// Whether an access unit begins with these bytes. A PES packet without a time stamp that begins
/// none continues the unit before it.
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
