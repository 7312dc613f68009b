//! The command line of the lab.

use std::net::IpAddr;
use std::path::PathBuf;

use clap::{Args, Subcommand};

use super::sim::{Printing, Reading};

#[derive(Debug, Subcommand)]
pub enum Lab {
    /// Run a scenario on real packets and print per-group results
    Run(Box<LabRun>),
    /// Check whether the lab can run on this host, and list what is missing
    Check,
    /// Remove the network namespaces that a killed lab left behind
    Clean,
    /// Run one end of a flow of sections, for `lab run`
    #[command(hide = true)]
    Endpoint(LabEndpoint),
}

#[derive(Debug, Args)]
#[command(
    after_help = "Each end of a flow runs in its own network namespace. A router between the namespaces emulates the links of \
the scenario. Flows with transport = \"tcp\" use kernel TCP; flows of sections use Comity endpoints; \
transport = \"command\" runs any program. The lab needs Linux, root, /dev/net/tun and iproute2; `comity lab check` \
checks for them. A run takes as long as its duration.

Exit codes:
  0    all runs were done
  1    a run failed, parts are missing, or results could not be stored
  2    the command line or the scenario is wrong, or the lab lacks a feature of the scenario
  3    a run was done, but do not trust its results: the router was late or lost packets, or a
       program failed
  6    the scenario cannot be opened
  130  interrupted; with --out, the runs done by then are stored, and the same command continues

Examples:
  sudo ~/.cargo/bin/comity lab run experiments/lab/contended.toml
  sudo ~/.cargo/bin/comity lab run experiments/lab/contended.toml --set flow.tcp.controller=bbr --seeds 1-5
  sudo ~/.cargo/bin/comity lab run experiments/lab/contended.toml --pcapng bottleneck=link.pcapng --qlog qlogs
  sudo ~/.cargo/bin/comity lab run experiments/lab/iperf.toml --logs logs"
)]
pub struct LabRun {
    #[command(flatten)]
    pub(crate) reading: Reading,

    #[command(flatten)]
    pub(crate) printing: Printing,

    /// Write the packets offered to a link into a file; may be repeated. With several runs, each
    /// run has its own file, such as bottleneck.run-3.pcapng
    #[arg(long, value_name = "LINK=FILE", value_parser = link_and_file)]
    pub(crate) pcapng: Vec<(String, PathBuf)>,

    /// Write qlog traces of Comity's endpoints into this folder. With several runs, each run has
    /// its own subfolder, such as run-3
    #[arg(long, value_name = "DIR")]
    pub(crate) qlog: Option<PathBuf>,

    /// Write the outputs of programs into this folder, one file for each output. With several
    /// runs, each run has its own subfolder
    #[arg(long, value_name = "DIR")]
    pub(crate) logs: Option<PathBuf>,
}

#[derive(Debug, Args)]
pub struct LabEndpoint {
    #[command(flatten)]
    pub(crate) reading: Reading,
    #[arg(long)]
    pub(crate) seed: u64,
    #[arg(long)]
    pub(crate) point: usize,
    #[arg(long)]
    pub(crate) flow: usize,
    #[arg(long)]
    pub(crate) is_source: bool,
    #[arg(long)]
    pub(crate) origin: u64,
    #[arg(long)]
    pub(crate) address: IpAddr,
    #[arg(long)]
    pub(crate) port: u16,
    #[arg(long)]
    pub(crate) qlog: Option<PathBuf>,
}

fn link_and_file(text: &str) -> Result<(String, PathBuf), String> {
    match text.split_once('=') {
        Some((link, file)) if !link.is_empty() && !file.is_empty() => {
            Ok((link.into(), file.into()))
        }
        _ => Err("expected LINK=FILE, such as bottleneck=bottleneck.pcapng".into()),
    }
}
