//! URIs: hand-worked examples, mistakes and their messages, properties, and the page `docs/uri.md`.
//!
//! To write the page anew after a change of the table:
//!
//! ```text
//! COMITY_UPDATE=1 cargo test -p comity --test uri
//! ```

use std::fmt::Write as _;

use comity::uri::{
    Credentials, Direction, Host, KEYS, Key, Kind, MediaUri, Mode, Role, Scheme, Uri,
};
use comity_congestion::table::{Domain, Value};
use comity_transport::datagram;
use comity_transport::timeline::{Deliver, DropPolicy, Reliability};
use comity_units::{Bytes, Rate, Span};
use proptest::prelude::*;

const PAGE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/uri.md");
const KEY: &str = "comity-public-8520f0098930a754748b7ddcb43ef75a0dbf3a0d26381af4eba4a98eaa9b4e6a";

fn comity(text: &str) -> comity::uri::ComityUri {
    match text.parse() {
        Ok(Uri::Comity(uri)) => *uri,
        other => panic!("{text}: {other:?}"),
    }
}

fn media(text: &str) -> MediaUri {
    match text.parse() {
        Ok(Uri::Udp(uri) | Uri::Rtp(uri)) => uri,
        other => panic!("{text}: {other:?}"),
    }
}

fn mistake(text: &str) -> String {
    match text.parse::<Uri>() {
        Ok(uri) => panic!("{text} was read as {uri:?}"),
        Err(error) => error.to_string(),
    }
}

#[test]
fn every_setting_is_read() {
    let uri = comity(&format!(
        "comity://Media.Example:9000?latency=1.5s&cc=cubic&cc.beta=0.8&maxbw=20Mbps&reliability=none&drop=expired\
         &deliver=early&key=a%20b.key&peerkey={KEY}&streamid=%23!::r=live&payload=1200&ecn=0&conntimeo=2000\
         &peeridletimeo=1min&linger=250&reconnect=no&iptos=0xb8&ipttl=7&sndbuf=1MB&rcvbuf=2MiB&adapter=192.0.2.7:5000"
    ));
    let Role::Caller { host, port, bind } = &uri.role else {
        panic!("{uri:?}");
    };
    assert_eq!((host.to_string().as_str(), *port), ("media.example", 9_000));
    assert_eq!(bind.unwrap().to_string(), "192.0.2.7:5000");
    assert_eq!(uri.latency, Span::from_millis(1_500));
    assert_eq!(uri.controller.name, "cubic");
    assert_eq!(
        uri.controller.parameters.get("beta"),
        Some(&Value::Number(0.8))
    );
    assert_eq!(uri.max_rate, Rate::from_mbps(20));
    assert_eq!(uri.reliability, Reliability::None);
    assert_eq!(uri.drop, DropPolicy::Expired);
    assert_eq!(uri.deliver, Deliver::Early);
    let Credentials::CallerKey { key, listener } = &uri.credentials else {
        panic!("{uri:?}");
    };
    assert_eq!(key.to_str(), Some("a b.key"));
    assert_eq!(listener.to_string(), KEY);
    assert_eq!(uri.stream_id.as_deref(), Some("#!::r=live"));
    assert_eq!((uri.payload, uri.ecn, uri.reconnect), (1_200, false, false));
    assert_eq!(uri.connect_timeout, Span::from_secs(2));
    assert_eq!(uri.idle_timeout, Span::from_secs(60));
    assert_eq!(uri.linger, Span::from_millis(250));
    assert_eq!((uri.type_of_service, uri.time_to_live), (0xb8, Some(7)));
    assert_eq!(uri.send_buffer, Bytes::new(1_000_000));
    assert_eq!(uri.receive_buffer, Bytes::new(2 << 20));
    assert_eq!(
        uri.to_string(),
        format!(
            "comity://media.example:9000?bind=192.0.2.7:5000&latency=1.5s&cc=cubic&cc.beta=0.8&maxbw=20Mbps\
             &reliability=none&drop=expired&deliver=early&key=a%20b.key&peerkey={KEY}&streamid=%23!::r%3Dlive\
             &payload=1200&ecn=false&conntimeo=2s&peeridletimeo=60s&linger=250ms&reconnect=false&iptos=184&ttl=7\
             &sndbuf=1MB&rcvbuf=2097152"
        )
        .replace("2097152", "2097152B")
    );
}

