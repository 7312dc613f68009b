//! H.265 (ITU-T H.265, 7.3 and 7.4): the header of each unit and the beginning of each picture's
//! first slice.

use super::bits::{Bits, start_codes};
use super::message::recovery_point;
use super::picture::{Beginning, Findings, Mark, Picture, Recovery, SliceKind, Structure};

/// What the earlier units of a stream have shown.
#[derive(Debug)]
pub(crate) struct H265State {
    /// The `num_extra_slice_header_bits` of each picture parameter set, which shift `slice_type`.
    extra_slice_bits: [u8; 64],
    /// The highest temporal layer of a picture.
    highest_layer: u8,
}

impl Default for H265State {
    fn default() -> Self {
        Self {
            extra_slice_bits: [0; 64],
            highest_layer: 0,
        }
    }
}

const LAST_SUBLAYER_PICTURE: u8 = 15;
const FIRST_RANDOM_ACCESS: u8 = 16;
const LAST_RANDOM_ACCESS: u8 = 21;
const LAST_PICTURE: u8 = 31;
const VIDEO_PARAMETERS: u8 = 32;
const PICTURE_PARAMETERS: u8 = 34;
const DELIMITER: u8 = 35;
const PREFIX_INFORMATION: u8 = 39;

fn nal_type(header: u8) -> u8 {
    header >> 1 & 0x3f
}

/// The slice type. `None` for a slice that does not begin a picture, or that is unreadable.
fn first_slice(nal_type: u8, bytes: &[u8], state: &H265State) -> Option<SliceKind> {
    let mut bits = Bits::new(bytes);
    if !bits.bit()? {
        return None;
    }
    if (FIRST_RANDOM_ACCESS..24).contains(&nal_type) {
        bits.bit()?;
    }
    let parameters = usize::try_from(bits.golomb()?).ok()?;
    bits.field(*state.extra_slice_bits.get(parameters)?)?;
    match bits.golomb()? {
        0 => Some(SliceKind::Bidirectional),
        1 => Some(SliceKind::Predicted),
        2 => Some(SliceKind::Intra),
        _ => None,
    }
}

fn learn(bytes: &[u8], state: &mut H265State) -> Option<()> {
    let mut bits = Bits::new(bytes);
    let id = usize::try_from(bits.golomb()?).ok()?;
    bits.golomb()?;
    bits.field(2)?;
    *state.extra_slice_bits.get_mut(id)? = u8::try_from(bits.field(3)?).ok()?;
    Some(())
}

/// Sub-layer non-reference pictures (TRAIL_N, TSA_N, STSA_N, RADL_N, RASL_N and the reserved types)
/// have even types below 16. No picture of the same or a lower temporal layer refers to them
/// (7.4.2.2). Those of higher layers may.
fn is_referenced(nal_type: u8, layer: u8, state: &H265State) -> bool {
    nal_type > LAST_SUBLAYER_PICTURE || nal_type % 2 == 1 || layer < state.highest_layer
}

pub(super) fn walk(unit: &[u8], state: &mut H265State) -> Findings {
    let mut findings = Findings::default();
    for at in start_codes(unit) {
        let Some(&[header, layer, ref rest @ ..]) = unit.get(at..) else {
            break;
        };
        // Higher layers (scalable, multiview) are kept or dropped with the base layer.
        if header & 1 != 0 || layer >> 3 != 0 {
            continue;
        }
        match nal_type(header) {
            kind @ 0..=LAST_PICTURE => {
                let key = (FIRST_RANDOM_ACCESS..=LAST_RANDOM_ACCESS).contains(&kind);
                let slice = if key {
                    // Intra by definition; only the flag for the beginning of a picture must be
                    // read.
                    rest.first()
                        .filter(|&&byte| byte & 0x80 != 0)
                        .map(|_| SliceKind::Intra)
                } else {
                    first_slice(kind, rest, state)
                };
                if let Some(slice) = slice {
                    // `nuh_temporal_id_plus1`
                    let temporal_layer = (layer & 7).saturating_sub(1);
                    state.highest_layer = state.highest_layer.max(temporal_layer);
                    let referenced = is_referenced(kind, temporal_layer, state);
                    findings.pictures.push(Picture {
                        kind: slice,
                        referenced,
                        key,
                    });
                }
            }
            PICTURE_PARAMETERS => {
                // An unreadable set is ignored; its slices are then read without extra bits.
                let _ = learn(rest, state);
            }
            PREFIX_INFORMATION => {
                let recovery = recovery_point(rest).and_then(recovery);
                findings.recovery = recovery.or(findings.recovery);
            }
            _ => {}
        }
    }
    findings
}

/// `recovery_poc_cnt` (D.2.8), a signed code: the number of pictures until the whole picture is
/// right. If it is zero or negative, the picture is right at once.
fn recovery(mut payload: Bits<'_>) -> Option<Recovery> {
    let code = payload.golomb()?;
    Some(match code % 2 {
        1 => Recovery::Gradual,
        _ => Recovery::AtOnce,
    })
}

pub(super) fn begins_unit(start: &[u8]) -> bool {
    let Some(&[header, layer, ref rest @ ..]) = start.first_chunk::<2>().map(|_| start) else {
        return false;
    };
    if header & 1 != 0 || layer >> 3 != 0 {
        return false;
    }
    match nal_type(header) {
        0..=LAST_PICTURE => rest.first().is_some_and(|&byte| byte & 0x80 != 0),
        VIDEO_PARAMETERS..=DELIMITER | PREFIX_INFORMATION | 41..=44 | 48..=55 => true,
        _ => false,
    }
}

