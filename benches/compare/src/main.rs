//! `compare`: one source and one meter for several transports.

mod arguments;
mod chunk;
mod clock;
mod failure;
mod meter;
mod receive;
mod send;
mod sink;
mod source;
mod transports;
mod usage;

use std::process::ExitCode;

use arguments::{Arguments, Command};
use clap::Parser;
use failure::{Context, Result};

fn main() -> ExitCode {
    match run(&Arguments::parse().command) {
        Ok(document) => {
            println!("{document:#}");
            ExitCode::SUCCESS
        }
        Err(failure) => {
            eprintln!("compare: {failure}");
            ExitCode::FAILURE
        }
    }
}

fn run(command: &Command) -> Result<serde_json::Value> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .context(
            "cannot start the asynchronous runtime; raise the limit of open files (ulimit -n)",
        )?;
    let work = async {
        match command {
            Command::Send(arguments) => send::run(arguments).await,
            Command::Receive(arguments) => receive::run(arguments).await,
        }
    };
    runtime.block_on(async {
        let mut terminated =
            tokio::signal::unix::signal(tokio::signal::unix::SignalKind::terminate())
                .context("cannot handle SIGTERM")?;
        // Dropping the work ends its child processes.
        tokio::select! {
            done = work => done,
            _ = tokio::signal::ctrl_c() => Err(failure::Failure("interrupted".into())),
            _ = terminated.recv() => Err(failure::Failure("terminated".into())),
        }
    })
}
