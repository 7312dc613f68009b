//! Compiles the BPF programs. CO-RE fits the objects to any kernel, so servers need no compiler.

use std::env;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The programs: `bpf/<name>.bpf.c`.
const PROGRAMS: [&str; 2] = ["libra", "real"];

fn main() {
    println!("cargo::rustc-check-cfg=cfg(has_program)");
    println!("cargo::rerun-if-changed=bpf");
    println!("cargo::rerun-if-env-changed=CLANG");
    if env::var_os("CARGO_FEATURE_BPF").is_none() {
        return;
    }
    let clang = env::var_os("CLANG").unwrap_or_else(|| "clang".into());
    if Command::new(&clang).arg("--version").output().is_err() {
        // Without the file Cargo runs this again at each build, until clang is installed.
        println!("cargo::rerun-if-changed=/usr/bin/clang");
        println!("cargo::warning=clang is missing: `comity kernel load` will not work");
        return;
    }
    let folder = |name: &str| PathBuf::from(env::var_os(name).expect("Cargo sets it"));
    // The headers of BPF programs, from the crate that builds libbpf.
    let headers = folder("DEP_BPF_INCLUDE");
    for program in PROGRAMS {
        let source = Path::new("bpf").join(format!("{program}.bpf.c"));
        let status = Command::new(&clang)
            .args([
                "-O2", "-g", "-target", "bpf", "-mcpu=v3", "-Wall", "-Werror", "-I",
            ])
            .arg(&headers)
            .arg("-c")
            .arg(&source)
            .arg("-o")
            .arg(folder("OUT_DIR").join(format!("{program}.bpf.o")))
            .status();
        assert!(
            status.is_ok_and(|status| status.success()),
            "clang does not compile {}; its messages are above",
            source.display()
        );
    }
    println!("cargo::rustc-cfg=has_program");
}
