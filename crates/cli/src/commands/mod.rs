//! One module for each verb.

mod check;
mod console;
mod core_dumps;
mod demo;
mod doctor;
mod emulate;
mod files;
mod interrupt;
mod kernel;
mod keygen;
mod lab;
pub(crate) mod list;
mod mtu;
mod plot;
mod progress;
mod results;
mod sim;
pub(crate) mod stream;
mod tcp;

use clap::CommandFactory;

pub(crate) use console::{Failure, complain, has_colours, print, say};

use crate::args::{Cli, Command, Sim};
use crate::picture::Plotter;

/// Does what a command line says, and returns the exit code.
pub(crate) fn dispatch(cli: Cli, plotter: Option<Plotter<'_>>) -> u8 {
    let done = match cli.command {
        Command::Demo(args) => demo::demo(&args),
        Command::Send(args) => stream::send(&args),
        Command::Recv(args) => stream::recv(&args),
        Command::Relay(args) => stream::relay(&args),
        Command::Check(args) => check::check(&args),
        Command::Sim(Sim::Run(args)) => sim::run::run(&args),
        Command::Sim(Sim::List(args)) => sim::list::list(&args),
        Command::Sim(Sim::Schema(args)) => sim::schema::schema(&args),
        Command::Sim(Sim::Trace(args)) => sim::trace::trace(&args),
        Command::Results(args) => results::results(&args),
        Command::Lab(args) => lab::lab(args),
        Command::Kernel(args) => kernel::kernel(args),
        Command::Plot(args) => return plot::plot(args, plotter),
        Command::Emulate(args) => emulate::emulate(&args),
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
