//! The function of each command.

use clap::CommandFactory;
use comity_commands::{check, complain, doctor, keygen, print, recv, relay, send};
#[cfg(feature = "laboratory")]
use comity_lab_commands::{emulate, kernel, lab, plot, results, sim, tcp};

use crate::args::{Cli, Command};
use crate::list;

/// Runs a command, and returns the exit code.
pub(crate) fn dispatch(command: Command) -> u8 {
    let done = match command {
        #[cfg(feature = "demo")]
        Command::Demo(args) => comity_lab_commands::demo(&args),
        Command::Send(args) => send(&args),
        Command::Recv(args) => recv(&args),
        Command::Relay(args) => relay(&args),
        Command::Check(args) => check(&args),
        #[cfg(feature = "laboratory")]
        Command::Sim(args) => sim(args),
        #[cfg(feature = "laboratory")]
        Command::Results(args) => results(&args),
        #[cfg(feature = "laboratory")]
        Command::Lab(args) => lab(args),
        #[cfg(feature = "laboratory")]
        Command::Kernel(args) => kernel(args),
        #[cfg(feature = "laboratory")]
        Command::Plot(args) => return plot(args, None),
        #[cfg(feature = "laboratory")]
        Command::Emulate(args) => emulate(&args),
        #[cfg(feature = "laboratory")]
        Command::Tcp(args) => tcp(args),
        Command::Keygen(args) => keygen(&args),
        Command::List(args) => list::list(&args),
        Command::Doctor(args) => doctor(&args, kernel_controllers()),
        Command::Completions { shell } => {
            let mut script = Vec::new();
            clap_complete::generate(shell, &mut Cli::command(), "comity", &mut script);
            print(&script)
        }
        Command::Man { dir } => std::fs::create_dir_all(&dir)
            .and_then(|()| clap_mangen::generate_to(Cli::command(), &dir))
            .map_err(|error| complain(&format!("cannot write to {}: {error}", dir.display()))),
    };
    done.map_or_else(Into::into, |()| 0)
}

/// The controllers that this program can add to the kernel, each with the missing requirements.
fn kernel_controllers() -> Vec<(&'static str, Vec<String>)> {
    #[cfg(feature = "laboratory")]
    let all = comity_kernel::Controller::ALL
        .into_iter()
        .map(|controller| (controller.name(), comity_kernel::missing(controller)))
        .collect();
    #[cfg(not(feature = "laboratory"))]
    let all = Vec::new();
    all
}
