//! Refused calls, options and files, and the messages of each program.

use std::fs;
use std::net::UdpSocket;
use std::path::Path;

use super::*;

pub(super) fn mistakes_are_reported_with_advice() {
    const USAGE: i32 = 2;
    const UNOPENED: i32 = 6;
    let folder = Folder::new();
    let (clip, empty) = (clip(), folder.path("empty"));
    let clip = clip.to_str().unwrap();
    fs::write(&empty, b"").unwrap();
    let bad_key = folder.path("bad.key");
    fs::write(&bad_key, "no key").unwrap();
    let here = "comity://127.0.0.1:9?insecure=1";
    let with_key = format!("comity://:0?key={bad_key}");
    let (missing, nowhere) = (folder.path("no/out.ts"), folder.path("no"));
    let kept = folder.path("out.ts");
    let listener = format!("comity://127.0.0.1:0?mode=listener&{SECRET}");
    let (media, link) = (folder.path("media.ts"), folder.path("link.ts"));
    fs::copy(clip, &media).unwrap();
    std::os::unix::fs::symlink(&media, &link).unwrap();
    let cases: [(i32, &[&str], &[&str]); 21] = [
        (
            USAGE,
            &["relay", &media, &link],
            &["OUTPUT: ", "the same file as INPUT", &link],
        ),
        (
            USAGE,
            &["send", &media, here, "--gaps", &media],
            &["--gaps: ", "the same file as INPUT"],
        ),
        (
            UNOPENED,
            &["send", "nosuch.ts", here],
            &["cannot open nosuch.ts", "check its name"],
        ),
        (UNOPENED, &["send", ".", here], &["folder"]),
        (
            UNOPENED,
            &["recv", here, &kept, "--gaps", &missing],
            &["cannot open", "make its folder first", &nowhere],
        ),
        (
            UNOPENED,
            &["recv", &listener, &missing],
            &["cannot open", "make its folder first", &nowhere],
        ),
        (
            USAGE,
            &["send", "-", here, "--deadlines", "group"],
            &["--deadlines: is group", "expected it with a file"],
        ),
        (
            USAGE,
            &["relay", here, &kept, "--deadlines", "group"],
            &["--deadlines: is group", "comity://127.0.0.1:9 gives"],
        ),
        (UNOPENED, &["relay", &empty, "/dev/null"], &["is empty"]),
        // The file is checked first: a call would end with another code and much later, since
        // nobody listens there.
        (UNOPENED, &["send", &empty, here], &["is empty"]),
        (
            USAGE,
            &["send", clip, "srtt://h:9"],
            &["there is no scheme \"srtt\""],
        ),
        (
            USAGE,
            &["send", clip, "comity://h:9?latensy=1"],
            &["latensy", "did you mean \"latency\"?"],
        ),
        (
            USAGE,
            &["send", clip, "comity://127.0.0.1:9"],
            &["no credentials", "passphrase=", "--insecure"],
        ),
        (
            USAGE,
            &["send", clip, "udp://127.0.0.1:9"],
            &["expected comity://", "comity relay"],
        ),
        (
            USAGE,
            &["send", clip, "comity://h:9?passphrase=short"],
            &["passphrase: "],
        ),
        (
            USAGE,
            &["recv", "file.ts", "out.ts"],
            &["expected comity://"],
        ),
        (
            USAGE,
            &["recv", &with_key, "out.ts"],
            &["holds no key", "comity keygen"],
        ),
        (
            USAGE,
            &["relay", "udp://localhost:9", "out.ts"],
            &["udp://:5000", "udp://127.0.0.1:5000"],
        ),
        (
            USAGE,
            &["send", clip, "srt://h:9?latency=200000"],
            &["srt-live-transmit", "comity send - comity://host:9000"],
        ),
        (
            USAGE,
            &["send", clip, "127.0.0.1:9"],
            &["did you mean comity://127.0.0.1:9?"],
        ),
        (
            USAGE,
            &["recv", ":9", "out.ts"],
            &["did you mean comity://:9?"],
        ),
    ];
    for (code, args, parts) in cases {
        let said = ends(code, args);
        for part in parts {
            assert!(said.contains(part), "{args:?}: {part:?} is not in {said}");
        }
        assert!(
            !said.contains("passphrase=short"),
            "secrets are not repeated"
        );
        assert!(!said.contains("listening"), "before it knows: {said}");
    }
    assert_eq!(fs::read(&media).unwrap(), fs::read(clip).unwrap());
    assert!(!Path::new(&kept).exists(), "an output that never was");
}

