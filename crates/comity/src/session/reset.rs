//! How a listener that knows nothing of a connection any more tells the caller so.
//!
//! ```text
//! token = first 16 bytes of HMAC-SHA256(HMAC-SHA256(secret of the credentials, "comity 2 reset"), connection id)
//! ```
//!
//! The caller has the token of its connection from message 4. The listener makes it again from the
//! connection id of a Data packet, also after a restart. It gives it away only for connections that
//! it does not have, and nobody has seen the id of a connection before it exists.
//!
//! Source: RFC 9000, section 10.3. Differs from the source in: a Reset does not look like a Data
//! packet.

use core::fmt;

use comity_transport::wire::limits::RESET_TOKEN;
use ring::hmac;
use zeroize::Zeroizing;

use super::{ConnectionId, ListenerCredentials};

/// Proves a Reset. Whoever has it can end the connection.
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

/// Makes the tokens of one listener, and of those that take its place.
pub(super) struct Resets(hmac::Key);

impl Resets {
    pub(super) fn new(credentials: &ListenerCredentials) -> Self {
        let secret = match credentials {
            // Everybody can end such a connection by a forged packet anyway.
            ListenerCredentials::Insecure => &[0; 32],
            ListenerCredentials::Passphrase(key) => key.bytes(),
            ListenerCredentials::Shared(key) => key.bytes(),
            ListenerCredentials::Static { own, .. } => own.secret(),
        };
        let secret = hmac::Key::new(hmac::HMAC_SHA256, secret);
        let key = hmac::sign(&secret, b"comity 2 reset");
        Self(hmac::Key::new(hmac::HMAC_SHA256, key.as_ref()))
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
    use super::super::{PassphraseKey, PresharedKey, StaticKey};
    use super::*;
    use crate::session::Allow;

    #[test]
    fn a_token_with_another_bit_is_another_one() {
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
    fn tokens_follow_from_the_credentials_and_the_connection() {
        let all = [
            ListenerCredentials::Insecure,
            ListenerCredentials::Passphrase(PassphraseKey::new([1; 32])),
            ListenerCredentials::Shared(PresharedKey::new([2; 32])),
            ListenerCredentials::Static {
                own: StaticKey::new([3; 32]),
                allow: Allow::Anyone,
            },
        ];
        let mut tokens = Vec::new();
        for credentials in &all {
            for id in [1, 2] {
                let token = || Resets::new(credentials).token(ConnectionId::new(id));
                assert_eq!(token(), token(), "after a restart");
                assert!(!tokens.contains(&token()));
                tokens.push(token());
            }
        }
    }
}
