//! `comity sim schema`

use comity_sim::scenario::reference;

use super::super::{Failure, print};
use crate::args;

pub(crate) fn schema(args: &args::Schema) -> Result<(), Failure> {
    if args.json {
        return print(format!("{:#}\n", reference::json_schema()));
    }
    // The printed text has no neighbouring page to link to.
    print(reference::markdown().replace("[controllers](controllers.md)", "`comity list`"))
}
