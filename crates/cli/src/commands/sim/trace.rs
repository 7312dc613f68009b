//! `comity sim trace`

use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

use comity_sim::network::Network;
use comity_sim::trace::{TraceError, Tracer};
use comity_sim::{RunOptions, run_observed};

use super::super::{Failure, complain, say};
use super::load;
use super::tables::plural;
use crate::args;

/// The most logs that are written at once, each of which is an open file.
const MOST_LOGS: usize = 200;

pub(crate) fn trace(args: &args::Trace) -> Result<(), Failure> {
    let scenario = load(&args.reading, None)?;
    let runs = scenario.runs();
    let Some(run) = runs.get(args.run) else {
        let last = runs.len() - 1;
        complain(&format!(
            "there is no run {}; expected 0 to {last}",
            args.run
        ));
        return Err(Failure::Usage);
    };
    let (network, settings) = scenario.prepare(run);
    let links = if args.link.is_empty() {
        (0..settings.backbone).collect()
    } else {
        let names = network.links.iter().map(|link| link.name.as_str());
        choose("link", &args.link, names)?
    };
    let flows: Vec<usize> = if args.flow.is_empty() {
        (0..network.flows.len()).collect()
    } else {
        let names = network.flows.iter().map(|flow| flow.name.as_str());
        choose("flow", &args.flow, names)?
    };
    if args.qlog.is_some() && flows.len() > MOST_LOGS {
        complain(&format!(
            "{} would each get a log, and at most {MOST_LOGS} can; choose some with --flow",
            plural(flows.len(), "flow")
        ));
        return Err(Failure::Usage);
    }
    let outputs = Outputs::new(args, &network, &flows);
    discard_when_interrupted(&outputs);
    let written = (|| -> Result<(), Error> {
        let mut tracer = Tracer::new(&network, &links, &flows);
        let changing = change_files();
        if let Some(target) = &outputs.capture {
            tracer.capture(target.create()?)?;
        }
        for (flow, target) in &outputs.logs {
            let title = format!("{}, run {}", scenario.name(), run.number);
            tracer.log(*flow, &title, target.create()?)?;
        }
        if let Some(target) = &outputs.events {
            tracer.events(target.create()?)?;
        }
        drop(changing);
        let options = RunOptions { collapse: false };
        run_observed(&network, run.seed, &options, &mut tracer)
            .map_err(|error| Error::Run(error.to_string()))?;
        for mut out in tracer.finish()? {
            out.flush().map_err(Error::Io)?;
        }
        let _changing = change_files();
        for target in outputs.all() {
            target.keep()?;
        }
        Ok(())
    })();
    if let Err(error) = written {
        outputs.all().for_each(Target::discard);
        return Err(complain(&error));
    }
    for target in outputs.all() {
        say(&format!("wrote {}", target.path.display()));
    }
    Ok(())
}

/// Held while files are made or take their names, so that an interrupt finds all of them or none.
fn change_files() -> MutexGuard<'static, ()> {
    static CHANGING: Mutex<()> = Mutex::new(());
    CHANGING.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Has the interrupt key end the program with nothing left behind.
fn discard_when_interrupted(outputs: &Outputs) {
    let partial: Vec<PathBuf> = outputs.all().map(|target| target.partial.clone()).collect();
    let handler = ctrlc::set_handler(move || {
        let _until_the_end = change_files();
        for path in &partial {
            let _ = std::fs::remove_file(path);
        }
        say("interrupted: no trace was written");
        std::process::exit(130);
    });
    if let Err(error) = handler {
        say(&format!(
            "warning: the interrupt key leaves unfinished files behind: {error}"
        ));
    }
}

