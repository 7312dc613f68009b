//! `comity check`: [`input`] reads a stream into a checker, [`document`] and [`text`] print the
//! results.

mod document;
mod findings;
mod input;
mod text;

use self::findings::Findings;
use super::stream::error::Error;
use super::stream::uri::{PlaceError, Uri, bridge_to_check, without_secrets};
use super::{Failure, print, say};
use crate::args;

/// `comity check`
/// `comity check`.
///
/// # Errors
/// If the input cannot be read, or has faults. The message is printed.
pub fn check(args: &args::Check) -> Result<(), Failure> {
    let findings = find(args).map_err(|error| {
        say(&format!("error: {error}"));
        error.failure()
    })?;
    if args.json {
        print(format!("{:#}\n", document::document(&findings)))?;
    } else {
        print(text::text(&findings))?;
    }
    let errors = &findings.report.errors;
    match errors.sum(1) + errors.sum(2) {
        0 => Ok(()),
        _ => Err(Failure::Faulty),
    }
}

fn find(args: &args::Check) -> Result<Findings<'_>, Error> {
    let input = &args.input;
    let uri: Uri = input.parse().map_err(|mut error| {
        if let PlaceError::Scheme { found, hint } = &mut error
            && let Some(bridge) = bridge_to_check(found)
        {
            *hint = bridge;
        }
        Error::usage(format!("{}: {error}", without_secrets(input)))
    })?;
    let is_live = matches!(uri, Uri::Udp(_) | Uri::Rtp(_));
    if let (Uri::Comity(_), _) | (_, Some(false)) = (&uri, args.duration.map(|_| is_live)) {
        return Err(refused(&uri, input));
    }
    let (report, rtp) = input::read(&uri, input, args)?;
    if report.packets == 0 {
        let bytes = report.skipped_bytes;
        return Err(Error::unopened(format!(
            "{input}: found no transport packet in {bytes} bytes; expected an MPEG transport stream"
        )));
    }
    Ok(Findings {
        input,
        is_live,
        rtp,
        report,
    })
}

fn refused(uri: &Uri, input: &str) -> Error {
    let input = without_secrets(input);
    match uri {
        Uri::Comity(_) => Error::usage(format!(
            "INPUT: is {input:?}; expected -, a file, udp:// or rtp://; comity recv receives from comity://"
        )),
        _ => Error::usage(format!(
            "--for: is for a live input, and {input} ends by itself; expected udp:// or rtp://, or no --for"
        )),
    }
}
