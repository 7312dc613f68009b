//! The binary arithmetic coder of layouts: the cost of a bit depends on how unexpected it is to its
//! model.
//!
//! One description of the format serves both directions. [`Coder::bit`] of a writer codes its
//! argument and returns it. That of a reader ignores its argument, and returns the bit that it
//! read.

/// The probability that a bit is set, and the number of bits that it was learned from.
#[derive(Clone, Copy, Debug)]
pub(super) struct Model {
    /// In units of 2^-16.
    set: u16,
    seen: u8,
}

/// From this many bits on, the rate of learning stays constant.
const SLOWEST: u8 = 30;

impl Model {
    /// Creates a model that expects `of_256` set bits in 256, from 1 to 255.
    pub(super) const fn new(of_256: u8) -> Self {
        Self {
            set: (of_256 as u16) << 8,
            seen: 1,
        }
    }

    fn learn(&mut self, bit: bool) {
        let target: i32 = if bit { 0xffff } else { 0 };
        let step = (target - i32::from(self.set)) / (i32::from(self.seen) + 2);
        // The result lies between the old value and the target, so it fits.
        self.set = u16::try_from(i32::from(self.set) + step).unwrap_or(self.set);
        self.seen = SLOWEST.min(self.seen + 1);
    }
}

/// The probability for a bit that is set as often as not.
const EVEN: u16 = 1 << 15;

/// The part of a range of this width that stands for a set bit: neither all nor nothing of it.
fn split(set: u16, width: u32) -> u32 {
    let set = u64::from(set.clamp(64, 0xffff - 64));
    u32::try_from((u64::from(width) * set) >> 16).unwrap_or(width / 2)
}

/// Codes bits, in one of the two directions.
pub(super) trait Coder {
    /// Codes a bit that is set with this probability, in units of 2^-16.
    fn code(&mut self, set: u16, bit: bool) -> bool;

    /// Codes a bit by its model.
    fn bit(&mut self, model: &mut Model, bit: bool) -> bool {
        let bit = self.code(model.set, bit);
        model.learn(bit);
        bit
    }

    /// Codes the lowest `count` bits of a value without a model; at most 64.
    fn bits(&mut self, count: u32, value: u64) -> u64 {
        (0..count).rev().fold(0, |read, shift| {
            let bit = self.code(EVEN, value >> shift & 1 == 1);
            read << 1 | u64::from(bit)
        })
    }

    /// Codes a number below 2^`limit` - 1: first its number of bits, then these bits.
    fn number(&mut self, model: &mut Number, limit: u32, value: u64) -> u64 {
        let plus = value.saturating_add(1);
        let length = plus.ilog2();
        let mut count = 0;
        while count < limit {
            let is_longer = match model.0.get_mut(count as usize) {
                Some(model) => self.bit(model, length > count),
                None => self.code(EVEN, length > count),
            };
            if !is_longer {
                break;
            }
            count += 1;
        }
        // The highest bit is known to be set, and not coded.
        (1 << count | self.bits(count, plus)) - 1
    }

    /// Codes a signed number: 0, -1, 1, -2, ..
    fn signed(&mut self, model: &mut Number, limit: u32, value: i64) -> i64 {
        let folded = (value << 1 ^ value >> 63) as u64;
        let read = self.number(model, limit, folded);
        (read >> 1) as i64 ^ -((read & 1) as i64)
    }
}

/// The models of a number's length.
#[derive(Clone, Copy, Debug)]
pub(super) struct Number([Model; 20]);

impl Number {
    /// Creates models that expect each further bit of the length with this probability.
    pub(super) const fn new(of_256: u8) -> Self {
        Self([Model::new(of_256); 20])
    }
}

/// Writes bits.
#[derive(Debug)]
pub(super) struct Encoder {
    low: u32,
    high: u32,
    out: Vec<u8>,
}

impl Encoder {
    pub(super) const fn new() -> Self {
        Self {
            low: 0,
            high: u32::MAX,
            out: Vec::new(),
        }
    }

    /// The bytes of all bits. A reader reads zeros after the last byte.
    pub(super) fn finish(mut self) -> Vec<u8> {
        if self.low > 0 {
            // `low` and `high` differ in their first byte, and this value lies between them.
            let [first, ..] = self.low.to_be_bytes();
            self.out.push(first + 1);
        }
        while self.out.last() == Some(&0) {
            self.out.pop();
        }
        self.out
    }
}

impl Coder for Encoder {
    fn code(&mut self, set: u16, bit: bool) -> bool {
        let middle = self.low + split(set, self.high - self.low);
        match bit {
            true => self.high = middle,
            false => self.low = middle + 1,
        }
        while (self.low ^ self.high) >> 24 == 0 {
            let [first, ..] = self.low.to_be_bytes();
            self.out.push(first);
            self.low <<= 8;
            self.high = self.high << 8 | 0xff;
        }
        bit
    }
}

