//! Coded pictures, independent of the codec: how they begin, and which pictures they depend on.

use comity_frames::{FrameType, Importance};

/// How a picture depends on others, from its slices: the most dependent slice decides.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum SliceKind {
    Intra,
    Predicted,
    Bidirectional,
}

/// One coded picture (or field) of a unit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Picture {
    pub(super) kind: SliceKind,
    pub(super) referenced: bool,
    pub(super) key: bool,
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

/// The part of a frame that a coded picture contains, as far as its first bytes determine it.
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
    /// It has no meaning for boundaries.
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

/// The type of a unit in its stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Class {
    pub(crate) frame: FrameType,
    /// Whether gradual refresh begins with it.
    pub(crate) begins_refresh: bool,
}

impl Class {
    /// A unit that begins no refresh.
    pub(crate) const fn of(frame: FrameType) -> Self {
        Self {
            frame,
            begins_refresh: false,
        }
    }
}

/// The results of scanning a unit.
#[derive(Debug, Default)]
pub(super) struct Findings {
    pub(super) pictures: Vec<Picture>,
    /// Set by the message that decoding can begin here.
    pub(super) recovery: Option<Recovery>,
}

/// When the pictures are right after decoding begins at a recovery point.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Recovery {
    AtOnce,
    /// Some pictures later.
    Gradual,
}

impl Findings {
    /// The type of the whole unit, which is that of its most important picture. A unit with two
    /// fields, or with several pictures that the source did not separate, is kept or dropped as a
    /// whole.
    ///
    /// A unit of delimiters, messages or filler alone is a header, as a unit of parameter sets is.
    pub(super) fn class(&self, random_access: bool) -> Class {
        let frames = self.pictures.iter().map(|picture| picture.frame());
        let strongest =
            frames.max_by_key(|&frame| (Importance::of(frame, 0), frame == FrameType::Key));
        let is_way_in = random_access || self.recovery == Some(Recovery::AtOnce);
        let frame = match strongest {
            Some(FrameType::Intra) if is_way_in => FrameType::Key,
            other => other.unwrap_or(FrameType::Parameters),
        };
        Class {
            frame,
            begins_refresh: frame.is_picture() && self.recovery == Some(Recovery::Gradual),
        }
    }
}
