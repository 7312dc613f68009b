//! The parameters of TCP-Real in the kernel.

use crate::error::Error;
use crate::line::Line;

/// One, in the fixed-point format of the share.
const ONE_Q16: f64 = 65_536.0;

/// The parameters of every flow: those of the simulator's `real` that apply to a kernel.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Parameters {
    /// The highest level; a level is two segments of window.
    pub max_level: u32,
    /// The first threshold as a share of the highest level.
    pub threshold_share: f64,
    /// How a connection finds its first level.
    pub opening: Opening,
    /// How fractions of a level are rounded.
    pub fractions: Fractions,
    /// Whether the next wave is compared with the rate of a wave that the wave-decision timer
    /// ended.
    pub compare_with_timeouts: bool,
    /// Whether the current level of figure 1 is that of the measured wave, not the last decision.
    pub level_of_wave: bool,
    /// Whether the length of a wave is fixed to the window at its beginning.
    pub fixed_waves: bool,
    /// Whether every timeout reduces the window to two segments, not only one without a prior
    /// duplicate acknowledgement.
    pub always_reduce: bool,
    /// Whether the weights are those in the text of section 2.2, which exchanges those of figure 1.
    pub text_weights: bool,
}

/// How a connection finds its first level.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Opening {
    /// The level doubles with every wave up to the first threshold.
    SlowStart,
    /// Only figure 1; the first wave keeps its level.
    Figure,
    /// Only figure 1; the first wave gives the highest level.
    Jump,
    /// The sender's Slow Start, up to the window of the first threshold or the first loss.
    Sender,
}

/// How fractions of a level are rounded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fractions {
    /// The receiver keeps the fraction and reports the nearest level.
    Kept,
    /// The nearest level is kept.
    Nearest,
    /// The next higher level is kept.
    Up,
    /// The next lower level is kept.
    Down,
}

/// The numbers of these variants in `bpf/real.h` are their indices here.
const OPENINGS: [Opening; 4] = [
    Opening::SlowStart,
    Opening::Figure,
    Opening::Jump,
    Opening::Sender,
];
const FRACTIONS: [Fractions; 4] = [
    Fractions::Kept,
    Fractions::Nearest,
    Fractions::Up,
    Fractions::Down,
];
/// `REAL_MAX_LEVEL` of `bpf/real.h`.
const MAX_LEVEL: u32 = 10_000;

impl Default for Parameters {
    fn default() -> Self {
        Self {
            max_level: 24,
            threshold_share: 0.5,
            opening: Opening::SlowStart,
            fractions: Fractions::Kept,
            compare_with_timeouts: true,
            level_of_wave: false,
            fixed_waves: false,
            always_reduce: false,
            text_weights: false,
        }
    }
}

impl Parameters {
    /// The bytes of `struct real_parameters` (bpf/real.h).
    ///
    /// # Errors
    /// Names the first parameter that is out of its range.
    pub fn to_bytes(&self) -> Result<[u8; 36], String> {
        if !(1..=MAX_LEVEL).contains(&self.max_level) {
            return Err(format!(
                "max_level is {}, expected 1 to {MAX_LEVEL}",
                self.max_level
            ));
        }
        if !(0.0..=1.0).contains(&self.threshold_share) {
            return Err(format!(
                "threshold_share is {}, expected 0 to 1",
                self.threshold_share
            ));
        }
        let words = [
            self.max_level,
            // At most one in 16.16.
            (self.threshold_share * ONE_Q16).round() as u32,
            number_of(&OPENINGS, &self.opening),
            number_of(&FRACTIONS, &self.fractions),
            self.compare_with_timeouts.into(),
            self.level_of_wave.into(),
            self.fixed_waves.into(),
            self.always_reduce.into(),
            self.text_weights.into(),
        ];
        let mut bytes = [0; 36];
        for (at, word) in bytes.chunks_exact_mut(4).zip(words) {
            at.copy_from_slice(&word.to_ne_bytes());
        }
        Ok(bytes)
    }

