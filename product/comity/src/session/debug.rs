//! Test: `Debug` prints no secret.

use core::fmt::Debug;

use comity_units::{Seed, Time};
use zeroize::Zeroizing;

use super::exchange::Channel;
use super::handshake::{self, Accepted, Calling, Verdict};
use super::protection::{Cipher, KeyLimits, Protection, Role};
use super::reset::{ResetToken, Resets};
use super::ticket::Tickets;
use super::{
    Allow, CallerConfig, CallerCredentials, ConnectionId, Cookies, ListenerConfig,
    ListenerCredentials, PassphraseKey, PresharedKey, Randomness, Secret, StaticKey,
};
use crate::config::Config;
use crate::uri::{PassphraseSource, Uri};

/// The bytes of every secret here, and its text as a passphrase.
const BYTE: u8 = 0xa7;
const PASSPHRASE: &str = "correct-horse-battery";

fn hides(value: &dyn Debug) {
    for text in [format!("{value:?}"), format!("{value:#?}")] {
        let squeezed: String = text.chars().filter(|c| !c.is_whitespace()).collect();
        for secret in ["167,167", "a7a7", "A7A7", PASSPHRASE] {
            assert!(!squeezed.contains(secret), "{text}");
        }
        assert!(!text.is_empty());
    }
}

#[test]
fn debug_prints_no_secret() {
    let passphrase = PassphraseKey::new([BYTE; 32]);
    let shared = PresharedKey::new([BYTE; 32]);
    let own = StaticKey::new([BYTE; 32]);
    hides(&passphrase);
    hides(&shared);
    hides(&own);
    let callers = [
        CallerCredentials::Passphrase(passphrase.clone()),
        CallerCredentials::Shared(shared.clone()),
        CallerCredentials::Static {
            own: own.clone(),
            listener: own.public(),
        },
    ];
    let listeners = [
        ListenerCredentials::Passphrase(passphrase),
        ListenerCredentials::Shared(shared.clone()),
        ListenerCredentials::Static {
            own: own.clone(),
            allow: Allow::Anyone,
        },
    ];
    for credentials in &callers {
        hides(credentials);
        hides(&CallerConfig::new(credentials.clone(), Vec::new()));
    }
    for credentials in &listeners {
        hides(credentials);
        hides(&ListenerConfig::new(credentials.clone(), Vec::new()));
    }

    hides(&Secret::new(PASSPHRASE).unwrap());
    hides(&PassphraseSource::new(PASSPHRASE).unwrap());
    let uri = format!("comity://127.0.0.1:9000?passphrase={PASSPHRASE}");
    hides(&uri.parse::<Uri>().unwrap());
    let builders = [
        Config::builder().passphrase(PASSPHRASE),
        Config::builder().preshared_key(shared),
        Config::builder().static_key(own),
    ];
    for builder in builders {
        hides(&builder);
        hides(&builder.build());
    }

    let mut randomness = Randomness::seeded(Seed::new(0xa7a7_a7a7_a7a7_a7a7));
    hides(&randomness);
    hides(&Cookies::new(Time::ZERO, &mut randomness));
    hides(&Tickets::new());
    let token = ResetToken::new([BYTE; 16]);
    hides(&token);
    hides(&Verdict::Accepted(Accepted {
        connection: ConnectionId::new(1),
        reset_token: token,
        parameters: Vec::new(),
    }));
    hides(&Resets::new(&listeners[0], Some(b"one"), &mut randomness).token(ConnectionId::new(1)));

    // Derived values are not known beforehand, so their whole `Debug` texts are compared.
    let channel = Channel {
        caller: ConnectionId::new(1),
        cookie: &[1; 20],
    };
    let cipher = Cipher::ChaCha20Poly1305;
    let random = Zeroizing::new([BYTE; 32]);
    let calling = Calling::new(&callers[0], channel, cipher, random);
    let random = Zeroizing::new([2; 32]);
    let message = calling.message();
    let answered = handshake::answer(&listeners[0], channel, cipher, message, random);
    let Ok(answered) = answered else {
        panic!("the passphrases agree");
    };
    let secrets = answered.agreed.secrets().expect("it is protected");
    assert_eq!(format!("{secrets:?}"), "Secrets(ChaCha20Poly1305, ..)");
    let protection = Protection::new(Some(secrets), Role::Caller, KeyLimits::default());
    let text = format!("{protection:?}");
    assert_eq!(
        text,
        "Protection { cipher: Some(ChaCha20Poly1305), phase: 0, highest: None, .. }"
    );
}
