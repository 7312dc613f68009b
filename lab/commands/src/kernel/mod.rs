//! `comity kernel`

mod libra;
mod real;
mod socket;

use comity_kernel::libra::Destination;
use comity_kernel::{Controller, Error, Parameters, Settings};
use serde_json::{Map, Value, json};

use super::{Failure, complain, print};
use crate::args;

/// `comity kernel`.
///
/// # Errors
/// If the command fails. The message is printed.
pub fn kernel(args: args::Kernel) -> Result<(), Failure> {
    match args {
        args::Kernel::Load(args) => load(args),
        args::Kernel::List(args) => list(&args),
        args::Kernel::Unload { controller } => {
            let controller = controller.into();
            comity_kernel::unload(controller).map_err(|error| complain(&error))?;
            print(format!("{controller} is unloaded\n"))
        }
        args::Kernel::Status(args) => status(&args),
    }
}

fn load(args: args::KernelLoad) -> Result<(), Failure> {
    let settings = match args {
        args::KernelLoad::Libra(args) => libra::settings(args),
        args::KernelLoad::Real(args) => real::settings(args),
    };
    let controller = settings.parameters.controller();
    match comity_kernel::load(&settings) {
        Ok(()) => print(format!(
            "{controller} is loaded; `comity kernel unload {controller}` removes it\n"
        )),
        Err(error @ (Error::Parameters(_) | Error::Cgroup { .. })) => {
            complain(&error);
            Err(Failure::Usage)
        }
        Err(error) => Err(complain(&error)),
    }
}

/// The settings of every loaded controller.
fn loaded() -> Result<Vec<Settings>, Failure> {
    let mut all = Vec::new();
    for controller in Controller::ALL {
        all.extend(comity_kernel::loaded(controller).map_err(|error| complain(&error))?);
    }
    Ok(all)
}

fn list(args: &args::KernelList) -> Result<(), Failure> {
    let loaded = loaded()?;
    if args.json {
        let controllers: Vec<Value> = loaded.iter().map(settings_document).collect();
        return print(format!(
            "{:#}\n",
            json!({ "format": "comity-kernel-list/1", "controllers": controllers })
        ));
    }
    if loaded.is_empty() {
        return print("no controller is loaded; `comity kernel load` loads one\n");
    }
    print(loaded.iter().map(settings_text).collect::<String>())
}

fn settings_text(settings: &Settings) -> String {
    let mut text = match &settings.parameters {
        Parameters::Libra(parameters) => libra::parameters_text(parameters),
        Parameters::Real(parameters) => real::parameters_text(parameters),
    };
    for Destination { prefix, capacity } in &settings.destinations {
        text.push_str(&format!("  capacity {capacity} to {prefix}\n"));
    }
    for cgroup in &settings.cgroups {
        text.push_str(&format!("  cgroup {}\n", cgroup.display()));
    }
    text
}

fn settings_document(settings: &Settings) -> Value {
    let mut document = match &settings.parameters {
        Parameters::Libra(parameters) => libra::parameters_document(parameters),
        Parameters::Real(parameters) => real::parameters_document(parameters),
    };
    let cgroups: Vec<String> = settings
        .cgroups
        .iter()
        .map(|cgroup| cgroup.display().to_string())
        .collect();
    document.insert("cgroups".into(), json!(cgroups));
    if settings.parameters.controller() == Controller::Libra {
        let destinations = settings.destinations.iter().map(|destination| {
            json!({
                "prefix": destination.prefix.to_string(),
                "capacity_bps": destination.capacity.as_bps(),
            })
        });
        document.insert("destinations".into(), destinations.collect());
    }
    labelled(settings.parameters.controller(), document)
}

/// A document that begins with the controller's name.
fn labelled(controller: Controller, document: Map<String, Value>) -> Value {
    let mut labelled = Map::new();
    labelled.insert("controller".into(), json!(controller.name()));
    labelled.extend(document);
    Value::Object(labelled)
}

fn status(args: &args::KernelStatus) -> Result<(), Failure> {
    let loaded = loaded()?;
    if loaded.is_empty() {
        let error = "no controller is loaded; `comity kernel load` loads one";
        return Err(complain(&error));
    }
    let (mut text, mut documents) = (String::new(), Vec::new());
    for settings in loaded {
        let controller = settings.parameters.controller();
        let (table, flows) = match controller {
            Controller::Libra => libra::status(),
            Controller::Real => real::status(),
        }
        .map_err(|error| complain(&error))?;
        if flows.is_empty() {
            text.push_str(&format!("{controller} has no flows\n"));
        } else {
            text.push_str(&format!("{controller}\n{table}\n"));
        }
        documents.extend(flows.into_iter().map(|flow| labelled(controller, flow)));
    }
    if args.json {
        return print(format!(
            "{:#}\n",
            json!({ "format": "comity-kernel-status/1", "flows": documents })
        ));
    }
    print(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_document_names_its_controller_and_the_cgroups() {
        let settings = Settings {
            parameters: Parameters::Libra(comity_kernel::libra::Parameters::default()),
            cgroups: vec!["/sys/fs/cgroup/video".into()],
            destinations: vec!["10.0.0.0/8=50Mbps".parse().unwrap()],
        };
        let document = settings_document(&settings);
        assert_eq!(document["controller"], "libra");
        assert_eq!(document["cgroups"][0], "/sys/fs/cgroup/video");
        assert_eq!(document["destinations"][0]["capacity_bps"], 50_000_000);
        assert!(
            settings_text(&settings)
                .ends_with("  capacity 50Mbps to 10.0.0.0/8\n  cgroup /sys/fs/cgroup/video\n")
        );
    }
}
