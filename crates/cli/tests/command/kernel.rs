//! `comity kernel`, where the kernel can have it; elsewhere it says what is missing.

use std::path::Path;
use std::process::{Command, Stdio};

use super::{comity, ends, out, said};

const FOLDER: &str = "/sys/fs/bpf/comity/libra";

fn is_loaded() -> bool {
    out(&ends(0, &["kernel", "list", "--json"])).contains("\"libra\"")
}

/// One test, because the kernel has one Libra.
#[test]
fn it_loads_lists_shows_and_unloads_also_after_a_kill() {
    let wrong = ends(2, &["kernel", "load", "libra", "--y", "fast"]);
    assert!(said(&wrong).contains("fast"), "{}", said(&wrong));
    let _ = comity(&["kernel", "unload", "libra"]);
    assert!(!is_loaded());
    ends(1, &["kernel", "status"]);

    let loaded = comity(&[
        "kernel",
        "load",
        "libra",
        "--capacity",
        "50Mbps",
        "--x",
        "1.5",
    ]);
    if !loaded.status.success() {
        let reason = said(&loaded);
        assert!(
            reason.contains("the kernel cannot run Libra here: "),
            "{reason}"
        );
        assert!(std::env::var_os("COMITY_NEED_KERNEL").is_none(), "{reason}");
        return;
    }
    let list = out(&ends(0, &["kernel", "list"]));
    assert_eq!(
        list,
        "libra\n  a 1s, b 1s, x 1.5, y 2\n  capacity 50Mbps, memory 60s, pairs paced\n"
    );
    assert_eq!(out(&ends(0, &["kernel", "status"])), "libra has no flows\n");
    let again = said(&ends(1, &["kernel", "load", "libra"]));
    assert!(again.contains("loaded already"), "{again}");
    let bad = said(&ends(2, &["kernel", "load", "libra", "--y", "101"]));
    assert!(bad.contains("y is 101, expected 0 to 100"), "{bad}");
    ends(0, &["kernel", "unload", "libra"]);
    ends(1, &["kernel", "unload", "libra"]);
    assert!(!Path::new(FOLDER).exists());

    // Killed at every stage of its work: the next start always has a whole one.
    for stage in 0..12 {
        let mut child = Command::new(env!("CARGO_BIN_EXE_comity"))
            .args(["kernel", "load", "libra"])
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        // Each round takes the command a little further.
        for _ in 0..stage * 400 {
            if Path::new(FOLDER).join("flows").exists() {
                break;
            }
        }
        child.kill().unwrap();
        child.wait().unwrap();
        if !is_loaded() {
            ends(0, &["kernel", "load", "libra"]);
        }
        assert_eq!(out(&ends(0, &["kernel", "status"])), "libra has no flows\n");
        ends(0, &["kernel", "unload", "libra"]);
        assert!(!Path::new(FOLDER).exists());
    }
}