/// The defaults of the transport and of the table are the same.
#[test]
fn what_is_not_said_has_the_default_of_the_transport() {
    let uri = comity("comity://:9000");
    let config = datagram::Config::default();
    assert_eq!(
        uri.role,
        Role::Listener {
            host: None,
            port: 9_000
        }
    );
    assert_eq!(uri.credentials, Credentials::Missing);
    assert_eq!(uri.reliability, config.reliability);
    assert_eq!(uri.drop, config.drop);
    assert_eq!(uri.deliver, config.deliver);
    assert_eq!(uri.payload, config.payload);
    assert_eq!(uri.ecn, config.ecn);
    assert_eq!(uri.idle_timeout, config.idle_timeout);
    assert_eq!(uri.send_buffer.get(), config.send_buffer);
    assert_eq!(uri.receive_buffer.get(), config.receive_buffer);
    assert_eq!(uri.latency, Span::from_millis(120));
    assert_eq!(uri.max_rate, Rate::MAX);
    assert_eq!(uri.controller.name, "steady");
    assert_eq!(uri.to_string(), "comity://:9000");
}

#[test]
fn a_host_is_called_and_no_host_is_listened_for() {
    for (text, printed) in [
        ("comity://h:1", "comity://h:1"),
        ("COMITY://h:1/", "comity://h:1"),
        ("comity://h:1?mode=caller", "comity://h:1"),
        ("comity://[2001:db8::1]:1", "comity://[2001:db8::1]:1"),
        ("comity://:1", "comity://:1"),
        ("comity://[::]:1", "comity://:1"),
        ("comity://0.0.0.0:1?mode=listener", "comity://:1"),
        ("comity://:0", "comity://:0"),
        (
            "comity://192.0.2.1:1?mode=listener",
            "comity://192.0.2.1:1?mode=listener",
        ),
        (
            "comity://:1?adapter=192.0.2.1",
            "comity://192.0.2.1:1?mode=listener",
        ),
    ] {
        let uri = comity(text);
        let mode = match printed.contains("listener") || printed.contains("//:") {
            true => Mode::Listener,
            false => Mode::Caller,
        };
        assert_eq!(uri.role.mode(), mode, "{text}");
        assert_eq!(uri.to_string(), printed);
    }
}

#[test]
fn datagrams_files_and_pipes() {
    let to = media("udp://media.example:5000?pkt_size=188&ttl=3");
    assert_eq!((to.payload, to.time_to_live), (188, Some(3)));
    assert_eq!(
        to.direction,
        Direction::To {
            host: Host::Name("media.example".into()),
            port: 5_000
        }
    );
    let group = Direction::From {
        address: Some("239.1.2.3".parse().unwrap()),
        port: 5_000,
    };
    assert_eq!(media("udp://@239.1.2.3:5000").direction, group);
    assert_eq!(
        media("rtp://@239.1.2.3:5000?bind=192.0.2.1").direction,
        group
    );
    for text in ["udp://:5000", "udp://@:5000", "udp://0.0.0.0:5000"] {
        assert_eq!(text.parse::<Uri>().unwrap().to_string(), "udp://:5000");
    }
    assert_eq!(
        "rtp://@[ff02::1]:5?payload=1316"
            .parse::<Uri>()
            .unwrap()
            .to_string(),
        "rtp://@[ff02::1]:5"
    );
    for (text, path) in [
        ("file:///a%20b/c.ts", "/a b/c.ts"),
        ("file://localhost/c.ts", "/c.ts"),
        ("clip.ts", "clip.ts"),
        ("a/b?c#d%.ts", "a/b?c#d%.ts"),
        ("C:\\clip.ts", "C:\\clip.ts"),
        ("12:30.ts", "12:30.ts"),
    ] {
        assert_eq!(text.parse(), Ok(Uri::File(path.into())), "{text}");
    }
    for text in ["-", "file://con"] {
        assert_eq!(text.parse(), Ok(Uri::Pipe));
    }
    for path in ["-", "udp://:1", "udp:x"] {
        let printed = Uri::File(path.into()).to_string();
        assert_eq!(printed, format!("./{path}"));
        assert_eq!(printed.parse(), Ok(Uri::File(printed.clone().into())));
    }
}

