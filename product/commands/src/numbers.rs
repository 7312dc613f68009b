//! Numbers for people.

use std::fmt::Display;

/// A whole number with a comma after every third digit.
pub fn thousands(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::new();
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// A share in percent with one decimal, rounded down: only a complete share is 100 %.
pub fn percent(share: f64) -> String {
    let tenths = (share * 1_000.0 + 1e-9).floor();
    if tenths == 1_000.0 {
        "100 %".into()
    } else {
        format!("{:.1} %", tenths / 10.0)
    }
}

/// A quantity in the format of results, with a space before its unit: `20 ms`, `8 Mb/s`. Settings
/// keep the format of the command line: `20ms`, `8Mbps`.
pub fn spaced(quantity: impl Display) -> String {
    let text = quantity.to_string();
    let at = text.find(|c: char| c.is_ascii_alphabetic());
    let (number, unit) = text.split_at(at.unwrap_or(text.len()));
    match unit.strip_suffix("bps") {
        Some(prefix) => format!("{number} {prefix}b/s"),
        None => format!("{number} {unit}"),
    }
}

/// A rate in the format of results: in Mb/s, and below 1 Mb/s in kb/s, with at most four digits.
pub fn rate(bits_per_second: f64) -> String {
    let (value, unit) = match bits_per_second < 1e6 {
        true => (bits_per_second / 1e3, "kb/s"),
        false => (bits_per_second / 1e6, "Mb/s"),
    };
    let decimals = match value {
        100.0.. => 1,
        10.0.. => 2,
        _ => 3,
    };
    format!("{value:.decimals$} {unit}")
}

#[cfg(test)]
mod tests {
    use comity_units::{Rate, Span};

    use super::*;

    #[test]
    fn quantities_in_results_have_a_space_before_the_unit() {
        assert_eq!(spaced(Span::from_millis(20)), "20 ms");
        assert_eq!(spaced(Span::from_micros(1_500)), "1.5 ms");
        assert_eq!(spaced(Rate::from_kbps(9_100)), "9.1 Mb/s");
        assert_eq!(spaced(Rate::from_bps(12)), "12 b/s");
    }

    #[test]
    fn rates_have_one_form() {
        for (bps, text) in [
            (1_350_000.0, "1.350 Mb/s"),
            (24_000_000.0, "24.00 Mb/s"),
            (100e6, "100.0 Mb/s"),
            (905_200.0, "905.2 kb/s"),
            (12_000.0, "12.00 kb/s"),
            (0.0, "0.000 kb/s"),
        ] {
            assert_eq!(rate(bps), text);
        }
    }

    #[test]
    fn digits_are_in_groups_of_three() {
        assert_eq!(thousands(1_234_567), "1,234,567");
        assert_eq!(thousands(12), "12");
    }
}
