//! Loads a program with libbpf, and pins the objects that keep it alive.

use std::fs::File;
use std::os::fd::{AsFd as _, AsRawFd as _};
use std::path::Path;
use std::sync::{Mutex, PoisonError};

use libbpf_rs::{
    Link, MapCore as _, MapFlags, MapHandle, Object, ObjectBuilder, PrintLevel, set_print,
};

use crate::controller::Controller;
use crate::error::Error;
use crate::pins;
use crate::requirements::cgroup_root;
use crate::settings::Settings;

/// The programs, compiled by `build.rs`.
static LIBRA: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/libra.bpf.o"));
static REAL: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/real.bpf.o"));
/// The messages of libbpf and the verifier about a program that the kernel refused.
static SAID: Mutex<String> = Mutex::new(String::new());
/// The number of their last lines that an error shows.
const SHOWN_LINES: usize = 12;

pub(crate) fn load(settings: &Settings) -> Result<(), Error> {
    let controller = settings.parameters.controller();
    let parameters = settings.parameters.to_bytes().map_err(Error::Parameters)?;
    settings.check_destinations().map_err(Error::Parameters)?;
    if pins::is_loaded(controller)? {
        return Err(Error::Loaded(controller));
    }
    // Removes the leftovers of a killed command.
    pins::remove(controller)?;
    pins::prepare(controller)?;
    let done = register(controller, settings, &parameters);
    if done.is_err() {
        pins::remove(controller)?;
    }
    done
}

fn register(controller: Controller, settings: &Settings, parameters: &[u8]) -> Result<(), Error> {
    set_print(Some((PrintLevel::Warn, keep)));
    let bytes = match controller {
        Controller::Libra => LIBRA,
        Controller::Real => REAL,
    };
    let mut object = ObjectBuilder::default()
        .open_memory(bytes)
        .and_then(libbpf_rs::OpenObject::load)
        .map_err(refused("load the program"))?;
    map(&object, "parameters")?
        .update(&0_u32.to_ne_bytes(), parameters, MapFlags::ANY)
        .map_err(refused("take the parameters"))?;
    for (program, of) in [("parameters", "parameters"), ("status", "flows")] {
        let program = program_of(&object, &format!("{controller}_{program}"))?;
        let link = program.attach_iter(map(&object, of)?.as_fd());
        pin(controller, link.map_err(refused("list the flows"))?, of)?;
    }
    if !settings.destinations.is_empty() {
        add_destinations(controller, settings, &map(&object, "destinations")?)?;
    }
    if controller == Controller::Real
        && let Some(root) = cgroup_root()
    {
        // Any connection may be that of a peer.
        let link = attach(&object, "real_options", &root)?;
        pin(controller, link, "options")?;
    }
    for cgroup in &settings.cgroups {
        let link = attach(&object, &format!("{controller}_cgroup"), cgroup)?;
        let name = format!("{}{}", pins::CGROUP, pins::encoded(cgroup));
        pin(controller, link, &name)?;
    }
    let name = controller.name();
    let operations = object.maps_mut().find(|map| map.name() == name);
    let link = operations
        .ok_or_else(|| absent(name))?
        .attach_struct_ops()
        .map_err(refused(&format!("register the controller {controller}")))?;
    pin(controller, link, pins::LINK)
}

fn refused(purpose: &str) -> impl FnOnce(libbpf_rs::Error) -> Error {
    let purpose = purpose.to_owned();
    move |reason| Error::Kernel {
        purpose,
        reason: with_what_was_said(&reason),
    }
}

/// Fills the map of capacities. The kernel does not list its content, so the names of files do.
fn add_destinations(
    controller: Controller,
    settings: &Settings,
    map: &libbpf_rs::Map<'_>,
) -> Result<(), Error> {
    let mut handle = MapHandle::try_from(map).map_err(refused("share the map of capacities"))?;
    for destination in &settings.destinations {
        let value = destination.value().map_err(Error::Parameters)?;
        let purpose = format!("take the capacity {destination}");
        map.update(&destination.key(), &value, MapFlags::NO_EXIST)
            .map_err(refused(&purpose))?;
        let text = destination.to_string();
        let name = format!("{}{}", pins::DESTINATION, pins::encoded(Path::new(&text)));
        handle
            .pin(pins::path(controller, &name))
            .map_err(refused(&purpose))?;
    }
    Ok(())
}

/// Attaches a program to the connections of a cgroup.
fn attach(object: &Object, program: &str, cgroup: &Path) -> Result<Link, Error> {
    let folder = File::open(cgroup).map_err(Error::file("open the cgroup", cgroup))?;
    let link = program_of(object, program)?.attach_cgroup(folder.as_raw_fd());
    let purpose = format!("watch the connections of {}", cgroup.display());
    link.map_err(refused(&purpose))
}

/// Keeps the link alive beyond this process.
fn pin(controller: Controller, mut link: Link, name: &str) -> Result<(), Error> {
    let file = pins::path(controller, name);
    link.pin(&file).map_err(|reason| Error::Kernel {
        purpose: format!("keep {}", file.display()),
        reason: reason.to_string(),
    })
}

fn map<'a>(object: &'a Object, name: &str) -> Result<libbpf_rs::Map<'a>, Error> {
    object
        .maps()
        .find(|map| map.name() == name)
        .ok_or_else(|| absent(name))
}

fn program_of<'a>(object: &'a Object, name: &str) -> Result<libbpf_rs::ProgramMut<'a>, Error> {
    let mut programs = object.progs_mut();
    programs
        .find(|program| program.name() == name)
        .ok_or_else(|| absent(name))
}

fn absent(name: &str) -> Error {
    Error::Form(format!("its object has no {name:?}"))
}

/// libbpf-rs passes each message as a `String`.
#[expect(
    clippy::needless_pass_by_value,
    reason = "the signature is that of set_print"
)]
fn keep(_: PrintLevel, message: String) {
    SAID.lock()
        .unwrap_or_else(PoisonError::into_inner)
        .push_str(&message);
}

fn with_what_was_said(reason: &libbpf_rs::Error) -> String {
    let said = SAID.lock().unwrap_or_else(PoisonError::into_inner);
    let lines: Vec<&str> = said.lines().collect();
    let last = lines.len().saturating_sub(SHOWN_LINES);
    format!("{reason}\n{}", lines[last..].join("\n"))
        .trim_end()
        .to_owned()
}
