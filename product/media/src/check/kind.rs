//! The content of a PID.

/// The content of the packets of a PID.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Kind {
    /// The content in words.
    pub name: &'static str,
    /// Whether it is pictures or sound, which need time stamps all the time.
    pub is_timed: bool,
}

impl Kind {
    pub(super) const UNREFERENCED: Self = Self::untimed("unreferenced");
    pub(super) const PMT: Self = Self::untimed("PMT");
    pub(super) const CLOCK: Self = Self::untimed("PCR");
    pub(super) const NETWORK: Self = Self::untimed("NIT");
    pub(super) const KEYS: Self = Self::untimed("ECM");
    pub(super) const RIGHTS: Self = Self::untimed("EMM");
    pub(super) const ATSC: Self = Self::untimed("ATSC tables");
    pub(super) const PRIVATE: Self = Self::untimed("private data");

    const fn untimed(name: &'static str) -> Self {
        let is_timed = false;
        Self { name, is_timed }
    }

    const fn timed(name: &'static str) -> Self {
        let is_timed = true;
        Self { name, is_timed }
    }

    /// A PID with a fixed meaning (ISO/IEC 13818-1 table 2-3, EN 300 468 table 1).
    pub(super) const fn fixed(pid: u16) -> Option<Self> {
        Some(match pid {
            0x00 => Self::untimed("PAT"),
            0x01 => Self::untimed("CAT"),
            0x10 => Self::NETWORK,
            0x11 => Self::untimed("SDT, BAT"),
            0x12 => Self::untimed("EIT"),
            0x13 => Self::untimed("RST"),
            0x14 => Self::untimed("TDT, TOT"),
            0x02..=0x0f | 0x15..=0x1f => Self::untimed("tables"),
            0x1ffb => Self::ATSC,
            0x1fff => Self::untimed("null packets"),
            _ => return None,
        })
    }

    /// A stream, by its type (ISO/IEC 13818-1 table 2-34, and those that ATSC, DVB, SCTE and
    /// Blu-ray add) and by the descriptors of its map.
    pub(super) fn of_stream<'a>(
        stream_type: u8,
        descriptors: impl Iterator<Item = (u8, &'a [u8])>,
    ) -> Self {
        match stream_type {
            0x01 => Self::timed("MPEG-1 video"),
            0x02 => Self::timed("MPEG-2 video"),
            0x03 | 0x04 => Self::timed("MPEG audio"),
            0x05 => Self::untimed("private sections"),
            0x06 => Self::private(descriptors),
            0x0a..=0x0d => Self::untimed("DSM-CC"),
            0x0f => Self::timed("AAC audio"),
            0x10 => Self::timed("MPEG-4 video"),
            0x11 => Self::timed("AAC audio in LATM"),
            0x15 => Self::untimed("metadata"),
            0x1b => Self::timed("H.264 video"),
            0x21 => Self::timed("JPEG 2000 video"),
            0x24 => Self::timed("H.265 video"),
            0x33 => Self::timed("H.266 video"),
            0x42 => Self::timed("AVS video"),
            0x81 => Self::timed("AC-3 audio"),
            0x82 => Self::timed("DTS audio"),
            0x83 => Self::timed("TrueHD audio"),
            0x84 | 0x87 => Self::timed("E-AC-3 audio"),
            0x85 | 0x88 => Self::timed("DTS-HD audio"),
            0x86 => Self::untimed("SCTE-35"),
            0xd1 => Self::timed("Dirac video"),
            0xea => Self::timed("VC-1 video"),
            _ => Self::untimed("unknown stream"),
        }
    }

    /// Private data, by the first descriptor that identifies it.
    fn private<'a>(mut descriptors: impl Iterator<Item = (u8, &'a [u8])>) -> Self {
        const REGISTRATION: u8 = 0x05;
        let known = |(tag, body): (u8, &'a [u8])| {
            Some(match (tag, body.first_chunk()) {
                (0x45 | 0x46 | 0x56, _) => Self::untimed("teletext, VBI"),
                (0x59, _) => Self::untimed("DVB subtitles"),
                (0x6a, _) => Self::timed("AC-3 audio"),
                (0x7a, _) => Self::timed("E-AC-3 audio"),
                (0x7b, _) => Self::timed("DTS audio"),
                (0x7c, _) => Self::timed("AAC audio"),
                (REGISTRATION, Some(b"AC-3")) => Self::timed("AC-3 audio"),
                (REGISTRATION, Some(b"EAC3")) => Self::timed("E-AC-3 audio"),
                (REGISTRATION, Some(b"DTS1" | b"DTS2" | b"DTS3")) => Self::timed("DTS audio"),
                (REGISTRATION, Some(b"Opus")) => Self::timed("Opus audio"),
                (REGISTRATION, Some(b"BSSD")) => Self::timed("SMPTE 302M audio"),
                (REGISTRATION, Some(b"HEVC")) => Self::timed("H.265 video"),
                (REGISTRATION, Some(b"AV01")) => Self::timed("AV1 video"),
                (REGISTRATION, Some(b"VP09")) => Self::timed("VP9 video"),
                (REGISTRATION, Some(b"VC-1")) => Self::timed("VC-1 video"),
                (REGISTRATION, Some(b"KLVA")) => Self::untimed("KLV metadata"),
                (REGISTRATION, Some(b"ID3 ")) => Self::untimed("ID3 metadata"),
                _ => return None,
            })
        };
        descriptors.find_map(known).unwrap_or(Self::PRIVATE)
    }

    /// Whether it is pictures.
    pub(super) fn is_video(&self) -> bool {
        self.name.ends_with(" video")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn streams_are_named_by_type_and_descriptor() {
        let named = |stream_type, descriptors: &[(u8, &'static [u8])]| {
            Kind::of_stream(stream_type, descriptors.iter().copied())
        };
        assert_eq!(named(0x1b, &[]), Kind::timed("H.264 video"));
        assert_eq!(named(0x06, &[]), Kind::untimed("private data"));
        let subtitles: (u8, &[u8]) = (0x59, b"deu");
        assert_eq!(
            named(0x06, &[(0x0a, b"deu"), subtitles]).name,
            "DVB subtitles"
        );
        assert_eq!(named(0x06, &[(0x05, b"Opus")]), Kind::timed("Opus audio"));
        assert_eq!(named(0x06, &[(0x05, b"Op")]).name, "private data");
        assert!(!named(0xc0, &[]).is_timed);
        assert_eq!(Kind::fixed(0x11).map(|kind| kind.name), Some("SDT, BAT"));
        assert_eq!(Kind::fixed(0x100), None);
    }
}
