//! The receiver: passes each delivered chunk to the meter.

use std::fs;
use std::time::Duration;

use serde::Serialize;
use serde_json::Value;

use crate::arguments::{Receive, Transport};
use crate::failure::{Context, Result};
use crate::meter::{Meter, Summary};
use crate::sink::Sink;
use crate::transports::{comity, quic, srt, tcp, udp};
use crate::usage::ProcessorTime;

#[derive(Debug, Serialize)]
struct Report {
    role: &'static str,
    transport: &'static str,
    /// Why the receiver stopped.
    ended: String,
    #[serde(flatten)]
    summary: Summary,
    processor: ProcessorTime,
    statistics: Value,
}

pub async fn run(arguments: &Receive) -> Result<Value> {
    let common = &arguments.common;
    let meter = Meter::new(common.source(), common.latency.as_nanos() as u64)?;
    if let Some(file) = &arguments.per_frame {
        fs::write(file, "").context(format!(
            "--per-frame {}; name a file that can be written",
            file.display()
        ))?;
    }
    let duration = Duration::from_nanos(common.source().duration_ns());
    let sink = Sink::new(meter, duration, common.linger());
    let before = ProcessorTime::now();
    let ended = match common.transport {
        Transport::Comity => comity::receive(arguments, &sink).await?,
        Transport::Srt => srt::receive(arguments, &sink).await?,
        Transport::Tcp => tcp::receive(arguments, &sink).await?,
        Transport::Quic => quic::receive(arguments, &sink).await?,
        Transport::Udp => udp::receive(arguments, &sink).await?,
    };
    let processor = ProcessorTime::now().since(before);
    if let Some(file) = &arguments.per_frame {
        fs::write(file, sink.meter().per_frame())
            .context(format!("--per-frame {}", file.display()))?;
    }
    let report = Report {
        role: "receive",
        transport: common.transport.name(),
        ended: ended.why,
        summary: sink.meter().summary(),
        processor,
        statistics: ended.statistics,
    };
    Ok(serde_json::to_value(report).expect("plain numbers and texts"))
}
