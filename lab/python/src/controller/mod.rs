//! Congestion controllers that are written in Python.

mod adapter;
mod decision;
mod events;

pub(crate) use adapter::{Controllers, Run};
pub(crate) use decision::{Controller, Pacing, Setup, time};
pub(crate) use events::{
    Ack, Idle, InOrderAck, Loss, PacketAcked, PacketLost, RateSample, Sent, Timeout,
};
