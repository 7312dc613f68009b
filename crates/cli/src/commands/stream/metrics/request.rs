//! What a scraper asks for, in HTTP/1.1 (RFC 9112, section 3).

/// The longest request line that is read; what is longer names nothing that is here.
const LONGEST_LINE: usize = 1_024;
/// The most bytes of a request that are waited for.
pub(crate) const LONGEST: usize = 8 * LONGEST_LINE;

/// What is requested.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Request {
    /// `GET /metrics`, with or without a query.
    Metrics,
    /// `GET /`
    Root,
    /// `GET` of something else.
    Elsewhere,
    /// Another method, or none.
    Method,
}

/// A request that is coming.
#[derive(Debug, Default)]
pub(crate) struct Incoming {
    held: Vec<u8>,
}

impl Incoming {
    /// Takes the next bytes; whether no more are needed: the head is there, or it is longer than
    /// [`LONGEST`].
    pub(crate) fn push(&mut self, bytes: &[u8]) -> bool {
        let room = LONGEST - self.held.len();
        // The end of the head may have begun in the last piece.
        let looked = self.held.len().saturating_sub(3);
        self.held.extend(bytes.get(..room).unwrap_or(bytes));
        let new = self.held.get(looked..).unwrap_or_default();
        new.windows(4).any(|end| end == b"\r\n\r\n") || self.held.len() == LONGEST
    }

    /// What is requested by what has come.
    pub(crate) fn request(&self) -> Request {
        let line = self.held.split(|byte| *byte == b'\r').next();
        let line = line.unwrap_or_default();
        let mut words = line
            .get(..LONGEST_LINE)
            .unwrap_or(line)
            .split(|byte| *byte == b' ');
        let (method, target) = (words.next(), words.next().unwrap_or_default());
        let path = target.split(|byte| *byte == b'?').next();
        match (method, path) {
            (Some(b"GET"), Some(b"/metrics")) => Request::Metrics,
            (Some(b"GET"), Some(b"/")) => Request::Root,
            (Some(b"GET"), _) => Request::Elsewhere,
            _ => Request::Method,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_head_may_come_in_pieces() {
        let mut incoming = Incoming::default();
        for piece in ["GE", "T /metri", "cs?a=b HTTP/1.1\r", "\nHost: x\r\n\r"] {
            assert!(!incoming.push(piece.as_bytes()));
        }
        assert!(incoming.push(b"\n"));
        assert_eq!(incoming.request(), Request::Metrics);
    }

    #[test]
    fn what_never_ends_is_not_waited_for() {
        let mut incoming = Incoming::default();
        assert!(!incoming.push(&[b'x'; LONGEST - 1]));
        assert!(incoming.push(&[b'x'; 9]));
        assert!(incoming.push(b"more"));
        assert_eq!(incoming.held.len(), LONGEST);
        assert_eq!(incoming.request(), Request::Method);
    }
}