#[test]
fn the_passphrase_is_kept_and_never_printed() {
    let uri = comity("comity://h:1?passphrase=correct%20horse+battery");
    let Credentials::Passphrase(secret) = &uri.credentials else {
        panic!("{uri:?}");
    };
    assert_eq!(secret.expose(), "correct horse+battery");
    assert_eq!(uri.to_string(), "comity://h:1?passphrase=***");
    assert!(!format!("{uri:?}").contains("horse"), "{uri:?}");
    for bad in [
        "comity://h:1?passphrase=hunter2",
        "comity://h:1?passphrase=hunter2-hunter2&passphrase=hunter2-hunter2",
        "comity://h:1?passphrase=hunter2-hunter2%&latency=1s",
        "comity://h:1?passphrase=hunter2-hunter2&insecure",
        "comity://h:1?passphrse=hunter2-hunter2",
        "udp://h:1?passphrase=hunter2-hunter2",
    ] {
        assert!(!mistake(bad).contains("hunter"), "{}", mistake(bad));
    }
}

#[test]
fn mistakes_are_answered_with_place_value_and_expectation() {
    let both = format!("comity://h:1?passphrase=0123456789&key=f&peerkey={KEY}");
    for (text, expected) in [
        (
            "",
            "the URI is empty; expected one such as \"comity://host:9000\", \"udp://:5000\", a path, or \"-\"",
        ),
        (
            "comty://h:1",
            "there is no scheme \"comty\"; did you mean \"comity\"?",
        ),
        (
            "websocket://h:1",
            "there is no scheme \"websocket\"; there are comity, file, rtp and udp",
        ),
        ("udp:h:1", "udp: is followed by \":\"; expected \"udp://\""),
        (
            "comity://h",
            "address: is \"h\"; expected a port, as in comity://host:9000",
        ),
        (
            "comity://h:70000",
            "address: is \"h:70000\"; expected a port from 0 to 65535",
        ),
        (
            "comity://h:0",
            "address: is \"h:0\"; expected a port from 1 to 65535 to call",
        ),
        (
            "comity://2001:db8::1:9000",
            "address: is \"2001:db8::1:9000\"; expected host:port, with the brackets of an IPv6 address around it, as in [2001:db8::1]:9000",
        ),
        (
            "comity://me@h:1",
            "address: is \"me@h:1\"; expected host:port, without a user; who one is says passphrase or key",
        ),
        (
            "comity://h:1/live",
            "after the port stands \"/live\"; expected nothing but \"?key=value\"",
        ),
        (
            "comity://h:1?streamid=#x",
            "\"#\" ends a URI; expected \"%23\" where the character itself is meant",
        ),
        (
            "comity://:1?mode=caller",
            "mode: is caller; expected a host to call, as in comity://host:9000",
        ),
        (
            "comity://h:1?mode=rendezvous",
            "mode: is \"rendezvous\"; expected \"caller\" or \"listener\"",
        ),
        (
            "comity://h:1?latensy=1s",
            "there is no key \"latensy\" for comity://; did you mean \"latency\"?",
        ),
        (
            "comity://h:1?LATENCY=1s",
            "there is no key \"LATENCY\" for comity://; did you mean \"latency\"?",
        ),
        (
            "udp://h:1?colour=1",
            "there is no key \"colour\" for udp://; there are bind, payload, iptos, ttl, sndbuf and rcvbuf",
        ),
        (
            "udp://h:1?latency=1s",
            "latency: is not known to udp://; it belongs to comity",
        ),
        (
            "file:///a?ttl=1",
            "ttl: is not known to file://; it belongs to comity, udp and rtp",
        ),
        (
            "file://host/a",
            "file: the host is \"host\"; expected none, as in file:///path",
        ),
        (
            "comity://h:1?latency=12kbps",
            "latency: is \"12kbps\"; expected a time from 1ms to 3600s, such as \"120ms\"; a bare number is in milliseconds",
        ),
        (
            "comity://h:1?maxbw=20MB",
            "maxbw: is \"20MB\"; expected a rate of at least 1kbps, such as \"20Mbps\"; a bare number is in bit/s",
        ),
        (
            "comity://h:1?maxbw=-1",
            "maxbw: is \"-1\"; expected a rate of at least 1kbps, such as \"20Mbps\"; a bare number is in bit/s",
        ),
        (
            "comity://h:1?payload=10",
            "payload: is \"10\"; expected from 671B to 64971B, such as \"1400B\" or \"8MiB\"; a bare number is in bytes",
        ),
        (
            "comity://h:1?latency",
            "latency: has no value; expected a time from 1ms to 3600s, such as \"120ms\"; a bare number is in milliseconds",
        ),
        (
            "comity://h:1?ecn=maybe",
            "ecn: is \"maybe\"; expected true or false",
        ),
        (
            "comity://h:1?iptos=0xb9",
            "iptos: is \"0xb9\"; expected a multiple of 4 from 0 to 252, such as 0xb8: the lowest two bits belong to ECN",
        ),
        (
            "comity://h:1?ttl=0",
            "ttl: is \"0\"; expected a whole number of hops from 1 to 255",
        ),
        (
            "comity://h:1?cc=cubik",
            "cc: there is no controller \"cubik\"; did you mean \"cubic\"? `comity list` tells of each",
        ),
        (
            "comity://h:1?cc=tcp-real",
            "cc: there is no controller \"tcp-real\": TCP-Real is the controller \"real\"; `comity list` tells of each",
        ),
        (
            "comity://h:1?cc=tltcp",
            "cc: there is no controller \"tltcp\": Time-lined TCP is a time-line over any controller, such as reno: over \
             packets it is reliability=timeline with drop=expired, over TCP in a scenario timeline = { .. } \
             (experiments/tltcp); `comity list` tells of each",
        ),
        (
            "comity://h:1?cc=cubic&cc.bata=1",
            "cc: there is no parameter \"bata\"; did you mean \"beta\"?",
        ),
        (
            "comity://h:1?cc=cubic&cc.beta=7",
            "cc: beta is 7; expected a number from 0.1 to 0.99",
        ),
        (
            "comity://h:1?cc=fixed&cc.rate=1Mbps&cc.gap=1ms",
            "cc: rate and gap exclude each other; leave one of them out",
        ),
        (
            "comity://h:1?passphrase=short",
            "passphrase: a passphrase of 5 bytes, expected at least 10",
        ),
        (
            "comity://h:1?key=f",
            "peerkey: is missing; a caller with a key needs it",
        ),
        ("comity://:1?allow=f", "key: is missing; allow needs it"),
        (
            "comity://h:1?allow=f",
            "allow: belongs to a listener; this URI is a caller's",
        ),
        (
            "comity://:1?reconnect=0",
            "reconnect: belongs to a caller; this URI is a listener's",
        ),
        (
            "comity://h:1?insecure&passphrase=0123456789",
            "insecure and passphrase exclude each other; leave one of them out",
        ),
        (
            &both,
            "passphrase and key exclude each other; leave one of them out",
        ),
        (
            "comity://h:1?payload=1200&mtu=1500",
            "payload and mtu exclude each other; leave one of them out",
        ),
        (
            "comity://h:1?reliability=full&drop=expired",
            "reliability=full and drop exclude each other; leave one of them out",
        ),
        (
            "comity://192.0.2.1:1?mode=listener&bind=192.0.2.2",
            "bind and the address to listen on exclude each other; leave one of them out",
        ),
        (
            "comity://h:1?latency=1s&latency=2s",
            "latency: stands there twice",
        ),
        (
            "comity://h:1?payload=1200&payloadsize=1200",
            "payload: stands there twice",
        ),
        (
            "comity://h:1?streamid=50%",
            "streamid: byte 3 is a \"%\" without two hexadecimal digits; a percent sign itself is written \"%25\"",
        ),
        (
            "udp://@h:1",
            "address: is \"@h:1\"; expected an address behind \"@\", of a group or of this host",
        ),
        (
            "udp://h:0",
            "address: is \"h:0\"; expected a port from 1 to 65535 to send to",
        ),
    ] {
        assert_eq!(mistake(text), expected, "{text}");
    }
    let low = format!(
        "comity://h:1?key=f&peerkey=comity-public-{}",
        "0".repeat(64)
    );
    assert!(mistake(&low).starts_with("peerkey: "), "{}", mistake(&low));
}

