//! Loads the program with libbpf, and pins what keeps it alive.

use std::fs::File;
use std::os::fd::{AsFd as _, AsRawFd as _};
use std::sync::{Mutex, PoisonError};

use libbpf_rs::{Link, MapCore as _, MapFlags, Object, ObjectBuilder, PrintLevel, set_print};

use crate::error::Error;
use crate::parameters::Settings;
use crate::pins;

/// The program, as `build.rs` compiled it.
static OBJECT: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/libra.bpf.o"));
/// What libbpf and the verifier said of a program that the kernel refused.
static SAID: Mutex<String> = Mutex::new(String::new());
/// The last lines of it that an error shows.
const SHOWN_LINES: usize = 12;

pub(crate) fn load(settings: &Settings) -> Result<(), Error> {
    let parameters = settings.parameters.to_bytes().map_err(Error::Parameters)?;
    if pins::path(pins::LINK).exists() {
        return Err(Error::Loaded);
    }
    // What a killed command left.
    pins::remove()?;
    pins::prepare()?;
    let done = register(settings, &parameters);
    if done.is_err() {
        pins::remove()?;
    }
    done
}

fn register(settings: &Settings, parameters: &[u8; 40]) -> Result<(), Error> {
    set_print(Some((PrintLevel::Warn, keep)));
    let refused = |purpose: &str| {
        let purpose = purpose.to_owned();
        move |reason: libbpf_rs::Error| Error::Kernel {
            purpose,
            reason: with_what_was_said(&reason),
        }
    };
    let mut object = ObjectBuilder::default()
        .open_memory(OBJECT)
        .and_then(libbpf_rs::OpenObject::load)
        .map_err(refused("load the program"))?;
    map(&object, "parameters")?
        .update(&0_u32.to_ne_bytes(), parameters, MapFlags::ANY)
        .map_err(refused("take the parameters"))?;
    for (program, of, name) in [
        ("libra_parameters", "parameters", "parameters"),
        ("libra_status", "flows", "flows"),
    ] {
        let program = program_of(&object, program)?;
        let link = program.attach_iter(map(&object, of)?.as_fd());
        pin(link.map_err(refused("list the flows"))?, name)?;
    }
    for cgroup in &settings.cgroups {
        let folder = File::open(cgroup).map_err(Error::file("open the cgroup", cgroup))?;
        let link = program_of(&object, "libra_cgroup")?.attach_cgroup(folder.as_raw_fd());
        let purpose = format!("watch the connections of {}", cgroup.display());
        let link = link.map_err(refused(&purpose))?;
        pin(link, &format!("{}{}", pins::CGROUP, pins::encoded(cgroup)))?;
    }
    let operations = object.maps_mut().find(|map| map.name() == "libra");
    let mut operations = operations.ok_or_else(|| absent("libra"))?;
    let link = operations.attach_struct_ops();
    pin(
        link.map_err(refused("register the controller libra"))?,
        pins::LINK,
    )
}

/// Keeps the link alive beyond this process.
fn pin(mut link: Link, name: &str) -> Result<(), Error> {
    let file = pins::path(name);
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
