//! Proofs that acknowledged packets arrived.
//!
//! Every packet carries a token of [`TOKEN_BITS`] bits that only its receiver can know. An
//! acknowledgement carries the exclusive or of the tokens of all packets that it names. A receiver
//! that names a packet without having received it has to guess.
//!
//! ```text
//! P(n)      = low bits of SipHash-2-4(secret, n)
//! token(n)  = P(n) ^ P(n + 1)
//! proof     = ^ of P(first) ^ P(last + 1) over the ranges from first to last
//! ```
//!
//! The tokens of a range cancel except for its ends. The sender can therefore check an
//! acknowledgement of any age without a record of packets. The P are independent and uniform, and
//! so are their differences: all tokens but one reveal nothing about the remaining token.
//!
//! Source: the ECN nonce (Ely and others 2001; RFC 3540) and the nonce echo of DCCP (RFC 4342,
//! section 9). Differs from both in: 1. more than one bit; 2. the tokens need no state at the
//! sender; 3. a packet marked by the network keeps its token, so marks can be hidden.

use comity_units::{KeyedHash, PacketNumber, Seed};

use crate::wire::Stamp;
use crate::wire::frame::{AckRange, PROOF_MASK};

/// The low bits of a departure that hold a token if acknowledgements are proved: the clock has
/// steps of 8 us.
const TOKEN_MASK: u32 = PROOF_MASK as u32;

/// The token of a packet with this departure.
pub(super) const fn token_of(departure: Stamp) -> u8 {
    (departure.as_micros() & TOKEN_MASK) as u8
}

/// The tokens of the packets of one end.
#[derive(Clone, Copy, Debug)]
pub(super) struct Tokens {
    hash: KeyedHash,
}

impl Tokens {
    /// Tokens that are unpredictable without the seed.
    pub(super) const fn new(seed: Seed) -> Self {
        Self {
            hash: KeyedHash::new(seed.derive("proof")),
        }
    }

    /// The departure with the token of the packet `number` in its low bits.
    pub(super) fn stamp(&self, departure: Stamp, number: PacketNumber) -> Stamp {
        let token = self.below(number) ^ self.below(number.next());
        Stamp::from_micros(departure.as_micros() & !TOKEN_MASK | u32::from(token))
    }

    /// The exclusive or of the tokens of all numbers in these ranges.
    pub(super) fn proof(&self, ranges: impl Iterator<Item = AckRange>) -> u8 {
        ranges.fold(0, |proof, range| {
            proof ^ self.below(range.first) ^ self.below(range.last.next())
        })
    }

    /// P(n).
    fn below(&self, number: PacketNumber) -> u8 {
        self.hash.of(number.get()) as u8 & PROOF_MASK
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec::Vec;
    use proptest::prelude::*;

    fn token(tokens: &Tokens, number: u64) -> u8 {
        token_of(tokens.stamp(Stamp::from_micros(0), PacketNumber::new(number)))
    }

    fn range(first: u64, last: u64) -> AckRange {
        AckRange {
            first: PacketNumber::new(first),
            last: PacketNumber::new(last),
        }
    }

    #[test]
    fn a_token_changes_only_the_low_bits_of_a_departure() {
        let tokens = Tokens::new(Seed::new(1));
        for number in 0..100 {
            let stamp = tokens.stamp(Stamp::from_micros(1_000_003), PacketNumber::new(number));
            assert!((1_000_000..1_000_008).contains(&stamp.as_micros()));
        }
    }

    /// Each value of a token is equally frequent, even after each value of the previous token.
    #[test]
    #[cfg_attr(miri, ignore = "too many packets for an interpreter")]
    fn tokens_are_uniform_and_independent_of_each_other() {
        const VALUES: usize = PROOF_MASK as usize + 1;
        const PAIRS: u64 = 64_000;
        let tokens = Tokens::new(Seed::new(3));
        let mut counts = [[0_u64; VALUES]; VALUES];
        for number in 0..PAIRS {
            let pair = (token(&tokens, number), token(&tokens, number + 1));
            counts[usize::from(pair.0)][usize::from(pair.1)] += 1;
        }
        // 1,000 of each, with a standard deviation of 31: the bound is six of them.
        let expected = PAIRS / (VALUES * VALUES) as u64;
        assert!(
            counts
                .iter()
                .flatten()
                .all(|count| count.abs_diff(expected) < 190),
            "{counts:?}"
        );
    }

    #[test]
    fn other_seeds_have_other_tokens() {
        let of = |seed| {
            let tokens = Tokens::new(Seed::new(seed));
            (0..64).map(move |number| token(&tokens, number))
        };
        assert!(of(1).eq(of(1)));
        assert!(of(1).ne(of(2)));
    }

    proptest! {
        /// Compares with the definition, token by token.
        #[test]
        fn a_proof_is_the_sum_of_the_tokens(
            seed: u64,
            start in 0_u64..1 << 40,
            lengths in prop::collection::vec((1_u64..40, 1_u64..40), 1..8),
        ) {
            let tokens = Tokens::new(Seed::new(seed));
            let mut ranges = Vec::new();
            let (mut sum, mut at) = (0, start);
            for (gap, length) in lengths {
                let first = at + gap;
                at = first + length;
                ranges.push(range(first, at - 1));
                sum ^= (first..at).fold(0, |sum, number| sum ^ token(&tokens, number));
            }
            prop_assert_eq!(tokens.proof(ranges.into_iter()), sum);
        }
    }
}
