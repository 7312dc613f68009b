//! The cryptographic primitives for the Noise framework: its own, with random bytes drawn
//! beforehand.

use snow::params::{CipherChoice, DHChoice, HashChoice};
use snow::resolvers::{CryptoResolver, DefaultResolver};
use snow::types::{Cipher, Dh, Hash, Random};
use zeroize::Zeroizing;

/// Length of the tag that ChaCha20-Poly1305 adds.
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
        DefaultResolver.resolve_dh(choice)
    }

    fn resolve_hash(&self, choice: &HashChoice) -> Option<Box<dyn Hash>> {
        DefaultResolver.resolve_hash(choice)
    }

    fn resolve_cipher(&self, choice: &CipherChoice) -> Option<Box<dyn Cipher>> {
        DefaultResolver.resolve_cipher(choice)
    }
}

/// Supplies the ephemeral secret once. A second draw would repeat it and fails.
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
