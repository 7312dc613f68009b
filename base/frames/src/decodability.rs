//! Which frames can be decoded.

use alloc::collections::BTreeMap;

/// How many frames are remembered: no frame depends on an older one.
const REMEMBERED: usize = 1_024;

/// Judges the frames of one stream in decoding order.
///
/// ```text
/// decodable(frame) = on_time(frame) and (frame needs nothing, or decodable(needed frame))
/// ```
///
/// A dependency that was never judged, or is more than 1,024 frames back, does not make a frame
/// undecodable: it belongs to an earlier connection.
#[derive(Clone, Debug, Default)]
pub struct Decodability {
    judged: BTreeMap<u64, bool>,
}

impl Decodability {
    /// Whether the frame with this number can be decoded.
    pub fn judge(&mut self, number: u64, needs: Option<u64>, is_on_time: bool) -> bool {
        let has_what_it_needs = needs.is_none_or(|needed| match self.judged.get(&needed) {
            Some(&is_decodable) => is_decodable,
            None => true,
        });
        let is_decodable = is_on_time && has_what_it_needs;
        self.judged.insert(number, is_decodable);
        if self.judged.len() > REMEMBERED {
            self.judged.pop_first();
        }
        is_decodable
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_frame_needs_the_whole_chain_before_it() {
        let mut stream = Decodability::default();
        assert!(stream.judge(0, None, true));
        assert!(stream.judge(1, Some(0), true));
        assert!(!stream.judge(2, Some(1), false), "late");
        assert!(!stream.judge(3, Some(2), true), "depends on a late one");
        assert!(!stream.judge(4, Some(3), true), "depends on it indirectly");
        assert!(stream.judge(5, Some(1), true), "needs another");
        assert!(stream.judge(6, None, true));
        assert!(!stream.judge(7, None, false));
    }

    #[test]
    fn frames_of_an_earlier_connection_count_as_decoded() {
        let mut stream = Decodability::default();
        assert!(stream.judge(10, Some(9), true));
        assert!(!stream.judge(11, Some(10), false));
        for number in 12..12 + REMEMBERED as u64 {
            assert!(stream.judge(number, None, true));
        }
        assert_eq!(stream.judged.len(), REMEMBERED);
        assert!(stream.judge(5_000, Some(11), true), "too far back");
    }
}
