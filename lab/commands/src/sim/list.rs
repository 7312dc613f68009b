//! `comity sim list`

use std::fs;
use std::path::{Path, PathBuf};

use comity_sim::scenario::{Problems, Reading, Scenario};
use serde_json::{Value, json};

use super::super::files::cannot_open;
use super::super::tables::{Table, plural};
use super::super::{Failure, print};
use crate::args;

pub(crate) fn list(args: &args::List) -> Result<(), Failure> {
    let dir = args.dir.clone().unwrap_or_else(|| {
        let usual = PathBuf::from("experiments");
        if usual.is_dir() {
            usual
        } else {
            PathBuf::from(".")
        }
    });
    let mut files = Vec::new();
    if let Err(error) = find(&dir, &mut files) {
        return Err(cannot_open(&dir, &error));
    }
    files.sort();
    let found: Vec<_> = files
        .into_iter()
        .map(|file| {
            let outline = Scenario::outline(&file, &Reading::default());
            (file, outline)
        })
        .collect();
    if args.json {
        let list: Vec<_> = found
            .iter()
            .map(|(file, outline)| entry(file, outline))
            .collect();
        return print(format!("{:#}\n", json!({ "scenarios": list })));
    }
    if found.is_empty() {
        return print(format!("no scenarios below {}\n", dir.display()));
    }
    let mut table = Table::new(["file", "name", "runs", "what it shows"]);
    table.right(2);
    for (file, outline) in &found {
        let file = file.display().to_string();
        match outline {
            Ok(scenario) => table.row([
                file,
                scenario.name().into(),
                scenario.run_count().to_string(),
                match scenario.is_for_lab() {
                    true => format!(
                        "for the lab only: {}",
                        scenario.description().unwrap_or("-")
                    ),
                    false => scenario.description().unwrap_or_default().into(),
                },
            ]),
            Err(problems) => table.row([
                file,
                "-".into(),
                "-".into(),
                format!("invalid: {}", plural(problems.count(), "problem")),
            ]),
        }
    }
    print(format!("{table}\n"))
}

fn entry(file: &Path, outline: &Result<Scenario, Problems>) -> Value {
    let file = file.display().to_string();
    match outline {
        Ok(scenario) => json!({
            "file": file,
            "name": scenario.name(),
            "description": scenario.description(),
            "is_for_lab": scenario.is_for_lab(),
            "axes": scenario.axes(),
            "points": scenario.points(),
            "seeds": scenario.seeds().len(),
            "runs": scenario.run_count(),
        }),
        Err(problems) => json!({ "file": file, "problems": problems.to_string() }),
    }
}

/// Collects the scenario files below a folder, except in hidden folders and build output.
fn find(dir: &Path, files: &mut Vec<PathBuf>) -> std::io::Result<()> {
    for entry in fs::read_dir(dir)? {
        let entry = entry?;
        let (path, name) = (entry.path(), entry.file_name());
        let name = name.to_string_lossy();
        let kind = entry.file_type()?;
        if kind.is_dir() && !name.starts_with('.') && name != "target" {
            // An unreadable subfolder hides only its own files.
            if let Err(error) = find(&path, files)
                && error.kind() != std::io::ErrorKind::PermissionDenied
            {
                return Err(error);
            }
        } else if kind.is_file() && name.ends_with(".toml") && is_scenario(&path) {
            files.push(path);
        }
    }
    Ok(())
}

/// Whether a file has a table `scenario`, in any spelling; a key of that name may be a text.
fn is_scenario(path: &Path) -> bool {
    fs::read_to_string(path).is_ok_and(|text| {
        text.lines().any(|line| {
            let line = line.trim_start();
            let behind = line.strip_prefix("scenario").map(str::trim_start);
            let is_part = |rest: &str| {
                let value = rest.strip_prefix('=').map(str::trim_start);
                rest.starts_with('.') || value.is_some_and(|value| value.starts_with('{'))
            };
            line.starts_with("[scenario]") || behind.is_some_and(is_part)
        })
    })
}