/// The indices of the things that are called so.
fn choose<'n>(
    what: &str,
    chosen: &[String],
    names: impl Iterator<Item = &'n str> + Clone,
) -> Result<Vec<usize>, Failure> {
    let mut indices = Vec::new();
    for name in chosen {
        match names.clone().position(|known| known == name) {
            Some(index) if indices.contains(&index) => {}
            Some(index) => indices.push(index),
            None => {
                const MOST: usize = 12;
                let known: Vec<_> = names.clone().take(MOST).collect();
                let more = names.count().saturating_sub(MOST);
                let rest = if more > 0 {
                    format!(" and {more} more")
                } else {
                    String::new()
                };
                complain(&format!(
                    "there is no {what} {name:?}; there are {}{rest}",
                    known.join(", ")
                ));
                return Err(Failure::Usage);
            }
        }
    }
    Ok(indices)
}

/// Why a trace was not written.
#[derive(Debug)]
enum Error {
    Create(PathBuf, std::io::Error),
    Io(std::io::Error),
    Run(String),
    Trace(TraceError),
}

impl From<TraceError> for Error {
    fn from(error: TraceError) -> Self {
        Self::Trace(error)
    }
}

impl std::fmt::Display for Error {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Create(path, error) => write!(f, "cannot write {}: {error}", path.display()),
            Self::Io(error) => write!(f, "cannot write a trace: {error}"),
            Self::Run(error) => write!(f, "the run failed: {error}"),
            Self::Trace(error) => write!(f, "cannot write {error}"),
        }
    }
}

/// A file that appears when it is whole.
struct Target {
    path: PathBuf,
    partial: PathBuf,
}

impl Target {
    fn new(path: &Path) -> Self {
        let mut name = std::ffi::OsString::from(".");
        name.push(path.file_name().unwrap_or_default());
        name.push(format!(".{}.partial", std::process::id()));
        Self {
            path: path.to_owned(),
            partial: path.with_file_name(name),
        }
    }

    fn create(&self) -> Result<BufWriter<File>, Error> {
        File::create(&self.partial)
            .map(|file| BufWriter::with_capacity(1 << 16, file))
            .map_err(|error| Error::Create(self.path.clone(), error))
    }

    fn keep(&self) -> Result<(), Error> {
        std::fs::rename(&self.partial, &self.path)
            .map_err(|error| Error::Create(self.path.clone(), error))
    }

    /// Removes what was written so far; that there may be nothing is no matter.
    fn discard(&self) {
        let _ = std::fs::remove_file(&self.partial);
    }
}

struct Outputs {
    capture: Option<Target>,
    logs: Vec<(usize, Target)>,
    events: Option<Target>,
}

impl Outputs {
    fn new(args: &args::Trace, network: &Network, flows: &[usize]) -> Self {
        let logs = match &args.qlog {
            None => Vec::new(),
            Some(path) => flows
                .iter()
                .filter_map(|flow| {
                    let name = &network.flows.get(*flow)?.name;
                    let path = if flows.len() == 1 {
                        path.clone()
                    } else {
                        named(path, name)
                    };
                    Some((*flow, Target::new(&path)))
                })
                .collect(),
        };
        Self {
            capture: args.pcapng.as_deref().map(Target::new),
            logs,
            events: args.csv.as_deref().map(Target::new),
        }
    }

    fn all(&self) -> impl Iterator<Item = &Target> {
        self.capture
            .iter()
            .chain(self.logs.iter().map(|(_, target)| target))
            .chain(&self.events)
    }
}

/// `out.sqlog` with the name of a flow in it: `out.tcp-0.sqlog`.
fn named(path: &Path, name: &str) -> PathBuf {
    let stem = path.file_stem().unwrap_or_default().to_string_lossy();
    match path.extension() {
        Some(extension) => {
            path.with_file_name(format!("{stem}.{name}.{}", extension.to_string_lossy()))
        }
        None => path.with_file_name(format!("{stem}.{name}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_name_of_a_flow_stands_before_the_ending() {
        let name = |path| named(Path::new(path), "tcp-0");
        assert_eq!(name("a/out.sqlog"), Path::new("a/out.tcp-0.sqlog"));
        assert_eq!(name("out"), Path::new("out.tcp-0"));
    }
}
