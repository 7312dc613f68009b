//! The receiver: passes each delivered chunk to the meter.

use std::fs;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use serde::Serialize;
use serde_json::Value;

use crate::arguments::{Receive, Transport};
use crate::chunk::{Cutter, SIZE};
use crate::clock::now_ns;
use crate::failure::{Context, Result};
use crate::meter::{Meter, Summary};
use crate::transports::{comity, quic, srt, tcp, udp};
use crate::usage::ProcessorTime;

/// The destination of a transport's deliveries.
#[derive(Clone, Debug)]
pub struct Sink {
    meter: Arc<Mutex<Meter>>,
    duration: Duration,
    linger: Duration,
}

impl Sink {
    fn meter(&self) -> MutexGuard<'_, Meter> {
        self.meter.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds one chunk, delivered now.
    pub fn chunk(&self, chunk: &[u8]) {
        self.meter().on_chunk(now_ns(), chunk);
    }

    /// Adds consecutive chunks, delivered now; `is_whole` tells which parts arrived.
    pub fn chunks(&self, bytes: &[u8], is_whole: impl Fn(std::ops::Range<usize>) -> bool) {
        let now = now_ns();
        let mut meter = self.meter();
        for (index, chunk) in bytes.chunks(SIZE).enumerate() {
            let start = index * SIZE;
            if is_whole(start..start + chunk.len()) {
                meter.on_chunk(now, chunk);
            }
        }
    }

    /// Adds bytes of a stream, delivered now. Returns whether the stream remains readable.
    pub fn stream(&self, cutter: &mut Cutter, bytes: &[u8]) -> bool {
        let now = now_ns();
        let mut meter = self.meter();
        let cut = cutter.push(bytes, |chunk| meter.on_chunk(now, chunk));
        if cut.is_err() {
            meter.on_damage();
        }
        cut.is_ok()
    }

    /// Waits until the source has ended and late frames have had their time, starting once
    /// connected.
    pub async fn over(&self) {
        let connected = now_ns();
        loop {
            tokio::time::sleep(Duration::from_millis(20)).await;
            let source_ends = self.meter().source_ends_ns();
            let longest = (self.duration + self.linger).as_nanos() as u64;
            let ends = match source_ends {
                Some(ends) => ends + self.linger.as_nanos() as u64,
                None => connected + longest,
            };
            if now_ns() >= ends {
                return;
            }
        }
    }
}

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

/// How a transport's receiver ended.
pub struct Ended {
    pub why: String,
    pub statistics: Value,
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
    let sink = Sink {
        meter: Arc::new(Mutex::new(meter)),
        duration: Duration::from_nanos(common.source().duration_ns()),
        linger: common.linger(),
    };
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
