//! H.264 (ITU-T H.264, 7.3 and 7.4): the header of each unit and the first two fields of each
//! slice.

use super::bits::{Bits, start_codes};
use super::message::recovery_point;
use super::picture::{Beginning, Findings, Mark, Picture, Recovery, SliceKind, Structure};

const SLICE: u8 = 1;
const SLICE_PARTITION_A: u8 = 2;
const SLICE_IDR: u8 = 5;
const INFORMATION: u8 = 6;
const SEQUENCE: u8 = 7;
const PICTURE: u8 = 8;
const DELIMITER: u8 = 9;

struct Slice {
    first: bool,
    kind: SliceKind,
}

/// `first_mb_in_slice` and `slice_type`.
fn slice(bytes: &[u8]) -> Option<Slice> {
    let mut bits = Bits::new(bytes);
    let first = bits.golomb()? == 0;
    let kind = match bits.golomb()? % 5 {
        0 | 3 => SliceKind::Predicted,
        1 => SliceKind::Bidirectional,
        _ => SliceKind::Intra,
    };
    Some(Slice { first, kind })
}

pub(super) fn walk(unit: &[u8]) -> Findings {
    let mut findings = Findings::default();
    for at in start_codes(unit) {
        let Some((&header, rest)) = unit.get(at..).and_then(<[u8]>::split_first) else {
            break;
        };
        match header & 0x1f {
            kind @ (SLICE | SLICE_PARTITION_A | SLICE_IDR) => {
                let Some(slice) = slice(rest) else { continue };
                let picture = Picture {
                    kind: slice.kind,
                    referenced: header & 0x60 != 0,
                    key: kind == SLICE_IDR,
                };
                match findings.pictures.last_mut() {
                    Some(last) if !slice.first => {
                        last.kind = last.kind.max(slice.kind);
                        last.key &= picture.key;
                    }
                    _ => findings.pictures.push(picture),
                }
            }
            INFORMATION => {
                let recovery = recovery_point(rest).and_then(recovery);
                findings.recovery = recovery.or(findings.recovery);
            }
            _ => {}
        }
    }
    findings
}

pub(super) fn begins_unit(start: &[u8]) -> bool {
    let Some((&header, rest)) = start.split_first() else {
        return false;
    };
    match header & 0x1f {
        SLICE | SLICE_PARTITION_A | SLICE_IDR => slice(rest).is_some_and(|slice| slice.first),
        // 14 to 18 also precede the first slice of a picture.
        INFORMATION | SEQUENCE | PICTURE | DELIMITER | 14..=18 => true,
        _ => false,
    }
}

/// `recovery_frame_cnt` (D.1.8): the number of frames until the whole picture is right.
fn recovery(mut payload: Bits<'_>) -> Option<Recovery> {
    Some(match payload.golomb()? {
        0 => Recovery::AtOnce,
        _ => Recovery::Gradual,
    })
}

/// The fields of the latest sequence parameter set that slice headers depend on. Without a set,
/// there are no fields.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Sequence {
    has_fields: bool,
    has_separate_planes: bool,
    frame_number_bits: u8,
}

/// Whether a sequence parameter set begins with these bytes.
pub(super) fn is_sequence(start: &[u8]) -> bool {
    start
        .first()
        .is_some_and(|header| header & 0x1f == SEQUENCE)
}

/// Reads a sequence parameter set (7.3.2.1.1) up to `frame_mbs_only_flag`.
fn sequence(bytes: &[u8]) -> Option<Sequence> {
    let mut bits = Bits::new(bytes);
    let profile = bits.field(8)?;
    bits.field(16)?;
    bits.golomb()?;
    let mut has_separate_planes = false;
    if matches!(
        profile,
        100 | 110 | 122 | 244 | 44 | 83 | 86 | 118 | 128 | 138 | 139 | 134 | 135
    ) {
        let chroma = bits.golomb()?;
        if chroma == 3 {
            has_separate_planes = bits.bit()?;
        }
        bits.golomb()?;
        bits.golomb()?;
        bits.bit()?;
        if bits.bit()? {
            for list in 0..if chroma == 3 { 12 } else { 8 } {
                if bits.bit()? {
                    scaling_list(&mut bits, if list < 6 { 16 } else { 64 })?;
                }
            }
        }
    }
    let frame_number_bits = u8::try_from(bits.golomb()?).ok()?.checked_add(4)?;
    match bits.golomb()? {
        0 => {
            bits.golomb()?;
        }
        1 => {
            bits.bit()?;
            bits.golomb()?;
            bits.golomb()?;
            for _ in 0..bits.golomb()?.min(255) {
                bits.golomb()?;
            }
        }
        _ => {}
    }
    bits.golomb()?;
    bits.bit()?;
    bits.golomb()?;
    bits.golomb()?;
    let has_fields = !bits.bit()?;
    (frame_number_bits <= 16).then_some(Sequence {
        has_fields,
        has_separate_planes,
        frame_number_bits,
    })
}

/// Skips a list (7.3.2.1.1.1), which ends early if the next scale is zero.
fn scaling_list(bits: &mut Bits<'_>, length: u8) -> Option<()> {
    let mut scale = 8_i64;
    for _ in 0..length {
        let code = i64::from(bits.golomb()?);
        // se(v), table 9-3: 0, 1, -1, 2, -2, ..
        let delta = if code % 2 == 1 {
            (code + 1) / 2
        } else {
            -(code / 2)
        };
        scale = (scale + delta).rem_euclid(256);
        if scale == 0 {
            break;
        }
    }
    Some(())
}

