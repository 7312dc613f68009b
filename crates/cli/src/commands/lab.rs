//! `comity lab`

use std::io::Read as _;
use std::path::Path;
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use comity_lab::endpoint::{self, Task};
use comity_lab::{Clock, EndpointCall, Error, Role, Settings};
use comity_sim::scenario::{Interrupted, Run, Scenario};

use super::progress::Teller;
use super::sim::load;
use super::sim::run::{Outcome, Played, run_all};
use super::{Failure, complain, print, say};
use crate::args;

pub(crate) fn lab(args: args::Lab) -> Result<(), Failure> {
    match args {
        args::Lab::Run(args) => run(*args),
        args::Lab::Check => check(),
        args::Lab::Clean => clean(),
        args::Lab::Endpoint(args) => run_endpoint(&args),
    }
}

fn check() -> Result<(), Failure> {
    let missing = comity_lab::missing();
    if missing.is_empty() {
        return print("The lab can run here.\n");
    }
    for part in missing {
        say(&format!("missing: {part}"));
    }
    Err(Failure::Failed)
}

fn clean() -> Result<(), Failure> {
    match comity_lab::remove_stale() {
        Ok(removed) => print(format!("{removed} network namespaces removed\n")),
        Err(error) => Err(complain(&error)),
    }
}

fn run(args: args::LabRun) -> Result<(), Failure> {
    let missing = comity_lab::missing();
    if !missing.is_empty() {
        return Err(complain(&Error::Missing(missing)));
    }
    for folder in [&args.qlog, &args.logs].into_iter().flatten() {
        std::fs::create_dir_all(folder)
            .map_err(|error| complain(&format!("cannot make {}: {error}", folder.display())))?;
    }
    let scenario = Arc::new(load(&args.reading, args.printing.seeds())?);
    let running = {
        let scenario = scenario.clone();
        let (reading, pcapng) = (args.reading, args.pcapng);
        let (qlog, logs) = (args.qlog, args.logs);
        move |cancel: &'static AtomicBool, teller: &Teller<Outcome, Result<(), Interrupted>>| {
            for run in scenario.runs() {
                let endpoint = |call: &EndpointCall| endpoint_command(&reading, &run, call);
                let (network, asked) = scenario.prepare(&run);
                let settings = Settings {
                    run: asked,
                    endpoint: Some(&endpoint),
                    captures: pcapng.clone(),
                    qlog: qlog.clone(),
                    logs: logs.clone(),
                    stop: Some(cancel),
                };
                let result = comity_lab::run(&network, run.seed, &settings);
                if cancel.load(Ordering::Relaxed) {
                    return Err(Interrupted { done: run.number });
                }
                let result = result.map(|(report, complaints)| Played {
                    report,
                    backbone: asked.backbone,
                    complaints,
                });
                teller.finished(run.number + 1);
                teller.news((run, result.map_err(|error| error.to_string())));
            }
            Ok(())
        }
    };
    run_all(&scenario, &args.printing, running)
}

/// The command that runs one end of a flow: this program again.
fn endpoint_command(reading: &args::Reading, run: &Run, call: &EndpointCall) -> Command {
    // Where even that cannot be told, the program does not start, and says so.
    let program = std::env::current_exe().unwrap_or_else(|_| Path::new("comity").into());
    let mut command = Command::new(program);
    command.args(["lab", "endpoint"]).arg(&reading.file);
    for set in &reading.set {
        command.args(["--set", set]);
    }
    let number = |value: u64| value.to_string();
    command
        .args(["--seed", &number(run.seed.get())])
        .args(["--point", &number(run.point as u64)])
        .args(["--flow", &number(call.flow as u64)])
        .args(["--origin", &number(call.origin_ns)])
        .args(["--address", &call.address.to_string()])
        .args(["--port", &call.port.to_string()]);
    if call.role == Role::Source {
        command.arg("--is-source");
    }
    if let Some(qlog) = &call.qlog {
        command.arg("--qlog").arg(qlog);
    }
    command
}

fn run_endpoint(args: &args::LabEndpoint) -> Result<(), Failure> {
    let scenario: Scenario = load(&args.reading, Some(vec![args.seed]))?;
    let runs = scenario.runs();
    let Some(run) = runs.iter().find(|run| run.point == args.point) else {
        return Err(complain(&format!(
            "the scenario has no point {}",
            args.point
        )));
    };
    let mut key = String::new();
    std::io::stdin()
        .read_to_string(&mut key)
        .map_err(|error| complain(&format!("cannot read the key: {error}")))?;
    let task = Task {
        flow: args.flow,
        role: if args.is_source {
            Role::Source
        } else {
            Role::Destination
        },
        seed: run.seed,
        clock: Clock::with_origin(args.origin),
        address: args.address,
        port: args.port,
        key: bytes_of(&key).ok_or_else(|| complain(&"expected a key of 64 hexadecimal digits"))?,
        qlog: args.qlog.clone(),
    };
    let log = endpoint::run(&scenario.prepare(run).0, &task).map_err(|error| complain(&error))?;
    print(log)
}

/// The bytes of a key in hexadecimal digits.
fn bytes_of(text: &str) -> Option<[u8; 32]> {
    let mut key = [0; 32];
    if text.len() != 64 {
        return None;
    }
    for (byte, at) in key.iter_mut().zip((0..64).step_by(2)) {
        *byte = u8::from_str_radix(text.get(at..at + 2)?, 16).ok()?;
    }
    Some(key)
}
