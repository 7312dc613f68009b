//! Pictures with which a decoder can begin.

use comity_frames::FrameType;

use crate::codec::{Carriage, Codec, carriage, start_codes};
use crate::header::{Header, Unit};
use crate::psi;

/// Whether a decoder that has decoded no earlier picture can begin with a picture.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Entry {
    /// The picture needs earlier ones.
    No,
    /// Decoding can begin with the picture if the decoder already has the parameter sets, which the
    /// section lacks.
    WithoutParameters,
    /// Decoding can begin with the picture.
    Yes,
}

impl Entry {
    /// Reads the payload of a section; `None` if it is not a picture.
    pub fn of(payload: &[u8]) -> Option<Self> {
        let (header, rest) = Header::decode(payload).ok()?;
        let (is_entry, codec) = match header {
            Header::Unit(unit) if unit.frame.is_picture() => (unit.random_access, codec(&unit)?),
            Header::Picture(frame) if frame.is_picture() => (frame == FrameType::Key, Codec::Mpeg2),
            _ => return None,
        };
        Some(match is_entry {
            false => Self::No,
            true if has_parameters(codec, rest) => Self::Yes,
            true => Self::WithoutParameters,
        })
    }

    /// Reads the payload of a unit of an unknown kind, such as a picture of AV1: decoding can begin
    /// where the source says so. `None` if it is something else.
    pub fn of_opaque(payload: &[u8]) -> Option<Self> {
        match Header::decode(payload).ok()? {
            (Header::Unit(unit), _) if unit.frame == FrameType::Opaque => {
                Some(match unit.random_access {
                    false => Self::No,
                    true => Self::Yes,
                })
            }
            _ => None,
        }
    }
}

const fn codec(unit: &Unit) -> Option<Codec> {
    match carriage(unit.stream_type) {
        Carriage::Known(codec) => Some(codec),
        Carriage::Opaque | Carriage::Tables => None,
    }
}

/// The PID and the section of a table that is sent periodically, if this is the payload of one that
/// is valid.
pub fn current_table(payload: &[u8]) -> Option<(u16, &[u8])> {
    match Header::decode(payload).ok()? {
        (
            Header::Table {
                pid,
                repeated: true,
            },
            section,
        ) if !psi::is_next(section) => Some((pid, section)),
        _ => None,
    }
}

/// Whether a picture is preceded by a sequence header or a sequence parameter set.
fn has_parameters(codec: Codec, picture: &[u8]) -> bool {
    let is_set = |start: &u8| match codec {
        Codec::Mpeg2 => *start == 0xb3,
        Codec::H264 => start & 0x1f == 7,
        Codec::H265 => start >> 1 & 0x3f == 33,
        Codec::Audio | Codec::WholeAudio => true,
    };
    start_codes(picture).any(|at| picture.get(at).is_some_and(is_set))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::header::Times;

    fn payload(stream_type: u8, random_access: bool, bytes: &[u8]) -> Vec<u8> {
        let header = Header::Unit(Unit {
            pid: 256,
            stream_type,
            stream_id: 0xe0,
            frame: FrameType::Key,
            times: Times::None,
            random_access,
            discontinuity: false,
            aligned: false,
        });
        let mut payload = Vec::new();
        header.encode(&mut payload);
        payload.extend(bytes);
        payload
    }

    #[test]
    fn pictures_begin_with_their_parameter_sets_or_without() {
        // AUD, SPS, PPS, IDR; VPS, SPS, IDR; sequence header, picture.
        let h264 = [
            0, 0, 1, 9, 0xf0, 0, 0, 1, 0x67, 1, 0, 0, 1, 0x68, 1, 0, 0, 1, 0x65, 1,
        ];
        let h265 = [0, 0, 1, 0x40, 1, 0, 0, 1, 0x42, 1, 0, 0, 1, 0x26, 1];
        let mpeg = [0, 0, 1, 0xb3, 1, 0, 0, 1, 0, 1];
        for (stream_type, bytes, bare) in [
            (0x1b, &h264[..], &h264[15..]),
            (0x24, &h265[..], &h265[10..]),
            (0x02, &mpeg[..], &mpeg[5..]),
        ] {
            assert_eq!(
                Entry::of(&payload(stream_type, true, bytes)),
                Some(Entry::Yes)
            );
            let bare = payload(stream_type, true, bare);
            assert_eq!(Entry::of(&bare), Some(Entry::WithoutParameters));
            assert_eq!(
                Entry::of(&payload(stream_type, false, bytes)),
                Some(Entry::No)
            );
        }
        assert_eq!(Entry::of(&payload(0x06, true, &h264)), None);
        assert_eq!(Entry::of(b"nothing"), None);
    }
}
