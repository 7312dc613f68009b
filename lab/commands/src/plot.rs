//! `comity plot`

use super::complain;
use crate::args;
use crate::picture::{Picture, Plotter};

/// `comity plot`.
pub fn plot(args: args::Plot, plotter: Option<Plotter<'_>>) -> u8 {
    let picture = Picture {
        results: args.results,
        kind: args.kind,
        out: args.out,
        dark: args.dark,
        run: args.run,
        only: args.only,
    };
    match plotter {
        Some(draw) => draw(&picture),
        None => complain(
            &"this program draws no pictures; the command of the Python package does: run \
              pip install '.[plot]' in a clone of the repository, and then its `comity plot`",
        )
        .into(),
    }
}
