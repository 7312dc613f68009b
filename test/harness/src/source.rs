//! Numbers from the bytes of an input.

/// Reads an input from its beginning; beyond its end everything is zero.
#[derive(Clone, Copy, Debug)]
pub struct Source<'a> {
    rest: &'a [u8],
}

impl<'a> Source<'a> {
    /// At the beginning of `input`.
    pub const fn new(input: &'a [u8]) -> Self {
        Self { rest: input }
    }

    /// Whether nothing is left.
    pub const fn is_empty(&self) -> bool {
        self.rest.is_empty()
    }

    /// The next `length` bytes, fewer at the end.
    pub fn bytes(&mut self, length: usize) -> &'a [u8] {
        let (taken, rest) = self.rest.split_at(length.min(self.rest.len()));
        self.rest = rest;
        taken
    }

    /// The next byte.
    pub fn u8(&mut self) -> u8 {
        self.bytes(1).first().copied().unwrap_or(0)
    }

    /// As many bytes as the next one says: 0 to 254, or all the rest.
    pub fn counted(&mut self) -> &'a [u8] {
        match self.u8() {
            u8::MAX => self.bytes(usize::MAX),
            length => self.bytes(length.into()),
        }
    }

    /// The next two bytes.
    pub fn u16(&mut self) -> u16 {
        u16::from_be_bytes([self.u8(), self.u8()])
    }

    /// A number of any magnitude, small ones as likely as large ones: a byte gives its number of
    /// bits.
    pub fn number(&mut self) -> u64 {
        let bits = u32::from(self.u8() % 65);
        let bytes = self.bytes(bits.div_ceil(8) as usize);
        let value = bytes
            .iter()
            .fold(0_u64, |value, &byte| value << 8 | u64::from(byte));
        match bits {
            0 => 0,
            _ => value & (u64::MAX >> (64 - bits)),
        }
    }
}
