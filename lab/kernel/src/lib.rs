//! TCP Libra and TCP-Real as congestion controls of the Linux kernel: BPF `struct_ops` programs and
//! their loader.
//!
//! [`load`] registers a controller with the kernel, `libra` or `real`. It stays until [`unload`]:
//! everything that keeps it alive is a file in [`Controller::folder`]. If a [`load`] is killed, the
//! next one removes everything that it left. Sockets choose the controller like any other:
//!
//! | for | how |
//! |---|---|
//! | one socket | `setsockopt(TCP_CONGESTION, "libra")` |
//! | a cgroup | [`Settings::cgroups`] |
//! | a destination | `ip route change 192.0.2.0/24 via 198.51.100.1 congctl libra` |
//!
//! [`libra::flows`] and [`real::flows`] list every flow of the host, in any network namespace.
//!
//! TCP-Real has a second half at the receiver. Its program reads the options of every connection of
//! the host (at the root of the cgroups), so each host with `real` loaded is a peer for the others.
//!
//! The program of a controller is `bpf/<name>.bpf.c`, and its arithmetic is `bpf/<name>.h`; all are
//! GPL-2.0-only. The feature `bpf` compiles them with clang and needs the headers of libelf and
//! zlib. Without it, the crate builds everywhere, and [`missing`] reports it.

mod controller;
mod error;
mod folder;
pub mod libra;
mod line;
#[cfg(has_program)]
mod loader;
mod pins;
pub mod real;
mod requirements;
mod settings;
mod socket;

pub use controller::Controller;
pub use error::Error;
pub use pins::{loaded, unload};
pub use requirements::missing;
pub use settings::{Parameters, Settings};
pub use socket::Socket;

/// Registers a controller with the kernel.
///
/// # Errors
/// If a cgroup does not exist or is not one of version 2, the host lacks requirements
/// ([`missing`]), the controller is already loaded, or the kernel refuses the program.
pub fn load(settings: &Settings) -> Result<(), Error> {
    for cgroup in &settings.cgroups {
        requirements::check_cgroup(cgroup)?;
    }
    let controller = settings.parameters.controller();
    let missing = missing(controller);
    if !missing.is_empty() {
        return Err(Error::Missing {
            controller,
            missing,
        });
    }
    load_program(settings)
}

#[cfg(has_program)]
use loader::load as load_program;

/// In a build without the program, [`missing`] has already reported this.
#[cfg(not(has_program))]
fn load_program(settings: &Settings) -> Result<(), Error> {
    let controller = settings.parameters.controller();
    Err(Error::Missing {
        controller,
        missing: missing(controller),
    })
}