    /// Reads a line of the program `real_parameters`.
    pub(crate) fn from_line(line: &Line<'_>) -> Result<Self, Error> {
        let flag = |name| Ok::<_, Error>(line.number(name)? == 1);
        Ok(Self {
            max_level: line.number("max_level")?.try_into().unwrap_or(u32::MAX),
            threshold_share: line.number("threshold_share_q16")? as f64 / ONE_Q16,
            opening: variant(&OPENINGS, line, "opening")?,
            fractions: variant(&FRACTIONS, line, "fractions")?,
            compare_with_timeouts: flag("compare_with_timeouts")?,
            level_of_wave: flag("level_of_wave")?,
            fixed_waves: flag("fixed_waves")?,
            always_reduce: flag("always_reduce")?,
            text_weights: flag("text_weights")?,
        })
    }
}

fn number_of<T: PartialEq>(all: &[T], wanted: &T) -> u32 {
    let index = all.iter().position(|one| one == wanted);
    // The tables above contain every variant.
    index.map_or(0, |index| index as u32)
}

fn variant<T: Copy>(all: &[T], line: &Line<'_>, name: &str) -> Result<T, Error> {
    let number = line.number(name)?;
    let found = usize::try_from(number).ok().and_then(|at| all.get(at));
    found
        .copied()
        .ok_or_else(|| Error::Form(format!("its {name:?} is {number}")))
}

#[cfg(test)]
mod tests {
    use super::*;
    use comity_congestion::table::{self, Value};

    #[test]
    fn the_bytes_have_the_layout_of_the_header() {
        let parameters = Parameters {
            max_level: 12,
            threshold_share: 0.25,
            opening: Opening::Jump,
            fractions: Fractions::Down,
            compare_with_timeouts: false,
            level_of_wave: true,
            fixed_waves: false,
            always_reduce: true,
            text_weights: true,
        };
        let bytes = parameters.to_bytes().unwrap();
        let words: Vec<u32> = bytes
            .chunks_exact(4)
            .map(|word| u32::from_ne_bytes(word.try_into().unwrap()))
            .collect();
        assert_eq!(words, [12, 16_384, 2, 3, 0, 1, 0, 1, 1]);
        let line = "max_level=12 threshold_share_q16=16384 opening=2 fractions=3 \
compare_with_timeouts=0 level_of_wave=1 fixed_waves=0 always_reduce=1 text_weights=1";
        assert_eq!(Parameters::from_line(&Line::new(line)).unwrap(), parameters);
        let other = Line::new("max_level=12 threshold_share_q16=0 opening=7");
        let error = Parameters::from_line(&other).unwrap_err().to_string();
        assert!(error.contains("\"opening\" is 7"), "{error}");
    }

    #[test]
    fn the_defaults_are_those_of_the_simulators_real() {
        let row = table::find("real").expect("a known controller");
        let default = |name| {
            let mut found = row.parameters.iter();
            let found = found.find(|parameter| parameter.name == name);
            found.expect("a known parameter").default.clone()
        };
        let own = Parameters::default();
        assert_eq!(default("max_level"), Value::Number(own.max_level.into()));
        assert_eq!(
            default("threshold_share"),
            Value::Number(own.threshold_share)
        );
        assert_eq!(default("opening"), Value::Text("slow_start".into()));
        assert_eq!(own.opening, Opening::SlowStart);
        assert_eq!(default("fractions"), Value::Text("kept".into()));
        assert_eq!(own.fractions, Fractions::Kept);
        let flag = |name| default(name) == Value::Flag(true);
        assert_eq!(flag("compare_with_timeouts"), own.compare_with_timeouts);
        assert_eq!(flag("level_of_wave"), own.level_of_wave);
        assert_eq!(flag("fixed_waves"), own.fixed_waves);
        let reduction = default("timeout_reduction") == Value::Text("always".into());
        assert_eq!(reduction, own.always_reduce);
        let weights = default("weights") == Value::Text("text".into());
        assert_eq!(weights, own.text_weights);
    }

    #[test]
    fn a_refusal_names_the_parameter_and_its_range() {
        let good = Parameters::default();
        let level = |max_level| Parameters { max_level, ..good }.to_bytes().unwrap_err();
        assert_eq!(level(0), "max_level is 0, expected 1 to 10000");
        assert_eq!(level(10_001), "max_level is 10001, expected 1 to 10000");
        for bad in [-0.1, 1.1, f64::NAN] {
            let share = Parameters {
                threshold_share: bad,
                ..good
            };
            let expected = format!("threshold_share is {bad}, expected 0 to 1");
            assert_eq!(share.to_bytes().unwrap_err(), expected);
        }
    }
}
