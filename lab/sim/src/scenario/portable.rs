//! Scenarios for processes without access to their files.

use std::collections::BTreeMap;
use std::io;
use std::path::Path;

use super::{Files, Problems, Reading, Scenario};

/// A scenario with everything that its runs depend on, for another process.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Portable {
    /// The name under which problems are reported.
    pub name: String,
    /// The text.
    pub text: String,
    /// The contents of the files that it names.
    pub files: BTreeMap<String, String>,
    /// The values that replace those of the text, as `path=value`.
    pub set: Vec<String>,
    /// The seeds.
    pub seeds: Vec<u64>,
}

impl Files for BTreeMap<String, String> {
    fn read(&self, path: &Path) -> io::Result<String> {
        let text = path.to_str().and_then(|path| self.get(path));
        text.cloned().ok_or_else(|| {
            io::Error::new(io::ErrorKind::NotFound, "it did not come with the scenario")
        })
    }
}

impl Scenario {
    /// The scenario for another process.
    ///
    /// # Errors
    /// A file can no longer be read.
    pub fn portable(&self) -> io::Result<Portable> {
        let files = self.library.names().into_iter().map(|file| {
            let text = self.files.read(Path::new(&file))?;
            Ok((file, text))
        });
        let source = self.sources.first();
        Ok(Portable {
            name: source.map_or_else(String::new, |source| source.name.clone()),
            text: self.text().to_owned(),
            files: files.collect::<io::Result<_>>()?,
            set: self.overrides.clone(),
            seeds: self.seeds.clone(),
        })
    }
}

impl Portable {
    /// Reads the scenario and checks every point.
    ///
    /// # Errors
    /// All problems of the scenario.
    pub fn scenario(self) -> Result<Scenario, Problems> {
        let reading = Reading {
            set: self.set,
            seeds: Some(self.seeds),
            ..Reading::default()
        };
        let read = || Scenario::parse(&self.name, &self.text, self.files, &reading);
        // A forked process has no threads of the global pool, and would wait for ever.
        match rayon::ThreadPoolBuilder::new().num_threads(1).build() {
            Ok(pool) => pool.install(read),
            Err(_) => read(),
        }
    }
}
