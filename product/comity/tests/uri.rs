//! `comity://` URIs: examples checked by hand, errors and their messages, and properties.

use std::time::Duration;

use comity::Config;
use comity::uri::{Credentials, Key, Kind, Mode, PassphraseSource, Role, Uri, keys};
use comity_congestion::table::{Domain, Value};
use comity_transport::datagram;
use comity_transport::timeline::{Deliver, DropPolicy, Reliability};
use comity_units::Rate;
use proptest::prelude::*;

const KEY: &str = "comity-public-8520f0098930a754748b7ddcb43ef75a0dbf3a0d26381af4eba4a98eaa9b4e6a";

fn comity(text: &str) -> Uri {
    text.parse()
        .unwrap_or_else(|error| panic!("{text}: {error}"))
}

/// The configuration of an endpoint from a URI without credentials.
fn config(text: &str) -> Config {
    let builder = comity(text).builder().unwrap();
    builder.insecure().build().unwrap()
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
    let settings = &uri.settings;
    assert_eq!(settings.latency, Duration::from_millis(1_500));
    assert_eq!(settings.controller, "cubic");
    assert_eq!(
        settings.controller_parameters.get("beta"),
        Some(&Value::Number(0.8))
    );
    assert_eq!(settings.max_rate, Rate::from_mbps(20));
    assert_eq!(settings.reliability, Some(Reliability::None));
    assert_eq!(settings.drop_policy, DropPolicy::Expired);
    assert_eq!(settings.deliver, Deliver::Early);
    let Credentials::CallerKey { key, listener } = &uri.credentials else {
        panic!("{uri:?}");
    };
    assert_eq!(key.to_str(), Some("a b.key"));
    assert_eq!(listener.to_string(), KEY);
    assert_eq!(settings.stream_name, "#!::r=live");
    assert_eq!(
        (settings.payload, settings.ecn, settings.reconnect),
        (1_200, false, false)
    );
    assert_eq!(settings.connect_timeout, Duration::from_secs(2));
    assert_eq!(settings.idle_timeout, Duration::from_secs(60));
    assert_eq!(settings.linger, Duration::from_millis(250));
    assert_eq!(
        (settings.type_of_service, settings.time_to_live),
        (0xb8, Some(7))
    );
    assert_eq!(settings.send_buffer, 1_000_000);
    assert_eq!(settings.receive_buffer, 2 << 20);
    assert_eq!(
        uri.to_string(),
        format!(
            "comity://media.example:9000?bind=192.0.2.7:5000&key=a%20b.key&peerkey={KEY}&latency=1.5s&cc=cubic\
             &cc.beta=0.8&maxbw=20Mbps&reliability=none&drop=expired&deliver=early&streamid=%23!::r%3Dlive\
             &payload=1200B&ecn=false&conntimeo=2s&peeridletimeo=60s&linger=250ms&reconnect=false&iptos=184&ttl=7\
             &sndbuf=1MB&rcvbuf=2097152B"
        )
    );
}

