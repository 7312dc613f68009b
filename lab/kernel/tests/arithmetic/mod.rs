//! The fixed-point arithmetic of the programs, compiled for user space, against the simulator's
//! controllers in floating point.

mod libra;
mod real;

use std::fmt::Write as _;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// Compiles `tests/arithmetic/<name>.c`. Rust needs a C compiler to link, so there is one.
fn compiled(name: &str) -> PathBuf {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let program = Path::new(env!("CARGO_TARGET_TMPDIR"))
        .join(format!("arithmetic-{name}-{}", std::process::id()));
    let source = root.join(format!("tests/arithmetic/{name}.c"));
    let status = Command::new("cc")
        .args([
            "-O1",
            "-Wall",
            "-Wextra",
            "-Werror",
            "-fsanitize=undefined",
            "-fno-sanitize-recover=all",
            "-I",
        ])
        .arg(root.join("bpf"))
        .arg(&source)
        .arg("-o")
        .arg(&program)
        .status()
        .expect("a C compiler");
    assert!(status.success(), "{} does not compile", source.display());
    program
}

/// The answers of a program to numbers and events.
fn answers(program: &Path, numbers: &[u64], events: &str) -> Vec<String> {
    let mut input = String::new();
    for number in numbers {
        write!(input, "{number} ").unwrap();
    }
    writeln!(input, "\n{events}").unwrap();
    let mut child = Command::new(program)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    // The answers are shorter than a pipe only for short scripts: written beside the reading.
    let mut stdin = child.stdin.take().unwrap();
    let writing = std::thread::spawn(move || stdin.write_all(input.as_bytes()));
    let output = child.wait_with_output().unwrap();
    writing.join().unwrap().unwrap();
    assert!(output.status.success(), "{:?}", output.status);
    let text = String::from_utf8(output.stdout).unwrap();
    text.lines().map(Into::into).collect()
}
