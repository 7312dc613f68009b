//! A peer in Python that follows `docs/protocol/handshake.md` and shares no code with this project.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::Command;

use comity::session::{Cipher, Passphrase, PresharedKey};
use comity::{Config, Endpoint};

const PAGE: &str = include_str!("../../../docs/protocol/handshake.md");

fn peer() -> Command {
    let mut command = Command::new("python3");
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/peer");
    command.arg("-B").arg(folder.join("peer.py"));
    command
}

/// What it prints.
fn output(command: &mut Command) -> String {
    let output = command.output().expect("python3 runs");
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{errors}");
    String::from_utf8(output.stdout).expect("it prints text")
}

#[test]
fn the_examples_on_the_page_are_those_of_the_peer() {
    let mut examples = PAGE.split("```vector\n").skip(1);
    for kind in ["key", "passphrase"] {
        let example = examples.next().expect("the page has one of each kind");
        let (example, _) = example.split_once("```").expect("the example ends");
        assert_eq!(output(peer().args(["vectors", kind])), example, "{kind}");
    }
    assert_eq!(examples.next(), None);
}

#[test]
fn the_primitives_of_the_peer_are_those_of_their_specifications() {
    let mut command = Command::new("python3");
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/peer");
    command.args(["-B", "-m", "doctest", "primitives.py"]);
    assert_eq!(output(command.current_dir(folder)), "");
}

async fn is_called(config: Config, kind: &str, secret: &[u8; 32]) {
    let loopback: SocketAddr = ([127, 0, 0, 1], 0).into();
    let listener = Endpoint::bind(loopback, config).expect("a port is free");
    let address = listener.local_address();
    let digits: String = secret.iter().map(|byte| format!("{byte:02x}")).collect();
    let mut command = peer();
    command.arg("call").arg(address.ip().to_string());
    command.args([&address.port().to_string(), kind, &digits]);
    let mut called = tokio::task::spawn_blocking(move || output(&mut command));
    let connection = tokio::select! {
        connection = listener.accept() => connection.expect("the peer calls"),
        // If the peer does not call, nobody is ever accepted.
        ended = &mut called => panic!("the peer ended and was not accepted: {ended:?}"),
    };
    let printed = called.await.expect("the peer ends");
    assert!(printed.starts_with("accepted, with "), "{printed}");
    let steps = "packet 0 is acknowledged\nthe listener follows with identifier 1\n";
    assert!(printed.ends_with(steps), "{printed}");
    assert_eq!(connection.cipher(), Some(Cipher::ChaCha20Poly1305));
}

#[tokio::test]
async fn the_peer_calls_with_a_shared_key() {
    let key = PresharedKey::new([9; 32]);
    let config = Config::builder().preshared_key(key.clone()).build();
    is_called(config.expect("it is valid"), "key", key.bytes()).await;
}

#[tokio::test]
async fn the_peer_calls_with_a_passphrase() {
    const TEXT: &str = "correct horse battery";
    let key = Passphrase::stretch(TEXT).expect("it is long enough");
    let config = Config::builder().passphrase(TEXT).build();
    is_called(config.expect("it is valid"), "passphrase", key.bytes()).await;
}
