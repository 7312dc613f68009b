//! The settings that the loader registers: a controller with its parameters.

use std::path::PathBuf;

use crate::controller::Controller;
use crate::error::Error;
use crate::line::Line;
use crate::{libra, real};

/// The parameters of every flow of a controller.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Parameters {
    /// The parameters of TCP Libra.
    Libra(libra::Parameters),
    /// The parameters of TCP-Real.
    Real(real::Parameters),
}

impl Parameters {
    /// The controller that they belong to.
    pub const fn controller(&self) -> Controller {
        match self {
            Self::Libra(_) => Controller::Libra,
            Self::Real(_) => Controller::Real,
        }
    }

    /// The bytes of the controller's structure in `bpf/`.
    #[cfg_attr(
        not(has_program),
        expect(dead_code, reason = "only the loader writes them")
    )]
    pub(crate) fn to_bytes(self) -> Result<Vec<u8>, String> {
        match self {
            Self::Libra(parameters) => parameters.to_bytes().map(Into::into),
            Self::Real(parameters) => parameters.to_bytes().map(Into::into),
        }
    }

    /// Reads a line of the controller's program.
    pub(crate) fn from_line(controller: Controller, line: &str) -> Result<Self, Error> {
        let line = Line::new(line);
        Ok(match controller {
            Controller::Libra => Self::Libra(libra::Parameters::from_line(&line)?),
            Controller::Real => Self::Real(real::Parameters::from_line(&line)?),
        })
    }
}

/// The settings that [`load`](crate::load) registers.
#[derive(Clone, Debug, PartialEq)]
pub struct Settings {
    /// The controller, and the parameters of every flow.
    pub parameters: Parameters,
    /// Folders of cgroups (version 2) whose new connections use the controller.
    pub cgroups: Vec<PathBuf>,
    /// Capacities of destinations, only for Libra.
    pub destinations: Vec<libra::Destination>,
}

/// The maximum number of capacities of destinations: the size of the program's map.
const MAX_DESTINATIONS: usize = 1_024;

impl Settings {
    /// Checks the capacities of destinations.
    ///
    /// # Errors
    /// If the controller has none, a prefix is named twice, or one is out of range.
    #[cfg_attr(
        not(has_program),
        expect(dead_code, reason = "only the loader writes them")
    )]
    pub(crate) fn check_destinations(&self) -> Result<(), String> {
        let count = self.destinations.len();
        if count > 0 && self.parameters.controller() != Controller::Libra {
            let controller = self.parameters.controller();
            return Err(format!(
                "{controller}: a capacity for a destination is set; expected one only with libra"
            ));
        }
        if count > MAX_DESTINATIONS {
            return Err(format!(
                "capacities of {count} destinations, expected at most {MAX_DESTINATIONS}"
            ));
        }
        for (at, destination) in self.destinations.iter().enumerate() {
            destination.value()?;
            let before = self.destinations.iter().take(at);
            if before
                .into_iter()
                .any(|other| other.prefix == destination.prefix)
            {
                return Err(format!(
                    "{} has two capacities, expected one",
                    destination.prefix
                ));
            }
        }
        Ok(())
    }
}