pub(super) fn an_unopenable_list_leaves_no_output_and_vice_versa() {
    let folder = Folder::new();
    let (out, list) = (folder.path("out.ts"), folder.path("list"));
    let listener = format!("comity://127.0.0.1:0?mode=listener&{SECRET}");
    let nowhere = folder.path("no/list");
    let said = ends(6, &["recv", &listener, &out, "--gaps", &nowhere]);
    assert!(
        !said.contains("listening") && !Path::new(&out).exists(),
        "{said}"
    );
    let nowhere = folder.path("no/out.ts");
    let said = ends(6, &["recv", &listener, &nowhere, "--gaps", &list]);
    assert!(
        !said.contains("listening") && !Path::new(&list).exists(),
        "{said}"
    );
    // The earlier content of a list stays as well.
    fs::write(&list, "before").unwrap();
    ends(6, &["recv", &listener, &nowhere, "--gaps", &list]);
    assert_eq!(fs::read(&list).unwrap(), b"before");
}

pub(super) fn failed_connections_are_reported_with_the_reason() {
    let clip = clip();
    let clip = clip.to_str().unwrap();
    let here = format!("comity://127.0.0.1:0?mode=listener&{SECRET}");
    let mut receiver = Running::start(&["recv", &here, "/dev/null"]);
    let port = receiver.port();
    let wrong = format!("comity://127.0.0.1:{port}?{PATIENT}&passphrase=wrong horse battery");
    let said = ends(4, &["send", clip, &wrong]);
    assert!(said.contains("the same passphrase"), "{said}");
    let unprotected = format!("comity://127.0.0.1:{port}");
    let patient = format!("{unprotected}?{PATIENT}");
    let said = ends(4, &["send", clip, &patient, "--insecure"]);
    assert!(
        said.contains("INSECURE") && said.contains("give both ends the same passphrase"),
        "{said}"
    );
    let taken = format!("comity://127.0.0.1:{port}?mode=listener&{SECRET}");
    let said = ends(5, &["recv", &taken, "/dev/null"]);
    assert!(
        said.contains("is in use") && said.contains("ss -lunp"),
        "{said}"
    );
    let foreign = format!("comity://192.0.2.1:{port}?mode=listener&{SECRET}");
    let said = ends(5, &["recv", &foreign, "/dev/null"]);
    assert!(
        said.contains("is not an address of this host") && said.contains("ip addr"),
        "{said}"
    );
    // The listener reports the refused callers with the reason, each reason once in a while.
    for reason in ["unproven", "credentials"] {
        let refused = receiver.event("refused");
        assert_eq!(refused["reason"], reason, "{refused}");
    }
    receiver.interrupt();
    let (summary, said) = receiver.end(0);
    assert!(said.contains("its passphrase or key is wrong"), "{said}");
    assert!(summary["input"]["refused"]["unproven"].as_u64().unwrap() >= 1);
    let said = ends(
        3,
        &[
            "send",
            clip,
            &format!("{unprotected}?conntimeo=300ms"),
            "--insecure",
        ],
    );
    assert!(said.contains("listener"), "{said}");
    // A run that is stopped before an answer fails: its exit code must not report success.
    let silent = UdpSocket::bind("127.0.0.1:0").unwrap();
    let silent = format!("comity://{}?{SECRET}", silent.local_addr().unwrap());
    for args in [["send", clip, &silent], ["recv", &silent, "/dev/null"]] {
        let args = [&args[..], &["--duration", "300ms"]].concat();
        let said = ends(3, &args);
        assert!(
            said.contains("stopped before a listener answered"),
            "{said}"
        );
    }
}