#[test]
fn the_mtu_gives_the_payload_and_full_reliability_drops_nothing() {
    // 1500 - 40 (IPv6) - 8 (UDP) - 29 (header and tag) = 1423.
    assert_eq!(comity("comity://h:1?mtu=1500").payload, 1_423);
    assert_eq!(
        comity("comity://h:1?reliability=full").drop,
        DropPolicy::Never
    );
}

/// Whoever comes from SRT brings its keys along.
#[test]
fn keys_of_other_tools_are_taken_or_answered_with_ours() {
    for (text, drop) in [
        ("tlpktdrop=1", DropPolicy::Infeasible),
        ("tlpktdrop=no", DropPolicy::Never),
        ("drop=0", DropPolicy::Never),
        ("drop=expired", DropPolicy::Expired),
    ] {
        assert_eq!(comity(&format!("comity://h:1?{text}")).drop, drop, "{text}");
    }
    let said = mistake("comity://h:1?timeout=3000");
    assert!(said.contains("\"peeridletimeo\""), "{said}");
    // Media without a connection has other keys, and no such hints.
    let said = mistake("udp://h:1?timeout=3000");
    assert!(said.contains("there are bind, "), "{said}");
}

/// The papers of two laws send nothing again, which holds until the URI says otherwise.
#[test]
fn what_is_lost_is_sent_again_as_the_controller_has_it() {
    for (cc, usual, other) in [
        ("cubic", Reliability::Timeline, ("none", Reliability::None)),
        ("rap", Reliability::Timeline, ("none", Reliability::None)),
        (
            "iftp",
            Reliability::None,
            ("timeline", Reliability::Timeline),
        ),
        (
            "psp",
            Reliability::None,
            ("timeline", Reliability::Timeline),
        ),
    ] {
        let unsaid = comity(&format!("comity://h:1?cc={cc}"));
        assert_eq!(unsaid.reliability, usual, "{cc}");
        assert_eq!(unsaid.to_string(), format!("comity://h:1?cc={cc}"));
        let (word, value) = other;
        let text = format!("comity://h:1?cc={cc}&reliability={word}");
        let said = comity(&text);
        assert_eq!(said.reliability, value, "{cc}");
        assert_eq!(said.to_string(), text);
    }
}

