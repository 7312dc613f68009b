//! The arguments of the commands.
#![expect(missing_docs, reason = "the help of a command documents its arguments")]

mod check;
mod stream;

use std::path::PathBuf;

use clap::Args;

use crate::values::named_file;

pub use check::Check;
pub use stream::{Common, Encoder, Reconnect, Recv, Relay, Send, Sending};

#[derive(Debug, Args)]
#[command(
    after_help = "The command writes the secret key (comity-secret-..) to FILE, which only its
owner can read. It prints the public key (comity-public-..). A listener
accepts the public keys in a file, one per line (allow=FILE in its URI). A
caller names the listener's public key (peerkey=KEY in its URI).

Exit codes:
  0    done
  1    FILE exists, cannot be written, or is not a key
  2    the command line is wrong
  6    with --public, FILE cannot be opened

Examples:
  comity keygen caller.key >> allowed
  comity keygen --public listener.key
  comity keygen listener.key --json | jq -r .public"
)]
pub struct Keygen {
    /// The file to write the secret key to
    #[arg(required_unless_present = "public", value_parser = named_file())]
    pub(crate) file: Option<PathBuf>,

    /// Print the public key of the secret key in this file instead
    #[arg(long, value_name = "FILE", conflicts_with_all = ["file", "force"], value_parser = named_file())]
    pub(crate) public: Option<PathBuf>,

    /// Replace FILE; the secret key in it is lost
    #[arg(long)]
    pub(crate) force: bool,

    /// Print one JSON document
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
#[command(after_help = "Exit codes:
  0    no check is bad
  1    at least one check is bad
  2    the command line is wrong

Examples:
  comity doctor
  comity doctor --listen 9000
  comity doctor --json | jq '.checks[] | select(.verdict != \"good\")'")]
pub struct Doctor {
    /// Also check that this UDP port is free and reachable from this host; may be repeated
    #[arg(long, value_name = "PORT", value_parser = clap::value_parser!(u16).range(1..))]
    pub(crate) listen: Vec<u16>,

    /// Print one JSON document
    #[arg(long)]
    pub(crate) json: bool,
}
