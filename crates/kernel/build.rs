//! Compiles the BPF program. CO-RE fits the object to any kernel, so servers need no compiler.

use std::env;
use std::path::{Path, PathBuf};
use std::process::Command;

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
    let object = folder("OUT_DIR").join("libra.bpf.o");
    let status = Command::new(&clang)
        .args([
            "-O2", "-g", "-target", "bpf", "-mcpu=v3", "-Wall", "-Werror", "-I",
        ])
        .arg(&headers)
        .arg("-c")
        .arg(Path::new("bpf").join("libra.bpf.c"))
        .arg("-o")
        .arg(&object)
        .status();
    assert!(
        status.is_ok_and(|status| status.success()),
        "clang does not compile bpf/libra.bpf.c; its messages are above"
    );
    println!("cargo::rustc-cfg=has_program");
}
