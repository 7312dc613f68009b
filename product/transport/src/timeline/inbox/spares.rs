//! Reuses the memory of delivered sections for later ones.

use alloc::collections::VecDeque;

use crate::timeline::section::Payload;

/// The sections that were delivered last. A new section reuses the memory of one that the
/// application has dropped.
///
/// Otherwise an allocator may return blocks of this size to the system and request them again, page
/// by page.
#[derive(Debug)]
pub(super) struct Spares<P> {
    /// In the order of delivery.
    payloads: VecDeque<P>,
    bytes: u64,
    max_bytes: u64,
}

/// Allocators reuse smaller blocks themselves. glibc maps each block of this size separately at
/// first.
const MIN_LENGTH: u32 = 128 << 10;

/// The maximum memory that a connection keeps. An application has 1 MiB of sections waiting and
/// works on some more. With less than twice that, all kept memory would be in use when a section
/// needs some.
const MAX_BYTES: u64 = 2 << 20;

impl<P> Default for Spares<P> {
    fn default() -> Self {
        Self {
            payloads: VecDeque::new(),
            bytes: 0,
            max_bytes: MAX_BYTES,
        }
    }
}

impl<P: Payload> Spares<P> {
    pub(super) const fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Keeps the memory of a section that is delivered, if the section is long enough.
    pub(super) fn keep(&mut self, payload: &P) {
        let length = u64::from(payload.len());
        if P::ELIDED || payload.len() < MIN_LENGTH || length > self.max_bytes {
            return;
        }
        self.payloads.push_back(payload.clone());
        self.bytes += length;
        self.trim();
    }

    /// Keeps at most this many bytes from now on, but never more than the default limit.
    pub(super) fn limit(&mut self, max_bytes: u64) {
        self.max_bytes = max_bytes.min(MAX_BYTES);
        self.trim();
    }

    fn trim(&mut self) {
        while self.bytes > self.max_bytes
            && let Some(oldest) = self.payloads.pop_front()
        {
            self.bytes -= u64::from(oldest.len());
        }
    }

    /// A buffer for a section of `length` bytes.
    pub(super) fn buffer(&mut self, length: u32) -> P::Buffer {
        let is_spare = |payload: &P| payload.is_spare(length);
        let index = match length < MIN_LENGTH {
            true => None,
            false => self.payloads.iter().position(is_spare),
        };
        let spare = index.and_then(|index| self.payloads.remove(index));
        if let Some(spare) = &spare {
            self.bytes -= u64::from(spare.len());
        }
        P::buffer(length, spare)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec;
    use bytes::Bytes;

    const LENGTH: u32 = 256 << 10;

    /// Reassembles and delivers a section of this length. Returns the address of its memory.
    fn hand_out(spares: &mut Spares<Bytes>, length: u32) -> (Bytes, *const u8) {
        let mut buffer = spares.buffer(length);
        Bytes::write_at(&mut buffer, 0, &[7; 100]);
        let payload = Bytes::finish(buffer);
        spares.keep(&payload);
        let address = payload.as_ptr();
        (payload, address)
    }

    #[test]
    fn memory_of_dropped_sections_is_reused() {
        let mut spares = Spares::default();
        let (held, address) = hand_out(&mut spares, LENGTH);
        let (other, other_address) = hand_out(&mut spares, LENGTH);
        assert_ne!(address, other_address, "the first one is held");
        drop(held);
        let (shorter, same_address) = hand_out(&mut spares, LENGTH - 1);
        assert_eq!(same_address, address);
        let rest = vec![0; LENGTH as usize - 101];
        assert_eq!(
            (&shorter[..100], &shorter[100..]),
            ([7; 100].as_slice(), &*rest)
        );
        assert_eq!(other.len(), LENGTH as usize);
    }

    #[test]
    fn far_too_large_memory_is_freed() {
        let mut spares = Spares::default();
        for (length, taken_over) in [(MIN_LENGTH, false), (LENGTH * 2 / 3, true)] {
            spares.keep(&Bytes::from(vec![1; LENGTH as usize]));
            let address = spares.payloads[0].as_ptr();
            let (_, new_address) = hand_out(&mut spares, length);
            assert_eq!(new_address == address, taken_over, "{length}");
            spares = Spares::default();
        }
    }

    #[test]
    fn kept_memory_is_bounded_and_reusable() {
        let mut spares = Spares::default();
        for _ in 0..20 {
            spares.keep(&Bytes::from(vec![0; LENGTH as usize]));
            assert!(spares.bytes <= MAX_BYTES);
        }
        assert_eq!(spares.payloads.len() as u64, MAX_BYTES / u64::from(LENGTH));
        for length in [MIN_LENGTH - 1, MAX_BYTES as u32 + 1] {
            let payload = Bytes::from(vec![0; length as usize]);
            spares.keep(&payload);
            assert!(payload.is_unique(), "{length}");
        }
        let before = spares.bytes;
        spares.buffer(LENGTH + 1);
        assert_eq!(spares.bytes, before, "all are too short");
        for _ in 0..MAX_BYTES / u64::from(LENGTH) {
            spares.buffer(LENGTH);
        }
        assert_eq!((spares.payloads.len(), spares.bytes), (0, 0));
    }
}
