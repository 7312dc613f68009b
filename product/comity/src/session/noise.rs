//! The primitives of the Noise framework. They differ from the framework's own in two points:
//! random bytes are drawn beforehand, and keys of low order are refused.

use snow::params::{CipherChoice, DHChoice, HashChoice};
use snow::resolvers::{CryptoResolver, DefaultResolver};
use snow::types::{Cipher, Dh, Hash, Random};
use zeroize::Zeroizing;

/// The length of the tag that ChaCha20-Poly1305 adds, in bytes.
pub(super) const TAG: usize = 16;

/// Supplies the framework with its primitives and one ephemeral secret.
pub(super) struct Primitives {
    pub(super) ephemeral: Zeroizing<[u8; 32]>,
}

impl CryptoResolver for Primitives {
    fn resolve_rng(&self) -> Option<Box<dyn Random>> {
        Some(Box::new(Drawn(Some(self.ephemeral.clone()))))
    }

    fn resolve_dh(&self, choice: &DHChoice) -> Option<Box<dyn Dh>> {
        let exchange = DefaultResolver.resolve_dh(choice)?;
        Some(Box::new(Contributory(exchange)))
    }

    fn resolve_hash(&self, choice: &HashChoice) -> Option<Box<dyn Hash>> {
        DefaultResolver.resolve_hash(choice)
    }

    fn resolve_cipher(&self, choice: &CipherChoice) -> Option<Box<dyn Cipher>> {
        DefaultResolver.resolve_cipher(choice)
    }
}

/// Supplies the ephemeral secret once. A second draw fails, since it would repeat the secret.
struct Drawn(Option<Zeroizing<[u8; 32]>>);

impl Random for Drawn {
    fn try_fill_bytes(&mut self, out: &mut [u8]) -> Result<(), snow::Error> {
        match self.0.take() {
            Some(secret) if out.len() == secret.len() => {
                out.copy_from_slice(&*secret);
                Ok(())
            }
            _ => Err(snow::Error::Rng),
        }
    }
}

/// Refuses a peer's key of low order: everybody could compute the shared secret.
struct Contributory(Box<dyn Dh>);

impl Dh for Contributory {
    fn name(&self) -> &'static str {
        self.0.name()
    }

    fn pub_len(&self) -> usize {
        self.0.pub_len()
    }

    fn priv_len(&self) -> usize {
        self.0.priv_len()
    }

    fn set(&mut self, secret: &[u8]) {
        self.0.set(secret);
    }

    fn generate(&mut self, random: &mut dyn Random) -> Result<(), snow::Error> {
        self.0.generate(random)
    }

    fn pubkey(&self) -> &[u8] {
        self.0.pubkey()
    }

    fn privkey(&self) -> &[u8] {
        self.0.privkey()
    }

    fn dh(&self, public: &[u8], out: &mut [u8]) -> Result<(), snow::Error> {
        self.0.dh(public, out)?;
        let shared = out.get(..self.dh_len()).unwrap_or(out);
        match shared.iter().fold(0, |seen, byte| seen | byte) {
            0 => Err(snow::Error::Dh),
            _ => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_ephemeral_secret_is_drawn_only_once() {
        let drawn = || Drawn(Some(Zeroizing::new([7; 32])));
        let mut once = drawn();
        let mut out = [0; 32];
        assert!(once.try_fill_bytes(&mut out).is_ok());
        assert_eq!(out, [7; 32]);
        assert!(once.try_fill_bytes(&mut out).is_err());
        assert!(drawn().try_fill_bytes(&mut [0; 31]).is_err());
        assert!(drawn().try_fill_bytes(&mut [0; 33]).is_err());
    }

    #[test]
    fn a_key_of_low_order_agrees_on_nothing() {
        let primitives = Primitives {
            ephemeral: Zeroizing::new([7; 32]),
        };
        let mut own = primitives.resolve_dh(&DHChoice::Curve25519).unwrap();
        own.set(&[9; 32]);
        let mut shared = [0; 32];
        let mut one = [0; 32];
        one[0] = 1;
        for low in [[0; 32], one] {
            assert!(own.dh(&low, &mut shared).is_err());
        }
        let public = own.pubkey().to_vec();
        assert!(own.dh(&public, &mut shared).is_ok());
        assert_ne!(shared, [0; 32]);
    }
}
