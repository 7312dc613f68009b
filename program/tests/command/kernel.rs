//! `comity kernel`, if the kernel can load its controllers; otherwise the message about what is
//! missing.

use std::path::Path;
use std::process::{Command, Stdio};

use super::{comity, ends, out, said};

/// A controller: its options, the output of `list` with them, and an invalid option with its error.
struct Case {
    name: &'static str,
    options: &'static [&'static str],
    list: &'static str,
    bad: [&'static str; 2],
    refusal: &'static str,
}

const CASES: [Case; 2] = [
    Case {
        name: "libra",
        options: &["--capacity", "50Mbps", "--capacity-to", "10.1.2.3/8=20Mbps"],
        list: "libra\n  a 1s, b 1s, x 2, y 2\n  capacity 50Mbps, memory 60s, pairs paced\n  \
               capacity 20Mbps to 10.0.0.0/8\n",
        bad: ["--y", "101"],
        refusal: "y is 101, expected 0 to 100",
    },
    Case {
        name: "real",
        options: &["--max-level", "12", "--opening", "sender", "--text-weights"],
        list: "real\n  max_level 12, threshold_share 0.5, opening sender, weights text, fractions kept\n  \
               compare_with_timeouts true, level_of_wave false, fixed_waves false, \
               timeout_reduction without_duplicates\n",
        bad: ["--max-level", "0"],
        refusal: "max_level is 0, expected 1 to 10000",
    },
];

fn is_loaded(name: &str) -> bool {
    out(&ends(0, &["kernel", "list", "--json"])).contains(&format!("\"{name}\""))
}

/// One test, because the kernel has only one of each controller.
#[test]
fn controllers_load_list_show_and_unload_even_after_a_kill() {
    let wrong = ends(2, &["kernel", "load", "libra", "--y", "fast"]);
    assert!(said(&wrong).contains("fast"), "{}", said(&wrong));
    for Case { name, .. } in CASES {
        let refused = said(&ends(2, &["kernel", "load", name, "--cgroup", "/proc"]));
        assert!(
            refused.contains("/proc is no cgroup of version 2: "),
            "{refused}"
        );
        let _ = comity(&["kernel", "unload", name]);
        assert!(!is_loaded(name));
    }
    ends(1, &["kernel", "status"]);
    for case in CASES {
        check(&case);
    }
}

fn check(case: &Case) {
    let name = case.name;
    let folder = Path::new("/sys/fs/bpf/comity").join(name);
    let loaded = comity(&[&["kernel", "load", name][..], case.options].concat());
    if !loaded.status.success() {
        let reason = said(&loaded);
        let expected = format!("the kernel cannot run {name} here: ");
        assert!(reason.contains(&expected), "{reason}");
        assert!(std::env::var_os("COMITY_NEED_KERNEL").is_none(), "{reason}");
        return;
    }
    let none = format!("{name} has no flows\n");
    assert_eq!(out(&ends(0, &["kernel", "list"])), case.list);
    assert_eq!(out(&ends(0, &["kernel", "status"])), none);
    let again = said(&ends(1, &["kernel", "load", name]));
    assert!(again.contains("loaded already"), "{again}");
    let bad = said(&ends(
        2,
        &[&["kernel", "load", name][..], &case.bad].concat(),
    ));
    assert!(bad.contains(case.refusal), "{bad}");
    ends(0, &["kernel", "unload", name]);
    ends(1, &["kernel", "unload", name]);
    assert!(!folder.exists());

    // The command is killed at every stage of its work. Afterwards the controller is either whole
    // or not loaded.
    for stage in 0..12 {
        let mut child = Command::new(env!("CARGO_BIN_EXE_comity"))
            .args(["kernel", "load", name])
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        // Each round takes the command a little further.
        for _ in 0..stage * 400 {
            if folder.join("flows").exists() {
                break;
            }
        }
        child.kill().unwrap();
        child.wait().unwrap();
        if !is_loaded(name) {
            ends(0, &["kernel", "load", name]);
        }
        assert_eq!(out(&ends(0, &["kernel", "status"])), none);
        ends(0, &["kernel", "unload", name]);
        assert!(!folder.exists());
    }
}
