//! The bytes of the stream that the state machine counts: a send buffer and a receive buffer.

use std::collections::VecDeque;

use crate::ahead::Ahead;

/// The offset of the first byte of a stream; offset 0 is the SYN.
pub(crate) const FIRST: u64 = 1;
/// The memory that an empty buffer keeps.
const KEPT: usize = 64 << 10;

/// Frees the memory of a large buffer when it is empty, since most connections are usually idle.
fn shrink(bytes: &mut VecDeque<u8>) {
    if bytes.is_empty() && bytes.capacity() > KEPT {
        *bytes = VecDeque::new();
    }
}

/// The submitted bytes that the peer has not acknowledged.
#[derive(Debug)]
pub(crate) struct SendBuffer {
    bytes: VecDeque<u8>,
    /// The offset of the first byte in the stream.
    start: u64,
    /// The maximum number of bytes.
    limit: usize,
}

impl SendBuffer {
    pub(crate) const fn new(limit: usize) -> Self {
        Self {
            bytes: VecDeque::new(),
            start: FIRST,
            limit,
        }
    }

    /// The offset of the first byte that is not acknowledged.
    pub(crate) const fn start(&self) -> u64 {
        self.start
    }

    /// The maximum number of bytes.
    pub(crate) const fn limit(&self) -> usize {
        self.limit
    }

    /// The number of bytes in the buffer.
    pub(crate) fn len(&self) -> usize {
        self.bytes.len()
    }

    /// The offset after the last byte.
    pub(crate) fn end(&self) -> u64 {
        self.start + self.bytes.len() as u64
    }

    /// The number of bytes that still fit.
    pub(crate) fn room(&self) -> usize {
        self.limit.saturating_sub(self.bytes.len())
    }

    /// Appends as many of `bytes` as fit, and returns their number.
    pub(crate) fn push(&mut self, bytes: &[u8]) -> usize {
        let length = bytes.len().min(self.room());
        self.bytes.extend(bytes.get(..length).unwrap_or_default());
        length
    }

    /// Appends bytes for which there is known to be room.
    pub(crate) fn append(&mut self, bytes: &[u8]) {
        self.bytes.extend(bytes);
    }

    /// Drops the bytes below the offset `end`. Returns whether there were any.
    pub(crate) fn drop_below(&mut self, end: u64) -> bool {
        let count = self
            .bytes
            .len()
            .min(end.saturating_sub(self.start) as usize);
        self.bytes.drain(..count);
        self.start += count as u64;
        shrink(&mut self.bytes);
        count > 0
    }

    /// The `length` bytes from `offset` on, in two pieces; `None` if not all of them are in the
    /// buffer.
    pub(crate) fn slice(&self, offset: u64, length: usize) -> Option<[&[u8]; 2]> {
        let from = usize::try_from(offset.checked_sub(self.start)?).ok()?;
        let end = from.checked_add(length)?;
        let (front, back) = self.bytes.as_slices();
        let middle = front.len();
        Some(if end <= middle {
            [front.get(from..end)?, &[]]
        } else if from >= middle {
            [back.get(from - middle..end - middle)?, &[]]
        } else {
            [front.get(from..)?, back.get(..end - middle)?]
        })
    }

    /// Frees the memory.
    pub(crate) fn clear(&mut self) {
        self.bytes = VecDeque::new();
    }
}

/// The bytes that have arrived and were not read, with holes where data is missing.
///
/// It contains the bytes that the state machine accepted, at their offsets, so the peer's window
/// limits its size. The state machine counts the bytes at the front that are in order.
///
/// A time-lined stream may have gaps of up to 2^30 bytes, which take no memory.
#[derive(Debug)]
pub(crate) struct ReceiveBuffer {
    bytes: VecDeque<u8>,
    /// The offset of the first byte in the stream.
    start: u64,
    /// `Some` for a time-lined stream. `bytes` is then in order, without the gaps.
    ahead: Option<Ahead>,
}

