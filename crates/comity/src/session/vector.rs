//! The example of `docs/protocol/core.md`, byte by byte.
//!
//! The bytes on the page were computed by another implementation of the handshake, written out in
//! Python on top of OpenSSL's primitives.

use std::collections::BTreeMap;

use comity_units::{PacketNumber, Time};
use zeroize::Zeroizing;

use super::handshake::{Answering, Calling};
use super::protection::{Cipher, KeyLimits, Protection, Role};
use super::{CallerCredentials, ConnectionId, ListenerCredentials, PresharedKey};

const PAGE: &str = include_str!("../../../../docs/protocol/core.md");

/// The lines `name = hexadecimal digits` of the page's example.
fn page() -> BTreeMap<&'static str, Vec<u8>> {
    let (_, example) = PAGE
        .split_once("```vector\n")
        .expect("the page has the example");
    let (example, _) = example.split_once("```").expect("the example ends");
    let line = |line: &'static str| {
        let (name, digits) = line.split_once(" = ").expect("name = digits");
        let bytes = digits
            .as_bytes()
            .chunks(2)
            .map(|pair| u8::from_str_radix(str::from_utf8(pair).unwrap(), 16).unwrap());
        (name, bytes.collect())
    };
    example.lines().map(line).collect()
}

fn secret(bytes: &[u8]) -> Zeroizing<[u8; 32]> {
    Zeroizing::new(bytes.try_into().expect("32 bytes"))
}

fn connection(bytes: &[u8]) -> ConnectionId {
    ConnectionId::new(u64::from_be_bytes(bytes.try_into().expect("8 bytes")))
}

#[test]
fn the_page_has_the_bytes_of_a_handshake_and_its_packets() {
    let page = page();
    let key = PresharedKey::new(*secret(&page["preshared key"]));
    let caller = connection(&page["caller's connection"]);
    let listener = connection(&page["listener's connection"]);

    let mut calling = Calling::new(
        &CallerCredentials::Shared(key.clone()),
        caller,
        Cipher::Aes128Gcm,
        b"caller's",
        secret(&page["caller's ephemeral secret"]),
    );
    assert_eq!(calling.message(), page["message 1"]);
    let answering = Answering::new(
        &ListenerCredentials::Shared(key),
        caller,
        Cipher::Aes128Gcm,
        calling.message(),
        secret(&page["listener's ephemeral secret"]),
    )
    .expect("the message is genuine");
    let (message, at_listener) = answering.answer(listener, b"listener's");
    assert_eq!(message, page["message 2"]);
    let (source, at_caller) = calling
        .on_answer(&message, None)
        .expect("the answer is genuine");
    assert_eq!(source, listener);
    let (at_caller, at_listener) = (at_caller.secrets.unwrap(), at_listener.secrets.unwrap());
    assert_eq!(at_caller.both(), at_listener.both());
    assert_eq!(
        at_caller.both().0,
        &*secret(&page["secret to the listener"])
    );
    assert_eq!(at_caller.both().1, &*secret(&page["secret to the caller"]));

    let limits = KeyLimits {
        update_after_packets: 1,
        ..KeyLimits::default()
    };
    let mut at_caller = Protection::new(Some(at_caller), Role::Caller, limits);
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
    let (number, payload) = at_caller
        .open(Time::ZERO, &mut answer)
        .expect("it is genuine");
    assert_eq!((number.get(), payload), (5, &b"deadline"[..]));
    // One packet was sealed, and the peer was heard: the next one asks for the next key.
    let next = seal(&mut at_caller, listener, 4_294_967_298);
    assert_eq!(next, page["packet 4294967298 to the listener, next phase"]);
}