/// Fields are separate pictures here, with their own units.
pub(super) fn mark(start: &[u8]) -> Mark {
    let is_picture = start
        .first()
        .is_some_and(|&header| nal_type(header) <= LAST_PICTURE);
    match (begins_unit(start), is_picture) {
        (true, true) => Mark::Picture(Beginning {
            frame: 0,
            structure: Structure::Frame,
        }),
        (true, false) => Mark::Header,
        (false, true) => Mark::Continued,
        (false, false) => Mark::Other,
    }
}

#[cfg(test)]
mod tests {
    use super::super::begins_unit as begins;
    use super::super::{Class, Codec, H265State, classify};
    use comity_frames::FrameType;

    /// A slice of this unit type: first slice, parameter set 0, then the code of `slice_type`.
    fn slice(nal_type: u8, fields: u8) -> Vec<u8> {
        vec![0, 0, 1, nal_type << 1, 1, fields, 0x80]
    }

    #[test]
    fn unit_and_slice_types_determine_the_type() {
        let state = &mut H265State::default();
        // first_slice 1, pps 0: 1, slice_type 0: 1, 1: 010, 2: 011.
        let (bidirectional, predicted, intra) = (0b1110_0000, 0b1101_0000, 0b1101_1000);
        for (nal_type, fields, frame) in [
            (19, 0b1011_0000, FrameType::Key),
            (21, 0b1011_0000, FrameType::Key),
            (1, intra, FrameType::Intra),
            (1, predicted, FrameType::Predicted { referenced: true }),
            (0, predicted, FrameType::Predicted { referenced: false }),
            (
                1,
                bidirectional,
                FrameType::Bidirectional { referenced: true },
            ),
            // TSA_N, STSA_N, RADL_N, RASL_N; then the ones that are referenced.
            (
                2,
                bidirectional,
                FrameType::Bidirectional { referenced: false },
            ),
            (
                4,
                bidirectional,
                FrameType::Bidirectional { referenced: false },
            ),
            (
                6,
                bidirectional,
                FrameType::Bidirectional { referenced: false },
            ),
            (
                8,
                bidirectional,
                FrameType::Bidirectional { referenced: false },
            ),
            (
                3,
                bidirectional,
                FrameType::Bidirectional { referenced: true },
            ),
            (
                9,
                bidirectional,
                FrameType::Bidirectional { referenced: true },
            ),
        ] {
            let unit = slice(nal_type, fields);
            assert_eq!(
                classify(Codec::H265, &unit, false, state).frame,
                frame,
                "{nal_type}"
            );
        }
    }

    /// The middle layer of a pyramid is marked as unreferenced, and the highest layer refers to it.
    #[test]
    fn a_picture_below_the_highest_temporal_layer_is_referenced() {
        let state = &mut H265State::default();
        // TSA_N at layers 1, 2 and 1 again.
        let expected = [(1, false), (2, false), (1, true), (2, false)];
        for (layer, referenced) in expected {
            let mut unit = slice(2, 0b1110_0000);
            unit[4] = layer + 1;
            let frame = FrameType::Bidirectional { referenced };
            assert_eq!(classify(Codec::H265, &unit, false, state).frame, frame);
        }
    }

    #[test]
    fn announced_extra_bits_are_skipped() {
        let state = &mut H265State::default();
        // pps 0: 1, sps 0: 1, two flags 00, two extra bits 010: 1100 0100.
        let parameters = [0, 0, 1, 34 << 1, 1, 0b1100_0100, 0x80];
        assert_eq!(
            classify(Codec::H265, &parameters, false, state).frame,
            FrameType::Parameters
        );
        // first 1, pps 0 1, extra 11, slice_type 1: 010.
        let unit = slice(1, 0b1111_0100);
        let frame = FrameType::Predicted { referenced: true };
        assert_eq!(classify(Codec::H265, &unit, false, state).frame, frame);
    }

    /// Message 6 of one byte: `recovery_poc_cnt` 0 is 1, 2 is 00100, -1 is 011.
    #[test]
    fn a_recovery_point_is_a_way_in() {
        let class = |count: u8, fields: u8| {
            let message = [0, 0, 1, 39 << 1, 1, 6, 1, count, 0x80];
            let unit = [&message[..], &slice(1, fields)].concat();
            classify(Codec::H265, &unit, false, &mut H265State::default())
        };
        let (predicted, intra) = (0b1101_0000, 0b1101_1000);
        let frame = FrameType::Predicted { referenced: true };
        assert_eq!(class(0b1100_0000, intra), Class::of(FrameType::Key));
        assert_eq!(class(0b0111_0000, intra), Class::of(FrameType::Key));
        assert_eq!(class(0b1100_0000, predicted), Class::of(frame));
        let begins_refresh = true;
        let gradual = Class {
            frame,
            begins_refresh,
        };
        assert_eq!(class(0b0010_0100, predicted), gradual);
    }

    #[test]
    fn a_unit_begins_with_a_delimiter_or_a_first_slice() {
        assert!(begins(Codec::H265, &[0, 0, 0, 1, 35 << 1, 1, 0x50]));
        assert!(begins(Codec::H265, &slice(1, 0b1101_0000)));
        assert!(!begins(Codec::H265, &slice(1, 0b0101_0000)));
        // A suffix message belongs to the unit before it.
        assert!(!begins(Codec::H265, &[0, 0, 1, 40 << 1, 1, 0]));
    }
}
