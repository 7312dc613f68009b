//! Readers for the options of scenario runs.

use std::num::NonZeroUsize;
use std::path::PathBuf;

use comity_sim::results::Format;

/// Where to store results, and in which format.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Out {
    pub(crate) path: PathBuf,
    pub(crate) format: Format,
}

impl Out {
    /// The extension determines the format.
    pub(super) fn new(path: PathBuf) -> Result<Self, String> {
        let format = Format::of(&path).map_err(|error| error.to_string())?;
        Ok(Self { path, format })
    }
}

pub(super) fn jobs(text: &str) -> Result<NonZeroUsize, String> {
    text.parse()
        .map_err(|_| "expected a whole number from 1".to_owned())
}

/// The largest seed: tables store seeds as signed numbers.
const MAX_SEED: u64 = i64::MAX as u64;

pub(super) fn seed(text: &str) -> Result<u64, String> {
    let seed = text.parse().ok().filter(|seed| *seed <= MAX_SEED);
    seed.ok_or_else(|| format!("expected a whole number from 0 to {MAX_SEED}"))
}

/// Seeds from the command line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Seeds(pub(crate) Vec<u64>);

/// Reads `1-5`, `1,2,7` or both mixed.
pub(super) fn seeds(text: &str) -> Result<Seeds, String> {
    const MOST: u64 = 1_000_000;
    let number = |text: &str| {
        seed(text.trim())
            .map_err(|_| format!("{text:?} is not a seed; expected numbers such as 1-5 or 1,2,7"))
    };
    let mut seeds = Vec::new();
    for part in text.split(',') {
        let (first, last) = match part.split_once('-') {
            Some((first, last)) => (number(first)?, number(last)?),
            None => (number(part)?, number(part)?),
        };
        if last < first {
            return Err(format!(
                "{part:?} goes backwards; expected the smaller seed first, as in 1-5"
            ));
        }
        if last - first >= MOST {
            return Err(format!(
                "{part:?} has more than {MOST} seeds; expected fewer"
            ));
        }
        seeds.extend(first..=last);
    }
    let mut sorted = seeds.clone();
    sorted.sort_unstable();
    if let Some(pair) = sorted.windows(2).find(|pair| pair[0] == pair[1]) {
        return Err(format!(
            "seed {} is listed twice; list it once, because runs with the same seed are identical",
            pair[0]
        ));
    }
    Ok(Seeds(seeds))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_extension_selects_the_format_of_results() {
        for (path, format) in [
            ("out", Format::Parquet),
            ("a.b/out", Format::Parquet),
            ("out.csv", Format::Csv),
            ("out.json", Format::Json),
        ] {
            assert_eq!(
                Out::new(path.into()).map(|out| out.format),
                Ok(format),
                "{path}"
            );
        }
        for bad in ["out.xml", "out.CSV", "out.1", "out.csv.gz"] {
            assert!(Out::new(bad.into()).is_err(), "{bad} was accepted");
        }
    }

    #[test]
    fn seeds_are_lists_and_ranges() {
        assert_eq!(seeds("1-3,7"), Ok(Seeds(vec![1, 2, 3, 7])));
        assert_eq!(seeds("5"), Ok(Seeds(vec![5])));
        for bad in [
            "",
            "a",
            "3-1",
            "1-99999999999",
            "-1",
            "1,,2",
            "1,1",
            "1-3,2",
        ] {
            assert!(seeds(bad).is_err(), "{bad:?} was accepted");
        }
    }
}
