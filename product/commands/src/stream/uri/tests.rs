//! Datagrams, files and pipes; connections are tested with `comity::uri`.

use comity::uri::Host;

use super::media::KEYS;
use super::*;

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
        address: Some(Host::Ip("239.1.2.3".parse().unwrap())),
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

/// ffmpeg listens on the host of an input URI if it is an address.
#[test]
fn an_input_listens_on_the_address_of_its_uri() {
    let source = |text: &str| media(text).source();
    let on = |ip: &str| Some((Some(Host::Ip(ip.parse().unwrap())), 5_000));
    assert_eq!(source("udp://127.0.0.1:5000"), on("127.0.0.1"));
    assert_eq!(source("rtp://[::1]:5000"), on("::1"));
    assert_eq!(source("udp://239.1.2.3:5000"), on("239.1.2.3"));
    assert_eq!(
        source("udp://239.1.2.3:5000?bind=127.0.0.1"),
        on("239.1.2.3")
    );
    assert_eq!(source("udp://:5000"), Some((None, 5_000)));
    // A name may be that of any host, and a URI with `bind` specifies the address.
    assert_eq!(source("udp://host:5000"), None);
    assert_eq!(source("udp://127.0.0.1:5000?bind=127.0.0.2"), None);
}

#[test]
fn errors_name_the_position_the_value_and_the_expectation() {
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
            "rtp://h",
            "address: is \"h\"; expected a port, as in rtp://host:5000",
        ),
        (
            "udp://h:1?colour=1",
            "there is no key \"colour\" for udp://; there are bind, payload, iptos, ttl, sndbuf and rcvbuf",
        ),
        (
            "udp://h:1?latency=1s",
            "there is no key \"latency\" for udp://: it is a key of comity://, for connections only; \
             leave it out",
        ),
        (
            "udp://:1?fifo_size=100000",
            "there is no key \"fifo_size\" for udp://: unread datagrams wait in the socket: set \
             its size with \"rcvbuf\"",
        ),
        (
            "udp://:1?localaddr=192.0.2.1",
            "there is no key \"localaddr\" for udp://: set the local address and port with \"bind\"",
        ),
        (
            "file:///a?ttl=1",
            "there is no key \"ttl\" for file://: a file has no settings",
        ),
        (
            "file://host/a",
            "file: the host is \"host\"; expected none, as in file:///path",
        ),
        (
            "udp://@h:1",
            "address: is \"@h:1\"; expected an address behind \"@\", of a group or of this host",
        ),
        (
            "udp://h:0",
            "address: is \"h:0\"; expected a port from 1 to 65535 to send to",
        ),
        (
            "udp://:1?rcvbuf=4095",
            "rcvbuf: is \"4095\"; expected from 4096B to 1073741824B, such as \"8MiB\"; a bare \
             number is in bytes",
        ),
        (
            "udp://@192.0.2.1:1?bind=192.0.2.2",
            "bind and the address to listen on exclude each other; leave one of them out",
        ),
    ] {
        assert_eq!(mistake(text), expected, "{text}");
    }
    for (text, command) in [
        ("srt://h:1?latency=200000", "srt-live-transmit"),
        ("rtmp://h/live/x", "-f flv 'rtmp://..'"),
        ("https://h/live.m3u8", "ffmpeg -i 'https://..'"),
    ] {
        let said = mistake(text);
        assert!(
            said.contains(command) && said.contains("| comity send - comity://host:9000"),
            "{said}"
        );
        assert!(!said.contains("did you mean"), "{said}");
    }
    for text in [
        "udp://h:1?passphrase=hunter2-hunter2",
        "udp://h:1&passphrase=hunter2-hunter2",
        "rtp://me:hunter2@h:1",
        "rtp://me:hunter2@h",
    ] {
        assert!(!mistake(text).contains("hunter"), "{}", mistake(text));
    }
}

/// The URI before a message.
#[test]
fn a_printed_uri_shows_no_possible_secret() {
    for (text, shown) in [
        ("comity://h:1?passphrase=hunter2", "comity://h:1"),
        ("comity://h:1&passphrase=hunter2", "comity://h:1&"),
        ("comity://h:1#hunter2", "comity://h:1"),
        ("comity://me:hunter2@h:1", "comity://***@h:1"),
        ("srt://hunter@2@h:1?x", "srt://***@h:1"),
        ("me:hunter2@h:1", "***@h:1"),
        ("udp://@239.1.1.1:5000", "udp://@239.1.1.1:5000"),
        ("films/a@b.ts", "films/a@b.ts"),
        ("file:///films/a@b.ts", "file:///films/a@b.ts"),
    ] {
        assert_eq!(without_secrets(text), shown);
    }
}

#[test]
fn what_is_printed_reads_back_and_defaults_are_those_of_the_table() {
    for (scheme, address) in [("udp", "h:1"), ("rtp", ":1"), ("udp", "@239.1.1.1:5")] {
        let plain: Uri = format!("{scheme}://{address}").parse().unwrap();
        for (key, value) in [
            ("bind", "192.0.2.1"),
            ("payload", "188"),
            ("iptos", "184"),
            ("ttl", "7"),
            ("sndbuf", "1MB"),
            ("rcvbuf", "1MB"),
            ("pt", "96"),
        ] {
            if key == "pt" && scheme != "rtp" {
                let text = format!("{scheme}://{address}?{key}={value}");
                assert!(text.parse::<Uri>().is_err(), "{text}");
                continue;
            }
            let uri: Uri = format!("{scheme}://{address}?{key}={value}")
                .parse()
                .unwrap();
            let printed = uri.to_string();
            assert_ne!(uri, plain, "{key}");
            assert_eq!(printed, format!("{plain}?{key}={value}"), "{key}");
            assert_eq!(printed.parse(), Ok(uri), "{key}");
        }
        let keys = KEYS.iter().filter(|key| !key.default.is_empty());
        for key in keys.filter(|key| key.name != "pt" || scheme == "rtp") {
            let said = format!("{scheme}://{address}?{}={}", key.name, key.default);
            assert_eq!(said.parse().as_ref(), Ok(&plain), "{}", key.name);
        }
    }
}