#[test]
fn names_of_a_scheme_are_unique_and_defaults_read() {
    for scheme in Scheme::ALL {
        let keys = || KEYS.iter().filter(|key| key.schemes.contains(&scheme));
        let mut names: Vec<_> = keys()
            .flat_map(|key| std::iter::once(&key.name).chain(key.aliases))
            .collect();
        let count = names.len();
        names.sort();
        names.dedup();
        assert_eq!(names.len(), count, "{scheme}");
        for key in keys().filter(|key| !key.default.is_empty()) {
            let address = if key.only == Some(Mode::Listener) {
                ":1"
            } else {
                "h:1"
            };
            let said: Uri = format!("{scheme}://{address}?{}={}", key.name, key.default)
                .parse()
                .unwrap();
            let unsaid: Uri = format!("{scheme}://{address}").parse().unwrap();
            assert_eq!(said, unsaid, "{scheme} {}", key.name);
        }
    }
}

/// A text for a value other than the default.
fn values(key: &Key) -> BoxedStrategy<String> {
    match key.kind {
        Kind::Controller => proptest::sample::select(&["cubic", "iftp"][..])
            .prop_map(str::to_owned)
            .boxed(),
        Kind::Domain(Domain::Span { .. }) => (100_u32..3_000_000)
            .prop_map(|ms| format!("{ms}ms"))
            .boxed(),
        Kind::Domain(Domain::Rate { .. }) => (1_000_u64..1 << 40)
            .prop_map(|bits| bits.to_string())
            .boxed(),
        Kind::Domain(Domain::Bytes { min, max }) => (min.get()..max.get())
            .prop_map(|bytes| format!("{bytes}B"))
            .boxed(),
        Kind::Domain(Domain::Flag) => any::<bool>().prop_map(|flag| flag.to_string()).boxed(),
        Kind::Domain(Domain::Whole { min, max, .. }) => {
            (min..=max).prop_map(|n| n.to_string()).boxed()
        }
        Kind::Domain(Domain::Choice(words)) => proptest::sample::select(words)
            .prop_map(str::to_owned)
            .boxed(),
        Kind::Domain(Domain::Number { .. }) => unreachable!("no key has fractions"),
        Kind::Local => proptest::sample::select(&["192.0.2.1", "[2001:db8::1]:9", ":7"][..])
            .prop_map(str::to_owned)
            .boxed(),
        Kind::Passphrase => "[ -~]{10,20}".boxed(),
        Kind::PublicKey => Just(KEY.to_owned()).boxed(),
        Kind::Path | Kind::Text(_) => "\\PC{1,20}".boxed(),
        Kind::TypeOfService => (0_u8..64)
            .prop_map(|upper| (upper << 2).to_string())
            .boxed(),
    }
}

