//! The known name that comes nearest to a mistyped one.

use alloc::vec::Vec;

/// The candidate with the least edit distance to `name`, the first of several; `None` when all are so far
/// away that more than half of the letters would have to change.
///
/// ```
/// use comity_congestion::table::nearest;
/// assert_eq!(nearest("latensy", ["payload", "latency"]), Some("latency"));
/// assert_eq!(nearest("colour", ["payload", "latency"]), None);
/// ```
pub fn nearest<'a>(name: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    candidates
        .into_iter()
        .map(|candidate| (distance(name, candidate), candidate))
        .filter(|(distance, candidate)| {
            2 * distance <= candidate.chars().count().max(name.chars().count()) + 1
        })
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, candidate)| candidate)
}

/// How many letters have to be inserted, removed or replaced, ignoring case (Levenshtein 1966).
fn distance(left: &str, right: &str) -> usize {
    let right: Vec<char> = right.chars().flat_map(char::to_lowercase).collect();
    // The distances of what was read of `left` to every beginning of `right`.
    let mut row: Vec<usize> = (0..=right.len()).collect();
    for (read, from) in left.chars().flat_map(char::to_lowercase).enumerate() {
        let mut diagonal = read;
        let mut before = read + 1;
        for (to, cell) in right.iter().zip(row.iter_mut().skip(1)) {
            let replaced = diagonal + usize::from(from != *to);
            diagonal = *cell;
            before = replaced.min(before + 1).min(*cell + 1);
            *cell = before;
        }
        if let Some(first) = row.first_mut() {
            *first = read + 1;
        }
    }
    row.last().copied().unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn distances_by_hand() {
        for (left, right, expected) in [
            ("", "", 0),
            ("", "abc", 3),
            ("abc", "", 3),
            ("kitten", "sitting", 3),
            ("flaw", "lawn", 2),
            ("Reno", "reno", 0),
            ("reno", "rneo", 2),
            ("µs", "us", 1),
        ] {
            assert_eq!(distance(left, right), expected, "{left} {right}");
            assert_eq!(distance(right, left), expected, "{right} {left}");
        }
    }
}
