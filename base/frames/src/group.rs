//! Groups of pictures: dependencies, positions and deadlines.

use alloc::collections::VecDeque;

use comity_units::{DataSize, Span, Time};

use crate::frame::{Frame, FrameType};
use crate::stamp::difference;

/// The deadline rule for the pictures of a group.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum DeadlineRule {
    /// Each unit is due at its own decoding time. This suits live sources, and pictures that should
    /// be shown as long as possible.
    #[default]
    Each,
    /// The pictures of a group share deadlines, as in time-lined TCP (section 4). The intra picture
    /// and its P pictures are due when the intra picture is presented. A B picture is due with the
    /// earlier of its two references, though it is sent after the later one.
    ///
    /// A group must then be sent before most of it is due to be decoded. All of it is submitted
    /// when its intra picture is due to be decoded, so the source must be stored.
    ///
    /// Differs from the source in: 1. The paper does not state at which time of the group the
    /// common deadline is. Here it is the presentation time of the first picture, the latest time
    /// that suits all of them.
    Group,
}

/// When the pictures of a group are sent and due, by [`DeadlineRule::Group`].
#[derive(Clone, Copy, Debug)]
struct Common {
    source_time: Time,
    deadline: Span,
}

/// A picture that others may depend on.
#[derive(Clone, Copy, Debug)]
struct Reference {
    number: u64,
    presentation: Option<u64>,
    /// Whether it is an intra or a P picture.
    anchor: bool,
    common: Common,
}

/// A picture before its dependency is known.
#[derive(Clone, Copy, Debug)]
pub struct Arrival {
    /// Its number, in decoding order.
    pub number: u64,
    /// Its type.
    pub frame_type: FrameType,
    /// Its presentation time: a [time stamp](crate::stamp), if it has one.
    pub presentation: Option<u64>,
    /// Its decoding time on the source's clock.
    pub source_time: Time,
    /// From its decoding to its presentation.
    pub reordering: Span,
    /// Whether gradual refresh begins with it: a recovery point whose picture is repaired by the
    /// ones that follow.
    pub begins_refresh: bool,
}

/// The position, the dependency and the deadline of a picture in its group.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Member {
    /// Its type as the policy treats it: [`Group::push`] treats some B pictures as P pictures.
    pub frame_type: FrameType,
    /// The referenced P pictures of the group so far, itself included.
    pub position: u8,
    /// The earlier picture that it depends on.
    pub needs: Option<u64>,
    /// Whether it is worthless without that picture.
    pub is_bound: bool,
    /// When it is submitted.
    pub source_time: Time,
    /// The span from its source time to its deadline, without the latency.
    pub deadline: Span,
}

impl Member {
    /// The properties that the policy uses, of the picture with this stream, number and size.
    pub const fn frame(&self, stream: u16, number: u64, size: DataSize) -> Frame {
        Frame {
            stream,
            number,
            frame_type: self.frame_type,
            position: self.position,
            needs: self.needs,
            is_bound: self.is_bound,
            source_time: self.source_time,
            size,
        }
    }
}

/// The pictures of one stream that may still be referenced.
#[derive(Debug)]
pub struct Group {
    rule: DeadlineRule,
    /// The latest referenced pictures in decoding order.
    references: VecDeque<Reference>,
    position: u8,
    repair: Repair,
    /// The latest times between consecutive intra pictures.
    distances: VecDeque<Span>,
}

/// How a stream recovers from a missing reference.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Repair {
    /// Unknown: the stream has had no intra picture yet.
    Unknown,
    /// By the next intra picture. The latest one was decoded at `at`, `period` after the one before
    /// it. If one of the latest distances was longer than [`LONGEST_PERIOD`], that is the period.
    Intra { at: Time, period: Option<Span> },
    /// By the pictures that follow, each in a part of its area (gradual refresh).
    Refresh,
}

impl Repair {
    /// Whether a picture decoded now is worthless without its reference.
    fn binds(self, now: Time) -> bool {
        let Self::Intra { at, period } = self else {
            return false;
        };
        let holds = match period {
            None => FADE,
            Some(period) if period <= LONGEST_PERIOD => period.max(FADE),
            Some(_) => Span::ZERO,
        };
        now.saturating_since(at) < holds
    }
}

