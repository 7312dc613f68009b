//! Text from a peer for a terminal or a log.

use core::fmt;

/// Shows a peer's text with escapes for all characters that could control a terminal, begin a new
/// line, or change the direction of writing.
pub(crate) struct Printable<'a>(pub(crate) &'a str);

impl fmt::Display for Printable<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for character in self.0.chars() {
            match character {
                // Embeddings, overrides, isolates and marks of direction; line and paragraph ends.
                '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}' => {
                    write!(f, "{}", character.escape_unicode())?;
                }
                _ if character.is_control() => write!(f, "{}", character.escape_default())?,
                _ => write!(f, "{character}")?,
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn terminal_control_characters_are_escaped() {
        for (text, shown) in [
            ("done: 3 °C, 音", "done: 3 °C, 音"),
            (
                "\x1b[2Jerror:\n\r\u{9b}1m",
                "\\u{1b}[2Jerror:\\n\\r\\u{9b}1m",
            ),
            (
                "a\u{202e}b\u{2066}c\u{2028}",
                "a\\u{202e}b\\u{2066}c\\u{2028}",
            ),
        ] {
            assert_eq!(Printable(text).to_string(), shown);
        }
    }
}
