//! A key exchange by passphrase that lets nobody test guesses offline.
//!
//! ```text
//! g   = element of Ristretto255 derived from SHA-512(generator string of PRS, CI, sid)
//! Ya  = ya g, Yb = yb g                                        the public shares
//! K   = ya Yb = yb Ya
//! ISK = SHA-512(lv("CPaceRistretto255_ISK") | lv(sid) | lv(K) | lv(Ya) | lv(ADa) | lv(Yb) | lv(ADb))
//! ```
//!
//! `lv` puts the length before the bytes. An observer of the shares learns nothing about the
//! passphrase. A participant in an exchange can test one guess with it.
//!
//! Source: draft-irtf-cfrg-cpace, CPACE-RISTR255-SHA512, the initiator-responder setting.

use curve25519_dalek::ristretto::{CompressedRistretto, RistrettoPoint};
use curve25519_dalek::scalar::Scalar;
use curve25519_dalek::traits::IsIdentity;
use ring::digest;
use zeroize::Zeroizing;

/// The length of a public share, in bytes.
pub(super) const SHARE: usize = 32;

const DOMAIN: &[u8] = b"CPaceRistretto255";
const DOMAIN_KEY: &[u8] = b"CPaceRistretto255_ISK";
/// The block size of SHA-512, in bytes. The passphrase fills the first block.
const BLOCK: usize = 128;

/// One end of an exchange, with its secret.
pub(super) struct Exchange {
    secret: Zeroizing<Scalar>,
    share: [u8; SHARE],
    session: Vec<u8>,
}

/// The messages of both ends, in order.
pub(super) struct Transcript<'a> {
    pub(super) share_of_caller: &'a [u8],
    pub(super) data_of_caller: &'a [u8],
    pub(super) share_of_listener: &'a [u8],
    pub(super) data_of_listener: &'a [u8],
}

impl Exchange {
    /// Derives the generator and makes the public share.
    ///
    /// * `passphrase`: PRS, the stretched passphrase.
    /// * `channel`: CI: protocol version, pattern and the caller's connection id.
    /// * `session`: sid, unique to this exchange.
    /// * `random`: 32 random bytes that are used once.
    pub(super) fn new(
        passphrase: &[u8; 32],
        channel: &[u8],
        session: &[u8],
        random: &[u8; 32],
    ) -> Self {
        let mut scalar = Zeroizing::new(*random);
        // The order of the group has 253 bits; the draft draws 252 of them.
        scalar[31] &= 0x0f;
        let secret = Zeroizing::new(Scalar::from_bytes_mod_order(*scalar));
        let generator = Zeroizing::new(generator(passphrase, channel, session));
        let share = *(*generator * *secret).compress().as_bytes();
        Self {
            secret,
            share,
            session: session.to_vec(),
        }
    }

    /// The public share of this end.
    pub(super) fn share(&self) -> &[u8; SHARE] {
        &self.share
    }

    /// The key, from the peer's share; `None` if the share is not an element of the group, or is
    /// the neutral element.
    pub(super) fn key(
        &self,
        share_of_peer: &[u8],
        transcript: &Transcript<'_>,
    ) -> Option<Zeroizing<[u8; 64]>> {
        let point = CompressedRistretto::from_slice(share_of_peer)
            .ok()?
            .decompress()?;
        let shared = Zeroizing::new(point * *self.secret);
        if shared.is_identity() {
            return None;
        }
        let shared = Zeroizing::new(shared.compress().to_bytes());
        let mut input = Zeroizing::new(Vec::with_capacity(2 * BLOCK));
        for part in [DOMAIN_KEY, &self.session, &*shared] {
            append(&mut input, part);
        }
        input.extend(transcript.bytes());
        Some(hash(&input))
    }
}

impl Transcript<'_> {
    /// transcript_ir of the draft.
    pub(super) fn bytes(&self) -> Vec<u8> {
        let mut bytes = Vec::new();
        for part in [
            self.share_of_caller,
            self.data_of_caller,
            self.share_of_listener,
            self.data_of_listener,
        ] {
            append(&mut bytes, part);
        }
        bytes
    }
}

/// calculate_generator of the draft.
fn generator(passphrase: &[u8], channel: &[u8], session: &[u8]) -> RistrettoPoint {
    RistrettoPoint::from_uniform_bytes(&hash(&generator_string(passphrase, channel, session)))
}

fn generator_string(passphrase: &[u8], channel: &[u8], session: &[u8]) -> Zeroizing<Vec<u8>> {
    // Reserves all memory at once: a reallocation would leave a copy of the passphrase behind.
    let mut out = Zeroizing::new(Vec::with_capacity(
        2 * BLOCK + channel.len() + session.len(),
    ));
    append(&mut out, DOMAIN);
    append(&mut out, passphrase);
    let padding = BLOCK.saturating_sub(out.len() + 1);
    append(&mut out, &vec![0; padding]);
    append(&mut out, channel);
    append(&mut out, session);
    out
}

fn hash(input: &[u8]) -> Zeroizing<[u8; 64]> {
    let mut out = Zeroizing::new([0; 64]);
    out.copy_from_slice(digest::digest(&digest::SHA512, input).as_ref());
    out
}