/// How long pictures are bound after an intra picture if the period of intra pictures is unknown;
/// at least this long if it is known.
const FADE: Span = Span::from_secs(1);

/// The longest time between two intra pictures with which pictures are bound. Encoders that are set
/// to two seconds take up to a picture more, as 60 pictures of 30/1.001 per second do.
const LONGEST_PERIOD: Span = Span::from_millis(2_500);

/// How many distances between intra pictures are remembered. Encoders that place intra pictures at
/// cuts have short distances among long ones.
const DISTANCES: usize = 8;

/// Intra pictures closer than this are one way in: two fields, or pictures of an intra codec.
const ONE_WAY_IN: Span = Span::from_millis(100);

/// No supported codec keeps more than 16 decoded pictures.
const KEPT: usize = 16;

impl Group {
    /// Creates the state of a stream without pictures, with deadlines by `rule`.
    pub const fn new(rule: DeadlineRule) -> Self {
        Self {
            rule,
            references: VecDeque::new(),
            position: 0,
            repair: Repair::Unknown,
            distances: VecDeque::new(),
        }
    }

    /// Removes all references: the stream starts over.
    pub fn reset(&mut self) {
        self.references.clear();
        self.position = 0;
        self.repair = Repair::Unknown;
        self.distances.clear();
    }

    /// Adds the next picture of the stream, in decoding order.
    ///
    /// A P picture depends on the I or P picture before it. A B picture depends on the later
    /// decoded of the two references between which it is presented. The true references are in the
    /// slices of a picture; these match the streams of common encoders.
    ///
    /// A referenced B picture that is presented after all references so far is a P picture here.
    /// Encoders of H.265 write P pictures as B slices with two references in the past.
    ///
    /// A picture is bound to its dependency, which means that it is worthless without it, while an
    /// intra picture is expected soon:
    ///
    /// | the last eight times between intra pictures | a picture is bound |
    /// |---|---|
    /// | at most 2.5 s each | for the last of these times after the last one, and for 1 s at least |
    /// | unknown | for 1 s after the last one |
    /// | one is longer, or none has come yet, or the stream has gradual refresh | never |
    ///
    /// Intra pictures less than 100 ms apart count as one.
    ///
    /// A sender drops the pictures that are bound to a missing picture. If pictures were always
    /// bound, the loss of one picture would end a video without intra pictures. Decoders show the
    /// rest of a damaged picture, and gradual refresh repairs it.
    pub fn push(&mut self, arrival: Arrival) -> Member {
        self.follow_repair(&arrival);
        let is_bound = self.repair.binds(arrival.source_time);
        let frame_type = self.type_of(&arrival);
        let own = Common {
            source_time: arrival.source_time,
            deadline: Span::ZERO,
        };
        let (needs, common) = match frame_type {
            FrameType::Key | FrameType::Intra => {
                self.position = 0;
                (
                    None,
                    Common {
                        deadline: arrival.reordering,
                        ..own
                    },
                )
            }
            FrameType::Predicted { referenced } => {
                if referenced {
                    self.position = self.position.saturating_add(1);
                }
                let anchor = self
                    .references
                    .iter()
                    .rev()
                    .find(|reference| reference.anchor);
                (
                    anchor.map(|anchor| anchor.number),
                    anchor.map_or(own, |anchor| anchor.common),
                )
            }
            FrameType::Bidirectional { .. } => {
                let (before, behind) = self.neighbours(arrival.presentation);
                let later = before
                    .into_iter()
                    .chain(behind)
                    .map(|reference| reference.number)
                    .max();
                (
                    later,
                    before.or(behind).map_or(own, |reference| reference.common),
                )
            }
            _ => (None, own),
        };
        if frame_type == FrameType::Key {
            // Leading pictures may still refer to the anchors of the group before.
            self.references.retain(|reference| reference.anchor);
        }
        if frame_type.is_reference() {
            if self.references.len() == KEPT {
                self.references.pop_front();
            }
            self.references.push_back(Reference {
                number: arrival.number,
                presentation: arrival.presentation,
                anchor: !matches!(frame_type, FrameType::Bidirectional { .. }),
                common,
            });
        }
        let timing = if self.rule == DeadlineRule::Group {
            common
        } else {
            own
        };
        Member {
            frame_type,
            position: if frame_type.is_intra() {
                0
            } else {
                self.position
            },
            needs,
            is_bound: is_bound && needs.is_some(),
            source_time: timing.source_time,
            deadline: timing.deadline,
        }
    }

