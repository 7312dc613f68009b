//! Every controller by name: the one list for the command line, scenarios, bindings and tests.
//!
//! A [`Row`] says what a controller is, which [`Parameter`]s it has, and how to build it. People
//! write the names and values. So an error says what was expected and, for an unknown name, which
//! known name is nearest.
//!
//! ```
//! use comity_congestion::table::{self, Parameters, Setup, Value};
//! use comity_units::DataSize;
//!
//! let row = table::find("cubic")?;
//! let parameters = Parameters::new().with("beta", Value::Number(0.8));
//! let controller = row.build(&Setup::new(DataSize::new(1_200)), &parameters)?;
//! assert_eq!(controller.decision().window, DataSize::new(12_000));
//!
//! let mistake = table::find("cubik").unwrap_err();
//! assert_eq!(
//!     mistake.to_string(),
//!     r#"there is no controller "cubik"; did you mean "cubic"? `comity list` describes each"#
//! );
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod find;
mod names;
mod nearest;
mod parameters;
mod row;
mod rows;

pub use find::{UnknownController, find};
pub use names::{OtherName, other_name};
pub use nearest::nearest;
pub use parameters::{Domain, Parameter, ParameterError, Parameters, Value};
pub use row::{Row, Setup};
pub use rows::{DEFAULT_FOR_SECTIONS, TABLE};

#[cfg(test)]
mod tests {
    extern crate std;
    use super::*;
    use comity_units::{DataSize, Rate, Span};
    use std::string::{String, ToString};

    const MSS: DataSize = DataSize::new(1_000);

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
            ("WebRTC", "the controller \"gcc\""),
            ("scream-v2", "the controller \"scream\""),
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
                        mss: DataSize::ZERO,
                        ..Setup::new(MSS)
                    },
                    "mss is 0B; expected at least 1B",
                ),
                (
                    Setup {
                        initial_window: DataSize::new(999),
                        ..Setup::new(MSS)
                    },
                    "initial_window is 999B; expected at least 1000B",
                ),
                (
                    Setup {
                        max_window: DataSize::new(1),
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
    fn errors_name_the_position_the_value_and_the_expectation() {
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
            refusal("fixed", &one("window", Value::Bytes(DataSize::new(10)))),
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
        for row in ["gcc", "scream"] {
            let below = one("max_rate", Value::Rate(Rate::from_kbps(10)));
            assert_eq!(
                refusal(row, &below),
                "max_rate is 10kbps; expected a rate of at least 30kbps"
            );
        }
        assert_eq!(
            find("cubci").unwrap_err().to_string(),
            "there is no controller \"cubci\"; did you mean \"cubic\"? `comity list` describes each"
        );
        assert_eq!(
            find("westwood").unwrap_err().to_string(),
            "there is no controller \"westwood\"; there are \"reno\", \"vegas\", \"cubic\", \"bbr\", \"bbr3\", \"libra\", \"real\", \"iftp\", \"psp\", \"rap\", \"tfrc\", \"gcc\", \"scream\", \"steady\" and \"fixed\"; \
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