/// Any value of one key: what contradicts the rest of the URI is refused, and then that is no case.
fn settings() -> impl Strategy<Value = (&'static Key, String)> {
    (0..KEYS.len()).prop_flat_map(|at| (Just(&KEYS[at]), values(&KEYS[at])))
}

fn encoded(text: &str) -> String {
    text.bytes().map(|byte| format!("%{byte:02x}")).collect()
}

proptest! {
    #[test]
    fn what_is_printed_reads_back(
        scheme in proptest::sample::select(&["comity", "udp", "rtp"][..]),
        address in proptest::sample::select(&["h:1", "192.0.2.1:65535", "[2001:db8::1]:9", ":1", "@239.1.1.1:5", "[::]:0"][..]),
        settings in proptest::collection::vec(settings(), 0..6),
    ) {
        let query: Vec<_> = settings
            .iter()
            .map(|(key, value)| format!("{}={}", key.name, encoded(value)))
            .collect();
        let text = format!("{scheme}://{address}?{}", query.join("&"));
        match text.parse::<Uri>() {
            Err(error) => prop_assert!(!error.to_string().is_empty()),
            Ok(Uri::Comity(mut uri)) => {
                let printed = uri.to_string();
                if let Credentials::Passphrase(_) = uri.credentials {
                    prop_assert!(printed.contains("passphrase=***"));
                    prop_assert!(printed.parse::<Uri>().is_err());
                    uri.credentials = Credentials::Missing;
                }
                let uri = Uri::Comity(uri);
                prop_assert_eq!(uri.to_string().parse::<Uri>(), Ok(uri));
            }
            Ok(uri) => prop_assert_eq!(uri.to_string().parse::<Uri>(), Ok(uri)),
        }
    }

    /// One key at a time, so that none is left out of what is printed.
    #[test]
    fn every_key_that_changes_something_is_printed((key, value) in settings(), listens in any::<bool>()) {
        let Some(scheme) = key.schemes.first() else { return Ok(()) };
        let address = if listens { ":1" } else { "h:1" };
        let plain: Uri = format!("{scheme}://{address}").parse().unwrap();
        let with = format!("{scheme}://{address}?{}={}", key.name, encoded(&value)).parse::<Uri>();
        if let Ok(with) = with && with != plain {
            prop_assert_ne!(with.to_string(), plain.to_string());
        }
    }

    #[test]
    fn no_text_breaks_it(text in "(comity|udp|rtp|file|x)?:?/{0,2}\\PC{0,40}[?]?(\\PC{0,10}=?\\PC{0,10}&?){0,4}") {
        match text.parse::<Uri>() {
            Ok(uri) => prop_assert!(!uri.to_string().is_empty()),
            Err(error) => prop_assert!(!error.to_string().is_empty()),
        }
    }
}

