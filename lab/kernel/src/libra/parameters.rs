//! The parameters of Libra in the kernel.

use comity_units::{Rate, Span};

use crate::error::Error;
use crate::line::Line;

/// One, in the fixed-point format of X and Y.
const ONE_Q16: f64 = 65_536.0;

/// The parameters of every flow. A, B, X and Y are those of figure 2 and equation 1.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Parameters {
    /// A: round trips well below it get equal rates.
    pub a: Span,
    /// B: a loss reduces the window by B / (2 (RTT + A)) of it.
    pub b: Span,
    /// X in segments per second for each Mb/s of capacity.
    pub x: f64,
    /// Y: a full queue divides the growth by e^Y.
    pub y: f64,
    /// C for destinations without a capacity of their own; `None` for an estimate from pairs and
    /// delivery samples.
    pub capacity: Option<Rate>,
    /// Round-trip times and pairs expire after one to two times this long; `None` for never.
    pub memory: Option<Span>,
    /// Whether packets leave in pairs at random times.
    pub pairs: bool,
}

impl Default for Parameters {
    fn default() -> Self {
        Self {
            a: Span::from_secs(1),
            b: Span::from_secs(1),
            x: 2.0,
            y: 2.0,
            capacity: None,
            memory: Some(Span::from_secs(60)),
            pairs: true,
        }
    }
}

impl Parameters {
    /// The bytes of `struct libra_parameters` (bpf/libra.h).
    ///
    /// # Errors
    /// Names the first parameter that is out of the range in which the arithmetic is exact.
    pub fn to_bytes(&self) -> Result<[u8; 40], String> {
        let micros = |name: &str, span: Span| {
            let us = span.as_nanos() / 1_000;
            u32::try_from(us)
                .ok()
                .filter(|us| *us <= 1_000_000_000)
                .ok_or_else(|| format!("{name} is {span}, expected at most 1000s"))
        };
        let fixed = |name: &str, value: f64, most: f64| {
            if (0.0..=most).contains(&value) {
                Ok((value * ONE_Q16).round() as u64)
            } else {
                Err(format!("{name} is {value}, expected 0 to {most}"))
            }
        };
        let kbps = self.capacity.map_or(Ok(0), kbps)?;
        let a = micros("a", self.a)?;
        if a < 1_000 {
            return Err(format!("a is {}, expected 1ms to 1000s", self.a));
        }
        let memory = match self.memory {
            None => 0,
            Some(memory) if memory >= Span::from_millis(1) => memory.as_nanos() / 1_000,
            Some(memory) => return Err(format!("memory is {memory}, expected at least 1ms")),
        };
        let mut bytes = [0; 40];
        let words = [fixed("x", self.x, 1_000.0)?, kbps, memory];
        for (at, word) in bytes.chunks_exact_mut(8).zip(words) {
            at.copy_from_slice(&word.to_ne_bytes());
        }
        let halves = [
            a,
            micros("b", self.b)?,
            // At most 100 in 16.16.
            fixed("y", self.y, 100.0)? as u32,
            u32::from(self.pairs),
        ];
        for (at, half) in bytes[24..].chunks_exact_mut(4).zip(halves) {
            at.copy_from_slice(&half.to_ne_bytes());
        }
        Ok(bytes)
    }

    /// Reads a line of the program `libra_parameters`.
    pub(crate) fn from_line(line: &Line<'_>) -> Result<Self, Error> {
        let fixed = |name| Ok::<_, Error>(line.number(name)? as f64 / ONE_Q16);
        let span = |name| Ok::<_, Error>(Span::from_micros(line.number(name)?));
        Ok(Self {
            a: span("a_us")?,
            b: span("b_us")?,
            x: fixed("x_q16")?,
            y: fixed("y_q16")?,
            capacity: some(line.number("capacity_kbps")?).map(Rate::from_kbps),
            memory: some(line.number("memory_us")?).map(Span::from_micros),
            pairs: line.number("pairs")? == 1,
        })
    }
}

