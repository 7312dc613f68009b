//! `comity sim trace`

use std::fs::File;
use std::io::{self, BufWriter, ErrorKind, Write};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

use comity_sim::network::Network;
use comity_sim::scenario::{Run, Scenario};
use comity_sim::trace::{CapturePoints, TraceError, Tracer};
use comity_sim::{RunOptions, run_observed};

use super::super::interrupt::{self, LINGER};
use super::super::progress::timed;
use super::super::tables::plural;
use super::super::{Failure, complain, say};
use super::load::{choose_runs, load};
use crate::args;

/// The maximum number of logs written at once. Each needs an open file.
const MAX_LOGS: usize = 200;

pub(crate) fn trace(args: &args::Trace) -> Result<(), Failure> {
    let scenario = load(&args.reading, args.seed.map(|seed| vec![seed]))?;
    let run = &find_run(&scenario, args)?;
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
    if args.qlog.is_some() && flows.len() > MAX_LOGS {
        complain(&format!(
            "{} would each have a qlog file; expected at most {MAX_LOGS}; choose flows with --flow",
            plural(flows.len(), "flow")
        ));
        return Err(Failure::Usage);
    }
    if !args.link.is_empty() && args.pcapng.is_none() && args.csv.is_none() {
        complain(
            &"--link: a qlog file has no links; expected --pcapng or --csv as well, or no --link",
        );
        return Err(Failure::Usage);
    }
    let outputs = Outputs::new(args, &network, &flows);
    if outputs.all().filter(|target| target.is_standard()).count() > 1 {
        complain(&"expected only one trace for standard output (-)");
        return Err(Failure::Usage);
    }
    discard_when_interrupted(&outputs);
    let written = timed("tracing", || -> Result<(), Error> {
        let mut tracer = Tracer::new(&network, &links, &flows);
        let changing = change_files();
        if let Some(target) = &outputs.capture {
            let points = match args.capture {
                args::Capture::After => CapturePoints::After,
                args::Capture::Before => CapturePoints::Before,
                args::Capture::Both => CapturePoints::Both,
            };
            tracer.capture(points, target.create()?)?;
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
    });
    if let Err(error) = written {
        outputs.all().for_each(Target::discard);
        return Err(complain(&error));
    }
    for target in outputs.all() {
        target.announce();
    }
    Ok(())
}

/// The chosen run.
fn find_run(scenario: &Scenario, args: &args::Trace) -> Result<Run, Failure> {
    let Some(number) = args.run else {
        let runs = choose_runs(scenario, &args.point, None)?;
        return runs.into_iter().next().ok_or(Failure::Failed);
    };
    let mut runs = scenario.runs();
    if number >= runs.len() {
        let last = runs.len() - 1;
        complain(&format!("there is no run {number}; expected 0 to {last}"));
        return Err(Failure::Usage);
    }
    Ok(runs.swap_remove(number))
}

/// Held while files are created or renamed, so that an interrupt finds all of them or none.
fn change_files() -> MutexGuard<'static, ()> {
    static CHANGING: Mutex<()> = Mutex::new(());
    CHANGING.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Makes the interrupt key end the program without leaving incomplete files.
fn discard_when_interrupted(outputs: &Outputs) {
    let partial: Vec<PathBuf> = outputs
        .all()
        .filter_map(Target::partial)
        .map(Path::to_owned)
        .collect();
    interrupt::on_request(
        "and leaves unfinished files behind",
        Some(LINGER),
        move |_| {
            let _until_the_end = change_files();
            for path in &partial {
                let _ = std::fs::remove_file(path);
            }
            say("interrupted: no trace was written");
            std::process::exit(130);
        },
    );
}

/// The indices of the items with these names.
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
    Create(PathBuf, io::Error),
    Io(io::Error),
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

/// The destination of a trace.
enum Target {
    /// A file that gets its path when it is complete.
    File { path: PathBuf, partial: PathBuf },
    /// The standard output, written during the run.
    Standard,
}

impl Target {
    fn new(path: &Path) -> Self {
        if path == Path::new("-") {
            return Self::Standard;
        }
        let mut name = std::ffi::OsString::from(".");
        name.push(path.file_name().unwrap_or_default());
        name.push(format!(".{}.partial", std::process::id()));
        Self::File {
            path: path.to_owned(),
            partial: path.with_file_name(name),
        }
    }

    const fn is_standard(&self) -> bool {
        matches!(self, Self::Standard)
    }

    /// The file on the disk before the trace is complete.
    fn partial(&self) -> Option<&Path> {
        match self {
            Self::File { partial, .. } => Some(partial),
            Self::Standard => None,
        }
    }

    fn create(&self) -> Result<BufWriter<Box<dyn Write>>, Error> {
        let out: Box<dyn Write> = match self {
            Self::File { path, partial } => {
                Box::new(create(partial).map_err(|error| Error::Create(path.clone(), error))?)
            }
            Self::Standard => Box::new(WhileRead::new(io::stdout())),
        };
        Ok(BufWriter::with_capacity(1 << 16, out))
    }

    fn keep(&self) -> Result<(), Error> {
        match self {
            Self::File { path, partial } => {
                std::fs::rename(partial, path).map_err(|error| Error::Create(path.clone(), error))
            }
            Self::Standard => Ok(()),
        }
    }

    /// Removes the partial file, if there is one.
    fn discard(&self) {
        if let Some(partial) = self.partial() {
            let _ = std::fs::remove_file(partial);
        }
    }

    fn announce(&self) {
        if let Self::File { path, .. } = self {
            say(&format!("wrote {}", path.display()));
        }
    }
}

/// Creates a file, and removes one that a killed process has left. Writes to no existing file: it
/// may be a link that another user made.
fn create(path: &Path) -> io::Result<File> {
    match File::create_new(path) {
        Err(error) if error.kind() == ErrorKind::AlreadyExists => {
            std::fs::remove_file(path)?;
            File::create_new(path)
        }
        created => created,
    }
}

/// Writes until the reader of the pipe, such as `head`, closes it. The other traces of the run
/// continue.
struct WhileRead<W> {
    out: W,
    is_over: bool,
}

impl<W> WhileRead<W> {
    const fn new(out: W) -> Self {
        Self {
            out,
            is_over: false,
        }
    }

    /// `result`, or `otherwise` once the reader is gone.
    fn unless_over<T>(&mut self, result: io::Result<T>, otherwise: T) -> io::Result<T> {
        match result {
            Err(error) if error.kind() == ErrorKind::BrokenPipe => {
                self.is_over = true;
                Ok(otherwise)
            }
            result => result,
        }
    }
}

impl<W: Write> Write for WhileRead<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if self.is_over {
            return Ok(bytes.len());
        }
        let written = self.out.write(bytes);
        self.unless_over(written, bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        if self.is_over {
            return Ok(());
        }
        let flushed = self.out.flush();
        self.unless_over(flushed, ())
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

/// `out.sqlog` with the name of a flow: `out.tcp-0.sqlog`.
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

    /// A pipe that accepts this many writes.
    struct Pipe(u32);

    impl Write for Pipe {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0 = self.0.checked_sub(1).ok_or(ErrorKind::BrokenPipe)?;
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Err(ErrorKind::StorageFull.into())
        }
    }

    #[test]
    fn a_link_with_the_name_of_a_partial_file_is_replaced() {
        let folder = std::env::temp_dir().join(format!("comity-trace-{}", std::process::id()));
        std::fs::create_dir(&folder).unwrap();
        let precious = folder.join("precious");
        std::fs::write(&precious, "text").unwrap();
        let target = Target::new(&folder.join("link.pcapng"));
        std::os::unix::fs::symlink(&precious, target.partial().unwrap()).unwrap();
        target.create().unwrap().write_all(b"trace").unwrap();
        target.keep().unwrap();
        let read = |path: &Path| std::fs::read_to_string(path).unwrap();
        assert_eq!(read(&precious), "text");
        assert_eq!(read(&folder.join("link.pcapng")), "trace");
        std::fs::remove_dir_all(&folder).unwrap();
    }

    #[test]
    fn a_closed_reader_is_ignored_and_other_errors_are_not() {
        let mut out = WhileRead::new(Pipe(1));
        out.write_all(b"read").unwrap();
        assert_eq!(out.flush().unwrap_err().kind(), ErrorKind::StorageFull);
        assert!(!out.is_over);
        out.write_all(b"not read").unwrap();
        assert!(out.is_over);
        out.flush().unwrap();
    }

    #[test]
    fn the_flow_name_precedes_the_extension() {
        let name = |path| named(Path::new(path), "tcp-0");
        assert_eq!(name("a/out.sqlog"), Path::new("a/out.tcp-0.sqlog"));
        assert_eq!(name("out"), Path::new("out.tcp-0"));
    }
}
