//! A row of the table: what a controller is, and how to build it.

use alloc::boxed::Box;
use core::fmt;

use comity_units::{DataSize, Seed};

use super::parameters::{Domain, Parameter, ParameterError, Parameters, Value};
use crate::{Controller, Meter};

/// What every controller is built with, whatever its parameters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Setup {
    /// The payload of a full segment, at least one byte.
    pub mss: DataSize,
    /// The window before the first acknowledgement, at least `mss`.
    pub initial_window: DataSize,
    /// The slow-start threshold before the first loss; [`DataSize::MAX`] for none.
    pub initial_ssthresh: DataSize,
    /// The maximum window, at least `mss`; [`DataSize::MAX`] for no limit.
    pub max_window: DataSize,
    /// The seed of the controller's random stream, for those that have one.
    pub seed: Seed,
}

impl Setup {
    /// Ten segments to begin with (RFC 6928), no threshold, no limit, seed 0.
    pub const fn new(mss: DataSize) -> Self {
        Self {
            mss,
            initial_window: DataSize::new(mss.get().saturating_mul(10)),
            initial_ssthresh: DataSize::MAX,
            max_window: DataSize::MAX,
            seed: Seed::new(0),
        }
    }

    fn check(&self) -> Result<(), ParameterError> {
        let at_least = |name, found: DataSize, least: DataSize| {
            if found >= least {
                return Ok(());
            }
            Err(ParameterError::OutOfRange {
                name,
                value: Value::Bytes(found),
                expected: Domain::Bytes {
                    min: least,
                    max: DataSize::MAX,
                },
            })
        };
        at_least("mss", self.mss, DataSize::new(1))?;
        at_least("initial_window", self.initial_window, self.mss)?;
        at_least("initial_ssthresh", self.initial_ssthresh, self.mss)?;
        at_least("max_window", self.max_window, self.mss)
    }
}

/// One controller.
#[derive(Clone, Copy)]
pub struct Row {
    /// Its name, in lower case.
    pub name: &'static str,
    /// What it does, in one line.
    pub summary: &'static str,
    /// Where it is defined.
    pub source: &'static str,
    /// Its parameters, in the order of the documentation.
    pub parameters: &'static [Parameter],
    /// Whether it can drive a flow of a byte sequence. Every row can drive a flow of sections. The
    /// rows that cannot drive a byte sequence need acknowledgements of packet numbers, or tags and
    /// reports that TCP does not carry.
    pub drives_tcp: bool,
    /// Whether lost bytes are retransmitted by default. The papers of the other rows do not
    /// retransmit, because late data is of no use to their applications (IFTP, section 4; packet
    /// spacing, section 2, footnote 2).
    pub repeats_losses: bool,
    /// Builds the receiver's half, if there is one.
    pub(super) meter: Option<BuildMeter>,
    pub(super) build: BuildController,
}

type BuildController = fn(&Setup, &Parameters) -> Result<Box<dyn Controller>, ParameterError>;
type BuildMeter = fn(&Setup, &Parameters) -> Result<Box<dyn Meter>, ParameterError>;

impl Row {
    /// Builds the sender's half.
    ///
    /// # Errors
    /// A [`ParameterError`] if the setup or a parameter is out of range, or a parameter is unknown
    /// or of another kind.
    pub fn build(
        &self,
        setup: &Setup,
        parameters: &Parameters,
    ) -> Result<Box<dyn Controller>, ParameterError> {
        setup.check()?;
        parameters.check_names(self.parameters)?;
        (self.build)(setup, parameters)
    }

    /// Builds the receiver's half; `None` for the controllers that have none.
    ///
    /// # Errors
    /// As [`Row::build`].
    pub fn build_meter(
        &self,
        setup: &Setup,
        parameters: &Parameters,
    ) -> Option<Result<Box<dyn Meter>, ParameterError>> {
        let build = self.meter?;
        Some(
            setup
                .check()
                .and_then(|()| parameters.check_names(self.parameters))
                .and_then(|()| build(setup, parameters)),
        )
    }

    /// Whether the receiver has a half.
    pub const fn has_meter(&self) -> bool {
        self.meter.is_some()
    }

    /// Reads the text of the parameter `name`, as it comes from a command line or a URI.
    ///
    /// # Errors
    /// A [`ParameterError`] if the row has no such parameter, or the text is not one of its values.
    pub fn parse(&self, name: &str, text: &str) -> Result<Value, ParameterError> {
        self.parameters
            .iter()
            .find(|parameter| parameter.name == name)
            .ok_or_else(|| ParameterError::unknown(name, self.parameters))?
            .parse(text)
    }

    /// Reads a list of parameters: `name=value` with `&` between them, as a sender requests a meter
    /// from its peer.
    ///
    /// # Errors
    /// A [`ParameterError`] if the row has no such parameter, a text is not one of its values, or a
    /// name occurs twice.
    pub fn parse_list(&self, list: &str) -> Result<Parameters, ParameterError> {
        let mut parameters = Parameters::new();
        for pair in list.split('&').filter(|pair| !pair.is_empty()) {
            let (name, text) = pair.split_once('=').unwrap_or((pair, ""));
            let value = self.parse(name, text)?;
            if parameters.insert(name, value).is_some()
                && let Some(known) = self.parameters.iter().find(|known| known.name == name)
            {
                return Err(ParameterError::Conflict {
                    first: known.name,
                    second: known.name,
                });
            }
        }
        Ok(parameters)
    }
}

impl fmt::Debug for Row {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Row")
            .field("name", &self.name)
            .finish_non_exhaustive()
    }
}