    /// The type of the next picture: P for a referenced B picture that can only refer to the past.
    fn type_of(&self, arrival: &Arrival) -> FrameType {
        let is_behind = |reference: &Reference| {
            let own = arrival.presentation.zip(reference.presentation);
            own.is_some_and(|(own, reference)| difference(reference, own) < 0)
        };
        match arrival.frame_type {
            FrameType::Bidirectional { referenced: true }
                if !self.references.is_empty() && self.references.iter().all(is_behind) =>
            {
                FrameType::Predicted { referenced: true }
            }
            other => other,
        }
    }

    /// Updates how the stream recovers, before the picture is added.
    fn follow_repair(&mut self, arrival: &Arrival) {
        let now = arrival.source_time;
        if arrival.frame_type.is_intra() {
            match self.repair {
                Repair::Intra { at, .. } if now.saturating_since(at) < ONE_WAY_IN => return,
                Repair::Intra { at, .. } => {
                    if self.distances.len() == DISTANCES {
                        self.distances.pop_front();
                    }
                    self.distances.push_back(now.saturating_since(at));
                }
                Repair::Unknown | Repair::Refresh => self.distances.clear(),
            }
            let longest = self.distances.iter().copied().max();
            let period = match longest {
                Some(longest) if longest > LONGEST_PERIOD => Some(longest),
                _ => self.distances.back().copied(),
            };
            self.repair = Repair::Intra { at: now, period };
        } else if arrival.begins_refresh {
            self.repair = Repair::Refresh;
            self.position = 0;
        }
    }

    /// Returns the references presented last before, and first after, this time.
    fn neighbours(&self, presentation: Option<u64>) -> (Option<&Reference>, Option<&Reference>) {
        let Some(presentation) = presentation else {
            return (None, self.references.back());
        };
        let distance =
            |reference: &&Reference| difference(reference.presentation.unwrap_or(0), presentation);
        let before = self
            .references
            .iter()
            .filter(|reference| distance(reference) < 0);
        let behind = self
            .references
            .iter()
            .filter(|reference| distance(reference) >= 0);
        (before.max_by_key(distance), behind.min_by_key(distance))
    }
}

#[cfg(test)]
mod tests {
    use std::vec::Vec;

    use super::*;

    const P: FrameType = FrameType::Predicted { referenced: true };
    const REFERENCED_B: FrameType = FrameType::Bidirectional { referenced: true };
    const B: FrameType = FrameType::Bidirectional { referenced: false };

    /// Adds pictures of the form (type, presentation in frames of 40 ms), in decoding order.
    fn members(rule: DeadlineRule, pictures: &[(FrameType, u64)]) -> Vec<Member> {
        let mut group = Group::new(rule);
        (0..)
            .zip(pictures)
            .map(|(number, &(frame, presentation))| {
                group.push(Arrival {
                    number,
                    frame_type: frame,
                    presentation: Some(presentation * 3_600),
                    source_time: Time::from_millis(40 * number),
                    reordering: Span::from_millis(
                        40 * (presentation + 1 - number.min(presentation + 1)),
                    ),
                    begins_refresh: false,
                })
            })
            .collect()
    }

    fn needs(pictures: &[(FrameType, u64)]) -> Vec<Option<u64>> {
        members(DeadlineRule::Each, pictures)
            .iter()
            .map(|member| member.needs)
            .collect()
    }

