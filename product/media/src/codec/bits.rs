//! Start codes and bit fields of video streams.

/// The position of the byte after each start code prefix `00 00 01`.
pub(crate) fn start_codes(bytes: &[u8]) -> impl Iterator<Item = usize> + '_ {
    let mut at = 2;
    core::iter::from_fn(move || {
        // `at` is a possible position of a prefix's third byte. A byte above 1 rules out the next
        // three positions.
        loop {
            match *bytes.get(at)? {
                0 => at += 1,
                1 if bytes.get(at - 2..at) == Some(&[0, 0]) => {
                    at += 1;
                    // The next prefix cannot overlap this one, because this one ends with 01.
                    let found = at;
                    at += 2;
                    return Some(found);
                }
                _ => at += 3,
            }
        }
    })
}

/// Reads bits from the front, skipping emulation prevention bytes (the 03 of `00 00 03`).
pub(super) struct Bits<'a> {
    bytes: &'a [u8],
    at: usize,
    zeros: u8,
    /// The unread bits of the present byte, at its high end.
    current: u8,
    left: u8,
}

impl<'a> Bits<'a> {
    pub(super) const fn new(bytes: &'a [u8]) -> Self {
        Self {
            bytes,
            at: 0,
            zeros: 0,
            current: 0,
            left: 0,
        }
    }

    pub(super) fn bit(&mut self) -> Option<bool> {
        if self.left == 0 {
            let mut byte = *self.bytes.get(self.at)?;
            self.at += 1;
            if self.zeros >= 2 && byte == 3 {
                byte = *self.bytes.get(self.at)?;
                self.at += 1;
                self.zeros = 0;
            }
            self.zeros = if byte == 0 {
                self.zeros.saturating_add(1)
            } else {
                0
            };
            self.current = byte;
            self.left = 8;
        }
        self.left -= 1;
        Some(self.current >> self.left & 1 == 1)
    }

    /// An unsigned field of at most 32 bits.
    pub(super) fn field(&mut self, width: u8) -> Option<u32> {
        let mut value = 0;
        for _ in 0..width {
            value = value << 1 | u32::from(self.bit()?);
        }
        Some(value)
    }

    /// An unsigned exponential-Golomb code, ue(v): n zeros, a one, n bits; the value is 2^n - 1 +
    /// those bits.
    pub(super) fn golomb(&mut self) -> Option<u32> {
        let mut zeros = 0;
        while !self.bit()? {
            zeros += 1;
            if zeros > 31 {
                return None;
            }
        }
        let rest = self.field(zeros)?;
        Some((1_u32 << zeros) - 1 + rest)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn golomb_codes_are_those_of_the_standard() {
        // 1 | 010 | 011 | 00100 | 00101 | 0001000: H.264 table 9-2, for 0, 1, 2, 3, 4, 7.
        let bytes = [0b1010_0110, 0b0100_0010, 0b1000_1000];
        let mut bits = Bits::new(&bytes);
        let values: Vec<_> = (0..6).map_while(|_| bits.golomb()).collect();
        assert_eq!(values, [0, 1, 2, 3, 4, 7]);
        assert_eq!(Bits::new(&[0; 5]).golomb(), None);
        // 31 zeros, a one and 31 ones: the largest that fits.
        let mut largest = vec![0, 0, 0, 1];
        largest.extend([0xff; 4]);
        assert_eq!(Bits::new(&largest).golomb(), Some(u32::MAX - 1));
    }

    #[test]
    fn emulation_prevention_bytes_are_skipped() {
        let mut bits = Bits::new(&[0, 0, 3, 1, 3]);
        assert_eq!(bits.field(32), Some(0x0000_0103));
        assert_eq!(bits.bit(), None);
    }

    proptest! {
        #[test]
        fn start_codes_are_found_as_by_looking_everywhere(
            bytes in prop::collection::vec(0_u8..3, 0..60),
        ) {
            let slow: Vec<usize> = (0..bytes.len().saturating_sub(2))
                .filter(|&at| bytes[at..at + 3] == [0, 0, 1])
                .map(|at| at + 3)
                .collect();
            prop_assert_eq!(start_codes(&bytes).collect::<Vec<_>>(), slow);
        }
    }
}
