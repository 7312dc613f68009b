//! The syntax of the command line.

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand};
use clap_complete::Shell;

use comity_commands::args::{Check, Doctor, Keygen, Recv, Relay, Send};
use comity_commands::values::Offering;
#[cfg(feature = "demo")]
use comity_lab_commands::args::Demo;
#[cfg(feature = "laboratory")]
use comity_lab_commands::args::{Emulate, Kernel, Lab, Plot, Results, Sim, Tcp};

use crate::list;

/// The examples of this program's verbs.
fn examples() -> String {
    const DEMO: bool = cfg!(feature = "demo");
    const LABORATORY: bool = cfg!(feature = "laboratory");
    let all = [
        (DEMO, "comity demo"),
        (
            true,
            "comity recv 'comity://:9000?passphrase=@secret' film.ts",
        ),
        (
            true,
            "comity send clip.ts 'comity://host:9000?passphrase=@secret'",
        ),
        (true, "comity check clip.ts"),
        (LABORATORY, "comity sim run experiments/demo/dumbbell.toml"),
        (LABORATORY, "comity sim list experiments"),
        (LABORATORY, "comity results merge node-*/results --out all"),
        (LABORATORY, "comity lab run experiments/lab/contended.toml"),
        (LABORATORY, "comity kernel load libra"),
        (true, "comity list"),
        (LABORATORY, "comity sim schema > scenario.md"),
        (
            LABORATORY,
            "comity plot demo --kind throughput --out throughput.png",
        ),
        (
            LABORATORY,
            "comity emulate --listen :9000 --to host:9001 --rate 8Mbps --delay 20ms",
        ),
        (
            LABORATORY,
            "comity tcp serve clip.ts --port 8000 --address 10.77.0.2 --kernel 10.77.0.1/24",
        ),
        (true, "comity keygen key"),
        (true, "comity doctor"),
        (
            true,
            "comity completions bash > /etc/bash_completion.d/comity",
        ),
    ];
    let own = all.into_iter().filter(|(is_own, _)| *is_own);
    own.fold("Examples:".to_owned(), |text, (_, line)| {
        text + "\n  " + line
    })
}

/// Deadline-aware media transport, and a simulator to try it in.
#[derive(Debug, Parser)]
#[command(
    name = "comity",
    version,
    max_term_width = 100,
    subcommand_required = true,
    arg_required_else_help = true,
    after_help = examples()
)]
pub(crate) struct Cli {
    #[command(subcommand)]
    pub(crate) command: Command,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    #[cfg(feature = "demo")]
    /// Send video with deadlines beside greedy flows through an emulated bottleneck, and report
    /// what happened
    Demo(Demo),
    /// Send media to another host; every frame has a deadline
    #[command(arg_required_else_help = true)]
    Send(Send),
    /// Receive media and write it as a stream that every player can read
    #[command(arg_required_else_help = true)]
    Recv(Recv),
    /// Forward media from an input to an output without encoding it again
    #[command(arg_required_else_help = true)]
    Relay(Relay),
    /// Check a transport stream for faults, in the terms of TR 101 290
    #[command(arg_required_else_help = true)]
    Check(Check),
    #[cfg(feature = "laboratory")]
    /// Simulate networks that scenario files describe
    #[command(subcommand, arg_required_else_help = true)]
    Sim(Sim),
    #[cfg(feature = "laboratory")]
    /// Work with the stored results of sweeps
    #[command(subcommand, arg_required_else_help = true)]
    Results(Results),
    #[cfg(feature = "laboratory")]
    /// Run scenarios on real packets, beside the TCP of the Linux kernel and other programs
    #[command(subcommand, arg_required_else_help = true)]
    Lab(Lab),
    #[cfg(feature = "laboratory")]
    /// Add TCP Libra or TCP-Real to the congestion controllers of the Linux kernel, and watch flows
    #[command(subcommand, arg_required_else_help = true)]
    Kernel(Kernel),
    #[cfg(feature = "laboratory")]
    /// Draw a picture of stored results
    Plot(Plot),
    #[cfg(feature = "laboratory")]
    /// Emulate a network between real programs, as a UDP proxy that needs no privileges
    #[command(arg_required_else_help = true)]
    Emulate(Box<Emulate>),
    #[cfg(feature = "laboratory")]
    /// Speak TCP with Comity's own state machine, from an address behind a TUN device
    #[command(subcommand, arg_required_else_help = true)]
    Tcp(Tcp),
    /// Make a secret key, or print the public key of one
    Keygen(Keygen),
    /// List controllers, systems and applications, with sources, parameters and defaults
    List(Catalogue),
    /// Check this host for whatever slows Comity down, and print the commands that fix it
    Doctor(Doctor),
    /// Print the completion script of a shell
    Completions {
        /// The shell
        shell: Shell,
    },
    /// Write the manual pages
    Man {
        /// The folder to write to; created if it does not exist
        dir: PathBuf,
    },
}

#[derive(Debug, Args)]
#[command(
    after_help = "Use the name of a controller in cc= of a URI, or in `controller` of a scenario. For each system and \
application, the list names the scenario keys that select it.

Exit codes:
  0    done
  2    the name is unknown

Examples:
  comity list
  comity list tfrc
  comity list --json | jq -r '.controllers[].name'"
)]
pub(crate) struct Catalogue {
    /// The controller, system or application to describe in detail
    #[arg(value_parser = Offering(list::names()), hide_possible_values = true)]
    pub(crate) name: Option<String>,

    /// Print one JSON document
    #[arg(long)]
    pub(crate) json: bool,
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

    #[test]
    fn the_command_line_is_consistent() {
        Cli::command().debug_assert();
    }

    #[test]
    fn a_standard_stream_is_refused_where_a_file_is_expected() {
        for words in [
            &["recv", "comity://:1", "out.ts", "--gaps"][..],
            &["recv", "comity://:1", "out.ts", "--qlog"],
            &["keygen"],
            &["keygen", "--public"],
        ] {
            let parse = |file| Cli::try_parse_from([&["comity"], words, &[file]].concat());
            let said = parse("-").unwrap_err().to_string();
            assert!(said.contains("expected the path of a file"), "{said}");
            assert!(parse("./-").is_ok() && parse("gaps.jsonl").is_ok());
        }
    }
}
