//! Reading and writing field by field, with the position of errors.

use alloc::vec::Vec;
use core::ops::RangeInclusive;
use core::str;

use super::error::{DecodeError, EncodeError, Part, Problem};
use super::varint;

/// The unread bytes.
#[derive(Clone, Debug)]
pub(super) struct Reader<'a> {
    rest: &'a [u8],
    offset: usize,
    part: Part,
}

impl<'a> Reader<'a> {
    pub(super) const fn new(bytes: &'a [u8], part: Part) -> Self {
        Self {
            rest: bytes,
            offset: 0,
            part,
        }
    }

    /// Assigns the following fields to `part`.
    pub(super) const fn enter(&mut self, part: Part) {
        self.part = part;
    }

    pub(super) const fn offset(&self) -> usize {
        self.offset
    }

    pub(super) const fn rest(&self) -> &'a [u8] {
        self.rest
    }

    pub(super) const fn is_empty(&self) -> bool {
        self.rest.is_empty()
    }

    /// Drops the rest of the input: after an error the next field has no known position.
    pub(super) const fn abandon(&mut self) {
        self.rest = &[];
    }

    /// An error in a field that begins at `offset`.
    pub(super) const fn error_at(
        &self,
        offset: usize,
        field: &'static str,
        problem: Problem,
    ) -> DecodeError {
        DecodeError {
            offset,
            part: self.part,
            field,
            problem,
        }
    }

    /// An error in the field that comes next.
    pub(super) const fn error(&self, field: &'static str, problem: Problem) -> DecodeError {
        self.error_at(self.offset, field, problem)
    }

    pub(super) fn bytes(
        &mut self,
        field: &'static str,
        count: usize,
    ) -> Result<&'a [u8], DecodeError> {
        match self.rest.split_at_checked(count) {
            Some((front, rest)) => {
                self.rest = rest;
                self.offset += count;
                Ok(front)
            }
            None => Err(self.error(
                field,
                Problem::Truncated {
                    needed: count,
                    available: self.rest.len(),
                },
            )),
        }
    }

    fn array<const N: usize>(&mut self, field: &'static str) -> Result<[u8; N], DecodeError> {
        match self.rest.split_first_chunk::<N>() {
            Some((front, rest)) => {
                self.rest = rest;
                self.offset += N;
                Ok(*front)
            }
            None => Err(self.error(
                field,
                Problem::Truncated {
                    needed: N,
                    available: self.rest.len(),
                },
            )),
        }
    }

    pub(super) fn u8(&mut self, field: &'static str) -> Result<u8, DecodeError> {
        self.array(field).map(|[byte]: [u8; 1]| byte)
    }

    pub(super) fn u16(&mut self, field: &'static str) -> Result<u16, DecodeError> {
        self.array(field).map(u16::from_be_bytes)
    }

    pub(super) fn u32(&mut self, field: &'static str) -> Result<u32, DecodeError> {
        self.array(field).map(u32::from_be_bytes)
    }

    pub(super) fn u64(&mut self, field: &'static str) -> Result<u64, DecodeError> {
        self.array(field).map(u64::from_be_bytes)
    }

    pub(super) fn varint(&mut self, field: &'static str) -> Result<u64, DecodeError> {
        match varint::decode(self.rest) {
            Some((value, size)) => {
                self.rest = self.rest.get(size..).unwrap_or_default();
                self.offset += size;
                Ok(value)
            }
            None => {
                let needed = self
                    .rest
                    .first()
                    .map_or(1, |&first| varint::size_from_first(first));
                let available = self.rest.len();
                Err(self.error(field, Problem::Truncated { needed, available }))
            }
        }
    }

    pub(super) fn varint_in(
        &mut self,
        field: &'static str,
        range: RangeInclusive<u64>,
    ) -> Result<u64, DecodeError> {
        let offset = self.offset;
        let value = self.varint(field)?;
        within(value, range).map_err(|problem| self.error_at(offset, field, problem))
    }

    /// A varint that fits the 32 bits of a counter or a length.
    pub(super) fn varint_u32(
        &mut self,
        field: &'static str,
        most: u32,
    ) -> Result<u32, DecodeError> {
        self.varint_in(field, 0..=u64::from(most))
            .map(|value| value as u32)
    }

    pub(super) fn u8_in(
        &mut self,
        field: &'static str,
        range: RangeInclusive<u64>,
    ) -> Result<u8, DecodeError> {
        let offset = self.offset;
        let value = self.u8(field)?;
        within(u64::from(value), range)
            .map(|_| value)
            .map_err(|problem| self.error_at(offset, field, problem))
    }

    pub(super) fn u16_in(
        &mut self,
        field: &'static str,
        range: RangeInclusive<u64>,
    ) -> Result<u16, DecodeError> {
        let offset = self.offset;
        let value = self.u16(field)?;
        within(u64::from(value), range)
            .map(|_| value)
            .map_err(|problem| self.error_at(offset, field, problem))
    }

    pub(super) fn u64_in(
        &mut self,
        field: &'static str,
        range: RangeInclusive<u64>,
    ) -> Result<u64, DecodeError> {
        let offset = self.offset;
        let value = self.u64(field)?;
        within(value, range).map_err(|problem| self.error_at(offset, field, problem))
    }

    pub(super) fn text(
        &mut self,
        field: &'static str,
        count: usize,
    ) -> Result<&'a str, DecodeError> {
        let offset = self.offset;
        let bytes = self.bytes(field, count)?;
        str::from_utf8(bytes).map_err(|error| {
            let valid_up_to = error.valid_up_to();
            self.error_at(offset, field, Problem::NotUtf8 { valid_up_to })
        })
    }

    /// Whether everything was read.
    pub(super) fn end(&self, field: &'static str) -> Result<(), DecodeError> {
        match self.rest.len() {
            0 => Ok(()),
            count => Err(self.error(field, Problem::Trailing { count })),
        }
    }
}