/// The defaults of `comity send` and `comity recv`.
#[test]
fn missing_keys_have_their_defaults() {
    let uri = comity("comity://:9000");
    assert_eq!(
        uri.role,
        Role::Listener {
            host: None,
            port: 9_000
        }
    );
    assert_eq!(uri.credentials, Credentials::Missing);
    assert_eq!(uri.to_string(), "comity://:9000");
    let config = config("comity://:9000");
    let settings = config.settings();
    assert_eq!(settings, &uri.settings);
    assert_eq!(config.controller(), "steady");
    let ms = |duration: Duration| duration.as_millis();
    assert_eq!(
        [
            ms(settings.latency),
            ms(settings.connect_timeout),
            ms(settings.idle_timeout),
            ms(settings.keep_alive),
            ms(settings.linger),
        ],
        [120, 3_000, 5_000, 1_000, 1_000]
    );
    assert_eq!(
        (settings.drop_policy, settings.deliver, settings.max_rate),
        (DropPolicy::Infeasible, Deliver::Paced, Rate::MAX)
    );
    assert_eq!(
        (settings.send_buffer, settings.receive_buffer),
        (16 << 20, 16 << 20)
    );
    assert_eq!(
        (settings.payload, settings.ecn, settings.reconnect),
        (1_423, true, true)
    );
    assert_eq!((settings.type_of_service, settings.time_to_live), (0, None));
    assert_eq!(
        settings.ack_frequency,
        datagram::Config::DEFAULT.ack_frequency
    );
    // The parameters for the peer.
    let parameters = config.parameters();
    assert_eq!(parameters.reliability, Reliability::Timeline);
    assert_eq!(parameters.deliver, Deliver::Paced);
    assert_eq!(
        (parameters.max_datagram, parameters.initial_credit),
        (1_452, 16 << 20)
    );
    assert_eq!(
        (parameters.max_open_sections, parameters.ecn),
        (4_096, true)
    );
    assert_eq!(parameters.stream_name, None);
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
fn the_passphrase_is_kept_and_never_printed() {
    let uri = comity("comity://h:1?passphrase=correct%20horse+battery");
    let Credentials::Passphrase(secret) = &uri.credentials else {
        panic!("{uri:?}");
    };
    let secret = secret.read().unwrap();
    assert_eq!(secret.expose(), "correct horse+battery");
    assert_eq!(uri.to_string(), "comity://h:1?passphrase=***");
    assert!(!format!("{uri:?}").contains("horse"), "{uri:?}");
    for bad in [
        "comity://h:1?passphrase=hunter2",
        "comity://h:1?passphrase=hunter2-hunter2&passphrase=hunter2-hunter2",
        "comity://h:1?passphrase=hunter2-hunter2%&latency=1s",
        "comity://h:1?passphrase=hunter2-hunter2&insecure",
        "comity://h:1?passphrse=hunter2-hunter2",
        "comty://h:1?passphrase=hunter2-hunter2",
        "comity://h:1?passphrase=hunter2-hunter2&latncy=1s",
        "comity://h:1?passphrase=correct-horse&hunter2",
        "comity://h:1?passphrase=correct-horse&hunter2=",
        "comity://h:1?passphrase:hunter2-hunter2",
        "comity://h:1?latency=1s;passphrase=hunter2-hunter2",
        "comity://h:1&passphrase=hunter2-hunter2",
        "comity://h:1passphrase=hunter2-hunter2",
        "comity://h:1/passphrase=hunter2-hunter2",
        "h:1?passphrase=hunter2-hunter2",
        "h:1&passphrase=hunter2-hunter2",
        "me:hunter2@h:1",
        "comity://me:hunter2@h:1",
        "comity://me:hunter@2@h:1",
        "comity://h:1?key=comity-secret-hunter&peerkey=x",
    ] {
        assert!(!mistake(bad).contains("hunter"), "{}", mistake(bad));
    }
}

#[test]
fn a_passphrase_may_come_from_a_file_or_the_environment() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("the secret & more");
    let text = format!(
        "comity://h:1?passphrase=@{}",
        encoded(file.to_str().unwrap())
    );
    let uri = comity(&text);
    let Credentials::Passphrase(PassphraseSource::File(path)) = &uri.credentials else {
        panic!("{uri:?}");
    };
    assert_eq!(*path, file);
    assert_eq!(comity(&uri.to_string()), uri);
    let error = uri.builder().unwrap_err().to_string();
    assert!(error.starts_with("cannot open "), "{error}");
    std::fs::write(&file, "short\n").unwrap();
    let error = uri.builder().unwrap_err().to_string();
    assert!(
        error.ends_with(":1: a passphrase of 5 bytes; expected at least 10"),
        "{error}"
    );
    std::fs::write(&file, "correct horse battery\nsecond line\n").unwrap();
    let Credentials::Passphrase(source) = &uri.credentials else {
        panic!("{uri:?}");
    };
    assert_eq!(source.read().unwrap().expose(), "correct horse battery");
    uri.builder().unwrap();

    // Cargo sets this variable; the other is never set.
    let uri = comity("comity://h:1?passphrase=@env:CARGO_MANIFEST_DIR");
    assert_eq!(
        uri.to_string(),
        "comity://h:1?passphrase=@env:CARGO_MANIFEST_DIR"
    );
    uri.builder().unwrap();
    let error = comity("comity://h:1?passphrase=@env:COMITY_NOT_THERE").builder();
    assert_eq!(
        error.unwrap_err().to_string(),
        "environment variable COMITY_NOT_THERE: is not set; expected a passphrase"
    );
    for nowhere in ["@", "@env:"] {
        let error = mistake(&format!("comity://h:1?passphrase={nowhere}"));
        assert_eq!(
            error,
            "passphrase: a name is missing; expected @FILE or @env:NAME"
        );
    }
}

