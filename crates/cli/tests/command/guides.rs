//! The commands of `docs/guide` do what the pages say: each block marked `sh run` is run, in order,
//! in a folder of its own, with ports of its own.

use std::net::UdpSocket;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::Command;

use tempfile::TempDir;

use super::root;

/// The ports that the pages name.
const PORTS: [&str; 4] = ["9000", "9001", "9002", "9100"];

/// Where there is no curl, Python fetches the page.
const CURL: &str = "command -v curl >/dev/null || curl() { python3 -c \
    'import sys, urllib.request as web; print(web.urlopen(sys.argv[-1]).read().decode())' \"$@\"; }";

/// The fenced blocks of a page: what stands behind the opening fence, and the text.
fn blocks(page: &str) -> Vec<(&str, String)> {
    let mut blocks: Vec<(&str, String)> = Vec::new();
    let mut is_inside = false;
    for line in page.lines() {
        match (is_inside, line.strip_prefix("```"), blocks.last_mut()) {
            (false, Some(mark), _) => {
                blocks.push((mark, String::new()));
                is_inside = true;
            }
            (true, Some(_), _) => is_inside = false,
            (true, None, Some((_, text))) => {
                text.push_str(line);
                text.push('\n');
            }
            _ => {}
        }
    }
    blocks
}

/// Runs the page's commands and returns what they printed.
fn run(name: &str, commands: usize) -> String {
    let page = std::fs::read_to_string(root().join("docs/guide").join(name)).unwrap();
    let folder = TempDir::new().unwrap();
    let experiments = root().canonicalize().unwrap().join("experiments");
    symlink(experiments, folder.path().join("experiments")).unwrap();
    let mut script = format!("set -eu\n{CURL}\n");
    let mut found = 0;
    for (mark, text) in blocks(&page) {
        if mark == "sh run" {
            script.push_str(&text);
            found += text.matches("comity ").count();
        } else if let Some(file) = mark.strip_prefix("toml ") {
            std::fs::write(folder.path().join(file), text).unwrap();
        }
    }
    assert!(found >= commands, "{name} has {found} commands");
    let sockets = PORTS.map(|_| UdpSocket::bind("[::]:0").unwrap());
    for (port, socket) in PORTS.iter().zip(&sockets) {
        let free = socket.local_addr().unwrap().port();
        script = script.replace(&format!(":{port}"), &format!(":{free}"));
    }
    drop(sockets);
    let program = Path::new(env!("CARGO_BIN_EXE_comity")).parent().unwrap();
    let path = format!(
        "{}:{}",
        program.display(),
        std::env::var("PATH").unwrap_or_default()
    );
    let output = Command::new("timeout")
        .args(["120", "bash", "-c", &script])
        .current_dir(folder.path())
        .env("PATH", path)
        .output()
        .unwrap();
    let printed = super::out(&output) + &super::said(&output);
    assert!(output.status.success(), "{name}: {printed}");
    printed
}

#[test]
fn the_guide_to_streams() {
    let printed = run("stream.md", 2);
    assert!(printed.contains("786 sections"), "{printed}");
    assert!(printed.contains("film.ts"), "{printed}");
}

#[test]
fn the_guide_to_keys() {
    let printed = run("keys.md", 8);
    assert_eq!(printed.matches("written: ").count(), 2, "{printed}");
}

#[test]
fn the_guide_to_relays() {
    let printed = run("relay.md", 6);
    assert_eq!(printed.matches("written: ").count(), 3, "{printed}");
}

#[test]
fn the_guide_to_statistics() {
    let printed = run("statistics.md", 5);
    assert!(printed.contains("\"event\":\"end\""), "{printed}");
    assert!(printed.contains("comity_connections{"), "{printed}");
    assert!(printed.contains("\"reason\":\""), "{printed}");
}

#[test]
fn the_guide_to_simulations() {
    let printed = run("simulate.md", 9);
    assert!(
        printed.contains("first: A CUBIC and a Reno flow"),
        "{printed}"
    );
    assert!(printed.contains("axis.queue"), "{printed}");
}
