//! Frames, their types and their importance.

use comity_units::{DataSize, Time};

/// The content of a section: a video frame of some type, or other data of a media stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum FrameType {
    /// A table of the transport stream: PAT, PMT, SDT and others.
    Table,
    /// The order of the packets of a transport stream, from which a receiver restores them.
    Layout,
    /// Parameter sets, or other headers of a video stream, without a picture.
    Parameters,
    /// Audio of a known kind, in whole frames as the source grouped them.
    Audio,
    /// A whole packet of a stream of an unknown kind.
    Opaque,
    /// A picture at which decoding can begin: IDR, BLA, CRA, or a picture that the source marks so.
    Key,
    /// Another intra-coded picture.
    Intra,
    /// A picture predicted from earlier ones.
    Predicted {
        /// Whether others are decoded from it.
        referenced: bool,
    },
    /// A picture predicted from pictures on both sides of it.
    Bidirectional {
        /// Whether others are decoded from it.
        referenced: bool,
    },
    /// Bytes or transport packets of an unknown format, cut by time.
    Slice,
}

impl FrameType {
    /// Whether the picture depends on no other.
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

    /// Whether other pictures depend on this one.
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

/// How much a section matters; a higher value matters more. The importance decides between equal
/// deadlines, and how many tokens a section may borrow.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Importance(pub u8);

impl Importance {
    /// The importance of a frame of this type.
    ///
    /// `position` counts the referenced P pictures since the last intra picture of its stream, this
    /// one included.
    ///
    /// | frame | importance |
    /// |---|---|
    /// | table, layout | 255 |
    /// | parameter sets | 250 |
    /// | audio | 240 |
    /// | stream of unknown kind | 230 |
    /// | key picture, intra picture | 200 |
    /// | n-th referenced P of a group, n = 1, 2, .. | 190 - n, at least 100 |
    /// | slice of an unknown format | 80 |
    /// | referenced B | 60 |
    /// | unreferenced P | 30 |
    /// | unreferenced B | 20 |
    pub fn of(frame: FrameType, position: u8) -> Self {
        Self(match frame {
            FrameType::Table | FrameType::Layout => 255,
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

/// The properties of a frame that the policy uses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Frame {
    /// Its stream. Numbers and dependencies belong to one stream.
    pub stream: u16,
    /// Its number, in decoding order.
    pub number: u64,
    /// Its type.
    pub frame_type: FrameType,
    /// The referenced P pictures of its group so far, itself included; zero for intra pictures and
    /// for other media.
    pub position: u8,
    /// The earlier frame that it depends on.
    pub needs: Option<u64>,
    /// Whether it is worthless without that frame.
    pub is_bound: bool,
    /// When the source makes it available.
    pub source_time: Time,
    /// Its size.
    pub size: DataSize,
}

impl Frame {
    /// Its importance.
    pub fn importance(&self) -> Importance {
        Importance::of(self.frame_type, self.position)
    }

    /// The earlier frame without which it is worthless.
    pub fn bound_to(&self) -> Option<u64> {
        self.needs.filter(|_| self.is_bound)
    }
}
