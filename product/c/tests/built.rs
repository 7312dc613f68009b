//! The built library, and programs that use it.
#![allow(clippy::print_stderr, reason = "a skipped test says why")]

use std::env;
use std::ffi::OsString;
use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::LazyLock;
use std::sync::atomic::{AtomicU32, Ordering};

/// The library that cargo built for these tests.
pub(crate) fn library() -> PathBuf {
    let test = env::current_exe().unwrap();
    test.with_file_name("libcomity_c.so")
}

/// A tool, or `None` with a message that its tests are skipped.
pub(crate) fn tool(name: &str) -> Option<OsString> {
    match Command::new(name).arg("--version").output() {
        Ok(output) if output.status.success() => Some(name.into()),
        _ => skipped(&format!("{name} is not installed")),
    }
}

fn skipped<T>(why: &str) -> Option<T> {
    assert!(env::var_os("COMITY_NEED_CC").is_none(), "{why}");
    eprintln!("skipped: {why}; with COMITY_NEED_CC=1 this fails");
    None
}

/// A folder with the library under its installed names, and with the programs.
static FOLDER: LazyLock<PathBuf> = LazyLock::new(|| {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("c");
    fs::create_dir_all(&folder).unwrap();
    for name in ["libcomity.so", "libcomity.so.0"] {
        let name = folder.join(name);
        // One of an earlier run.
        let _ = fs::remove_file(&name);
        symlink(library(), name).unwrap();
    }
    folder
});

/// The number of programs: tests that share a source have programs of their own.
static PROGRAMS: AtomicU32 = AtomicU32::new(0);

/// Compiles a program, with what is in `CFLAGS`, and returns it; `None` without a compiler.
pub(crate) fn program(source: &str) -> Option<PathBuf> {
    compiled(source, &[])
}

/// Compiles a program that uses packages of FFmpeg; `None` without a compiler or one of them.
pub(crate) fn program_with(source: &str, packages: &[&str]) -> Option<PathBuf> {
    let flags = Command::new("pkg-config")
        .args(["--cflags", "--libs"])
        .args(packages)
        .output();
    match flags {
        Ok(flags) if flags.status.success() => {
            let flags = String::from_utf8(flags.stdout).unwrap();
            compiled(source, &flags.split_whitespace().collect::<Vec<_>>())
        }
        _ => skipped(&format!("pkg-config finds no {}", packages.join(", "))),
    }
}

fn compiled(source: &str, libraries: &[&str]) -> Option<PathBuf> {
    let cc = tool("cc")?;
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let source = root.join(source);
    let number = PROGRAMS.fetch_add(1, Ordering::Relaxed);
    let name = source.file_stem().unwrap().to_string_lossy();
    let program = FOLDER.join(format!("{name}-{number}"));
    let flags = env::var("CFLAGS").unwrap_or_default();
    let output = Command::new(cc)
        .args(["-std=c99", "-Wall", "-Wextra", "-Werror", "-g", "-pthread"])
        .args(flags.split_whitespace())
        .arg(&source)
        .arg("-o")
        .arg(&program)
        .arg("-I")
        .arg(root.join("include"))
        .arg("-L")
        .arg(&*FOLDER)
        .arg("-lcomity")
        .args(libraries)
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{}: {said}", source.display());
    Some(program)
}

/// Runs a program with the library, under what is in `COMITY_UNDER`, such as valgrind.
pub(crate) fn running(program: &Path) -> Command {
    let under = env::var("COMITY_UNDER").unwrap_or_default();
    let mut words = under.split_whitespace();
    let mut command = match words.next() {
        Some(tool) => {
            let mut command = Command::new(tool);
            command.args(words).arg(program);
            command
        }
        None => Command::new(program),
    };
    command.env("LD_LIBRARY_PATH", &*FOLDER);
    command
}

pub(crate) fn write(name: &str, bytes: &[u8]) -> PathBuf {
    let path = FOLDER.join(name);
    fs::write(&path, bytes).unwrap();
    path
}