/// Reads bits. After the end of its bytes, it reads zeros.
#[derive(Debug)]
pub(super) struct Decoder<'a> {
    low: u32,
    high: u32,
    code: u32,
    rest: &'a [u8],
}

impl<'a> Decoder<'a> {
    pub(super) fn new(bytes: &'a [u8]) -> Self {
        let mut decoder = Self {
            low: 0,
            high: u32::MAX,
            code: 0,
            rest: bytes,
        };
        for _ in 0..4 {
            decoder.shift();
        }
        decoder
    }

    /// Whether there are bytes that no bit needed.
    pub(super) const fn has_rest(&self) -> bool {
        !self.rest.is_empty()
    }

    fn shift(&mut self) {
        let next = match self.rest.split_first() {
            Some((&next, rest)) => {
                self.rest = rest;
                next
            }
            None => 0,
        };
        self.code = self.code << 8 | u32::from(next);
    }
}

impl Coder for Decoder<'_> {
    fn code(&mut self, set: u16, _bit: bool) -> bool {
        let middle = self.low + split(set, self.high - self.low);
        let bit = self.code <= middle;
        match bit {
            true => self.high = middle,
            false => self.low = middle + 1,
        }
        while (self.low ^ self.high) >> 24 == 0 {
            self.low <<= 8;
            self.high = self.high << 8 | 0xff;
            self.shift();
        }
        bit
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[derive(Clone, Debug)]
    enum Symbol {
        Bit(usize, bool),
        Bits(u32, u64),
        Number(u32, u64),
        Signed(i64),
    }

    fn symbol() -> impl Strategy<Value = Symbol> {
        prop_oneof![
            (0_usize..3, any::<bool>()).prop_map(|(model, bit)| Symbol::Bit(model, bit)),
            (1_u32..=64, any::<u64>())
                .prop_map(|(count, value)| Symbol::Bits(count, value >> (64 - count))),
            (1_u32..50, any::<u64>())
                .prop_map(|(limit, value)| Symbol::Number(limit, value % ((1 << limit) - 1))),
            (-(1_i64 << 44)..1 << 44).prop_map(Symbol::Signed),
        ]
    }

    /// Codes the symbols, and returns what the coder returned.
    fn code(coder: &mut impl Coder, symbols: &[Symbol]) -> Vec<u64> {
        let mut models = [Model::new(1), Model::new(128), Model::new(255)];
        let (mut numbers, mut signed) = (Number::new(128), Number::new(10));
        let code = |symbol: &Symbol| match *symbol {
            Symbol::Bit(model, bit) => u64::from(coder.bit(&mut models[model], bit)),
            Symbol::Bits(count, value) => coder.bits(count, value),
            Symbol::Number(limit, value) => coder.number(&mut numbers, limit, value),
            Symbol::Signed(value) => coder.signed(&mut signed, 46, value) as u64,
        };
        symbols.iter().map(code).collect()
    }

    proptest! {
        #[test]
        fn what_is_written_is_read(symbols in prop::collection::vec(symbol(), 0..200)) {
            let expected: Vec<u64> = { symbols.iter() }
                .map(|symbol| match *symbol {
                    Symbol::Bit(_, bit) => u64::from(bit),
                    Symbol::Bits(_, value) | Symbol::Number(_, value) => value,
                    Symbol::Signed(value) => value as u64,
                })
                .collect();
            let mut encoder = Encoder::new();
            prop_assert_eq!(&code(&mut encoder, &symbols), &expected);
            let bytes = encoder.finish();
            // The decoder knows only the kinds of the symbols.
            let blank: Vec<_> = { symbols.iter() }
                .map(|symbol| match *symbol {
                    Symbol::Bit(model, _) => Symbol::Bit(model, false),
                    Symbol::Bits(count, _) => Symbol::Bits(count, 0),
                    Symbol::Number(limit, _) => Symbol::Number(limit, 0),
                    Symbol::Signed(_) => Symbol::Signed(0),
                })
                .collect();
            let mut decoder = Decoder::new(&bytes);
            prop_assert_eq!(code(&mut decoder, &blank), expected);
            prop_assert!(!decoder.has_rest());
        }
    }

    /// The entropy of the bits, plus a little for what the model learns, and for the last byte.
    #[test]
    fn expected_bits_are_cheap() {
        for (every, expected) in [(2, 950..=1_060), (10, 400..=560), (1_000, 5..=60)] {
            let mut encoder = Encoder::new();
            let mut model = Model::new(128);
            for at in 0..8_000_u64 {
                // The high bits of a linear congruential generator.
                let draw = at.wrapping_mul(6_364_136_223_846_793_005).rotate_left(29);
                let draw = draw.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 33;
                encoder.bit(&mut model, draw % every == 0);
            }
            let length = encoder.finish().len();
            assert!(expected.contains(&length), "{every}: {length}");
        }
    }
}
