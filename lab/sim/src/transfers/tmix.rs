//! Connection vectors of Tmix.

use comity_units::{DataSize, Span};

use super::{LARGEST, TransfersError, last_line, lines};

/// The latest start of a connection, in microseconds: a year.
const LATEST: u64 = 365 * 24 * 3600 * 1_000_000;

/// A connection of a trace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TraceConnection {
    /// Its start.
    pub start: Span,
    /// The bytes from the host that opened it.
    pub initiator: DataSize,
    /// The bytes from the other host.
    pub acceptor: DataSize,
}

/// Reads connection vectors of Tmix, in either format of ns-2. Each line begins with a word:
///
/// | original format | alternate format | meaning |
/// |---|---|---|
/// | `SEQ start epochs x id` | `S start epochs x id` | a connection whose sides take turns; the start in µs |
/// | `CONC start units units x id` | `C start units units x id` | a connection whose sides do not take turns |
/// | `> bytes`, `c> bytes` | `I wait wait bytes` | a unit of data from the initiator |
/// | `< bytes`, `c< bytes` | `A wait wait bytes` | a unit of data from the acceptor |
/// | `t µs`, `t> µs`, `t< µs` | | a time between two units |
/// | `w`, `r`, `l` | `w`, `r`, `l` | windows, round trip and loss of the traced connection |
///
/// Empty lines and lines that begin with `#` are skipped. The times between units and the lines
/// `w`, `r` and `l` are checked for their first number only, because nothing uses them.
///
/// # Errors
/// [`TransfersError`] for the first invalid line, and for a file without connections.
///
/// # Source
/// The ns Manual, chapter "Tmix: Internet Traffic Generation", section "Connection Vectors", and
/// `tmix/tmix.cc` of ns-2.35. The model is that of Weigle, Adurthi, Hernández-Campos, Jeffay and
/// Smith, Tmix, ACM CCR 36(3), 2006; the TCP evaluation suite (draft-irtf-iccrg-tcpeval-01) uses
/// such files.
pub fn parse_tmix(text: &str) -> Result<Vec<TraceConnection>, TransfersError> {
    let mut connections: Vec<TraceConnection> = Vec::new();
    for (line, content) in lines(text) {
        let fail = |found: String, expected| TransfersError {
            line,
            found,
            expected,
        };
        let mut words = content.split_ascii_whitespace();
        let word = words.next().unwrap_or_default();
        let expected = match word {
            "SEQ" | "S" | "CONC" | "C" => "the start in microseconds, up to a year",
            ">" | "c>" | "<" | "c<" => "a number of bytes, up to 2^50",
            "I" | "A" => "two times and a number of bytes, up to 2^50",
            "t" | "t>" | "t<" | "w" | "r" | "l" => "a number",
            _ => {
                return Err(fail(
                    format!("{word:?} begins the line"),
                    "SEQ, CONC, >, <, c>, c<, t, t>, t<, S, C, I, A, w, r or l",
                ));
            }
        };
        let position = if matches!(word, "I" | "A") { 2 } else { 0 };
        let number = words.nth(position).unwrap_or_default();
        let invalid = || fail(format!("{word:?} has {number:?}"), expected);
        let whole = || number.parse::<u64>().map_err(|_| invalid());
        match word {
            "SEQ" | "S" | "CONC" | "C" => {
                let start = whole()?;
                if start > LATEST {
                    return Err(invalid());
                }
                connections.push(TraceConnection {
                    start: Span::from_micros(start),
                    initiator: DataSize::ZERO,
                    acceptor: DataSize::ZERO,
                });
            }
            // Loss rates are not whole numbers.
            "t" | "t>" | "t<" | "w" | "r" | "l" => {
                number.parse::<f64>().map_err(|_| invalid())?;
            }
            unit => {
                let Some(connection) = connections.last_mut() else {
                    let found = format!("{unit:?} belongs to no connection");
                    return Err(fail(found, "a line with SEQ, CONC, S or C before it"));
                };
                let sum = match unit {
                    ">" | "c>" | "I" => &mut connection.initiator,
                    _ => &mut connection.acceptor,
                };
                *sum += DataSize::new(whole()?);
                if *sum > DataSize::new(LARGEST) {
                    return Err(invalid());
                }
            }
        }
    }
    if connections.is_empty() {
        return Err(TransfersError {
            line: last_line(text),
            found: "the file has no connections".into(),
            expected: "a line with SEQ, CONC, S or C",
        });
    }
    Ok(connections)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn connection(micros: u64, initiator: u64, acceptor: u64) -> TraceConnection {
        TraceConnection {
            start: Span::from_micros(micros),
            initiator: DataSize::new(initiator),
            acceptor: DataSize::new(acceptor),
        }
    }

    #[test]
    fn both_formats_have_the_same_connections() {
        // Two requests with their answers, and a connection whose sides send independently.
        let original = "# a comment\n\
            SEQ 1500 2 17 1\nw 65535 5840\nr 31000\nl 0.0 0.01\n\
            > 300\nt 200\n< 4000\nt 70000\n> 310\nt 100\n< 90000\nt 500\n> 0\n\
            \n\
            CONC 2000000 2 1 18 2\nw 1 1\nr 2\nl 0 0\n\
            c> 10\nt> 50\nc< 7\nt< 9\nc> 20\nt> 60\n";
        let alternate = "S 1500 2 17 1\nw 65535 5840\nr 31000\nl 0.0 0.01\n\
            I 0 0 300\nA 0 200 4000\nI 0 70000 310\nA 0 100 90000\nI 0 500 0\n\
            C 2000000 2 1 18 2\nw 1 1\nr 2\nl 0 0\n\
            I 0 0 10\nA 0 0 7\nI 50 0 20\nA 9 0 0\nI 60 0 0\n";
        let expected = [connection(1_500, 610, 94_000), connection(2_000_000, 30, 7)];
        assert_eq!(parse_tmix(original).unwrap(), expected);
        assert_eq!(parse_tmix(alternate).unwrap(), expected);
    }

    #[test]
    fn an_invalid_file_says_where_and_why() {
        for (text, expected) in [
            (
                "",
                "line 1: the file has no connections; expected a line with SEQ",
            ),
            ("# nothing\n\n", "line 2: the file has no connections"),
            (
                "SEQ x 1 1 1",
                "line 1: \"SEQ\" has \"x\"; expected the start in microseconds",
            ),
            (
                "S",
                "line 1: \"S\" has \"\"; expected the start in microseconds",
            ),
            (
                "SEQ 31536000000001 1 1 1",
                "line 1: \"SEQ\" has \"31536000000001\"",
            ),
            (
                "> 1",
                "line 1: \">\" belongs to no connection; expected a line with SEQ",
            ),
            (
                "SEQ 1 1 1 1\n> -3",
                "line 2: \">\" has \"-3\"; expected a number of bytes",
            ),
            (
                "S 1 1 1 1\nA 0 5",
                "line 2: \"A\" has \"\"; expected two times and a number",
            ),
            (
                "S 1 1 1 1\nt soon",
                "line 2: \"t\" has \"soon\"; expected a number",
            ),
            (
                "C 1 1 1 1 1\nI 0 0 1125899906842624\nI 0 0 1",
                "line 3: \"I\" has \"1\"; expected two times and a number of bytes, up to 2^50",
            ),
            (
                "1,0.5",
                "line 1: \"1,0.5\" begins the line; expected SEQ, CONC",
            ),
        ] {
            let error = parse_tmix(text).unwrap_err().to_string();
            assert!(error.starts_with(expected), "{error}");
        }
    }
}
