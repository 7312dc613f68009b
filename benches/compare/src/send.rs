//! The sender: submits each frame to the transport when it is due.

use bytes::Bytes;
use serde::Serialize;
use serde_json::Value;

use crate::arguments::{Send, Transport};
use crate::chunk;
use crate::clock::{now_ns, sleep_until};
use crate::failure::Result;
use crate::meter::Percentiles;
use crate::transports::{Outgoing, comity, quic, srt, tcp, udp};
use crate::usage::ProcessorTime;

#[derive(Debug, Serialize)]
struct Report {
    role: &'static str,
    transport: &'static str,
    /// Frames and bytes that the source submitted.
    frames_given: u64,
    bytes_given: u64,
    /// Why the source stopped before its end.
    broken: Option<String>,
    /// How late the source submitted frames, because the machine was busy.
    source_late_ms: Option<Percentiles>,
    source_start_ns: u64,
    /// From the first call to the connection.
    connected_ms: f64,
    processor: ProcessorTime,
    statistics: Value,
}

pub async fn run(arguments: &Send) -> Result<Value> {
    // Mistakes show before anybody is called.
    arguments.common.source().frames()?;
    let called_ns = now_ns();
    match arguments.common.transport {
        Transport::Comity => play(arguments, called_ns, comity::connect(arguments).await?).await,
        Transport::Srt => play(arguments, called_ns, srt::connect(arguments).await?).await,
        Transport::Tcp => play(arguments, called_ns, tcp::connect(arguments).await?).await,
        Transport::Quic => play(arguments, called_ns, quic::connect(arguments).await?).await,
        Transport::Udp => play(arguments, called_ns, udp::connect(arguments).await?).await,
    }
}

async fn play(arguments: &Send, called_ns: u64, mut transport: impl Outgoing) -> Result<Value> {
    let connected_ms = now_ns().saturating_sub(called_ns) as f64 / 1e6;
    let common = &arguments.common;
    let source = common.source();
    let frames = source.frames()?;
    let latency_ns = common.latency.as_nanos() as u64;
    let before = ProcessorTime::now();
    let start_ns = now_ns() + 10_000_000;
    let (mut bytes_given, mut late, mut broken) = (0, Vec::with_capacity(frames.len()), None);
    for frame in &frames {
        let due_ns = start_ns + source.due_ns(frame.number);
        sleep_until(due_ns).await;
        broken = transport.broken();
        if broken.is_some() {
            break;
        }
        let given_ns = now_ns();
        late.push(given_ns.saturating_sub(due_ns));
        let payload = Bytes::from(chunk::write_frame(frame, given_ns));
        bytes_given += payload.len() as u64;
        if let Err(failure) = transport.give(frame, payload, given_ns + latency_ns) {
            broken = Some(failure.to_string());
            break;
        }
    }
    let until_ns = now_ns() + common.linger().as_nanos() as u64;
    let statistics = transport.finish(until_ns).await?;
    let report = Report {
        role: "send",
        transport: common.transport.name(),
        frames_given: late.len() as u64,
        bytes_given,
        broken,
        source_late_ms: Percentiles::of(late),
        source_start_ns: start_ns,
        connected_ms,
        processor: ProcessorTime::now().since(before),
        statistics,
    };
    Ok(serde_json::to_value(report).expect("plain numbers and texts"))
}
