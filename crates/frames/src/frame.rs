//! Frames, their types and their importance.

use comity_units::{Bytes, Time};

/// What a section holds: the type of a frame of video, or that of something else in a stream of
/// media.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum FrameType {
    /// A table of the transport stream: PAT, PMT, SDT and others.
    Table,
    /// Parameter sets, or other headers of a video stream, without a picture.
    Parameters,
    /// Audio of a known kind, in whole frames as the source cut them.
    Audio,
    /// A packet of a stream of unknown kind, whole.
    Opaque,
    /// A picture from which decoding can begin: IDR, BLA, CRA, or a picture that the source marks
    /// so.
    Key,
    /// Another picture that is decoded from itself alone.
    Intra,
    /// A picture that is decoded from earlier ones.
    Predicted {
        /// Whether others are decoded from it.
        referenced: bool,
    },
    /// A picture that is decoded from pictures on both sides of it.
    Bidirectional {
        /// Whether others are decoded from it.
        referenced: bool,
    },
    /// Bytes or transport packets cut by time, of a source that is not understood.
    Slice,
}

impl FrameType {
    /// Whether this is a picture that needs no other.
    pub const fn is_intra(self) -> bool {
        matches!(self, Self::Key | Self::Intra)
    }

    /// Whether this is a picture.
    pub const fn is_picture(self) -> bool {
        matches!(
            self,
            Self::Key | Self::Intra | Self::Predicted { .. } | Self::Bidirectional { .. }
        )
    }

    /// Whether other pictures are decoded from this one.
    pub const fn is_reference(self) -> bool {
        matches!(
            self,
            Self::Key
                | Self::Intra
                | Self::Predicted { referenced: true }
                | Self::Bidirectional { referenced: true }
        )
    }
}

/// How much a frame matters beside others with the same deadline; higher matters more.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Importance(pub u8);

impl Importance {
    /// The importance of a frame of this type.
    ///
    /// `position` counts the referenced P pictures since the last intra picture of its stream, this
    /// one included.
    ///
    /// | what | importance |
    /// |---|---|
    /// | table | 255 |
    /// | parameter sets | 250 |
    /// | audio | 240 |
    /// | stream of unknown kind | 230 |
    /// | key picture, intra picture | 200 |
    /// | n-th referenced P of a group, n = 1, 2, .. | 190 - n, at least 100 |
    /// | slice of a source that is not understood | 80 |
    /// | referenced B | 60 |
    /// | P that nothing needs | 30 |
    /// | B that nothing needs | 20 |
    pub fn of(frame: FrameType, position: u8) -> Self {
        Self(match frame {
            FrameType::Table => 255,
            FrameType::Parameters => 250,
            FrameType::Audio => 240,
            FrameType::Opaque => 230,
            FrameType::Key | FrameType::Intra => 200,
            FrameType::Predicted { referenced: true } => 190_u8.saturating_sub(position).max(100),
            FrameType::Slice => 80,
            FrameType::Bidirectional { referenced: true } => 60,
            FrameType::Predicted { referenced: false } => 30,
            FrameType::Bidirectional { referenced: false } => 20,
        })
    }
}

/// A frame as the policy sees it: everything but its content.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Frame {
    /// Its stream. Numbers and needs are those of one stream.
    pub stream: u16,
    /// Its number, in decoding order.
    pub number: u64,
    /// Its type.
    pub frame_type: FrameType,
    /// The referenced P pictures of its group so far, itself included; zero for intra pictures and
    /// for what is no video.
    pub position: u8,
    /// The earlier frame without which it cannot be decoded.
    pub needs: Option<u64>,
    /// When the source has it.
    pub source_time: Time,
    /// How large it is.
    pub size: Bytes,
}

impl Frame {
    /// Its importance.
    pub fn importance(&self) -> Importance {
        Importance::of(self.frame_type, self.position)
    }
}
