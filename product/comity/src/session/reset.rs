//! The packet by which a listener reports an unknown connection to a caller.
//!
//! ```text
//! secret = HMAC-SHA256(HMAC-SHA256(secret of the credentials, "comity 2 reset"), instance)
//! token  = first 16 bytes of HMAC-SHA256(secret, connection id)
//! ```
//!
//! The caller receives the token of its connection in message 4. The listener derives it again from
//! the connection id of a Data packet, also after a restart. It reveals tokens only of connections
//! that it does not have, and nobody knows the id of a connection before it exists. The instance
//! distinguishes the listener from others with the same credentials: those do not have the
//! connection, and would reveal its token to anybody (RFC 9000, section 21.11).
//!
//! Source: RFC 9000, section 10.3. Differs from the source in: a Reset does not look like a Data
//! packet.

use core::fmt;

use comity_transport::wire::limits::RESET_TOKEN;
use ring::hmac;
use zeroize::Zeroizing;

use super::{ConnectionId, ListenerCredentials, Randomness};

/// Proves a Reset. Its owner can end the connection.
#[derive(Clone)]
pub(super) struct ResetToken(Zeroizing<[u8; RESET_TOKEN]>);

impl ResetToken {
    pub(super) fn new(bytes: [u8; RESET_TOKEN]) -> Self {
        Self(Zeroizing::new(bytes))
    }

    pub(super) fn bytes(&self) -> &[u8; RESET_TOKEN] {
        &self.0
    }

    /// Compares the tokens in constant time.
    pub(super) fn is(&self, other: &[u8; RESET_TOKEN]) -> bool {
        let pairs = self.0.iter().zip(other);
        pairs.fold(0, |seen, (a, b)| seen | (a ^ b)) == 0
    }
}

impl PartialEq for ResetToken {
    fn eq(&self, other: &Self) -> bool {
        self.is(&other.0)
    }
}

impl Eq for ResetToken {}

impl fmt::Debug for ResetToken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ResetToken(..)")
    }
}

/// Derives the tokens of one listener, and of its successor after a restart.
pub(super) struct Resets(hmac::Key);

impl Resets {
    /// Without an `instance`, the tokens belong to this listener alone, and become invalid with it.
    pub(super) fn new(
        credentials: &ListenerCredentials,
        instance: Option<&[u8]>,
        randomness: &mut Randomness,
    ) -> Self {
        let Some(instance) = instance else {
            return Self(hmac::Key::new(
                hmac::HMAC_SHA256,
                &*Zeroizing::new(randomness.bytes::<32>()),
            ));
        };
        let secret = match credentials {
            // Anybody can end such a connection by a forged packet anyway.
            ListenerCredentials::Insecure => &[0; 32],
            ListenerCredentials::Passphrase(key) => key.bytes(),
            ListenerCredentials::Shared(key) => key.bytes(),
            ListenerCredentials::Static { own, .. } => own.secret(),
        };
        let keyed =
            |key: &[u8], text: &[u8]| hmac::sign(&hmac::Key::new(hmac::HMAC_SHA256, key), text);
        let of_all = keyed(secret, b"comity 2 reset");
        let own = keyed(of_all.as_ref(), instance);
        Self(hmac::Key::new(hmac::HMAC_SHA256, own.as_ref()))
    }

    pub(super) fn token(&self, connection: ConnectionId) -> ResetToken {
        let tag = hmac::sign(&self.0, &connection.get().to_be_bytes());
        let mut token = ResetToken::new([0; RESET_TOKEN]);
        token.0.copy_from_slice(&tag.as_ref()[..RESET_TOKEN]);
        token
    }
}

#[cfg(test)]
mod tests {
    use comity_units::Seed;

    use super::super::{PassphraseKey, PresharedKey, StaticKey};
    use super::*;
    use crate::session::Allow;

    #[test]
    fn a_token_with_a_flipped_bit_does_not_match() {
        let token = ResetToken::new([0xa7; RESET_TOKEN]);
        assert!(token.is(&[0xa7; RESET_TOKEN]));
        assert_eq!(token, token.clone());
        for bit in 0..8 * RESET_TOKEN {
            let mut other = [0xa7; RESET_TOKEN];
            other[bit / 8] ^= 1 << (bit % 8);
            assert!(!token.is(&other), "bit {bit}");
            assert_ne!(token, ResetToken::new(other), "bit {bit}");
            // Two equal differences do not cancel each other out.
            other[(bit / 8 + 5) % RESET_TOKEN] ^= 1 << (bit % 8);
            assert!(!token.is(&other), "bit {bit} twice");
        }
    }

    #[test]
    fn tokens_depend_on_credentials_instance_and_connection() {
        let all = [
            ListenerCredentials::Insecure,
            ListenerCredentials::Passphrase(PassphraseKey::new([1; 32])),
            ListenerCredentials::Shared(PresharedKey::new([2; 32])),
            ListenerCredentials::Static {
                own: StaticKey::new([3; 32]),
                allow: Allow::Anyone,
            },
        ];
        let mut randomness = Randomness::seeded(Seed::new(1));
        let mut tokens = Vec::new();
        for credentials in &all {
            for instance in [&b"one"[..], b"another"] {
                for id in [1, 2].map(ConnectionId::new) {
                    let mut token =
                        || Resets::new(credentials, Some(instance), &mut randomness).token(id);
                    assert_eq!(token(), token(), "after a restart");
                    assert!(!tokens.contains(&token()));
                    tokens.push(token());
                }
            }
            let mut token =
                || Resets::new(credentials, None, &mut randomness).token(ConnectionId::new(1));
            assert_ne!(token(), token());
        }
    }
}
