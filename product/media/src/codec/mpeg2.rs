//! MPEG-1 and MPEG-2 video (ISO/IEC 11172-2 and 13818-2): the headers before the slices.

use super::bits::{Bits, start_codes};
use super::picture::{Beginning, Findings, Mark, Picture, SliceKind, Structure};

const PICTURE: u8 = 0x00;
const SEQUENCE: u8 = 0xb3;
const EXTENSION: u8 = 0xb5;
const GROUP: u8 = 0xb8;

/// The start codes of the headers that determine the times of an elementary stream.
pub(crate) struct Headers;

impl Headers {
    pub(crate) const PICTURE: u8 = PICTURE;
    pub(crate) const SEQUENCE: u8 = SEQUENCE;
    pub(crate) const GROUP: u8 = GROUP;
}

/// `temporal_reference` and the type of a picture, from the bytes after its start code.
pub(crate) fn picture_header(bytes: &[u8]) -> Option<(u16, u8)> {
    let &[high, low] = bytes.first_chunk::<2>()?;
    Some((u16::from(high) << 2 | u16::from(low >> 6), low >> 3 & 7))
}

/// Frames per second as a fraction, from the bytes after a sequence header's start code.
pub(crate) fn sequence_header(bytes: &[u8]) -> Option<(u32, u32)> {
    match bytes.get(3)? & 0x0f {
        1 => Some((24_000, 1_001)),
        2 => Some((24, 1)),
        3 => Some((25, 1)),
        4 => Some((30_000, 1_001)),
        5 => Some((30, 1)),
        6 => Some((50, 1)),
        7 => Some((60_000, 1_001)),
        8 => Some((60, 1)),
        _ => None,
    }
}

/// Whether the bytes after an extension's start code are a picture coding extension (identifier 8)
/// of a field.
fn is_field(bytes: &[u8]) -> Option<bool> {
    let mut bits = Bits::new(bytes);
    if bits.field(4)? != 8 {
        return None;
    }
    // Four f_codes of four bits, and the precision of two.
    bits.field(18)?;
    Some(bits.field(2)? != 3)
}

pub(super) fn walk(unit: &[u8]) -> Findings {
    let mut findings = Findings::default();
    let mut has_sequence = false;
    for at in start_codes(unit) {
        let Some((&code, rest)) = unit.get(at..).and_then(<[u8]>::split_first) else {
            break;
        };
        match code {
            PICTURE => {
                let kind = match picture_header(rest).map(|(_, kind)| kind) {
                    // Type 4 is an MPEG-1 picture of averages only, which is also intra-coded.
                    Some(1 | 4) => SliceKind::Intra,
                    Some(2) => SliceKind::Predicted,
                    Some(3) => SliceKind::Bidirectional,
                    _ => continue,
                };
                // In these formats, no picture refers to a B picture. A key picture begins with a
                // sequence header.
                let referenced = kind != SliceKind::Bidirectional;
                findings.pictures.push(Picture {
                    kind,
                    referenced,
                    key: has_sequence,
                });
            }
            SEQUENCE => has_sequence = true,
            _ => {}
        }
    }
    findings
}

pub(super) fn begins_unit(start: &[u8]) -> bool {
    matches!(start.first(), Some(&(PICTURE | SEQUENCE | GROUP)))
}

pub(super) fn mark(start: &[u8]) -> Mark {
    let Some((&code, rest)) = start.split_first() else {
        return Mark::Other;
    };
    match code {
        SEQUENCE | GROUP => Mark::Header,
        PICTURE => Mark::Picture(Beginning {
            frame: picture_header(rest).map_or(0, |(reference, _)| u32::from(reference)),
            structure: Structure::Open,
        }),
        EXTENSION if is_field(rest) == Some(true) => Mark::Field,
        _ => Mark::Other,
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Codec, H265State, classify};
    use super::*;
    use comity_frames::FrameType;

    #[test]
    fn headers_are_read() {
        // temporal_reference 5: 00000001 01, type 3: 011.
        assert_eq!(picture_header(&[0x01, 0b0101_1000]), Some((5, 3)));
        assert_eq!(picture_header(&[0x01]), None);
        assert_eq!(sequence_header(&[0x14, 0x00, 0xb4, 0x13]), Some((25, 1)));
        assert_eq!(sequence_header(&[0x14, 0x00, 0xb4, 0x10]), None);
        assert_eq!(is_field(&[0x8f, 0xff, 0xf3, 0x00]), Some(false));
        assert_eq!(is_field(&[0x8f, 0xff, 0xf1, 0x00]), Some(true));
        assert_eq!(is_field(&[0x1f, 0xff, 0xf1, 0x00]), None);
    }

    #[test]
    fn pictures_determine_the_type() {
        let picture = |kind: u8| vec![0, 0, 1, 0, 0, kind << 3, 0, 0, 1, 1, 9];
        let sequence = [0, 0, 1, 0xb3, 0x14, 0, 0xb4, 0x13];
        let class =
            |unit: &[u8]| classify(Codec::Mpeg2, unit, false, &mut H265State::default()).frame;
        assert_eq!(class(&picture(1)), FrameType::Intra);
        assert_eq!(
            class(&[&sequence[..], &picture(1)].concat()),
            FrameType::Key
        );
        assert_eq!(
            class(&picture(2)),
            FrameType::Predicted { referenced: true }
        );
        assert_eq!(
            class(&picture(3)),
            FrameType::Bidirectional { referenced: false }
        );
        assert_eq!(class(&picture(0)), FrameType::Parameters);
        assert_eq!(class(&sequence), FrameType::Parameters);
    }
}