pub(super) fn a_secret_key_is_not_accepted_as_public_or_readable_by_others() {
    use std::os::unix::fs::PermissionsExt;
    let folder = Folder::new();
    let (secret, public) = (folder.path("a.key"), folder.path("a.pub"));
    let output = command(&["keygen", &secret]).output().unwrap();
    checked(0, &output);
    fs::write(&public, &output.stdout).unwrap();
    let listen = |key: &str, allow: &str| {
        let uri = format!("comity://127.0.0.1:0?mode=listener&key={key}&allow={allow}");
        ends(2, &["recv", &uri, "/dev/null"])
    };
    let said = listen(&public, &public);
    assert!(said.contains("a.pub: holds no key: a public key"), "{said}");
    let said = listen(&secret, &secret);
    assert!(
        said.contains("a.key:1: a secret key; expected a public"),
        "{said}"
    );
    assert!(!said.contains("others can read"), "{said}");
    let shared = fs::Permissions::from_mode(0o640);
    fs::set_permissions(&secret, shared).unwrap();
    let said = listen(&secret, &secret);
    assert!(
        said.contains("others can read") && said.contains("(mode 640); chmod 600"),
        "{said}"
    );
    let peer = fs::read_to_string(&secret).unwrap();
    let uri = format!("comity://127.0.0.1:9?key={secret}&peerkey={}", peer.trim());
    let said = ends(2, &["send", clip().to_str().unwrap(), &uri]);
    assert!(
        said.contains("peerkey: ") && said.contains("a secret key"),
        "{said}"
    );
    assert!(
        !said.contains(peer.trim()),
        "secrets are not repeated: {said}"
    );
}

/// No message repeats a secret, wherever it is written: more people may read messages, as in
/// journals, than the command line.
pub(super) fn no_message_repeats_a_secret() {
    use std::os::unix::ffi::OsStrExt;
    let (clip, secret) = (clip(), "hunter2hunter2");
    let clip = clip.to_str().unwrap();
    let uri = format!("comity://127.0.0.1:9?passphrase={secret}");
    let key = format!("comity-secret-{secret}");
    for words in [
        vec!["send", clip, "clip", &uri],
        vec!["send", &uri],
        vec![&*uri],
        vec!["doctor", &uri],
        vec!["doctor", &key],
        vec!["send", clip, &uri, "--duration", &uri],
        vec!["emulate", "--listen", ":0", "--to", &uri],
        vec!["send", clip, &uri.replace('?', "&")],
        vec!["send", clip, &format!("{uri}&{secret}")],
        vec!["send", clip, &format!("comity://me:{secret}@127.0.0.1:9")],
        vec!["send", clip, &format!("srt://me:{secret}@127.0.0.1:9")],
        vec!["relay", &format!("rtp://me:{secret}@127.0.0.1:9"), clip],
    ] {
        let said = ends(2, &words);
        assert!(!said.contains(secret), "{words:?}: {said}");
    }
    // The system's own error for bytes that are no text would show the value.
    let bytes = [secret.as_bytes(), &[0xff]].concat();
    for uri in ["passphrase=@env:COMITY_TEST_BYTES", "latency=1s"] {
        let output = command(&["send", clip, &format!("comity://127.0.0.1:9?{uri}")])
            .env("COMITY_TEST_BYTES", std::ffi::OsStr::from_bytes(&bytes))
            .env("COMITY_PASSPHRASE", std::ffi::OsStr::from_bytes(&bytes))
            .output()
            .unwrap();
        let said = checked(2, &output);
        assert!(said.contains("is no text"), "{said}");
        assert!(!said.contains(secret), "{said}");
    }
}

