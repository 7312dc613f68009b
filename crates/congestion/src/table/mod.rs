//! Every controller by name: the one list for the command line, scenarios, bindings and tests.
//!
//! A [`Row`] says what a controller is, which [`Parameter`]s it has, and how to build it. Names and
//! values come from people, so whatever is wrong with them is an error that says what was expected
//! and, for a name, which known name comes nearest.
//!
//! ```
//! use comity_congestion::table::{self, Parameters, Setup, Value};
//! use comity_units::Bytes;
//!
//! let row = table::find("cubic")?;
//! let parameters = Parameters::new().with("beta", Value::Number(0.8));
//! let controller = row.build(&Setup::new(Bytes::new(1_200)), &parameters)?;
//! assert_eq!(controller.decision().window, Bytes::new(12_000));
//!
//! let mistake = table::find("cubik").unwrap_err();
//! assert_eq!(
//!     mistake.to_string(),
//!     r#"there is no controller "cubik"; did you mean "cubic"? `comity list` describes each"#
//! );
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod names;
mod nearest;
mod parameters;
mod rows;

use alloc::boxed::Box;
use alloc::string::String;
use core::fmt;

use comity_units::{Bytes, Seed};

use crate::{Controller, Meter};
pub use names::{OtherName, other_name};
pub use nearest::nearest;
pub use parameters::{Domain, Parameter, ParameterError, Parameters, Value};
pub use rows::{DEFAULT_FOR_SECTIONS, TABLE};

/// What every controller is built with, whatever its parameters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Setup {
    /// The payload of a full segment, at least one byte.
    pub mss: Bytes,
    /// The window before the first acknowledgement, at least `mss`.
    pub initial_window: Bytes,
    /// The slow-start threshold before the first loss; [`Bytes::MAX`] for none.
    pub initial_ssthresh: Bytes,
    /// The window never rises above this, at least `mss`; [`Bytes::MAX`] for no limit.
    pub max_window: Bytes,
    /// The seed of the controller's random stream, for those that have one.
    pub seed: Seed,
}

impl Setup {
    /// Ten segments to begin with (RFC 6928), no threshold, no limit, seed 0.
    pub const fn new(mss: Bytes) -> Self {
        Self {
            mss,
            initial_window: Bytes::new(mss.get().saturating_mul(10)),
            initial_ssthresh: Bytes::MAX,
            max_window: Bytes::MAX,
            seed: Seed::new(0),
        }
    }

    fn check(&self) -> Result<(), ParameterError> {
        let at_least = |name, found: Bytes, least: Bytes| {
            if found >= least {
                return Ok(());
            }
            Err(ParameterError::OutOfRange {
                name,
                value: Value::Bytes(found),
                expected: Domain::Bytes {
                    min: least,
                    max: Bytes::MAX,
                },
            })
        };
        at_least("mss", self.mss, Bytes::new(1))?;
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
    /// What can be set, in the order of the documentation.
    pub parameters: &'static [Parameter],
    /// Whether the receiver has to run this row's meter.
    meter: Option<BuildMeter>,
    build: BuildController,
}

type BuildController = fn(&Setup, &Parameters) -> Result<Box<dyn Controller>, ParameterError>;
type BuildMeter = fn(&Setup, &Parameters) -> Result<Box<dyn Meter>, ParameterError>;

impl Row {
    /// Builds the sender's half.
    ///
    /// # Errors
    /// A [`ParameterError`] when the setup or a parameter is out of range, of another kind, or
    /// unknown.
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

    /// Whether it can drive a flow of a byte sequence. Every row can drive a flow of sections;
    /// these need to hear of each packet by its number, or of the receiver's half what TCP does not
    /// carry.
    pub fn drives_tcp(&self) -> bool {
        !SECTIONS_ONLY.contains(&self.name)
    }

    /// Whether lost bytes are retransmitted where nothing else is said. The papers of the other
    /// rows send nothing again: what is late is of no use to what they carry.
    pub fn repeats_losses(&self) -> bool {
        !WITHOUT_REPETITION.contains(&self.name)
    }