/// A capacity in the form that the programs use.
///
/// # Errors
/// If it is out of range.
pub(super) fn kbps(capacity: Rate) -> Result<u64, String> {
    match capacity.as_bps() {
        bps @ 1_000..=MAX_CAPACITY_BPS => Ok(bps / 1_000),
        _ => Err(format!(
            "capacity is {capacity}, expected 1kbps to 10000Gbps"
        )),
    }
}

/// The maximum capacity: with the maximum X, the product still fits into 64 bits.
const MAX_CAPACITY_BPS: u64 = 10_000_000_000_000;

/// `None` for zero, by which the programs express it.
fn some(number: u64) -> Option<u64> {
    (number > 0).then_some(number)
}

#[cfg(test)]
mod tests {
    use super::*;
    use comity_congestion::table::{self, Value};

    #[test]
    fn the_bytes_have_the_layout_of_the_header() {
        let parameters = Parameters {
            a: Span::from_millis(500),
            b: Span::from_millis(250),
            x: 0.5,
            y: 3.0,
            capacity: Some(Rate::from_mbps(100)),
            memory: None,
            pairs: true,
        };
        let bytes = parameters.to_bytes().unwrap();
        let long = |at: usize| u64::from_ne_bytes(bytes[at..at + 8].try_into().unwrap());
        let short = |at: usize| u32::from_ne_bytes(bytes[at..at + 4].try_into().unwrap());
        assert_eq!([long(0), long(8), long(16)], [32_768, 100_000, 0]);
        assert_eq!(
            [short(24), short(28), short(32), short(36)],
            [500_000, 250_000, 196_608, 1]
        );
    }

    #[test]
    fn the_defaults_are_those_of_the_simulators_libra() {
        let row = table::find("libra").expect("a known controller");
        let default = |name| {
            let mut found = row.parameters.iter();
            let found = found.find(|parameter| parameter.name == name);
            found.expect("a known parameter").default.clone()
        };
        let own = Parameters::default();
        let seconds = |span: Span| Value::Number(span.as_secs_f64());
        assert_eq!(default("a"), seconds(own.a));
        assert_eq!(default("b"), seconds(own.b));
        assert_eq!(default("x"), Value::Number(own.x));
        assert_eq!(default("y"), Value::Number(own.y));
        let estimated = Value::Rate(own.capacity.unwrap_or(Rate::ZERO));
        assert_eq!(default("capacity"), estimated);
        assert_eq!(default("memory"), Value::Span(own.memory.expect("a time")));
    }

    #[test]
    fn the_line_of_the_program_gives_the_parameters_back() {
        let line = "x_q16=131072 capacity_kbps=100000 memory_us=60000000 a_us=1000000 b_us=500000 y_q16=65536 pairs=0";
        let expected = Parameters {
            b: Span::from_millis(500),
            y: 1.0,
            capacity: Some(Rate::from_mbps(100)),
            pairs: false,
            ..Parameters::default()
        };
        assert_eq!(Parameters::from_line(&Line::new(line)).unwrap(), expected);
    }

    #[test]
    fn a_refusal_names_the_parameter_and_its_range() {
        let good = Parameters::default();
        for (bad, expected) in [
            (
                Parameters {
                    a: Span::ZERO,
                    ..good
                },
                "a is 0s, expected 1ms to 1000s",
            ),
            (
                Parameters { x: -1.0, ..good },
                "x is -1, expected 0 to 1000",
            ),
            (
                Parameters {
                    x: f64::NAN,
                    ..good
                },
                "x is NaN, expected 0 to 1000",
            ),
            (
                Parameters { y: 101.0, ..good },
                "y is 101, expected 0 to 100",
            ),
            (
                Parameters {
                    b: Span::from_secs(1_001),
                    ..good
                },
                "b is 1001s, expected at most 1000s",
            ),
            (
                Parameters {
                    capacity: Some(Rate::from_bps(999)),
                    ..good
                },
                "capacity is 999bps, expected 1kbps to 10000Gbps",
            ),
            (
                Parameters {
                    memory: Some(Span::ZERO),
                    ..good
                },
                "memory is 0s, expected at least 1ms",
            ),
        ] {
            assert_eq!(bad.to_bytes().unwrap_err(), expected);
        }
    }
}
