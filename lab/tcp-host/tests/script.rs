//! Packet scripts: what a stack sends and returns, packet by packet and call by call.
//!
//! Each file in `tests/scripts` is a script of packetdrill, which also runs against the host in
//! virtual time. `docs/results/tcp-scripts.md` shows what they hold and where the host differs.
//!
//! `COMITY_SCRIPT=part-of-a-name` runs some of them.

mod check;
mod cursor;
mod host;
mod kernel;
mod language;
mod page;
mod parse;
mod run;
mod stack;
mod wire;

use std::path::PathBuf;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use self::host::Comity;
use self::kernel::Kernel;
use self::language::{Family, Script};
use crate::kernel::{is_skipped, missing};

fn folder() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/scripts")
}

/// All scripts, by their names.
fn scripts() -> Vec<Script> {
    let only = std::env::var("COMITY_SCRIPT").unwrap_or_default();
    let entries = std::fs::read_dir(folder()).unwrap();
    let paths = entries.map(|entry| entry.unwrap().path());
    let mut paths: Vec<PathBuf> = paths
        .filter(|path| path.extension().is_some_and(|it| it == "pkt"))
        .collect();
    paths.sort();
    let parse = |path: &PathBuf| {
        let name = path.file_name().unwrap().to_string_lossy();
        let script = parse::parse(&name, &std::fs::read_to_string(path).unwrap());
        script.unwrap_or_else(|problem| panic!("{problem}"))
    };
    let scripts = paths.iter().map(parse);
    scripts
        .filter(|script| script.file.contains(&only))
        .collect()
}

/// Every script in every family.
fn runs(scripts: &[Script]) -> Vec<(&Script, Family)> {
    let runs = scripts.iter().flat_map(|script| {
        let families = script.families.iter();
        families.map(move |family| (script, *family))
    });
    runs.collect()
}

#[test]
fn the_host_follows_every_script() {
    let scripts = scripts();
    let run = |(script, family): (&Script, Family)| {
        let mut host =
            Comity::new(script, family).map_err(|problem| format!("{}: {problem}", script.file))?;
        run::run(script, family, &mut host)
    };
    let results = runs(&scripts).into_iter().map(run);
    let failures: Vec<String> = results.filter_map(Result::err).collect();
    assert!(failures.is_empty(), "{}", failures.join("\n"));
}

#[test]
fn the_kernel_follows_every_script() {
    /// Scripts mostly wait.
    const AT_ONCE: usize = 8;
    if let Some(reason) = missing() {
        return is_skipped(&reason);
    }
    let scripts = scripts();
    let runs = runs(&scripts);
    let (next, failures) = (AtomicUsize::new(0), Mutex::new(Vec::new()));
    std::thread::scope(|scope| {
        for _ in 0..AT_ONCE {
            scope.spawn(|| {
                while let Some((script, family)) = runs.get(next.fetch_add(1, Ordering::Relaxed)) {
                    if let Err(problem) = run_in_kernel(script, *family) {
                        failures.lock().unwrap().push(problem);
                    }
                }
            });
        }
    });
    let failures = failures.into_inner().unwrap();
    let version = std::fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
    assert!(
        failures.is_empty(),
        "{}\nThe scripts describe Linux 6.18; this is {version}",
        failures.join("\n")
    );
}

/// Runs a script against the kernel. On a busy machine its timers and those of the script are late,
/// so what fails has to fail five times.
fn run_in_kernel(script: &Script, family: Family) -> Result<(), String> {
    let once = || {
        let mut kernel = Kernel::new(script, family, &folder());
        run::run(script, family, &mut kernel)
    };
    let mut result = Ok(());
    for _ in 0..5 {
        // The namespace ends with the thread.
        result = std::thread::scope(|scope| scope.spawn(once).join().unwrap());
        if result.is_ok() {
            break;
        }
    }
    result
}

#[test]
fn the_page_of_the_scripts_is_up_to_date() {
    let path = "../../docs/results/tcp-scripts.md";
    comity_testkit::page::assert_up_to_date(path, &page::page(&scripts()));
}
