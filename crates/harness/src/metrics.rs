//! Requests for metrics, from whoever reaches the port.

// Nothing may import the command, which is a leaf: the file that reads requests stands for itself.
#[path = "../../cli/src/commands/stream/metrics/request.rs"]
mod request;

use request::{Incoming, LONGEST, Request};

/// The first byte says into what pieces the rest is cut. However it is, the same is asked for, and
/// no more is waited for than the head; what is asked for is what a plain reading of the line says.
pub fn check(bytes: &[u8]) {
    let Some((&control, bytes)) = bytes.split_first() else {
        return;
    };
    let mut whole = Incoming::default();
    let is_complete = whole.push(bytes);
    let has_head = bytes.windows(4).any(|end| end == b"\r\n\r\n");
    assert_eq!(is_complete, has_head || bytes.len() >= LONGEST);

    let mut pieces = Incoming::default();
    let completed = bytes
        .chunks(usize::from(control) + 1)
        .any(|piece| pieces.push(piece));
    assert_eq!(completed, is_complete);
    assert_eq!(pieces.request(), whole.request());

    let line = bytes
        .split(|byte| *byte == b'\r')
        .next()
        .unwrap_or_default();
    let asks_for = |prefix: &[u8]| {
        let rest = line.strip_prefix(prefix);
        rest.is_some_and(|rest| matches!(rest.first(), None | Some(b' ' | b'?')))
    };
    let expected = match asks_for(b"GET /metrics") {
        true => Request::Metrics,
        false if asks_for(b"GET /") => Request::Root,
        false if line == b"GET" || line.starts_with(b"GET ") => Request::Elsewhere,
        false => Request::Method,
    };
    assert_eq!(whole.request(), expected);
}
