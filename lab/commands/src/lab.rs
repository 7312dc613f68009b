//! `comity lab`

use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use comity_lab::endpoint::{self, Task};
use comity_lab::{Clock, EndpointCall, Error, Role, Settings};
use comity_sim::network::{FlowSpec, TransportSpec};
use comity_sim::results::store::RunStore;
use comity_sim::scenario::{Interrupted, Run, RunSettings, Scenario};

use super::progress::{OnInterrupt, RunReporter};
use super::sim::load::{load, load_silently};
use super::sim::run::{Job, Measured, Outcome};
use super::{Failure, complain, print, say};
use crate::args;

/// `comity lab`.
///
/// # Errors
/// If the command fails. The message is printed.
pub fn lab(args: args::Lab) -> Result<(), Failure> {
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
    let scenario = Arc::new(load(&args.reading, args.printing.seeds())?);
    let records = Records {
        is_only_run: scenario.run_count() == 1,
        pcapng: args.pcapng,
        qlog: args.qlog,
        logs: args.logs,
    };
    let mut has_endpoints = false;
    // Reports runs that the lab cannot do before the first run starts, not hours later.
    for run in scenario.runs() {
        let (network, asked) = scenario.prepare(&run);
        let is_of_sections = |flow: &FlowSpec| matches!(flow.transport, TransportSpec::Sections(_));
        has_endpoints |= network.flows.iter().any(is_of_sections);
        let settings = records.settings(&run, asked);
        if let Err(error) = comity_lab::check(&network, run.seed, &settings) {
            let failure = complain(&error);
            return Err(if error.is_usage() {
                Failure::Usage
            } else {
                failure
            });
        }
    }
    for (option, is_idle, what) in [
        (
            "--qlog",
            records.qlog.is_some() && !has_endpoints,
            "flows with transport = \"sections\"",
        ),
        (
            "--logs",
            records.logs.is_some() && !scenario.is_for_lab(),
            "flows with transport = \"command\"",
        ),
    ] {
        if is_idle {
            complain(&format!(
                "{option}: the scenario has nothing to write there; expected {what}, or no {option}"
            ));
            return Err(Failure::Usage);
        }
    }
    let job = Job {
        world: "lab",
        reading: &args.reading,
        printing: &args.printing,
        // The lab removes its namespaces before the program ends.
        on_interrupt: OnInterrupt::Wait,
        runs: scenario.run_count(),
        is_shard: false,
    };
    let running = |store: Option<Arc<RunStore>>| {
        let (scenario, reading) = (scenario.clone(), args.reading.clone());
        move |cancel: &'static AtomicBool,
              reporter: &RunReporter<Outcome, Result<(), Interrupted>>| {
            for run in scenario.runs() {
                let interrupted = Interrupted { done: run.number };
                if cancel.load(Ordering::Relaxed) {
                    return Err(interrupted);
                }
                let endpoint = |call: &EndpointCall| endpoint_command(&reading, &run, call);
                let (network, asked) = scenario.prepare(&run);
                if let Some(stored) = store.as_ref().and_then(|store| store.get(run.number)) {
                    reporter.finished(run.number + 1);
                    let measured = Measured {
                        report: stored.report,
                        backbone: asked.backbone,
                        complaints: Vec::new(),
                    };
                    reporter.news((run, Ok(measured)));
                    continue;
                }
                let settings = Settings {
                    endpoint: Some(&endpoint),
                    stop: Some(cancel),
                    ..records.settings(&run, asked)
                };
                let made = records.make_folders(&run);
                let result =
                    made.and_then(|()| match comity_lab::run(&network, run.seed, &settings) {
                        Ok((report, mut complaints)) => {
                            if let Some(store) = &store {
                                let completed = scenario.completed(&run, report.clone());
                                complaints
                                    .extend(store.add(completed).err().map(|e| e.to_string()));
                            }
                            Ok(Ok(Measured {
                                report,
                                backbone: asked.backbone,
                                complaints,
                            }))
                        }
                        Err(Error::Interrupted) => Ok(Err(())),
                        Err(error) => Err(error.to_string()),
                    });
                let outcome = match result {
                    Ok(Ok(measured)) => Ok(measured),
                    Ok(Err(())) => return Err(interrupted),
                    Err(reason) => Err(reason),
                };
                reporter.finished(run.number + 1);
                reporter.news((run, outcome));
            }
            Ok(())
        }
    };
    job.execute(&scenario, running)
}