    #[test]
    fn an_mpeg_group_depends_on_its_references() {
        // I0 P3 B1 B2 P6 B4 B5 | I9 B7 B8 (open group).
        let pictures = [
            (FrameType::Key, 0),
            (P, 3),
            (B, 1),
            (B, 2),
            (P, 6),
            (B, 4),
            (B, 5),
            (FrameType::Intra, 9),
            (B, 7),
            (B, 8),
        ];
        assert_eq!(
            needs(&pictures),
            [
                None,
                Some(0),
                Some(1),
                Some(1),
                Some(1),
                Some(4),
                Some(4),
                None,
                Some(7),
                Some(7)
            ]
        );
        let positions: Vec<_> = members(DeadlineRule::Each, &pictures)
            .iter()
            .map(|member| member.position)
            .collect();
        assert_eq!(positions, [0, 1, 1, 1, 2, 2, 2, 0, 0, 0]);
    }

    #[test]
    fn a_pyramid_depends_on_its_middle() {
        // I0 P4 Br2 B1 B3: B1 lies between I0 and Br2, B3 between Br2 and P4; Br2 was decoded last.
        let pictures = [
            (FrameType::Key, 0),
            (P, 4),
            (REFERENCED_B, 2),
            (B, 1),
            (B, 3),
        ];
        assert_eq!(needs(&pictures), [None, Some(0), Some(1), Some(2), Some(2)]);
    }

    #[test]
    fn b_pictures_that_only_refer_to_the_past_are_p_pictures() {
        let types = |pictures: &[(FrameType, u64)]| -> Vec<_> {
            members(DeadlineRule::Each, pictures)
                .iter()
                .map(|member| (member.frame_type, member.position, member.needs))
                .collect()
        };
        let low_delay = [
            (FrameType::Key, 0),
            (REFERENCED_B, 1),
            (REFERENCED_B, 2),
            (B, 3),
            (REFERENCED_B, 4),
        ];
        assert_eq!(
            types(&low_delay),
            [
                (FrameType::Key, 0, None),
                (P, 1, Some(0)),
                (P, 2, Some(1)),
                (B, 2, Some(2)),
                (P, 3, Some(2)),
            ]
        );
        // A pyramid whose anchors are B pictures: I0 RB4 RB2 B1 B3 RB8 RB6.
        let pyramid = [
            (FrameType::Key, 0),
            (REFERENCED_B, 4),
            (REFERENCED_B, 2),
            (B, 1),
            (B, 3),
            (REFERENCED_B, 8),
            (REFERENCED_B, 6),
        ];
        let types = types(&pyramid).into_iter().map(|(frame, ..)| frame);
        assert_eq!(
            types.collect::<Vec<_>>(),
            [FrameType::Key, P, REFERENCED_B, B, B, P, REFERENCED_B]
        );
    }

    #[test]
    fn a_b_picture_between_unknown_times_stays_one() {
        let mut group = Group::new(DeadlineRule::Each);
        let mut push = |number, frame_type, presentation| {
            let arrival = Arrival {
                number,
                frame_type,
                presentation,
                source_time: Time::from_millis(40 * number),
                reordering: Span::ZERO,
                begins_refresh: false,
            };
            group.push(arrival).frame_type
        };
        assert_eq!(push(0, REFERENCED_B, Some(0)), REFERENCED_B, "the first");
        push(1, FrameType::Key, Some(3_600));
        assert_eq!(push(2, REFERENCED_B, None), REFERENCED_B);
        assert_eq!(push(3, REFERENCED_B, Some(9_000)), REFERENCED_B);
    }

    #[test]
    fn a_stream_joined_in_the_middle_has_no_unknown_dependency() {
        assert_eq!(needs(&[(P, 3), (B, 1), (B, 5)]), [None, Some(0), Some(0)]);
        assert_eq!(needs(&[(B, 1), (P, 3)]), [None, None]);
    }