/// `value`, if it lies in `range`.
pub(super) fn within(value: u64, range: RangeInclusive<u64>) -> Result<u64, Problem> {
    if range.contains(&value) {
        Ok(value)
    } else {
        Err(Problem::OutOfRange {
            value,
            least: *range.start(),
            most: *range.end(),
        })
    }
}

/// Accepts encoded bytes, or only counts them. The same code therefore computes the size of a frame
/// and writes it.
pub(super) trait Sink {
    fn put(&mut self, bytes: &[u8]);
    /// A value of at most [`varint::MAX`].
    fn varint(&mut self, value: u64);
    /// Counts bytes as sent without writing them.
    fn elide(&mut self, count: usize);
    fn zeros(&mut self, count: usize);
}

impl Sink for Vec<u8> {
    fn put(&mut self, bytes: &[u8]) {
        self.extend_from_slice(bytes);
    }

    fn varint(&mut self, value: u64) {
        let (bytes, size) = varint::aligned(value);
        self.extend_from_slice(bytes.get(..size).unwrap_or_default());
    }

    fn elide(&mut self, _: usize) {}

    fn zeros(&mut self, count: usize) {
        self.resize(self.len().saturating_add(count), 0);
    }
}

/// Counts bytes instead of keeping them.
#[derive(Debug, Default)]
pub(super) struct Count(pub(super) usize);

impl Sink for Count {
    fn put(&mut self, bytes: &[u8]) {
        self.0 = self.0.saturating_add(bytes.len());
    }

    fn varint(&mut self, value: u64) {
        self.0 = self.0.saturating_add(varint::size(value));
    }

    fn elide(&mut self, count: usize) {
        self.0 = self.0.saturating_add(count);
    }

    fn zeros(&mut self, count: usize) {
        self.0 = self.0.saturating_add(count);
    }
}

/// Writes the fields of one part.
pub(super) struct Writer<'a, S> {
    sink: &'a mut S,
    part: Part,
}

impl<'a, S: Sink> Writer<'a, S> {
    pub(super) const fn new(sink: &'a mut S, part: Part) -> Self {
        Self { sink, part }
    }

    pub(super) const fn error(&self, field: &'static str, problem: Problem) -> EncodeError {
        EncodeError {
            part: self.part,
            field,
            problem,
        }
    }

    /// `value`, if it lies in `range`.
    pub(super) fn check(
        &self,
        field: &'static str,
        value: u64,
        range: RangeInclusive<u64>,
    ) -> Result<u64, EncodeError> {
        within(value, range).map_err(|problem| self.error(field, problem))
    }

    pub(super) fn bytes(&mut self, bytes: &[u8]) {
        self.sink.put(bytes);
    }

    pub(super) fn elide(&mut self, count: usize) {
        self.sink.elide(count);
    }

    pub(super) fn zeros(&mut self, count: usize) {
        self.sink.zeros(count);
    }

    pub(super) fn u8(&mut self, value: u8) {
        self.sink.put(&[value]);
    }

    pub(super) fn u16(&mut self, value: u16) {
        self.sink.put(&value.to_be_bytes());
    }

    pub(super) fn u32(&mut self, value: u32) {
        self.sink.put(&value.to_be_bytes());
    }

    pub(super) fn u64(&mut self, value: u64) {
        self.sink.put(&value.to_be_bytes());
    }

    /// A varint whose type excludes values beyond the maximum.
    pub(super) fn small(&mut self, value: u32) {
        self.sink.varint(u64::from(value));
    }

    pub(super) fn varint_in(
        &mut self,
        field: &'static str,
        value: u64,
        range: RangeInclusive<u64>,
    ) -> Result<(), EncodeError> {
        let value = self.check(field, value, range)?;
        self.sink.varint(value);
        Ok(())
    }

    pub(super) fn varint(&mut self, field: &'static str, value: u64) -> Result<(), EncodeError> {
        self.varint_in(field, value, 0..=varint::MAX)
    }
}

/// How many bytes `write` writes.
pub(super) fn measured(write: impl FnOnce(&mut Count) -> Result<(), EncodeError>) -> usize {
    let mut count = Count::default();
    // A refused frame returns the error when it is written.
    let _ = write(&mut count);
    count.0
}

/// Lets `write` append to `out`, and removes the appended bytes if it fails.
pub(super) fn appended(
    out: &mut Vec<u8>,
    write: impl FnOnce(&mut Vec<u8>) -> Result<(), EncodeError>,
) -> Result<(), EncodeError> {
    let before = out.len();
    let result = write(out);
    if result.is_err() {
        out.truncate(before);
    }
    result
}
