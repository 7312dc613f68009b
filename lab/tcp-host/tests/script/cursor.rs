//! A place in a line, and the words behind it.

use comity_units::Span;

pub(super) struct Cursor<'a> {
    rest: &'a str,
}

/// Whether a character belongs to a word.
const fn is_of_word(character: char) -> bool {
    character.is_ascii_alphanumeric() || character == '_'
}

impl<'a> Cursor<'a> {
    pub(super) const fn new(text: &'a str) -> Self {
        Self { rest: text }
    }

    /// What is behind the blanks.
    fn next(&mut self) -> &'a str {
        self.rest = self.rest.trim_start();
        self.rest
    }

    fn expected(&mut self, what: &str) -> String {
        match self.next() {
            "" => format!("the line ends, expected {what}"),
            rest => format!("`{rest}`, expected {what}"),
        }
    }

    fn take(&mut self, length: usize) -> &'a str {
        let (taken, rest) = self.rest.split_at(length);
        self.rest = rest;
        taken
    }

    /// Passes `token` if it is next. A word has to be whole.
    pub(super) fn accept(&mut self, token: &str) -> bool {
        let Some(rest) = self.next().strip_prefix(token) else {
            return false;
        };
        let is_word = token.ends_with(is_of_word);
        if is_word && rest.starts_with(is_of_word) {
            return false;
        }
        self.rest = rest;
        true
    }

    pub(super) fn expect(&mut self, token: &str) -> Result<(), String> {
        match self.accept(token) {
            true => Ok(()),
            false => Err(self.expected(&format!("`{token}`"))),
        }
    }

    pub(super) fn all_of(&mut self, tokens: &[&str]) -> Result<(), String> {
        tokens.iter().try_for_each(|token| self.expect(token))
    }

    /// The characters up to the first that does not belong.
    fn run(&mut self, what: &str, belongs: impl Fn(char) -> bool) -> Result<&'a str, String> {
        let rest = self.next();
        match rest
            .find(|character| !belongs(character))
            .unwrap_or(rest.len())
        {
            0 => Err(self.expected(what)),
            length => Ok(self.take(length)),
        }
    }

    pub(super) fn word(&mut self, what: &str) -> Result<&'a str, String> {
        self.run(what, is_of_word)
    }

    pub(super) fn flags(&mut self, what: &str) -> Result<&'a str, String> {
        self.run(what, |it| it.is_ascii_uppercase() || it == '.' || it == '-')
    }

    pub(super) fn starts_with_digit(&mut self) -> bool {
        self.next().starts_with(|it: char| it.is_ascii_digit())
    }

    pub(super) fn number(&mut self) -> Result<u32, String> {
        let digits = self.run("a number", |it| it.is_ascii_digit())?;
        digits
            .parse()
            .map_err(|_| format!("{digits}, expected less than 2^32"))
    }

    pub(super) fn integer(&mut self) -> Result<i64, String> {
        let sign = if self.accept("-") { -1 } else { 1 };
        Ok(sign * i64::from(self.number()?))
    }

    /// A time in seconds, such as `1`, `.04` or `0.2`.
    pub(super) fn seconds(&mut self) -> Result<Span, String> {
        let digits = self.run("a time", |it| it.is_ascii_digit() || it == '.')?;
        let (whole, part) = digits.split_once('.').unwrap_or((digits, ""));
        let invalid = |_| format!("{digits}, expected seconds");
        let nanos: u64 = format!("{part:0<9}").parse().map_err(invalid)?;
        let whole: u64 = format!("0{whole}").parse().map_err(invalid)?;
        match part.len() {
            0..=9 => Ok(Span::from_secs(whole) + Span::from_nanos(nanos)),
            _ => Err(format!("{digits}, expected at most nine decimals")),
        }
    }

    pub(super) fn end(&mut self) -> Result<(), String> {
        match self.next() {
            "" => Ok(()),
            _ => Err(self.expected("the end of the line")),
        }
    }
}