/// prepend_len of the draft: the length as LEB128, seven bits in a byte, then the bytes.
fn append(out: &mut Vec<u8>, part: &[u8]) {
    let mut length = part.len();
    while length >= 0x80 {
        out.push(length as u8 & 0x7f | 0x80);
        length >>= 7;
    }
    out.push(length as u8);
    out.extend(part);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bytes(digits: &str) -> Vec<u8> {
        let digits: Vec<u8> = digits.bytes().filter(u8::is_ascii_hexdigit).collect();
        let pairs = digits.chunks(2);
        pairs
            .map(|pair| u8::from_str_radix(str::from_utf8(pair).unwrap(), 16).unwrap())
            .collect()
    }

    /// Appendix "Test vector for CPace using group ristretto255 and hash SHA-512".
    #[test]
    fn the_vectors_of_the_draft_hold() {
        let passphrase = b"Password";
        let channel = bytes("0b415f696e69746961746f720b425f726573706f6e646572");
        let session = bytes("7e4b4791d6a8ef019b936c79fb7f2c57");
        let text = generator_string(passphrase, &channel, &session);
        assert_eq!(text.len(), 170);
        assert_eq!(text[..27], *b"\x11CPaceRistretto255\x08Password");
        assert_eq!((text[27], text[128]), (100, 24));
        let point = generator(passphrase, &channel, &session);
        assert_eq!(
            point.compress().as_bytes()[..],
            bytes("222b6b195fe84b1652badb6f6a3ae3d24341e7306967f0b8115b40d5698c7e56")
        );
        let end = |secret: &str| {
            let secret: [u8; 32] = bytes(secret).try_into().unwrap();
            let secret = Zeroizing::new(Scalar::from_bytes_mod_order(secret));
            Exchange {
                share: *(point * *secret).compress().as_bytes(),
                secret,
                session: session.clone(),
            }
        };
        let a = end("da3d23700a9e5699258aef94dc060dfda5ebb61f02a5ea77fad53f4ff0976d08");
        let b = end("d2316b454718c35362d83d69df6320f38578ed5984651435e2949762d900b80d");
        assert_eq!(
            a.share[..],
            bytes("d6bac480f2c386c394efc7c47adb9925dcd2630b64f240c50f8d0eec482b9157")
        );
        assert_eq!(
            b.share[..],
            bytes("3ea7e0b19560d7c0b0f5734f63b955286dfa8232b5ebe63324e2d9e7433f7258")
        );
        let transcript = Transcript {
            share_of_caller: &a.share,
            data_of_caller: b"ADa",
            share_of_listener: &b.share,
            data_of_listener: b"ADb",
        };
        let key = bytes(
            "b69effbf61b51d56401c0f65601abe428de8206feaaf0e32198896dcae7b35cd
             2b38950a39dfd5d4a79164614c2984f7daa460b588c1e80c3fa2068af7900447",
        );
        assert_eq!(a.key(&b.share, &transcript).unwrap()[..], key);
        assert_eq!(b.key(&a.share, &transcript).unwrap()[..], key);
    }

    /// Appendix "Definition and test vectors for string utility functions".
    #[test]
    fn lengths_are_encoded_in_seven_bits_per_byte() {
        let prefix = |length: usize| {
            let mut out = Vec::new();
            append(&mut out, &vec![9; length]);
            out.truncate(out.len() - length);
            out
        };
        assert_eq!(prefix(0), [0]);
        assert_eq!(prefix(127), [0x7f]);
        assert_eq!(prefix(128), [0x80, 0x01]);
        assert_eq!(prefix(300), [0xac, 0x02]);
        assert_eq!(prefix(1 << 14), [0x80, 0x80, 0x01]);
    }

    #[test]
    fn invalid_and_neutral_shares_give_no_key() {
        let end = Exchange::new(&[7; 32], b"channel", b"session", &[9; 32]);
        let key = |share: &[u8]| {
            let transcript = Transcript {
                share_of_caller: share,
                data_of_caller: b"",
                share_of_listener: end.share(),
                data_of_listener: b"",
            };
            end.key(share, &transcript)
        };
        // The neutral element, and the negative of a field element, have the right length.
        assert!(key(&[0; 32]).is_none());
        let mut negative = [0xff; 32];
        negative[0] = 0xec;
        negative[31] = 0x7f;
        assert!(key(&negative).is_none());
        assert!(key(&[]).is_none());
        assert!(key(&end.share()[..31]).is_none());
        assert!(key(end.share()).is_some());
    }

    /// The key depends on everything that the exchange binds.
    #[test]
    fn other_inputs_give_other_shares() {
        let random = [5; 32];
        let share = |passphrase, channel: &[u8], session: &[u8]| {
            *Exchange::new(&[passphrase; 32], channel, session, &random).share()
        };
        let usual = share(1, b"channel", b"session");
        assert_eq!(usual, share(1, b"channel", b"session"));
        assert_ne!(usual, share(2, b"channel", b"session"));
        assert_ne!(usual, share(1, b"another", b"session"));
        assert_ne!(usual, share(1, b"channel", b"another"));
        assert_ne!(usual, share(1, b"channels", b"ession"));
    }
}
