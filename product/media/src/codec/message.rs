//! Supplemental enhancement information: messages in addition to pictures, which have the same form
//! in H.264 and H.265 (ITU-T H.264, 7.3.2.3.1; H.265, 7.3.5).

use super::bits::{Bits, start_codes};

/// The payload type of a recovery point (H.264, D.1.8; H.265, D.2.8).
const RECOVERY_POINT: u32 = 6;

/// The payload of the recovery point in a unit of messages, from the bytes after its header. The
/// bytes may extend beyond the unit.
pub(super) fn recovery_point(bytes: &[u8]) -> Option<Bits<'_>> {
    let end = start_codes(bytes).next().map_or(bytes.len(), |at| at - 3);
    let mut bits = Bits::new(bytes.get(..end)?);
    loop {
        let kind = number(&mut bits)?;
        let size = number(&mut bits)?;
        if kind == RECOVERY_POINT {
            return Some(bits);
        }
        for _ in 0..size {
            bits.field(8)?;
        }
    }
}

/// A type or a size: the sum of bytes of 255 and one last byte.
fn number(bits: &mut Bits<'_>) -> Option<u32> {
    let mut sum = 0_u32;
    loop {
        let byte = bits.field(8)?;
        sum = sum.checked_add(byte)?;
        if byte < 255 {
            return Some(sum);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_message_is_found_behind_others_and_not_in_the_next_unit() {
        let first = |bytes: &[u8]| recovery_point(bytes)?.field(8);
        assert_eq!(first(&[6, 1, 0x91, 0x80]), Some(0x91));
        let long = [&[4, 255, 45][..], &[7; 300], &[6, 1, 0x92]].concat();
        assert_eq!(first(&long), Some(0x92), "300 bytes before it");
        // The preceding message contains an emulation prevention byte.
        assert_eq!(first(&[1, 3, 0, 0, 3, 1, 6, 1, 0x93]), Some(0x93));
        assert_eq!(first(&[1, 2, 9, 9, 0x80, 0, 0, 1, 6, 1, 0x94]), None);
        assert_eq!(first(&[255, 255]), None);
        assert_eq!(first(&[]), None);
    }
}
