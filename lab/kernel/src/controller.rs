//! The controllers, and the folders of their files.

use std::fmt;
use std::path::{Path, PathBuf};

/// The kernel's file system of BPF objects.
pub(crate) const BPFFS: &str = "/sys/fs/bpf";
/// The folder in it for the controllers.
pub(crate) const FOLDER: &str = "comity";

/// A controller that Comity provides for the kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Controller {
    /// TCP Libra.
    Libra,
    /// TCP-Real.
    Real,
}

impl Controller {
    /// Every controller.
    pub const ALL: [Self; 2] = [Self::Libra, Self::Real];

    /// The name by which sockets choose it.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Libra => "libra",
            Self::Real => "real",
        }
    }

    /// The folder of the files that keep it in the kernel. Each file keeps one object alive.
    pub fn folder(self) -> PathBuf {
        Path::new(BPFFS).join(FOLDER).join(self.name())
    }
}

impl fmt::Display for Controller {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.name())
    }
}
