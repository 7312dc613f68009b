//! TCP Libra as a congestion control of the Linux kernel: a BPF `struct_ops` program and its
//! loader.
//!
//! [`load`] registers the controller `libra` with the kernel. It stays until [`unload`]: everything
//! that keeps it alive is a file in [`FOLDER`], and a [`load`] that is killed leaves nothing that
//! the next one does not remove. Sockets choose it as any other controller:
//!
//! | for | how |
//! |---|---|
//! | one socket | `setsockopt(TCP_CONGESTION, "libra")` |
//! | a cgroup | [`Settings::cgroups`] |
//! | a destination | `ip route change 192.0.2.0/24 via 198.51.100.1 congctl libra` |
//!
//! [`flows`] lists every flow of Libra on the machine, in any network namespace.
//!
//! The program is `bpf/libra.bpf.c`, and its arithmetic is `bpf/libra.h`, both GPL-2.0-only. The
//! feature `bpf` compiles them with clang and needs the headers of libelf and zlib. Without it the
//! crate builds everywhere, and [`missing`] says so.

mod error;
mod flow;
mod line;
#[cfg(has_program)]
mod loader;
mod parameters;
mod pins;
mod requirements;

pub use error::Error;
pub use flow::{Flow, flows};
pub use parameters::{Parameters, Settings};
pub use pins::{FOLDER, Loaded, loaded, unload};
pub use requirements::missing;

/// Registers Libra with the kernel.
///
/// # Errors
/// If the host lacks something ([`missing`]), Libra is loaded already, a cgroup does not exist, or
/// the kernel refuses the program.
pub fn load(settings: &Settings) -> Result<(), Error> {
    let missing = missing();
    if !missing.is_empty() {
        return Err(Error::Missing(missing));
    }
    load_program(settings)
}

#[cfg(has_program)]
use loader::load as load_program;

/// Of a build without the program, [`missing`] has said so.
#[cfg(not(has_program))]
fn load_program(_: &Settings) -> Result<(), Error> {
    Err(Error::Missing(missing()))
}
