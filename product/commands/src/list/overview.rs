//! All named items in groups, each with its description, its source and its parameters with their
//! defaults.
//!
//! ```text
//! psp     Spaces packets and adjusts the spacing once per round trip ..
//!         transports: sections; receiver: has a half of its own; losses: not retransmitted, ..
//!         source: Feng, Feng and Belford, ..
//!         parameters: damped = true; link = 100Mbps; scale = fixed; ..
//! ```

use std::io::{self, IsTerminal};

use super::listed::{Listed, words, wrap};

/// The line length without a terminal. Longer lines are hard to read.
const LONGEST_LINE: usize = 100;
/// The minimum line length: shorter lines are hard to read too.
const SHORTEST_LINE: usize = 40;

/// The line length of the standard output.
pub fn line_length() -> usize {
    let out = io::stdout();
    let columns = out
        .is_terminal()
        .then(|| rustix::termios::tcgetwinsize(&out).ok())
        .flatten()
        .map(|size| usize::from(size.ws_col))
        .filter(|columns| *columns > 0);
    columns
        .unwrap_or(LONGEST_LINE)
        .clamp(SHORTEST_LINE, LONGEST_LINE)
}

/// The overview in lines of at most `length` characters, except for longer words.
pub fn overview(listed: &[Listed], length: usize) -> String {
    let mut text = String::new();
    for group in listed.chunk_by(|one, next| one.heading == next.heading) {
        let Some(first) = group.first() else { continue };
        wrap(&mut text, "", 0, length, &words(first.heading));
        text.push('\n');
        let longest = group.iter().map(|one| one.name.chars().count()).max();
        let indent = longest.unwrap_or(0) + 2;
        for one in group {
            one.entry.write(&mut text, indent, length);
        }
        text.push('\n');
    }
    let more = "`comity list NAME` describes each parameter and its values.";
    wrap(&mut text, "", 0, length, &words(more));
    text
}
