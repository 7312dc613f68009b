//! The destination of a transport's deliveries.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use crate::chunk::{Cutter, SIZE};
use crate::clock::now_ns;
use crate::meter::Meter;

/// Passes chunks to the meter.
#[derive(Clone, Debug)]
pub struct Sink {
    meter: Arc<Mutex<Meter>>,
    duration: Duration,
    linger: Duration,
}

impl Sink {
    pub fn new(meter: Meter, duration: Duration, linger: Duration) -> Self {
        Self {
            meter: Arc::new(Mutex::new(meter)),
            duration,
            linger,
        }
    }

    pub fn meter(&self) -> MutexGuard<'_, Meter> {
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