/// The first call lasts for `conntimeo`, even if the host reports a closed port meanwhile.
pub(super) fn a_listener_may_start_after_its_caller() {
    let folder = Folder::new();
    let (clip, out) = (clip(), folder.path("out.ts"));
    let vacant = UdpSocket::bind("127.0.0.1:0").unwrap();
    let address = vacant.local_addr().unwrap();
    drop(vacant);
    let to = format!("comity://{address}?{UNHURRIED}&{SECRET}");
    let mut sender = Running::start(&["send", clip.to_str().unwrap(), &to, "--speed", "10"]);
    let said = sender.event("note")["message"].as_str().unwrap().to_owned();
    assert!(
        said.starts_with("no connection yet, still calling: ") && said.contains("refused"),
        "{said}"
    );
    let here = format!("comity://{address}?mode=listener&{EARLY}&{SECRET}");
    let receiver = Running::start(&["recv", &here, &out]);
    sender.end(0);
    receiver.end(0);
    assert_same_media(&folder.read("out.ts"), &fs::read(clip).unwrap());
}

pub(super) fn a_key_that_is_not_on_the_list_is_refused() {
    let folder = Folder::new();
    let mut public = Vec::new();
    for name in ["listener", "guest", "stranger"] {
        let output = command(&["keygen", &folder.path(name)]).output().unwrap();
        checked(0, &output);
        public.push(String::from_utf8(output.stdout).unwrap().trim().to_owned());
    }
    fs::write(folder.path("allowed"), format!("{} # guest\n", public[1])).unwrap();
    let (own, list) = (folder.path("listener"), folder.path("allowed"));
    let mut receiver = Running::start(&[
        "recv",
        &format!("comity://127.0.0.1:0?mode=listener&{EARLY}&key={own}&allow={list}"),
        &folder.path("out.ts"),
    ]);
    let port = receiver.port();
    let clip = clip();
    let call = |key: &str, listener: &str| {
        format!(
            "comity://127.0.0.1:{port}?{PATIENT}&{UNHURRIED}&key={}&peerkey={listener}",
            folder.path(key)
        )
    };
    let send =
        |uri: &str| command(&["send", clip.to_str().unwrap(), uri, "--speed", "20"]).output();
    let said = checked(4, &send(&call("stranger", &public[0])).unwrap());
    assert!(said.contains("allow=.. list"), "{said}");
    checked(0, &send(&call("guest", &public[0])).unwrap());
    let (summary, said) = receiver.end(0);
    assert!(
        said.contains(&format!("its key {} is not on", public[2])),
        "{said}"
    );
    assert!(summary["input"]["refused"]["key"].as_u64().unwrap() >= 1);
    assert!(folder.read("out.ts").len() > 100_000);
}

/// An option without effect is refused before anything is opened.
pub(super) fn options_of_connections_are_refused_without_a_connection() {
    let folder = Folder::new();
    let clip = clip();
    let (from, to, trace) = (
        clip.to_str().unwrap(),
        folder.path("copy.ts"),
        folder.path("copy.sqlog"),
    );
    for option in [
        &["--qlog", &trace][..],
        &["--insecure"],
        &["--reconnect", "always"],
    ] {
        let said = ends(2, &[&["relay", from, &to], option].concat());
        assert!(said.contains(option[0]), "{said}");
        assert!(!Path::new(&to).exists() && !Path::new(&trace).exists());
    }
    let listener = format!("comity://:0?{SECRET}");
    let said = ends(2, &["send", "rtp://localhost:5000", &listener]);
    assert!(
        said.contains("rtp://:5000") && !said.contains("udp"),
        "{said}"
    );
}

