//! Percent-encoding (RFC 3986, section 2.1).

use core::fmt;

/// Why a text cannot be decoded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PercentError {
    /// Two hexadecimal digits do not follow a `%`.
    Digits {
        /// The position of the byte in the text, counted from 1.
        at: usize,
    },
    /// The decoded bytes are not UTF-8.
    Utf8,
}

impl fmt::Display for PercentError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Digits { at } => write!(
                f,
                "byte {at} is a \"%\" without two hexadecimal digits; a percent sign itself is written \"%25\""
            ),
            Self::Utf8 => f.write_str("the \"%\" sequences do not decode to UTF-8"),
        }
    }
}

/// Replaces each `%` and its two digits by their byte. A `+` stays a `+`.
///
/// # Errors
///
/// [`PercentError`].
pub fn decode(text: &str) -> Result<String, PercentError> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.bytes().enumerate();
    while let Some((at, byte)) = rest.next() {
        if byte != b'%' {
            bytes.push(byte);
            continue;
        }
        let mut digit = || {
            let (_, byte) = rest.next()?;
            char::from(byte).to_digit(16).map(|digit| digit as u8)
        };
        match (digit(), digit()) {
            (Some(high), Some(low)) => bytes.push(high << 4 | low),
            _ => return Err(PercentError::Digits { at: at + 1 }),
        }
    }
    String::from_utf8(bytes).map_err(|_| PercentError::Utf8)
}

/// Encodes a text so that [`decode`] restores it, and no byte ends a key, a value or a path.
#[derive(Debug)]
pub struct Encoded<'a>(pub &'a str);

impl fmt::Display for Encoded<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.bytes().try_for_each(|byte| match byte {
            b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' => write!(f, "{}", char::from(byte)),
            b'-' | b'.' | b'_' | b'~' | b'/' | b':' | b'[' | b']' | b',' | b'!' | b'*' => {
                write!(f, "{}", char::from(byte))
            }
            _ => write!(f, "%{byte:02X}"),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_are_decoded_and_encoded() {
        assert_eq!(decode("a%20b%2fc+d"), Ok("a b/c+d".into()));
        assert_eq!(decode("%C3%A4ä"), Ok("ää".into()));
        assert_eq!(decode("50%"), Err(PercentError::Digits { at: 3 }));
        assert_eq!(decode("%+1"), Err(PercentError::Digits { at: 1 }));
        assert_eq!(decode("a%2"), Err(PercentError::Digits { at: 2 }));
        assert_eq!(decode("%ff"), Err(PercentError::Utf8));
        assert_eq!(
            Encoded("a b&c=d#%ä/x").to_string(),
            "a%20b%26c%3Dd%23%25%C3%A4/x"
        );
    }
}
