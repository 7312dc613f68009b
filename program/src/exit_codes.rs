//! The page `docs/reference/exit-codes.md`, from the help of every command. To update it:
//!
//! ```text
//! COMITY_UPDATE=1 cargo test -p comity-cli --lib exit_codes
//! ```

use std::fmt::Write as _;

use clap::{Command, CommandFactory};

use crate::args::Cli;

const PAGE: &str = concat!(
    env!("CARGO_MANIFEST_DIR"),
    "/../docs/reference/exit-codes.md"
);

/// The exit codes in the help of a command, each with its meaning.
fn codes(command: &Command) -> Vec<(u8, String)> {
    let help = command.get_after_help().map(ToString::to_string);
    let Some((_, block)) = help
        .as_deref()
        .and_then(|help| help.split_once("Exit codes:\n"))
    else {
        return Vec::new();
    };
    let mut codes: Vec<(u8, String)> = Vec::new();
    for line in block.lines().take_while(|line| !line.is_empty()) {
        let (first, rest) = line.trim().split_once(' ').unwrap_or((line, ""));
        match (first.parse(), codes.last_mut()) {
            (Ok(code), _) => codes.push((code, rest.trim().to_owned())),
            (Err(_), Some((_, meaning))) => {
                meaning.push(' ');
                meaning.push_str(line.trim());
            }
            (Err(_), None) => panic!("{line:?} does not begin with a code"),
        }
    }
    codes
}

/// Adds a table for the command, or one for each command below it.
fn tables(page: &mut String, name: &str, command: &Command) -> std::fmt::Result {
    let codes = codes(command);
    if !codes.is_empty() {
        write!(page, "\n## {name}\n\n| code | meaning |\n| --- | --- |\n")?;
    }
    for (code, meaning) in codes {
        writeln!(page, "| {code} | {meaning} |")?;
    }
    command
        .get_subcommands()
        .try_for_each(|below| tables(page, &format!("{name} {}", below.get_name()), below))
}

#[test]
fn the_page_is_up_to_date() {
    let mut page = String::from(
        "# Exit codes\n\n\
         Generated from the help of the commands;\n\
         `COMITY_UPDATE=1 cargo test -p comity-cli --lib exit_codes` writes it anew.\n\n\
         Every command ends with 0 if it succeeded, 1 if it failed, 2 if the command line is wrong, and 6 if\n\
         a file or folder to read, which the command line names, cannot be opened.\n\
         Commands that are not listed use no other code.\n",
    );
    tables(&mut page, "comity", &Cli::command()).unwrap();
    assert!(page.matches("\n## ").count() > 8, "{page}");
    comity_testkit::page::assert_up_to_date(PAGE, &page);
}
