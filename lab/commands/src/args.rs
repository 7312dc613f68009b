//! The arguments of the commands.
#![expect(missing_docs, reason = "the help of a command documents its arguments")]

mod demo;
#[cfg(feature = "laboratory")]
mod emulate;
#[cfg(feature = "laboratory")]
mod kernel;
#[cfg(feature = "laboratory")]
mod lab;
#[cfg(feature = "laboratory")]
mod plot;
#[cfg(feature = "laboratory")]
mod results;
#[cfg(feature = "laboratory")]
mod runs;
#[cfg(feature = "laboratory")]
mod sim;
#[cfg(feature = "laboratory")]
mod tcp;
mod values;

pub use demo::Demo;
#[cfg(feature = "laboratory")]
pub use {
    emulate::{Emulate, Outage},
    kernel::{
        Kernel, KernelFractions, KernelList, KernelLoad, KernelOpening, KernelStatus, LoadLibra,
        LoadReal,
    },
    lab::{Lab, LabEndpoint, LabRun},
    plot::Plot,
    results::Results,
    sim::{Capture, List, Printing, Reading, Run, Schema, Sim, Trace},
    tcp::{Pictures, Tcp, TcpHost, TcpProxy, TcpSend, TcpServe, TcpVideoReceive, TcpVideoSend},
};
