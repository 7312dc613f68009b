//! Which frame needs which, and how important each is, for sources that submit frames in order.

use comity_transport::timeline::SectionId;

use crate::frames::FrameKind;

/// The frames that later frames of a flow are predicted from.
///
/// | frame | importance | needs |
/// |---|---|---|
/// | intra | 255 | nothing |
/// | predicted | 254 and less, by its distance from the intra frame, at least 2 | the last intra or predicted frame |
/// | bidirectional | 1 | the last intra or predicted frame |
/// | other | 128 | nothing |
#[derive(Clone, Copy, Debug, Default)]
pub struct Dependencies {
    /// The last frame that others are predicted from.
    reference: Option<SectionId>,
    /// Predicted frames since the last intra frame.
    depth: u32,
    /// A reference was refused: nothing can be decoded before the next intra frame.
    is_broken: bool,
}

impl Dependencies {
    /// The importance of the next frame and the section that it needs.
    pub fn of(&self, kind: FrameKind) -> (u8, Option<SectionId>) {
        match kind {
            FrameKind::Intra => (u8::MAX, None),
            FrameKind::Predicted => {
                let below = u8::try_from(self.depth).unwrap_or(u8::MAX);
                let importance = (u8::MAX - 1).saturating_sub(below).max(2);
                (importance, self.reference)
            }
            FrameKind::Bidirectional => (1, self.reference),
            FrameKind::Other => (128, None),
        }
    }

    /// Whether the next frame cannot be decoded, because a reference before it was refused.
    pub fn is_worthless(&self, kind: FrameKind) -> bool {
        self.is_broken && matches!(kind, FrameKind::Predicted | FrameKind::Bidirectional)
    }

    /// The transport accepted the frame under this number.
    pub fn on_accepted(&mut self, kind: FrameKind, section: SectionId) {
        if is_reference(kind) {
            self.reference = Some(section);
            self.depth += 1;
        }
        if kind == FrameKind::Intra {
            self.is_broken = false;
            self.depth = 0;
        }
    }

    /// The transport refused the frame.
    pub fn on_refused(&mut self, kind: FrameKind) {
        self.is_broken |= is_reference(kind);
    }
}

fn is_reference(kind: FrameKind) -> bool {
    matches!(kind, FrameKind::Intra | FrameKind::Predicted)
}