/// A listener does not route by stream names: a viewer that asks for another stream is refused.
pub(super) fn a_caller_that_names_another_stream_is_refused() {
    let folder = Folder::new();
    let clip = clip();
    let clip = clip.to_str().unwrap();
    for (own, expected, summary) in [
        (
            "streamid=cam2&",
            "has no stream \"cam1\"; its streamid is \"cam2\". Ask for that stream",
            "asks for the stream \"cam1\", and the streamid of this listener is \"cam2\"",
        ),
        (
            "",
            "has no stream \"cam1\"; it has no streamid. Give both ends the same streamid",
            "asks for the stream \"cam1\", and this listener has no streamid",
        ),
    ] {
        let out = folder.path("out.ts");
        let here = format!("comity://127.0.0.1:0?mode=listener&{own}{EARLY}&{SECRET}");
        let mut receiver = Running::start(&["recv", &here, &out, "--overwrite"]);
        let to = format!(
            "comity://127.0.0.1:{}?{UNHURRIED}&{SECRET}",
            receiver.port()
        );
        // A further call would be refused too.
        let other = format!("{to}&streamid=cam1");
        let said = ends(4, &["send", clip, &other, "--reconnect", "always"]);
        assert!(said.contains(expected), "{said}");
        assert_eq!(receiver.event("refused")["reason"], "stream");
        // A caller with the same name is served, or one without a name if the listener has none.
        let right = match own.is_empty() {
            true => to,
            false => format!("{to}&streamid=cam2"),
        };
        checked(
            0,
            &command(&["send", clip, &right, "--speed", "20"])
                .output()
                .unwrap(),
        );
        let (report, said) = receiver.end(0);
        assert!(said.contains(summary), "{said}");
        assert_eq!(report["input"]["refused"]["stream"], 1);
    }
}

/// Both ends may have the same settings. Each reports the settings that have no effect there.
pub(super) fn settings_without_effect_are_reported() {
    let folder = Folder::new();
    let clip = clip();
    let clip = clip.to_str().unwrap();
    let both = "cc=reno&latency=60s&drop=expired&deliver=early&rcvbuf=1MiB";
    let here = format!("comity://127.0.0.1:0?mode=listener&{both}&{SECRET}");
    let mut receiver = Running::start(&["recv", &here, &folder.path("out.ts")]);
    let to = format!("comity://127.0.0.1:{}?{both}&{SECRET}", receiver.port());
    let sent = command(&["send", clip, &to, "--speed", "20"])
        .output()
        .unwrap();
    let said = checked(0, &sent);
    let expected = "warning: no effect at this end, which only sends: deliver, rcvbuf;";
    assert!(said.contains(expected), "{said}");
    let (_, said) = receiver.end(0);
    let expected = "warning: no effect at this end, which only receives: cc, drop;";
    assert!(said.contains(expected), "{said}");
    // Contradictory settings are refused.
    let never = format!("comity://127.0.0.1:9?reconnect=no&{SECRET}");
    let pipe = format!("comity://127.0.0.1:0?mode=listener&{SECRET}");
    let waiting = format!("{pipe}&{PATIENT}");
    let out = folder.path("never.ts");
    for (args, expected) in [
        (
            &["send", clip, &never, "--reconnect", "always"][..],
            "--reconnect: is always, and the URI has reconnect=no",
        ),
        (&["recv", &waiting, &out], "conntimeo"),
        (
            &["recv", &pipe, "-", "--overwrite"],
            "--overwrite: is for an output file",
        ),
        (
            &["recv", &pipe, &out, "--quiet", "--statsfreq", "1s"],
            "--statsfreq: --quiet prints no statistics",
        ),
        (
            &["relay", &pipe, &out, "--input-rate", "1Mbps"],
            "--input-rate: is for a file",
        ),
    ] {
        let said = ends(2, args);
        assert!(said.contains(expected), "{args:?}: {said}");
    }
    assert!(!Path::new(&out).exists());
}
