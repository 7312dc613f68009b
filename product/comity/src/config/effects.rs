//! Every setting of a URI has an effect, or is refused where it would have none.

use super::{Config, SETTINGS};
use crate::uri::{Mode, Uri, keys};

/// Two values of each key.
const VALUES: &[(&str, [&str; 2])] = &[
    ("latency", ["100ms", "200ms"]),
    ("cc", ["real", "steady"]),
    ("maxbw", ["1Mbps", "2Mbps"]),
    ("reliability", ["timeline", "full"]),
    ("drop", ["expired", "never"]),
    ("deliver", ["early", "paced"]),
    ("streamid", ["a", "b"]),
    ("payload", ["1000", "1100"]),
    ("ecn", ["true", "false"]),
    ("requireproofs", ["true", "false"]),
    ("conntimeo", ["1s", "2s"]),
    ("peeridletimeo", ["5s", "6s"]),
    ("keepalive", ["1s", "2s"]),
    ("maxlatency", ["1s", "2s"]),
    ("linger", ["1s", "2s"]),
    ("reconnect", ["true", "false"]),
    ("iptos", ["0", "4"]),
    ("ttl", ["8", "9"]),
    ("sndbuf", ["1MiB", "2MiB"]),
    ("rcvbuf", ["1MiB", "2MiB"]),
    ("encmin", ["100kbps", "200kbps"]),
    ("encmax", ["4Mbps", "6Mbps"]),
    ("enchead", ["5", "10"]),
    ("encupdates", ["1", "2"]),
];

/// Keys without effect on the transport and the peer, and what they affect.
const ELSEWHERE: &[(&str, &str)] = &[
    (
        "requireproofs",
        "the transport, when it opens: product/comity/tests/transport.rs",
    ),
    (
        "conntimeo",
        "the caller: product/comity/tests/endpoint, program/tests/stream/ends.rs",
    ),
    ("reconnect", "the dialer: program/tests/stream/copies.rs"),
    ("iptos", "the socket: product/comity/tests/marking.rs"),
    ("ttl", "the socket: product/comity/tests/marking.rs"),
    ("encmin", FOLLOWER),
    ("encmax", FOLLOWER),
    ("enchead", FOLLOWER),
    ("encupdates", FOLLOWER),
];

const FOLLOWER: &str = "the encoder: product/comity/src/encoder.rs";

fn config(key: &str, value: &str) -> Config {
    let uri: Uri = format!("comity://h:1?insecure=1&{key}={value}")
        .parse()
        .unwrap();
    uri.builder().unwrap().build().unwrap()
}

#[test]
fn every_setting_reaches_the_transport_or_the_peer() {
    for setting in SETTINGS {
        let Some(spelling) = setting.spelling else {
            continue;
        };
        let key = spelling.key;
        let (_, [first, second]) = VALUES
            .iter()
            .find(|(known, _)| *known == key)
            .unwrap_or_else(|| panic!("{key} has no two values here"));
        let [first, second] = [first, second].map(|value| config(key, value));
        let differs = first.parameters() != second.parameters()
            || format!("{:?}", first.transport()) != format!("{:?}", second.transport());
        let is_elsewhere = ELSEWHERE.iter().any(|(known, _)| *known == key);
        assert_ne!(differs, is_elsewhere, "{key}");
    }
}

#[test]
fn a_key_of_one_mode_is_refused_in_the_other() {
    let mut found = 0;
    for key in keys() {
        let (Some(only), Some((_, [value, _]))) =
            (key.only, VALUES.iter().find(|(name, _)| *name == key.name))
        else {
            continue;
        };
        let other = match only {
            Mode::Caller => "comity://:1",
            Mode::Listener => "comity://h:1",
        };
        let error = format!("{other}?insecure=1&{}={value}", key.name)
            .parse::<Uri>()
            .unwrap_err()
            .to_string();
        assert!(error.contains(key.name), "{error}");
        found += 1;
    }
    assert_eq!(found, 2, "conntimeo and reconnect");
}