/// `frame_num` and the structure of the picture that begins with this slice header (7.3.3).
fn beginning(bytes: &[u8], sequence: Sequence) -> Option<Beginning> {
    let mut bits = Bits::new(bytes);
    for _ in 0..3 {
        bits.golomb()?;
    }
    if sequence.has_separate_planes {
        bits.field(2)?;
    }
    let frame = bits.field(sequence.frame_number_bits)?;
    let structure = match sequence.has_fields && bits.bit()? {
        false => Structure::Frame,
        true if bits.bit()? => Structure::BottomField,
        true => Structure::TopField,
    };
    Some(Beginning { frame, structure })
}

pub(super) fn mark(start: &[u8], seen: &mut Sequence) -> Mark {
    let Some((&header, rest)) = start.split_first() else {
        return Mark::Other;
    };
    match header & 0x1f {
        SLICE | SLICE_PARTITION_A | SLICE_IDR if begins_unit(start) => {
            Mark::Picture(beginning(rest, *seen).unwrap_or(Beginning {
                frame: 0,
                structure: Structure::Frame,
            }))
        }
        // Slices, their partitions, auxiliary pictures and other views.
        1..=5 | 19..=21 => Mark::Continued,
        kind if begins_unit(start) => {
            if kind == SEQUENCE {
                *seen = sequence(rest).unwrap_or(*seen);
            }
            Mark::Header
        }
        _ => Mark::Other,
    }
}

#[cfg(test)]
mod tests {
    use super::super::begins_unit as begins;
    use super::super::{Class, Codec, H265State, classify};
    use comity_frames::FrameType;

    fn class(unit: &[u8]) -> FrameType {
        classify(Codec::H264, unit, false, &mut H265State::default()).frame
    }

    /// A slice with a header that begins with `1` (first_mb 0) and then the code of `slice_type`.
    fn slice(header: u8, fields: u8) -> Vec<u8> {
        vec![0, 0, 1, header, fields, 0x80]
    }

    #[test]
    fn slices_determine_the_type() {
        // slice_type 7 is 0001000, 5 is 00110, 6 is 00111: after the one of first_mb_in_slice 0.
        let (intra, predicted, bidirectional) = (0b1000_1000, 0b1001_1000, 0b1001_1100);
        for (header, fields, frame) in [
            (0x65, intra, FrameType::Key),
            (0x41, intra, FrameType::Intra),
            (0x41, predicted, FrameType::Predicted { referenced: true }),
            (0x01, predicted, FrameType::Predicted { referenced: false }),
            (
                0x21,
                bidirectional,
                FrameType::Bidirectional { referenced: true },
            ),
            (
                0x01,
                bidirectional,
                FrameType::Bidirectional { referenced: false },
            ),
        ] {
            assert_eq!(
                class(&slice(header, fields)),
                frame,
                "{header:x} {fields:b}"
            );
        }
        // A second slice of the same picture (first_mb 1: 010, slice_type 5: 00110).
        let mixed = [slice(0x41, intra), vec![0, 0, 1, 0x41, 0b0100_0110, 0x80]].concat();
        assert_eq!(class(&mixed), FrameType::Predicted { referenced: true });
        // Two fields: the first one, which is intra, decides.
        let fields = [slice(0x41, intra), slice(0x41, predicted)].concat();
        assert_eq!(class(&fields), FrameType::Intra);
        assert_eq!(class(&[0, 0, 1, 0x67, 1]), FrameType::Parameters);
        assert_eq!(class(&[0, 0, 1, 0x09, 0xf0]), FrameType::Parameters);
    }

    /// A message of another type (1, of 2 bytes), then the recovery point (6, of 1 byte):
    /// `recovery_frame_cnt` 0 is 1, 49 is 00000110010.
    #[test]
    fn a_recovery_point_is_a_way_in() {
        let (intra, predicted) = (0b1000_1000, 0b1001_1000);
        let point = |count: [u8; 2]| {
            let message = [&[0, 0, 1, 0x06, 1, 2, 9, 9, 6, 2][..], &count, &[0x80]].concat();
            move |fields| {
                let unit = [&message[..], &slice(0x41, fields)].concat();
                classify(Codec::H264, &unit, false, &mut H265State::default())
            }
        };
        let (at_once, gradual) = (point([0b1100_0000, 0]), point([0b0000_0110, 0b0101_0000]));
        assert_eq!(at_once(intra), Class::of(FrameType::Key));
        let frame = FrameType::Predicted { referenced: true };
        assert_eq!(at_once(predicted), Class::of(frame));
        let begins = |frame| Class {
            frame,
            begins_refresh: true,
        };
        assert_eq!(gradual(predicted), begins(frame));
        assert_eq!(gradual(intra), begins(FrameType::Intra));
        // Cut within the message, and a size beyond the unit.
        for message in [
            &[0, 0, 1, 0x06, 6][..],
            &[0, 0, 1, 0x06, 6, 255],
            &[0, 0, 1, 0x06, 1, 9],
        ] {
            let unit = [message, &slice(0x41, predicted)].concat();
            assert_eq!(class(&unit), frame);
        }
    }

    #[test]
    fn a_unit_begins_with_a_delimiter_or_a_first_slice() {
        assert!(begins(Codec::H264, &[0, 0, 0, 1, 0x09, 0xf0]));
        assert!(begins(Codec::H264, &slice(0x41, 0b1001_1000)));
        assert!(!begins(Codec::H264, &slice(0x41, 0b0100_0110)));
        assert!(!begins(Codec::H264, &[7, 0, 0, 1, 0x09, 0xf0]));
        assert!(!begins(Codec::H264, &[1, 2, 3]));
    }
}