/// The files to write besides the results.
struct Records {
    is_only_run: bool,
    pcapng: Vec<(String, PathBuf)>,
    qlog: Option<PathBuf>,
    logs: Option<PathBuf>,
}

impl Records {
    /// The settings of a run. Each of several runs has its own files.
    fn settings(&self, run: &Run, asked: RunSettings) -> Settings<'static> {
        let captures = self.pcapng.iter();
        Settings {
            run: asked,
            captures: captures
                .map(|(link, file)| (link.clone(), self.file(run, file)))
                .collect(),
            qlog: self.qlog.as_ref().map(|folder| self.folder(run, folder)),
            logs: self.logs.as_ref().map(|folder| self.folder(run, folder)),
            ..Settings::default()
        }
    }

    fn make_folders(&self, run: &Run) -> Result<(), String> {
        for folder in [&self.qlog, &self.logs].into_iter().flatten() {
            // The folder of the run lies in it.
            for folder in [folder, &self.folder(run, folder)] {
                comity_lab::make_folder(folder)
                    .map_err(|error| format!("cannot make {}: {error}", folder.display()))?;
            }
        }
        Ok(())
    }

    /// `DIR`, or `DIR/run-7` if there are several runs.
    fn folder(&self, run: &Run, folder: &Path) -> PathBuf {
        if self.is_only_run {
            folder.to_owned()
        } else {
            folder.join(format!("run-{}", run.number))
        }
    }

    /// `link.pcapng`, or `link.run-7.pcapng` if there are several runs.
    fn file(&self, run: &Run, file: &Path) -> PathBuf {
        if self.is_only_run {
            return file.to_owned();
        }
        let mut name = file.file_stem().unwrap_or_default().to_owned();
        name.push(format!(".run-{}.", run.number));
        name.push(file.extension().unwrap_or("pcapng".as_ref()));
        file.with_file_name(name)
    }
}

/// The command that runs one end of a flow, with this program.
fn endpoint_command(reading: &args::Reading, run: &Run, call: &EndpointCall) -> Command {
    // All processes use the same build, even if the file of the program has been replaced
    // meanwhile.
    let mut command = Command::new(format!("/proc/{}/exe", std::process::id()));
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
    let scenario: Scenario = load_silently(&args.reading, Some(vec![args.seed]))?;
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

#[cfg(test)]
mod tests {
    use comity_units::Seed;

    use super::*;

    #[test]
    fn each_of_several_runs_has_files_of_its_own() {
        let run = Run {
            number: 7,
            point: 3,
            seed: Seed::new(2),
            values: Arc::new([]),
        };
        let mut records = Records {
            is_only_run: true,
            pcapng: vec![
                ("up".into(), "a/up.pcapng".into()),
                ("down".into(), "down".into()),
            ],
            qlog: Some("qlogs".into()),
            logs: None,
        };
        let files = |records: &Records| -> Vec<PathBuf> {
            let settings = records.settings(&run, RunSettings::default());
            settings
                .captures
                .into_iter()
                .map(|(_, file)| file)
                .collect()
        };
        assert_eq!(
            files(&records),
            [Path::new("a/up.pcapng"), Path::new("down")]
        );
        records.is_only_run = false;
        assert_eq!(
            files(&records),
            [
                Path::new("a/up.run-7.pcapng"),
                Path::new("down.run-7.pcapng")
            ]
        );
        let settings = records.settings(&run, RunSettings::default());
        assert_eq!(settings.qlog.as_deref(), Some(Path::new("qlogs/run-7")));
        assert_eq!(settings.logs, None);
    }

    #[test]
    fn a_key_is_64_hexadecimal_digits() {
        let text = "00ff".repeat(16);
        let key = bytes_of(&text).unwrap();
        assert_eq!(key[..4], [0, 255, 0, 255]);
        for bad in ["", "00", &"zz".repeat(32), &"00ff".repeat(17)] {
            assert_eq!(bytes_of(bad), None, "{bad}");
        }
    }
}
