//! TCP of the kernel: frames one after another, each written as soon as the socket accepts it.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use serde_json::{Value, json};
use socket2::SockRef;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::mpsc;
use tokio::task::JoinHandle;
use tokio::time::timeout;

use super::{Ended, Outgoing, nobody_called};
use crate::arguments::{Receive, Send};
use crate::chunk::{Cutter, Frame};
use crate::clock::{now_ns, sleep_until};
use crate::failure::{Context, Failure, Result};
use crate::sink::Sink;

/// Unsent bytes in the kernel with `--tcp-drop`: more could not be dropped in time.
const NOTSENT_WITH_DROP: u32 = 16_384;
/// The byte by which the receiver announces itself.
const HELLO: u8 = b'h';

/// Frames that wait for the socket.
#[derive(Default)]
struct Queue {
    bytes: u64,
    max_bytes: u64,
    dropped_frames: u64,
    broken: Option<String>,
}

struct Queued {
    payload: Bytes,
    deadline_ns: u64,
}

pub struct Sender {
    frames: mpsc::UnboundedSender<Queued>,
    queue: Arc<Mutex<Queue>>,
    writer: JoinHandle<TcpStream>,
    controller: String,
}

pub async fn connect(arguments: &Send) -> Result<Sender> {
    let (peer, wait) = (arguments.connect, arguments.common.wait);
    let give_up = now_ns() + wait.as_nanos() as u64;
    let mut stream = loop {
        match TcpStream::connect(peer).await {
            Ok(stream) => break stream,
            Err(error) if now_ns() >= give_up => {
                return Err(Failure(format!(
                    "nobody at {peer} answered within {wait:?}: {error}; start `compare receive` there first"
                )));
            }
            Err(_) => tokio::time::sleep(Duration::from_millis(50)).await,
        }
    };
    stream.set_nodelay(true).context("cannot set TCP_NODELAY")?;
    if let Some(name) = &arguments.tcp_cc {
        SockRef::from(&stream)
            .set_tcp_congestion(name.as_bytes())
            .context(format!(
                "--tcp-cc {name}; choose one of /proc/sys/net/ipv4/tcp_available_congestion_control"
            ))?;
    }
    let drop_at_once = arguments.tcp_drop.then_some(NOTSENT_WITH_DROP);
    if let Some(bytes) = arguments.tcp_notsent.or(drop_at_once) {
        SockRef::from(&stream)
            .set_tcp_notsent_lowat(bytes)
            .context("cannot set TCP_NOTSENT_LOWAT")?;
    }
    let controller = SockRef::from(&stream)
        .tcp_congestion()
        .context("cannot read TCP_CONGESTION")?;
    let controller = String::from_utf8_lossy(&controller)
        .trim_end_matches('\0')
        .to_owned();
    let hello = timeout(wait, stream.read_u8()).await;
    hello
        .map_err(|_| {
            Failure(format!(
                "{peer} accepts the connection, but is not `compare receive`; start one there"
            ))
        })?
        .context(format!(
            "{peer} closed the connection; start `compare receive` there anew"
        ))?;
    let (frames, queued) = mpsc::unbounded_channel();
    let queue = Arc::<Mutex<Queue>>::default();
    let writer = tokio::spawn(write(
        stream,
        queued,
        Arc::clone(&queue),
        arguments.tcp_drop,
    ));
    Ok(Sender {
        frames,
        queue,
        writer,
        controller,
    })
}

fn locked(queue: &Mutex<Queue>) -> MutexGuard<'_, Queue> {
    queue.lock().unwrap_or_else(PoisonError::into_inner)
}

async fn write(
    mut stream: TcpStream,
    mut frames: mpsc::UnboundedReceiver<Queued>,
    queue: Arc<Mutex<Queue>>,
    drops: bool,
) -> TcpStream {
    while let Some(frame) = frames.recv().await {
        // The lateness of a frame is known only when the socket accepts its first byte.
        let mut written = stream.writable().await;
        let is_dropped = drops && now_ns() > frame.deadline_ns;
        if written.is_ok() && !is_dropped {
            written = stream.write_all(&frame.payload).await;
        }
        let mut queue = locked(&queue);
        queue.bytes -= frame.payload.len() as u64;
        queue.dropped_frames += u64::from(is_dropped);
        if let Err(error) = written {
            queue.broken = Some(format!("the connection failed: {error}"));
            break;
        }
    }
    stream
}

impl Outgoing for Sender {
    fn give(&mut self, _frame: &Frame, payload: Bytes, deadline_ns: u64) -> Result<()> {
        let mut queue = locked(&self.queue);
        queue.bytes += payload.len() as u64;
        queue.max_bytes = queue.max_bytes.max(queue.bytes);
        drop(queue);
        // The writer ends only after the connection has failed, and the queue reports that.
        let _ = self.frames.send(Queued {
            payload,
            deadline_ns,
        });
        Ok(())
    }

    fn broken(&self) -> Option<String> {
        locked(&self.queue).broken.clone()
    }

    async fn finish(self, until_ns: u64) -> Result<Value> {
        drop(self.frames);
        let mut writer = self.writer;
        let stream = tokio::select! {
            stream = &mut writer => stream.ok(),
            () = sleep_until(until_ns) => {
                writer.abort();
                None
            }
        };
        let left_bytes = locked(&self.queue).bytes;
        if let Some(mut stream) = stream {
            let _ = stream.shutdown().await;
            // The peer closes when it has everything, or at the end of its time.
            let mut end = [0; 1];
            tokio::select! {
                _ = stream.read(&mut end) => {}
                () = sleep_until(until_ns) => {}
            }
        }
        let queue = locked(&self.queue);
        Ok(json!({
            "controller": self.controller,
            "queue_most_bytes": queue.max_bytes,
            "queue_left_bytes": left_bytes,
            "frames_dropped": queue.dropped_frames,
        }))
    }
}

pub async fn receive(arguments: &Receive, sink: &Sink) -> Result<Ended> {
    let address = arguments.listen;
    let listener = TcpListener::bind(address).await.context(format!(
        "cannot listen at {address}; choose an address of this host and a free port"
    ))?;
    let accepted = timeout(arguments.common.wait, listener.accept()).await;
    let (mut stream, _) = accepted
        .map_err(|_| nobody_called(&arguments.common))?
        .context("cannot accept a connection")?;
    stream
        .write_u8(HELLO)
        .await
        .context("the caller closed the connection; start both ends anew")?;
    let mut cutter = Cutter::default();
    let mut buffer = vec![0; 1 << 16];
    let over = sink.over();
    tokio::pin!(over);
    let why = loop {
        let read = tokio::select! {
            read = stream.read(&mut buffer) => read,
            () = &mut over => break "the source had ended".to_owned(),
        };
        match read {
            Ok(0) => break "the sender closed the connection".into(),
            Ok(length) => {
                if !sink.stream(&mut cutter, &buffer[..length]) {
                    break "the stream holds other bytes than chunks".into();
                }
            }
            Err(error) => break format!("the connection failed: {error}"),
        }
    };
    Ok(Ended {
        why,
        statistics: Value::Null,
    })
}