fn values_of(key: &Key) -> String {
    match key.kind {
        Kind::Domain(Domain::Choice(words)) => {
            let words: Vec<_> = words.iter().map(|word| format!("`{word}`")).collect();
            words.join(", ")
        }
        _ => key.expected(),
    }
}

fn page() -> Result<String, std::fmt::Error> {
    let mut page = String::from(
        "# URIs\n\n\
         Generated from the table in `crates/comity/src/uri/keys.rs`; \
         `COMITY_UPDATE=1 cargo test -p comity --test uri` writes it anew.\n\n\
         | URI | what it is |\n\
         | --- | --- |\n\
         | `comity://host:9000` | calls `host`, an address or a name; IPv6 addresses stand in brackets |\n\
         | `comity://:9000` | listens on port 9000 of all local addresses |\n\
         | `comity://192.0.2.1:9000?mode=listener` | listens on one of them |\n\
         | `udp://host:5000`, `rtp://host:5000` | sends media to `host`, which may be a multicast group |\n\
         | `udp://:5000`, `rtp://:5000` | receives media on port 5000 |\n\
         | `udp://@239.1.2.3:5000`, `rtp://@239.1.2.3:5000` | joins a multicast group and receives |\n\
         | `file:///path`, `path` | a file; a bare path is taken as it stands |\n\
         | `-` | standard input or standard output |\n\n\
         Settings follow as `?key=value&key=value`. Characters that mean something in a URI (`& # % ?` and spaces) are \
         written as `%` and two hexadecimal digits; `+` is a plus. Every value can have its unit. A bare number is in \
         milliseconds, bit/s or bytes, whatever the key. A flag is `true` or `false` (also `1`, `yes`, `on`, `0`, `no`, \
         `off`), and raised by its name alone. Unknown keys, keys that stand twice and keys that contradict each other are \
         errors.\n",
    );
    for (title, scheme) in [("comity", Scheme::Comity), ("udp and rtp", Scheme::Udp)] {
        writeln!(page, "\n## {title}\n")?;
        writeln!(page, "| key | what it does | default | expected |")?;
        writeln!(page, "| --- | --- | --- | --- |")?;
        for key in KEYS.iter().filter(|key| key.schemes.contains(&scheme)) {
            let names: Vec<_> = std::iter::once(&key.name)
                .chain(key.aliases)
                .map(|name| format!("`{name}`"))
                .collect();
            let only = key
                .only
                .map_or(String::new(), |mode| format!(" Only for a {mode}."));
            let default = match key.default {
                "" => String::new(),
                default => format!("`{default}`"),
            };
            let (names, summary, values) = (names.join(", "), key.summary, values_of(key));
            writeln!(page, "| {names} | {summary}{only} | {default} | {values} |")?;
        }
    }
    Ok(page)
}

#[test]
fn the_page_is_up_to_date() {
    let page = page().unwrap();
    if std::env::var_os("COMITY_UPDATE").is_some() {
        std::fs::write(PAGE, &page).unwrap();
    }
    let written = std::fs::read_to_string(PAGE).unwrap_or_default();
    assert!(
        written == page,
        "docs/uri.md is not what the table says; write it anew with COMITY_UPDATE=1"
    );
}
