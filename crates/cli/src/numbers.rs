//! Numbers for people.

/// A whole number with a comma after every third digit.
pub(crate) fn thousands(number: u64) -> String {
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

/// A share in percent with one decimal, rounded down: only all is 100 %.
#[cfg(feature = "demo")]
pub(crate) fn percent(share: f64) -> String {
    let tenths = (share * 1_000.0 + 1e-9).floor();
    if tenths == 1_000.0 {
        "100 %".into()
    } else {
        format!("{:.1} %", tenths / 10.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn digits_stand_in_groups_of_three() {
        assert_eq!(thousands(1_234_567), "1,234,567");
        assert_eq!(thousands(12), "12");
    }
}
