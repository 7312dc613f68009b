//! One module for each verb.

mod check;
mod console;
mod core_dumps;
#[cfg(feature = "demo")]
mod demo;
mod doctor;
#[cfg(feature = "laboratory")]
mod emulate;
#[cfg(feature = "laboratory")]
mod figures;
mod files;
mod interrupt;
#[cfg(feature = "laboratory")]
mod kernel;
mod keygen;
#[cfg(feature = "laboratory")]
mod lab;
pub(crate) mod list;
mod mtu;
#[cfg(feature = "laboratory")]
mod plot;
#[cfg(feature = "laboratory")]
mod progress;
#[cfg(feature = "laboratory")]
mod results;
#[cfg(feature = "laboratory")]
mod sim;
mod status_line;
pub(crate) mod stream;
mod tables;
#[cfg(feature = "laboratory")]
mod tcp;

use clap::CommandFactory;

#[cfg(feature = "laboratory")]
pub(crate) use console::has_colours;
pub(crate) use console::{Failure, complain, print, say};

use crate::args::{Cli, Command};
use crate::picture::Plotter;

/// Runs a command line, and returns the exit code.
pub(crate) fn dispatch(cli: Cli, plotter: Option<Plotter<'_>>) -> u8 {
    #[cfg(not(feature = "laboratory"))]
    let _ = plotter;
    let done = match cli.command {
        #[cfg(feature = "demo")]
        Command::Demo(args) => demo::demo(&args),
        Command::Send(args) => stream::send(&args),
        Command::Recv(args) => stream::recv(&args),
        Command::Relay(args) => stream::relay(&args),
        Command::Check(args) => check::check(&args),
        #[cfg(feature = "laboratory")]
        Command::Sim(args) => sim::sim(args),
        #[cfg(feature = "laboratory")]
        Command::Results(args) => results::results(&args),
        #[cfg(feature = "laboratory")]
        Command::Lab(args) => lab::lab(args),
        #[cfg(feature = "laboratory")]
        Command::Kernel(args) => kernel::kernel(args),
        #[cfg(feature = "laboratory")]
        Command::Plot(args) => return plot::plot(args, plotter),
        #[cfg(feature = "laboratory")]
        Command::Emulate(args) => emulate::emulate(&args),
        #[cfg(feature = "laboratory")]
        Command::Tcp(args) => tcp::tcp(args),
        Command::Keygen(args) => keygen::keygen(&args),
        Command::List(args) => list::list(&args),
        Command::Doctor(args) => doctor::doctor(&args),
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