    /// Reads the text of the parameter `name`, as it comes from a command line or a URI.
    ///
    /// # Errors
    /// A [`ParameterError`] when there is no such parameter or the text is none of its values.
    pub fn parse(&self, name: &str, text: &str) -> Result<Value, ParameterError> {
        self.parameters
            .iter()
            .find(|parameter| parameter.name == name)
            .ok_or_else(|| ParameterError::unknown(name, self.parameters))?
            .parse(text)
    }
}

impl Row {
    /// Reads a list of parameters, `name=value` with `&` between them, as the peer's receiver is
    /// told.
    ///
    /// # Errors
    /// A [`ParameterError`] when there is no such parameter, a text is none of its values, or a
    /// name stands twice.
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

/// Rows that drive sections only.
const SECTIONS_ONLY: &[&str] = &["tfrc", "rap", "iftp", "psp"];

/// Rows whose papers send nothing again: IFTP, section 4; packet spacing, section 2, footnote 2.
const WITHOUT_REPETITION: &[&str] = &["iftp", "psp"];

/// The controller called `name`.
///
/// # Errors
/// [`UnknownController`] with the nearest name that exists, or with what is meant where the name is
/// known for something else.
pub fn find(name: &str) -> Result<&'static Row, UnknownController> {
    TABLE
        .iter()
        .find(|row| row.name == name)
        .ok_or_else(|| UnknownController {
            name: String::from(name),
            nearest: nearest(name, TABLE.iter().map(|row| row.name)),
            other: other_name(name),
        })
}

/// There is no controller of this name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnknownController {
    /// The name that was asked for.
    pub name: String,
    /// The known name that comes nearest, if one comes near.
    pub nearest: Option<&'static str>,
    /// What is known by this name, if something is.
    pub other: Option<OtherName>,
}

impl fmt::Display for UnknownController {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "there is no controller {:?}", self.name)?;
        if let Some(other) = self.other {
            return write!(f, ": {}; `comity list` describes each", other.instead);
        }
        match self.nearest {
            Some(nearest) => {
                write!(
                    f,
                    "; did you mean {nearest:?}? `comity list` describes each"
                )
            }
            None => {
                f.write_str("; there are ")?;
                parameters::write_list(f, TABLE.iter().map(|row| row.name))?;
                f.write_str("; `comity list` describes each")
            }
        }
    }
}

impl core::error::Error for UnknownController {}

#[cfg(test)]
mod tests {
    extern crate std;
    use super::*;
    use comity_units::{Rate, Span};
    use std::string::ToString;

    const MSS: Bytes = Bytes::new(1_000);

    #[test]
    fn names_of_systems_lead_to_what_to_write() {
        for (name, says) in [
            ("tltcp", "reliability=timeline and drop=expired"),
            ("tcp-real", "the controller \"real\""),
            ("bbrv1", "the controller \"bbr\""),
            ("bbr-v3", "the controller \"bbr3\""),
            ("tcp-libra", "the controller \"libra\""),
            ("packet-spacing", "the controller \"psp\""),
            ("ad-hoc", "cc=psp&cc.damped=false"),
            ("newreno", "recovery = "),
            ("cubik", "did you mean \"cubic\"?"),
        ] {
            let error = find(name).unwrap_err().to_string();
            assert!(error.contains(says), "{error}");
            assert!(error.ends_with("`comity list` describes each"), "{error}");
        }
    }

    fn refusal(row: &str, parameters: &Parameters) -> String {
        find(row)
            .unwrap()
            .build(&Setup::new(MSS), parameters)
            .unwrap_err()
            .to_string()
    }

    #[test]
    fn names_are_unique_lower_case_and_found() {
        for (at, row) in TABLE.iter().enumerate() {
            assert!(
                row.name
                    .chars()
                    .all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_'),
                "{}",
                row.name
            );
            assert!(
                TABLE[at + 1..].iter().all(|other| other.name != row.name),
                "{}",
                row.name
            );
            assert_eq!(find(row.name).unwrap().name, row.name);
            for (at, parameter) in row.parameters.iter().enumerate() {
                assert!(
                    row.parameters[at + 1..]
                        .iter()
                        .all(|other| other.name != parameter.name)
                );
            }
        }
    }

    #[test]
    fn every_row_builds_with_its_defaults_said_aloud_and_unsaid() {
        for row in TABLE {
            let unsaid = row.build(&Setup::new(MSS), &Parameters::new()).unwrap();
            let mut said = Parameters::new();
            for parameter in row.parameters {
                said.insert(parameter.name, parameter.default.clone());
                assert_eq!(
                    parameter.parse(&parameter.default.to_string()).as_ref(),
                    Ok(&parameter.default),
                    "{}: the default does not read back",
                    parameter.name
                );
            }
            let said = row.build(&Setup::new(MSS), &said).unwrap();
            assert_eq!(
                std::format!("{said:?}"),
                std::format!("{unsaid:?}"),
                "{}",
                row.name
            );
            assert!(unsaid.decision().window >= MSS);
        }
    }

