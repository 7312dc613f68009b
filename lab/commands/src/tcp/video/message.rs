//! The messages between the sender and the player of a video.

/// The header of the media in a section: 16 bytes, big-endian.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Label {
    /// The number of the picture in decoding order.
    pub(super) number: u64,
    /// The number of the picture that it depends on, if any. On the wire, `None` is all ones.
    pub(super) needs: Option<u64>,
}

impl Label {
    pub(super) fn encode(self) -> [u8; 16] {
        let whole = u128::from(self.number) << 64 | u128::from(self.needs.unwrap_or(u64::MAX));
        whole.to_be_bytes()
    }

    /// Reads a label. Returns it with the media after it.
    pub(super) fn decode(content: &[u8]) -> Option<(Self, &[u8])> {
        let (label, media) = content.split_first_chunk()?;
        let whole = u128::from_be_bytes(*label);
        let needs = whole as u64;
        let label = Self {
            number: (whole >> 64) as u64,
            needs: (needs != u64::MAX).then_some(needs),
        };
        Some((label, media))
    }
}

/// The player's report: which sections since the last report were on time.
///
/// On the wire: the number of the first section (64 bits, big-endian), then one byte for each
/// section, 1 if it was on time.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Report {
    pub(super) first: u64,
    pub(super) in_time: Vec<bool>,
}

impl Report {
    pub(super) fn encode(&self) -> Vec<u8> {
        let mut bytes = self.first.to_be_bytes().to_vec();
        bytes.extend(self.in_time.iter().map(|in_time| u8::from(*in_time)));
        bytes
    }

    pub(super) fn decode(bytes: &[u8]) -> Option<Self> {
        let (first, rest) = bytes.split_first_chunk()?;
        Some(Self {
            first: u64::from_be_bytes(*first),
            in_time: rest.iter().map(|byte| *byte == 1).collect(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_read_back_as_written() {
        for needs in [None, Some(0), Some(3)] {
            let label = Label { number: 7, needs };
            let content = [&label.encode()[..], b"media"].concat();
            assert_eq!(Label::decode(&content), Some((label, &b"media"[..])));
        }
        assert_eq!(Label::decode(&[0; 15]), None);
        let report = Report {
            first: 9,
            in_time: vec![true, false, true],
        };
        assert_eq!(Report::decode(&report.encode()), Some(report));
        assert_eq!(Report::decode(&[0; 7]), None);
    }
}
