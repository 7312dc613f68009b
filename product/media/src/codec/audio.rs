//! Audio frames: ADTS (ISO/IEC 13818-7 6.2, 14496-3 1.A.2) and MPEG audio (ISO/IEC 11172-3 2.4.1.3
//! and 13818-3).

/// The properties of a frame from its header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct AudioFrame {
    /// The length in bytes, including the header.
    pub(crate) length: usize,
    /// Samples per channel, and samples per second.
    pub(crate) samples: u32,
    pub(crate) rate: u32,
}

/// The maximum number of header bytes read.
pub(crate) const HEADER: usize = 7;

const ADTS_RATES: [u32; 13] = [
    96_000, 88_200, 64_000, 48_000, 44_100, 32_000, 24_000, 22_050, 16_000, 12_000, 11_025, 8_000,
    7_350,
];

/// The frame that begins with these bytes, which may be incomplete.
pub(crate) fn audio_frame(bytes: &[u8]) -> Option<AudioFrame> {
    match *bytes {
        [0xff, second, ..] if second & 0xf6 == 0xf0 => adts(bytes),
        [0xff, second, third, _, ..] if second & 0xf0 == 0xf0 => mpeg(second, third),
        _ => None,
    }
}

/// Whether these bytes are too few to rule out a frame.
pub(crate) fn may_begin_frame(bytes: &[u8]) -> bool {
    match *bytes {
        [] => false,
        [first] => first == 0xff,
        [first, second, ..] => first == 0xff && second & 0xf0 == 0xf0 && bytes.len() < HEADER,
    }
}

fn adts(bytes: &[u8]) -> Option<AudioFrame> {
    let &[_, second, third, fourth, fifth, sixth, seventh] = bytes.first_chunk::<HEADER>()?;
    let rate = *ADTS_RATES.get(usize::from(third >> 2 & 0x0f))?;
    let length = usize::from(fourth & 3) << 11 | usize::from(fifth) << 3 | usize::from(sixth >> 5);
    // Without protection_absent, a checksum of two bytes follows.
    let header = if second & 1 == 1 { HEADER } else { HEADER + 2 };
    (length >= header).then_some(AudioFrame {
        length,
        samples: 1_024 * (u32::from(seventh & 3) + 1),
        rate,
    })
}

/// The bit rate in kb/s, by `bitrate_index` from 1 on.
const LAYER_2: [u32; 14] = [
    32, 48, 56, 64, 80, 96, 112, 128, 160, 192, 224, 256, 320, 384,
];
const LAYER_3: [u32; 14] = [
    32, 40, 48, 56, 64, 80, 96, 112, 128, 160, 192, 224, 256, 320,
];
const LOW_LAYER_1: [u32; 14] = [
    32, 48, 56, 64, 80, 96, 112, 128, 144, 160, 176, 192, 224, 256,
];
const LOW: [u32; 14] = [8, 16, 24, 32, 40, 48, 56, 64, 80, 96, 112, 128, 144, 160];

/// The header of a free format does not contain the length.
fn mpeg(second: u8, third: u8) -> Option<AudioFrame> {
    let is_low = second & 0x08 == 0;
    let full_rate = *[44_100, 48_000, 32_000].get(usize::from(third >> 2 & 3))?;
    let rate = if is_low { full_rate / 2 } else { full_rate };
    let index = usize::from(third >> 4);
    let of = |table: &[u32; 14]| table.get(index.checked_sub(1)?).copied();
    let layer_1 = |index: usize| {
        u32::try_from(index * 32)
            .ok()
            .filter(|_| (1..15).contains(&index))
    };
    let padding = u32::from(third >> 1 & 1);
    // Bytes in one slot, samples in a frame, kb/s. The layer field is 4 minus the layer.
    let (slot, samples, bitrate) = match (second >> 1 & 3, is_low) {
        (3, false) => (4, 384, layer_1(index)?),
        (3, true) => (4, 384, of(&LOW_LAYER_1)?),
        (2, false) => (1, 1_152, of(&LAYER_2)?),
        (2, true) => (1, 1_152, of(&LOW)?),
        (1, false) => (1, 1_152, of(&LAYER_3)?),
        (1, true) => (1, 576, of(&LOW)?),
        _ => return None,
    };
    let slots = samples / 8 / slot * bitrate * 1_000 / rate + padding;
    let length = usize::try_from(slots * slot).ok()?;
    Some(AudioFrame {
        length,
        samples,
        rate,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn frame(length: usize, samples: u32, rate: u32) -> Option<AudioFrame> {
        Some(AudioFrame {
            length,
            samples,
            rate,
        })
    }

    /// Profile 1 (LC), this sampling frequency index, two channels.
    fn header(index: u8, length: u16, blocks: u8, is_protected: bool) -> [u8; 7] {
        let [high, low] = (length << 3).to_be_bytes();
        [
            0xff,
            if is_protected { 0xf0 } else { 0xf1 },
            0x40 | index << 2,
            0x80 | high >> 6 & 3,
            high << 2 | low >> 6,
            low << 2 & 0xe0 | 0x1f,
            0xfc | (blocks - 1),
        ]
    }

    #[test]
    fn adts_headers_are_read() {
        assert_eq!(
            audio_frame(&header(3, 371, 1, false)),
            frame(371, 1_024, 48_000)
        );
        assert_eq!(
            audio_frame(&header(4, 8_191, 4, true)),
            frame(8_191, 4_096, 44_100)
        );
        // The header alone, with and without the announced checksum.
        assert_eq!(
            audio_frame(&header(12, 7, 1, false)),
            frame(7, 1_024, 7_350)
        );
        assert_eq!(audio_frame(&header(12, 8, 1, true)), None);
        assert_eq!(audio_frame(&header(13, 100, 1, false)), None);
        assert_eq!(audio_frame(&header(3, 100, 1, false)[..6]), None);
        assert!(may_begin_frame(&header(3, 100, 1, false)[..6]));
        assert!(may_begin_frame(&[0xff]) && !may_begin_frame(&[]) && !may_begin_frame(&[0xff, 0]));
        // LATM.
        assert_eq!(audio_frame(&[0x56, 0xe0, 0, 0, 0, 0, 0]), None);
    }

    #[test]
    fn mpeg_headers_are_read() {
        // Layer II at 64 kb/s and 48 kHz; layer III at 128 kb/s and 44.1 kHz, padded; layer I at
        // 384 kb/s and 48 kHz.
        assert_eq!(
            audio_frame(&[0xff, 0xfd, 0x44, 0]),
            frame(192, 1_152, 48_000)
        );
        assert_eq!(
            audio_frame(&[0xff, 0xfb, 0x92, 0]),
            frame(418, 1_152, 44_100)
        );
        assert_eq!(audio_frame(&[0xff, 0xff, 0xc4, 0]), frame(384, 384, 48_000));
        // Half the rate: layer III at 64 kb/s and 24 kHz, layer II at 32 kb/s and 16 kHz.
        assert_eq!(audio_frame(&[0xff, 0xf3, 0x84, 0]), frame(192, 576, 24_000));
        assert_eq!(
            audio_frame(&[0xff, 0xf5, 0x48, 0]),
            frame(288, 1_152, 16_000)
        );
        // Free format, no bit rate, no sampling rate.
        for third in [0x04, 0xf4, 0x4c] {
            assert_eq!(audio_frame(&[0xff, 0xfd, third, 0]), None);
        }
    }
}