    #[test]
    fn setup_reaches_every_controller_and_is_checked() {
        for row in TABLE {
            let limited = Setup {
                max_window: MSS * 4,
                ..Setup::new(MSS)
            };
            let controller = row.build(&limited, &Parameters::new()).unwrap();
            assert_eq!(controller.decision().window, MSS * 4, "{}", row.name);
            for (setup, message) in [
                (
                    Setup {
                        mss: Bytes::ZERO,
                        ..Setup::new(MSS)
                    },
                    "mss is 0B; expected at least 1B",
                ),
                (
                    Setup {
                        initial_window: Bytes::new(999),
                        ..Setup::new(MSS)
                    },
                    "initial_window is 999B; expected at least 1000B",
                ),
                (
                    Setup {
                        max_window: Bytes::new(1),
                        ..Setup::new(MSS)
                    },
                    "max_window is 1B; expected at least 1000B",
                ),
            ] {
                let error = row.build(&setup, &Parameters::new()).unwrap_err();
                assert_eq!(error.to_string(), message);
            }
        }
    }

    #[test]
    fn mistakes_are_answered_with_place_value_and_expectation() {
        let one = |name, value| Parameters::new().with(name, value);
        assert_eq!(
            refusal("cubic", &one("bata", Value::Number(0.5))),
            "there is no parameter \"bata\"; did you mean \"beta\"?"
        );
        assert_eq!(
            refusal("vegas", &one("increase", Value::Flag(true))),
            "there is no parameter \"increase\"; there are \"alpha\", \"beta\", \"gamma\" and \"whole_segments\""
        );
        assert_eq!(
            refusal("cubic", &one("beta", Value::Number(1.5))),
            "beta is 1.5; expected a number from 0.1 to 0.99"
        );
        assert_eq!(
            refusal("cubic", &one("beta", Value::Number(f64::NAN))),
            "beta is NaN; expected a number from 0.1 to 0.99"
        );
        assert_eq!(
            refusal("cubic", &one("hystart", Value::Number(1.0))),
            "hystart is 1; expected true or false"
        );
        assert_eq!(
            refusal("reno", &one("increase", Value::Text("per_bite".into()))),
            "increase is \"per_bite\"; expected \"per_ack\", \"per_byte\" or \"per_segment\""
        );
        assert_eq!(
            refusal(
                "real",
                &one("timeout_reduction", Value::Text("never".into()))
            ),
            "timeout_reduction is \"never\"; expected \"without_duplicates\" or \"always\""
        );
        assert_eq!(
            refusal("real", &one("timeout_repair", Value::Text("first".into()))),
            "timeout_repair is \"first\"; expected \"go_back_n\" or \"first_segment\""
        );
        assert_eq!(
            refusal("reno", &one("limit", Value::Number(1.5))),
            "limit is 1.5; expected a whole number of segments from 1 to 255"
        );
        assert_eq!(
            refusal("fixed", &one("window", Value::Bytes(Bytes::new(10)))),
            "window is 10B; expected at least 1000B"
        );
        assert_eq!(
            refusal(
                "fixed",
                &one("rate", Value::Rate(Rate::from_mbps(1)))
                    .with("gap", Value::Span(Span::from_millis(1)))
            ),
            "rate and gap exclude each other; leave one of them out"
        );
        assert_eq!(
            find("cubci").unwrap_err().to_string(),
            "there is no controller \"cubci\"; did you mean \"cubic\"? `comity list` describes each"
        );
        assert_eq!(
            find("westwood").unwrap_err().to_string(),
            "there is no controller \"westwood\"; there are \"reno\", \"vegas\", \"cubic\", \"bbr\", \"bbr3\", \"libra\", \"real\", \"iftp\", \"psp\", \"rap\", \"tfrc\", \"steady\" and \"fixed\"; \
             `comity list` describes each"
        );
    }

    #[test]
    fn text_is_read_by_the_kind_of_the_parameter() {
        let row = find("fixed").unwrap();
        assert_eq!(
            row.parse("rate", "1.5Mbps"),
            Ok(Value::Rate(Rate::from_kbps(1_500)))
        );
        assert_eq!(
            row.parse("gap", "50us"),
            Ok(Value::Span(Span::from_micros(50)))
        );
        assert_eq!(
            find("cubic").unwrap().parse("hystart", "false"),
            Ok(Value::Flag(false))
        );
        assert_eq!(
            find("vegas").unwrap().parse("alpha", "2.5"),
            Ok(Value::Number(2.5))
        );
        assert_eq!(
            row.parse("rate", "fast").unwrap_err().to_string(),
            "rate is \"fast\"; expected a rate of at least 1bps"
        );
        assert_eq!(
            row.parse("rat", "1Mbps").unwrap_err().to_string(),
            "there is no parameter \"rat\"; did you mean \"rate\"?"
        );
    }
}