impl ReceiveBuffer {
    pub(crate) const fn new() -> Self {
        Self {
            bytes: VecDeque::new(),
            start: FIRST,
            ahead: None,
        }
    }

    /// Prepares an empty buffer for a stream with gaps.
    pub(crate) fn allow_gaps(&mut self) {
        self.ahead = Some(Ahead::new(self.start));
    }

    /// Records that every byte below the offset `next` has arrived or is in a gap.
    pub(crate) fn advance(&mut self, next: u64) {
        if let Some(ahead) = &mut self.ahead {
            ahead.advance(next, &mut self.bytes);
        }
    }

    /// Stores accepted bytes at the offset `start`, which is not below the end of the bytes in
    /// order.
    pub(crate) fn insert(&mut self, start: u64, source: &[u8]) {
        if let Some(ahead) = &mut self.ahead {
            return ahead.insert(start, source);
        }
        let Some(at) = start.checked_sub(self.start) else {
            debug_assert!(false, "bytes at {start}, which were read before");
            return;
        };
        let at = at as usize;
        let end = at + source.len();
        if at == self.bytes.len() {
            self.bytes.extend(source);
            return;
        }
        if end > self.bytes.len() {
            self.bytes.resize(end, 0);
        }
        let (front, back) = self.bytes.as_mut_slices();
        let in_front = front.len().saturating_sub(at).min(source.len());
        let (first, second) = source.split_at(in_front);
        if let Some(target) = front.get_mut(at..at + in_front) {
            target.copy_from_slice(first);
        }
        let at = (at + in_front).saturating_sub(front.len());
        if let Some(target) = back.get_mut(at..at + second.len()) {
            target.copy_from_slice(second);
        }
    }

    /// Moves bytes from the front into `buffer`, which is not longer than the data in order.
    pub(crate) fn read(&mut self, buffer: &mut [u8]) {
        let (front, back) = self.bytes.as_slices();
        let (first, second) = buffer.split_at_mut(front.len().min(buffer.len()));
        first.copy_from_slice(front.get(..first.len()).unwrap_or_default());
        let rest = back.get(..second.len());
        debug_assert!(rest.is_some(), "a read beyond the data in order");
        second.copy_from_slice(rest.unwrap_or_default());
        let length = buffer.len();
        self.bytes.drain(..length);
        self.start += length as u64;
        shrink(&mut self.bytes);
    }

    /// Frees the memory.
    pub(crate) fn clear(&mut self) {
        self.bytes = VecDeque::new();
        self.ahead = None;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sent_bytes_stay_until_they_are_acknowledged() {
        let mut buffer = SendBuffer::new(10);
        assert_eq!(buffer.push(b"abcdefgh"), 8);
        assert_eq!(buffer.push(b"ijkl"), 2, "ten fit");
        assert_eq!(buffer.slice(1, 3), Some([&b"abc"[..], &[]]));
        assert!(buffer.drop_below(4));
        assert!(!buffer.drop_below(4), "acknowledged before");
        assert_eq!((buffer.start(), buffer.room()), (4, 3));
        assert_eq!(buffer.push(b"mno"), 3);
        let joined = |offset, length| buffer.slice(offset, length).map(|pieces| pieces.concat());
        assert_eq!(joined(4, 10).unwrap(), b"defghijmno");
        assert_eq!(joined(9, 4).unwrap(), b"ijmn");
        assert_eq!(joined(13, 1).unwrap(), b"o");
        assert_eq!(joined(3, 2), None, "acknowledged");
        assert_eq!(joined(12, 3), None, "not submitted");
    }

    #[test]
    fn holes_are_filled_in_any_order_around_the_end_of_the_ring() {
        let mut buffer = ReceiveBuffer::new();
        let mut text = *b"0123456789";
        for round in 0..20_u64 {
            let at = 1 + round * 7;
            buffer.insert(at + 4, b"efg");
            buffer.insert(at, b"ab");
            buffer.insert(at + 1, b"bcd");
            buffer.read(&mut text[..7]);
            assert_eq!(&text[..7], b"abcdefg", "round {round}");
        }
    }
}
