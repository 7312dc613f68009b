//! Clock readings in 32 bits.

use core::fmt;

use comity_units::Time;

/// Microseconds of one clock, modulo 2^32: wraps after about 71.6 minutes.
///
/// Every packet carries its departure in this form, and every ACK the arrival of the largest packet
/// that it acknowledges. Wrapping numbers have no total order; see [`Stamp::since`] and
/// [`Stamp::near`].
#[derive(Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct Stamp(u32);

impl Stamp {
    /// The stamp with these microseconds.
    #[must_use]
    pub const fn from_micros(micros: u32) -> Self {
        Self(micros)
    }

    /// The microseconds.
    #[must_use]
    pub const fn as_micros(self) -> u32 {
        self.0
    }

    /// The stamp of a clock reading, rounded down to microseconds.
    #[must_use]
    pub const fn of(time: Time) -> Self {
        Self((time.as_nanos() / 1_000) as u32)
    }

    /// How much later than `earlier` this is, in microseconds; negative if it is earlier. Right
    /// while the two are less than 35 minutes apart.
    #[must_use]
    pub const fn since(self, earlier: Self) -> i32 {
        self.0.wrapping_sub(earlier.0) as i32
    }

    /// The clock reading closest to `time` that has this stamp, in whole microseconds.
    ///
    /// Of two equally close readings, the earlier one. `None` if it would be before the clock's
    /// epoch or beyond the range of [`Time`].
    #[must_use]
    pub fn near(self, time: Time) -> Option<Time> {
        let reference = time.as_nanos() / 1_000;
        let offset = i64::from(self.since(Self::of(time)));
        let nanos = reference.checked_add_signed(offset)?.checked_mul(1_000)?;
        (nanos < u64::MAX).then(|| Time::from_nanos(nanos))
    }
}

impl fmt::Debug for Stamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Stamp({self})")
    }
}

impl fmt::Display for Stamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}us mod 2^32", self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stamp_recovers_its_time_across_the_wrap() {
        let wrap = 1 << 32;
        for (micros, reference) in [
            (0, 0),
            (1_000, 5),
            (wrap - 1, wrap + 10),
            (wrap + 10, wrap - 1),
            (7 * wrap + 3, 7 * wrap + 2_000_000_000),
        ] {
            let stamp = Stamp::of(Time::from_micros(micros));
            assert_eq!(u64::from(stamp.as_micros()), micros % wrap);
            assert_eq!(
                stamp.near(Time::from_micros(reference)),
                Some(Time::from_micros(micros))
            );
        }
        // A clock that has just started has no stamps before its epoch.
        assert_eq!(
            Stamp::from_micros(u32::MAX).near(Time::from_micros(3)),
            None
        );
        let beyond = Stamp::from_micros(Stamp::of(Time::MAX).as_micros().wrapping_add(1));
        assert_eq!(beyond.near(Time::MAX), None);
        assert_eq!(Stamp::of(Time::from_nanos(1_999)).as_micros(), 1);
    }

    #[test]
    fn distances_of_stamps_are_signed() {
        let (early, late) = (Stamp::from_micros(u32::MAX - 1), Stamp::from_micros(3));
        assert_eq!(late.since(early), 5);
        assert_eq!(early.since(late), -5);
    }
}
