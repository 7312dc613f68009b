//! The times of pictures that share a PES packet, and therefore a time stamp.

use crate::timeline::difference;

/// The duration of a picture until it is known, in ticks of 90 kHz.
const SHORT: u64 = 1_500;
/// The maximum duration of a picture.
const LONGEST: i64 = 45_000;

/// The interval between the pictures of one stream.
///
/// A picture that begins after another one in the same PES packet is decoded one interval later.
/// The interval is the mean between the latest two time stamps. Until there are two, it is a 60th
/// of a second, so that the picture is decoded before the next time stamp at any usual rate.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Cadence {
    /// The latest time stamp, and the number of pictures since.
    stamp: Option<u64>,
    behind: u32,
    interval: Option<u64>,
}

impl Cadence {
    /// The decoding time of a unit with this time stamp. A unit without one has a time only if it
    /// `follows` another in its PES packet.
    pub(super) fn locate(&mut self, stamp: Option<u64>, follows: bool) -> Option<u64> {
        match (stamp, self.stamp) {
            (Some(stamp), last) => {
                let count = i64::from(self.behind) + 1;
                let interval = last.map(|last| difference(stamp, last) / count);
                self.interval = interval
                    .filter(|interval| (1..=LONGEST).contains(interval))
                    .and_then(|interval| interval.try_into().ok())
                    .or(self.interval);
                (self.stamp, self.behind) = (Some(stamp), 0);
                Some(stamp)
            }
            (None, Some(last)) if follows => {
                self.behind = self.behind.saturating_add(1);
                let passed = self.interval.unwrap_or(SHORT) * u64::from(self.behind);
                Some(last.wrapping_add(passed) % crate::timeline::WRAP)
            }
            (None, _) => {
                self.stamp = None;
                None
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::timeline::WRAP;

    #[test]
    fn pictures_between_two_stamps_are_evenly_spaced() {
        let mut cadence = Cadence::default();
        let first = WRAP - 3_600;
        assert_eq!(cadence.locate(Some(first), false), Some(first));
        // The interval is not yet known.
        assert_eq!(cadence.locate(None, true), Some(WRAP - 2_100));
        assert_eq!(cadence.locate(None, true), Some(WRAP - 600));
        // Three pictures in 10,800 ticks.
        assert_eq!(cadence.locate(Some(7_200), false), Some(7_200));
        assert_eq!(cadence.locate(None, true), Some(10_800));
        assert_eq!(cadence.locate(None, true), Some(14_400));
        // A jump does not change the interval, and the first picture of a packet without a stamp
        // has no time.
        assert_eq!(cadence.locate(Some(9_000_000), false), Some(9_000_000));
        assert_eq!(cadence.locate(None, true), Some(9_003_600));
        assert_eq!(cadence.locate(None, false), None);
        assert_eq!(cadence.locate(None, true), None);
    }
}
