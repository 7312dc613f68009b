//! Packet numbers in 32 bits.

use comity_units::PacketNumber;

use super::limits::MAX_PACKET_NUMBER;

/// The low 32 bits of a packet number, as in the header.
#[must_use]
pub const fn truncate(number: PacketNumber) -> u32 {
    number.get() as u32
}

/// The packet number with the low half `low` that is closest to the next expected one.
///
/// ```text
/// expected = largest + 1            (0 before the first packet)
/// result   = n with n mod 2^32 = low and expected - 2^31 < n <= expected + 2^31
/// ```
///
/// * `largest`: the largest number of an authenticated packet.
///
/// If that `n` is negative, the result is the first number with this low half; above
/// [`MAX_PACKET_NUMBER`], it is the last one. The result is right while fewer than 2^31 packets are
/// in flight. The authentication covers the whole number, so a packet with a wrong result is
/// refused.
///
/// Source: RFC 9000, appendix A.3. Differs from the source in: 1. the length is always 32 bits; 2.
/// `largest` is optional.
#[must_use]
pub const fn restore(low: u32, largest: Option<PacketNumber>) -> PacketNumber {
    const WINDOW: u64 = 1 << 32;
    let expected = match largest {
        Some(largest) if largest.get() < MAX_PACKET_NUMBER => largest.get() + 1,
        Some(_) => MAX_PACKET_NUMBER,
        None => 0,
    };
    let candidate = (expected & !(WINDOW - 1)) | low as u64;
    let number = if candidate.saturating_add(WINDOW / 2) <= expected
        && candidate <= MAX_PACKET_NUMBER - WINDOW
    {
        candidate + WINDOW
    } else if candidate > expected.saturating_add(WINDOW / 2) && candidate >= WINDOW {
        candidate - WINDOW
    } else {
        candidate
    };
    PacketNumber::new(number)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn restored(low: u32, largest: u64) -> u64 {
        restore(low, Some(PacketNumber::new(largest))).get()
    }

    #[test]
    fn the_closest_number_is_restored() {
        // Worked by hand.
        assert_eq!(restore(7, None).get(), 7);
        assert_eq!(restore(u32::MAX, None).get(), 0xffff_ffff);
        assert_eq!(restored(0, 0xffff_ffff), 0x1_0000_0000);
        assert_eq!(restored(5, 0xffff_fff0), 0x1_0000_0005);
        assert_eq!(restored(0xffff_fff0, 0x1_0000_0005), 0xffff_fff0);
        assert_eq!(restored(0x9b32_0000, 0xaa_82f3_0eea), 0xaa_9b32_0000);
        // Half a window: expected is 0x2_0000_0000, and the result is the number above it, not
        // below.
        assert_eq!(restored(0x8000_0000, 0x1_ffff_ffff), 0x2_8000_0000);
        assert_eq!(restored(0x8000_0001, 0x1_ffff_ffff), 0x1_8000_0001);
        // At the ends only one number exists.
        assert_eq!(restored(0xffff_ffff, 3), 0xffff_ffff);
        assert_eq!(
            restored(0, MAX_PACKET_NUMBER),
            MAX_PACKET_NUMBER - 0xffff_ffff
        );
    }

    /// Every pair of a low half and a largest number near a border, against a search among all
    /// numbers with that low half.
    #[test]
    #[cfg_attr(miri, ignore = "too many cases for an interpreter")]
    fn every_border_restores_the_nearest_number() {
        const WINDOW: i128 = 1 << 32;
        let max = i128::from(MAX_PACKET_NUMBER);
        let halves = [0, 1 << 31, WINDOW - 1];
        let near = |border: i128| (border - 3..=border + 3).filter(|n| (0..=max).contains(n));
        let bases = [0, WINDOW, 5 * WINDOW, max + 1 - WINDOW, max];
        let largest = bases
            .iter()
            .flat_map(|base| halves.iter().flat_map(move |half| near(base + half)));
        for largest in largest {
            let expected = (largest + 1).min(max);
            for low in halves.iter().flat_map(|half| half - 3..=half + 3) {
                let low = low.rem_euclid(WINDOW);
                let first = expected - expected % WINDOW + low - 2 * WINDOW;
                let candidates = (0..5).map(|at| first + at * WINDOW);
                // The nearest one; the upper one of two.
                let nearest = candidates
                    .filter(|n| (0..=max).contains(n))
                    .min_by_key(|n| ((n - expected).abs(), -n))
                    .unwrap();
                let found = restored(low as u32, largest as u64);
                assert_eq!(i128::from(found), nearest, "{low} after {largest}");
            }
        }
    }

    proptest::proptest! {
        #[test]
        fn restoring_undoes_truncating(
            largest in 0..=MAX_PACKET_NUMBER, distance in -(1_i64 << 31) + 1..=1 << 31,
        ) {
            if let Some(number) = (largest + 1).checked_add_signed(distance)
                && number <= MAX_PACKET_NUMBER
            {
                let number = PacketNumber::new(number);
                let found = restore(truncate(number), Some(PacketNumber::new(largest)));
                proptest::prop_assert_eq!(found, number);
            }
        }
    }
}
