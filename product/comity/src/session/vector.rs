//! The examples of `docs/protocol/handshake.md`, byte by byte.
//!
//! `tests/peer/peer.py`, which shares no code with this crate, made the bytes on the page.

use std::collections::BTreeMap;

use comity_units::{PacketNumber, Time};
use zeroize::Zeroizing;

use super::exchange::Channel;
use super::handshake::{self, Accepted, Calling, Verdict};
use super::ids::Ids;
use super::protection::{Cipher, KeyLimits, Protection, Role};
use super::reset::ResetToken;
use super::{CallerCredentials, ConnectionId, ListenerCredentials, PassphraseKey, PresharedKey};

const PAGE: &str = include_str!("../../../../docs/protocol/handshake.md");

/// The lines `name = hexadecimal digits` of the examples on the page.
fn examples() -> Vec<BTreeMap<&'static str, Vec<u8>>> {
    let line = |line: &'static str| {
        let (name, digits) = line.split_once(" = ").expect("name = digits");
        let bytes = digits
            .as_bytes()
            .chunks(2)
            .map(|pair| u8::from_str_radix(str::from_utf8(pair).unwrap(), 16).unwrap());
        (name, bytes.collect())
    };
    let examples = PAGE.split("```vector\n").skip(1);
    examples
        .map(|text| {
            let (text, _) = text.split_once("```").expect("the example ends");
            text.lines().map(line).collect()
        })
        .collect()
}

fn secret(bytes: &[u8]) -> Zeroizing<[u8; 32]> {
    Zeroizing::new(bytes.try_into().expect("32 bytes"))
}

fn connection(bytes: &[u8]) -> ConnectionId {
    ConnectionId::new(u64::from_be_bytes(bytes.try_into().expect("8 bytes")))
}

#[test]
fn the_page_has_the_bytes_of_each_handshake_and_its_packets() {
    let examples = examples();
    assert_eq!(examples.len(), 2);
    let bytes = *secret(&examples[0]["secret"]);
    let key = PresharedKey::new(bytes);
    hold(
        &examples[0],
        &CallerCredentials::Shared(key.clone()),
        &ListenerCredentials::Shared(key),
    );
    let key = PassphraseKey::new(bytes);
    hold(
        &examples[1],
        &CallerCredentials::Passphrase(key.clone()),
        &ListenerCredentials::Passphrase(key),
    );
}

fn hold(
    page: &BTreeMap<&'static str, Vec<u8>>,
    calling: &CallerCredentials,
    listening: &ListenerCredentials,
) {
    let caller = connection(&page["connection of the caller"]);
    let listener = connection(&page["connection of the listener"]);
    let channel = Channel {
        caller,
        cookie: &page["cookie"],
    };
    let cipher = Cipher::ChaCha20Poly1305;
    let random = secret(&page["random of the caller"]);
    let mut calling = Calling::new(calling, channel, cipher, random);
    assert_eq!(calling.message(), page["message 1"]);
    let random = secret(&page["random of the listener"]);
    let message = calling.message();
    let answered = handshake::answer(listening, channel, cipher, message, random)
        .expect("the message is genuine");
    assert_eq!(answered.message, page["message 2"]);
    let at_caller = calling
        .on_answer(&answered.message)
        .expect("the answer is genuine");
    let at_listener = answered.agreed;
    for end in [&at_caller, &at_listener] {
        let shared = end.shared.as_ref().expect("it is protected");
        assert_eq!(shared.hash[..], page["hash"]);
        assert_eq!(shared.to_listener[..], page["key to the listener"]);
        assert_eq!(shared.to_caller[..], page["key to the caller"]);
    }
    let message = at_caller.confirm(b"caller's");
    assert_eq!(message, page["message 3"]);
    assert_eq!(
        at_listener.read_confirm(&message).unwrap()[..],
        b"caller's"[..]
    );
    let verdict = Verdict::Accepted(Accepted {
        connection: listener,
        reset_token: ResetToken::new([0x44; 16]),
        parameters: b"listener's".to_vec(),
    });
    let message = at_listener.accept(&verdict, [0x33; 12]);
    assert_eq!(message, page["message 4"]);
    assert_eq!(at_caller.read_accept(&message), Some(verdict));

    let (at_caller, at_listener) = (at_caller.secrets().unwrap(), at_listener.secrets().unwrap());
    assert_eq!(at_caller.both(), at_listener.both());
    assert_eq!(
        at_caller.both().0[..],
        page["secret of data to the listener"]
    );
    let mut at_caller = Protection::new(Some(at_caller), Role::Caller, KeyLimits::default());
    let mut at_listener = Protection::new(Some(at_listener), Role::Listener, KeyLimits::default());
    let seal = |end: &mut Protection, to, number| {
        let mut packet = [&[0; 13][..], b"deadline"].concat();
        end.seal(Time::ZERO, to, PacketNumber::new(number), &mut packet, 0)
            .expect("keys are new");
        packet
    };
    let first = seal(&mut at_caller, listener, 0);
    assert_eq!(first, page["packet 0 to the listener"]);
    let mut answer = seal(&mut at_listener, caller, 5);
    assert_eq!(answer, page["packet 5 to the caller"]);
    let ids = at_caller.take_ids().expect("it is protected");
    let id = |first, secret, generation| Ids::new(first, Some(secret)).get(generation).get();
    let to_listener =
        u64::from_be_bytes(page["identifier 1 to the listener"][..].try_into().unwrap());
    let to_caller = u64::from_be_bytes(page["identifier 10 to the caller"][..].try_into().unwrap());
    assert_eq!(id(listener, ids.peer, 1), to_listener);
    assert_eq!(id(caller, ids.own, 10), to_caller);
    let (number, payload) = at_caller
        .open(Time::ZERO, &mut answer)
        .expect("it is genuine");
    assert_eq!((number.get(), payload), (5, &b"deadline"[..]));
}
