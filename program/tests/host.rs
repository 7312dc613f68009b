//! `comity keygen` and `comity doctor` as users and scripts see them.

use std::fs;
use std::process::{Command, Output};

use comity::credentials::{PublicKey, StaticKey};
use serde_json::Value;
use tempfile::TempDir;

fn comity(args: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_comity"))
        .args(args)
        .output()
        .unwrap()
}

fn ends(code: i32, args: &[&str]) -> (String, String) {
    let output = comity(args);
    let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).unwrap();
    let (out, said) = (text(&output.stdout), text(&output.stderr));
    assert_eq!(
        output.status.code(),
        Some(code),
        "comity {}\n{out}{said}",
        args.join(" ")
    );
    (out, said)
}

#[test]
fn a_key_is_generated_kept_and_read_back() {
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("own.key");
    let file = path.to_str().unwrap();

    let (printed, said) = ends(0, &["keygen", file]);
    assert_eq!(said, "");
    let public: PublicKey = printed.parse().unwrap();
    let text = fs::read_to_string(&path).unwrap();
    let secret: StaticKey = text.parse().unwrap();
    assert_eq!(secret.public(), public);
    assert!(!printed.contains(text.trim()), "the secret was printed");
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        let mode = fs::metadata(&path).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
    }

    assert_eq!(
        ends(0, &["keygen", "--public", file]),
        (printed.clone(), String::new())
    );
    let (document, _) = ends(0, &["keygen", "--public", file, "--json"]);
    let document: Value = serde_json::from_str(&document).unwrap();
    assert_eq!(document["public"], printed.trim());
    assert_eq!(document["file"], file);

    let (out, said) = ends(1, &["keygen", file]);
    assert_eq!(out, "");
    assert_eq!(
        said,
        format!("error: {file} already exists; --force replaces it\n")
    );
    assert_eq!(
        fs::read_to_string(&path).unwrap(),
        text,
        "the key was touched"
    );

    let (other, _) = ends(0, &["keygen", file, "--force"]);
    assert_ne!(other, printed);
    assert_eq!(ends(0, &["keygen", "--public", file]).0, other);
    assert_eq!(
        fs::read_dir(folder.path()).unwrap().count(),
        1,
        "something was left behind"
    );
}

#[test]
fn invalid_keys_and_key_files_are_named() {
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("x");
    let file = path.to_str().unwrap();
    fs::write(&path, "abc\n").unwrap();
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        fs::set_permissions(&path, fs::Permissions::from_mode(0o644)).unwrap();
    }
    let (_, said) = ends(1, &["keygen", "--public", file]);
    assert!(
        said.contains("holds no key: a key of 3 characters after its prefix; expected comity-public- or comity-secret-"),
        "{said}"
    );
    #[cfg(unix)]
    assert!(
        said.contains("others can read") && said.contains("(mode 644); chmod 600"),
        "{said}"
    );

    // A public key is no secret, under any file name. Digits alone may be either kind.
    let (public, _) = ends(0, &["keygen", folder.path().join("own").to_str().unwrap()]);
    for (text, part) in [
        (public.as_str(), "a public key; expected a secret one"),
        (
            &public["comity-public-".len()..],
            "--force` makes a new one",
        ),
    ] {
        fs::write(&path, text).unwrap();
        let (printed, said) = ends(1, &["keygen", "--public", file]);
        assert_eq!(printed, "");
        assert!(said.contains(part), "{said}");
        #[cfg(unix)]
        assert_eq!(
            said.contains("chmod 600"),
            !text.starts_with("comity-public-")
        );
    }

    let nowhere = folder.path().join("no/such/folder/key");
    let (_, said) = ends(1, &["keygen", nowhere.to_str().unwrap()]);
    let folder = nowhere.parent().unwrap().display();
    assert!(
        said.contains("cannot write")
            && said.ends_with(&format!("; make its folder first: mkdir -p {folder}\n")),
        "{said}"
    );
    let (_, said) = ends(6, &["keygen", "--public", nowhere.to_str().unwrap()]);
    assert!(
        said.contains("cannot open") && said.ends_with("; check its name\n"),
        "{said}"
    );
    let (_, said) = ends(2, &["keygen"]);
    assert!(
        said.contains("required arguments were not provided"),
        "{said}"
    );
    ends(2, &["keygen", file, "--public", file]);
}

/// On every host, the exit code follows from the verdicts, and each verdict that is not good has a
/// remedy or says that the system does not reveal the value.
#[test]
fn the_exit_code_of_the_doctor_matches_its_report() {
    let taken = std::net::UdpSocket::bind("0.0.0.0:0").unwrap();
    let port = taken.local_addr().unwrap().port().to_string();
    for (args, has_bad_port) in [
        (vec!["doctor", "--json"], false),
        (vec!["doctor", "--json", "--listen", &port], true),
    ] {
        let output = comity(&args);
        let document: Value = serde_json::from_slice(&output.stdout).unwrap();
        assert_eq!(document["format"], "comity-doctor/1");
        let checks = document["checks"].as_array().unwrap();
        let is_bad = |check: &Value| check["verdict"] == "bad";
        let code = i32::from(checks.iter().any(is_bad));
        assert_eq!(output.status.code(), Some(code), "{document:#}");
        for check in checks {
            let mended = check["remedy"].is_string();
            let unknown = check["found"] == "this system does not say";
            assert_eq!(mended || unknown, check["verdict"] != "good", "{check:#}");
        }
        let of_port = checks
            .iter()
            .find(|check| check["check"] == format!("UDP port {port}"));
        assert_eq!(of_port.is_some_and(is_bad), has_bad_port);
        assert!(checks.len() >= 13 || checks.iter().any(|check| check["check"] == "UDP"));
    }
    let output = comity(&["doctor"]);
    let text = String::from_utf8(output.stdout).unwrap();
    for check in ["receive buffer", "timers", "kernel"] {
        assert!(text.contains(check), "{text}");
    }
    ends(2, &["doctor", "--listen", "0"]);
}