    /// Intra pictures at these multiples of 40 ms, or refresh that begins there; how many of the P
    /// pictures after each are bound.
    fn bound(begins_refresh: bool, intra: &[u64], end: u64) -> Vec<usize> {
        let mut group = Group::new(DeadlineRule::Each);
        let mut counts = Vec::new();
        for number in 0..end {
            let begins = intra.contains(&number);
            let member = group.push(Arrival {
                number,
                frame_type: if begins && !begins_refresh {
                    FrameType::Key
                } else {
                    P
                },
                presentation: None,
                source_time: Time::from_millis(40 * number),
                reordering: Span::ZERO,
                begins_refresh: begins && begins_refresh,
            });
            assert!(!member.is_bound || member.needs.is_some());
            if begins {
                counts.push(0);
            }
            if let Some(count) = counts.last_mut() {
                *count += usize::from(member.is_bound);
            }
        }
        counts
    }

    #[test]
    fn pictures_are_bound_while_an_intra_picture_is_near() {
        // Each second, each two seconds, each 2.48 s, and each 2.52 s: 24 P pictures in the first
        // second.
        assert_eq!(bound(false, &[0, 25, 50], 75), [24, 24, 24]);
        assert_eq!(bound(false, &[0, 50, 100], 150), [24, 49, 49]);
        assert_eq!(bound(false, &[0, 62, 124], 186), [24, 61, 61]);
        assert_eq!(bound(false, &[0, 63, 126], 189), [24, 0, 0]);
        // Each half second, and then none.
        assert_eq!(bound(false, &[0, 12, 24], 300), [11, 11, 24]);
        // Intra pictures at cuts: a short distance does not hide the long ones before it, until
        // eight others have come.
        assert_eq!(bound(false, &[0, 100, 115], 200), [24, 0, 0]);
        let cuts = [0, 100, 125, 150, 175, 200, 225, 250, 275, 300];
        let expected = [24, 0, 0, 0, 0, 0, 0, 0, 0, 24];
        assert_eq!(bound(false, &cuts, 400), expected);
        // Two fields of a group of ten seconds: the period is unknown, and then long.
        assert_eq!(bound(false, &[0, 1, 250, 251], 300), [0, 23, 0, 0]);
        assert_eq!(bound(true, &[0, 50], 100), [0, 0]);
        assert_eq!(bound(false, &[30], 40), [9], "before the first, none is");
    }

    #[test]
    fn refresh_is_a_way_in_of_its_own_and_ends_with_an_intra_picture() {
        let mut group = Group::new(DeadlineRule::Each);
        let mut push = |number: u64, frame_type, begins_refresh| {
            let member = group.push(Arrival {
                number,
                frame_type,
                presentation: None,
                source_time: Time::from_millis(40 * number),
                reordering: Span::ZERO,
                begins_refresh,
            });
            (member.position, member.needs, member.is_bound)
        };
        assert_eq!(push(0, FrameType::Key, false), (0, None, false));
        assert_eq!(push(1, P, false), (1, Some(0), true));
        assert_eq!(push(2, P, true), (1, Some(1), false));
        assert_eq!(push(3, P, false), (2, Some(2), false));
        assert_eq!(push(4, FrameType::Key, false), (0, None, false));
        assert_eq!(push(5, P, false), (1, Some(4), true));
    }

    #[test]
    fn groups_are_due_as_in_time_lined_tcp() {
        // The paper's stream, stored as I11 P11 P21 I12 B11 P12 I13 B12 and displayed as I11 P11
        // B11 P21 I12 P12 B12 I13: the first group is due at d1, the second at d2, B11 with P11 and
        // B12 with P12.
        let stored = [
            (FrameType::Key, 0),
            (P, 1),
            (P, 3),
            (FrameType::Intra, 4),
            (B, 2),
            (P, 5),
            (FrameType::Intra, 7),
            (B, 6),
        ];
        let members = members(DeadlineRule::Group, &stored);
        let due: Vec<_> = members
            .iter()
            .map(|member| (member.source_time + member.deadline).as_nanos() / 1_000_000)
            .collect();
        // Presented at 40 (i + 1) ms: d1 = 40, d2 = 200, d3 = 320.
        assert_eq!(due, [40, 40, 40, 200, 40, 200, 320, 200]);
        assert_eq!(
            members[2].source_time,
            Time::ZERO,
            "stored groups are read as a whole"
        );
    }
}