#[test]
fn errors_name_the_position_the_value_and_the_expectation() {
    let both = format!("comity://h:1?passphrase=0123456789&key=f&peerkey={KEY}");
    for (text, expected) in [
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
            "address: is \"***@h:1\"; expected host:port without a user name; `passphrase` or `key` authenticates the caller",
        ),
        (
            "comity://h:1/live",
            "\"/live\" follows the port; expected nothing or \"?key=value\" there",
        ),
        (
            "comity://h:1?streamid=#x",
            "\"#\" ends a URI; expected \"%23\" for the character itself",
        ),
        (
            "comity://:1?mode=caller",
            "mode: is caller, but the URI has no host; expected one, as in comity://host:9000",
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
            "payload: is \"10\"; expected from 600B to 64971B, such as \"1400B\"; a bare number is in bytes",
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
            "cc: there is no controller \"cubik\"; did you mean \"cubic\"? `comity list` describes each",
        ),
        (
            "comity://h:1?cc=tcp-real",
            "cc: there is no controller \"tcp-real\": TCP-Real is the controller \"real\"; `comity list` describes each",
        ),
        (
            "comity://h:1?cc=tltcp",
            "cc: there is no controller \"tltcp\": Time-lined TCP is a time-line over any controller, such as reno. Over \
             packets, set reliability=timeline and drop=expired; over TCP in a scenario, set timeline = { .. } \
             (experiments/tltcp); `comity list` describes each",
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
            "passphrase: a passphrase of 5 bytes; expected at least 10",
        ),
        ("comity://h:1?key=f", "key= of a caller also needs peerkey="),
        ("comity://:1?allow=f", "allow= also needs key="),
        (
            &format!("comity://h:1?peerkey={KEY}"),
            "peerkey= also needs key=",
        ),
        (
            "127.0.0.1:9000",
            "is \"127.0.0.1:9000\"; did you mean comity://127.0.0.1:9000?",
        ),
        (
            "udp://h:1?x",
            "is \"udp://h:1\"; expected comity://host:port or comity://:port",
        ),
        (
            "comity://h:1?latency=200000",
            "latency: \"200000\" has no unit. Comity reads milliseconds, ffmpeg microseconds; \
             expected 200ms for the meaning of ffmpeg, or a number with a unit",
        ),
        (
            "comity://h:1?allow=f",
            "allow: is a key of a listener, and this URI is of a caller; leave it out",
        ),
        (
            "comity://:1?reconnect=0",
            "reconnect: is a key of a caller, and this URI is of a listener; leave it out",
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
            "latency: appears twice; leave one of them out",
        ),
        (
            "comity://h:1?payload=1200&payloadsize=1200",
            "payload: appears twice; leave one of them out",
        ),
        (
            "comity://h:1?streamid=50%",
            "streamid: byte 3 is a \"%\" without two hexadecimal digits; a percent sign itself is written \"%25\"",
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
    assert_eq!(comity("comity://h:1?mtu=1500").settings.payload, 1_423);
    assert_eq!(comity("comity://h:1?mtu=9000").settings.payload, 8_923);
    let full = config("comity://h:1?reliability=full&drop=never");
    assert_eq!(full.parameters().reliability, Reliability::Full);
    let plain = config("comity://h:1?reliability=full");
    assert_eq!(plain.parameters(), full.parameters());
}

/// SRT users may pass SRT's keys.
#[test]
fn keys_of_other_tools_are_accepted_or_answered_with_advice() {
    for (text, drop) in [
        ("tlpktdrop=1", DropPolicy::Infeasible),
        ("tlpktdrop=no", DropPolicy::Never),
        ("drop=0", DropPolicy::Never),
        ("drop=expired", DropPolicy::Expired),
    ] {
        let uri = comity(&format!("comity://h:1?{text}"));
        assert_eq!(uri.settings.drop_policy, drop, "{text}");
    }
    let said = mistake("comity://h:1?timeout=3000");
    assert!(said.contains("\"peeridletimeo\""), "{said}");
    // A key of almost every SRT recipe.
    let said = mistake("comity://h:1?pkt_size=1316");
    assert!(
        said.contains("1316 bytes") && said.contains("leave it out"),
        "{said}"
    );
    // An implausible time without a unit is accepted with one.
    let slow = comity("comity://h:1?latency=200s").settings.latency;
    assert_eq!(slow, Duration::from_secs(200));
    assert_eq!(
        comity("comity://h:1?latency=10000").settings.latency,
        slow / 20
    );
}

/// The papers of two controllers retransmit nothing. This is the default, which the URI can change.
#[test]
fn the_controller_sets_the_default_reliability() {
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
        let text = format!("comity://h:1?cc={cc}");
        assert_eq!(config(&text).parameters().reliability, usual, "{cc}");
        assert_eq!(comity(&text).to_string(), text);
        let (word, value) = other;
        let text = format!("comity://h:1?cc={cc}&reliability={word}");
        assert_eq!(config(&text).parameters().reliability, value, "{cc}");
        assert_eq!(comity(&text).to_string(), text);
    }
}

#[test]
fn names_are_unique_and_defaults_read() {
    let names = keys().iter();
    let names = names.flat_map(|key| std::iter::once(&key.name).chain(key.aliases));
    let mut names: Vec<_> = names.collect();
    let count = names.len();
    names.sort();
    names.dedup();
    assert_eq!(names.len(), count);
    let with_default = || keys().iter().filter(|key| !key.default.is_empty());
    assert!(with_default().count() > 12, "{}", with_default().count());
    for key in with_default() {
        let address = match key.only {
            Some(Mode::Listener) => ":1",
            _ => "h:1",
        };
        let said = comity(&format!("comity://{address}?{}={}", key.name, key.default));
        assert_eq!(said, comity(&format!("comity://{address}")), "{}", key.name);
    }
}

/// The same table: the URI and the builder have the same bounds.
#[test]
fn uris_and_programs_have_the_same_bounds() {
    let built = |builder: comity::ConfigBuilder| builder.insecure().build().map(|_| ());
    for (key, good, bad) in [
        ("sndbuf", 1_u64 << 32, (1 << 32) + 1),
        ("sndbuf", 65_536, 65_535),
        ("rcvbuf", 1 << 32, (1 << 32) + 1),
        ("payload", 600, 599),
        ("payload", 64_971, 64_972),
        ("conntimeo", 10, 9),
        ("keepalive", 10, 9),
        ("peeridletimeo", 86_400_000, 86_400_001),
        ("latency", 1, 0),
    ] {
        let with = |value: u64| {
            let builder = Config::builder();
            let time = Duration::from_millis(value);
            built(match key {
                "sndbuf" => builder.send_buffer(value),
                "rcvbuf" => builder.receive_buffer(value),
                "payload" => builder.payload(value as u32),
                "conntimeo" => builder.connect_timeout(time),
                "keepalive" => builder.keep_alive(time),
                "latency" => builder.latency(time),
                _ => builder.idle_timeout(time),
            })
        };
        assert!(with(good).is_ok(), "{key}");
        let refused = with(bad).unwrap_err().to_string();
        let read = |value: u64| format!("comity://h:1?{key}={value}").parse::<Uri>();
        assert!(read(good).is_ok(), "{key}");
        let said = read(bad).unwrap_err().to_string();
        let bounds = |text: &str| text.split("expected ").nth(1).map(str::to_owned);
        let expected = bounds(&refused).expect("it says what was expected");
        assert!(
            bounds(&said).is_some_and(|said| said.starts_with(&expected)),
            "{said}; {refused}"
        );
    }
}

/// A text for a value that is not the default.
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

/// Any value of one key, except values that contradict the rest of the URI.
fn settings() -> impl Strategy<Value = (&'static Key, String)> {
    proptest::sample::select(keys()).prop_flat_map(|key| {
        let key = keys().iter().find(|known| known.name == key.name).unwrap();
        (Just(key), values(key))
    })
}

fn encoded(text: &str) -> String {
    text.bytes().map(|byte| format!("%{byte:02x}")).collect()
}

proptest! {
    #[test]
    fn what_is_printed_reads_back(
        address in proptest::sample::select(&["h:1", "192.0.2.1:65535", "[2001:db8::1]:9", ":1", "[::]:0"][..]),
        settings in proptest::collection::vec(settings(), 0..6),
    ) {
        let query: Vec<_> = settings
            .iter()
            .map(|(key, value)| format!("{}={}", key.name, encoded(value)))
            .collect();
        let text = format!("comity://{address}?{}", query.join("&"));
        match text.parse::<Uri>() {
            Err(error) => prop_assert!(!error.to_string().is_empty()),
            Ok(mut uri) => {
                let printed = uri.to_string();
                if let Credentials::Passphrase(PassphraseSource::Literal(_)) = uri.credentials {
                    prop_assert!(printed.contains("passphrase=***"));
                    prop_assert!(printed.parse::<Uri>().is_err());
                    uri.credentials = Credentials::Missing;
                }
                prop_assert_eq!(uri.to_string().parse::<Uri>(), Ok(uri));
            }
        }
    }

    /// One key at a time, so the printed URI omits none.
    #[test]
    fn every_key_that_changes_something_is_printed((key, value) in settings(), listens in any::<bool>()) {
        let address = if listens { ":1" } else { "h:1" };
        let plain: Uri = format!("comity://{address}").parse().unwrap();
        let with = format!("comity://{address}?{}={}", key.name, encoded(&value)).parse::<Uri>();
        if let Ok(with) = with && with != plain {
            prop_assert_ne!(with.to_string(), plain.to_string());
        }
    }

    #[test]
    fn no_text_causes_a_panic(text in "(comity|udp|x)?:?/{0,2}\\PC{0,40}[?]?(\\PC{0,10}=?\\PC{0,10}&?){0,4}") {
        match text.parse::<Uri>() {
            Ok(uri) => prop_assert!(!uri.to_string().is_empty()),
            Err(error) => prop_assert!(!error.to_string().is_empty()),
        }
    }
}
