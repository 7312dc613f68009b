//! `comity tcp`: Comity's TCP on real packets.

mod device;
mod video;

use std::fs::File;
use std::future::Future;
use std::io;
use std::net::SocketAddr;
use std::os::unix::fs::FileExt as _;
use std::path::Path;
use std::sync::Arc;

use comity_tcp_host::net::{TcpListener, TcpStream};
use serde_json::json;
use tokio::io::{AsyncRead, AsyncWriteExt as _, BufReader, copy_bidirectional_with_sizes};
use tokio::sync::mpsc;
use tokio::time::Instant;

use super::files::cannot_open;
use super::interrupt::LINGER;
use super::{Failure, Stop, complain, print, say};
use crate::args;

/// The maximum number of connections that wait at a listener.
const BACKLOG: usize = 128;
/// The number of bytes to read at a time.
const CHUNK: usize = 256 << 10;
/// The bytes of the file that wait for room in each connection of a server.
const SERVED_CHUNK: usize = 64 << 10;

/// `comity tcp`.
///
/// # Errors
/// If the command fails. The message is printed.
pub fn tcp(args: args::Tcp) -> Result<(), Failure> {
    match args {
        args::Tcp::Send(args) => send(&args),
        args::Tcp::Serve(args) => serve(&args),
        args::Tcp::Proxy(args) => proxy(&args),
        args::Tcp::Stream(args) => video::stream(&args),
        args::Tcp::Receive(args) => video::receive(&args),
    }
}

fn send(args: &args::TcpSend) -> Result<(), Failure> {
    let file = match args.file.as_os_str() == "-" {
        true => None,
        false => Some(open(&args.file)?),
    };
    run(&args.host, Err(Failure::Interrupted), async |prepared| {
        let mut source: Box<dyn AsyncRead + Unpin> = match file {
            None => Box::new(tokio::io::stdin()),
            Some(file) => Box::new(tokio::fs::File::from_std(file)),
        };
        let stack = prepared.start()?;
        let mut outcome = Outcome::begin(args.peer);
        outcome.result = match TcpStream::connect(&stack, args.peer).await {
            Ok(mut stream) => send_all(&mut source, &mut stream, &mut outcome.sent).await,
            Err(error) => Err(error),
        };
        outcome.report(args.json)
    })
}

fn serve(args: &args::TcpServe) -> Result<(), Failure> {
    let file = Arc::new(open(&args.file)?);
    run(&args.host, Ok(()), async |prepared| {
        let stack = prepared.start()?;
        let (opened, mut connections) = mpsc::channel(1);
        for address in &args.host.addresses {
            let address = SocketAddr::new(*address, args.port);
            let listener = TcpListener::bind(&stack, address, BACKLOG).map_err(|error| {
                say(&format!("error: {error}"));
                Failure::Taken
            })?;
            say(&format!("serving at {address}"));
            let opened = opened.clone();
            tokio::spawn(async move {
                while let Ok(accepted) = listener.accept().await {
                    if opened.send(accepted).await.is_err() {
                        break;
                    }
                }
            });
        }
        drop(opened);
        let served = |(mut stream, peer): (TcpStream, SocketAddr)| {
            let file = Arc::clone(&file);
            async move {
                let mut outcome = Outcome::begin(peer);
                outcome.result = send_file(&file, &mut stream, &mut outcome.sent).await;
                outcome
            }
        };
        let next = async || {
            connections
                .recv()
                .await
                .ok_or(io::ErrorKind::NotConnected.into())
        };
        each(args.count, args.json, next, served).await
    })
}

fn proxy(args: &args::TcpProxy) -> Result<(), Failure> {
    run(&args.host, Ok(()), async |prepared| {
        let stack = prepared.start()?;
        let listener = tokio::net::TcpListener::bind(args.listen).await;
        let listener = listener.map_err(|error| {
            say(&format!("error: cannot listen at {}: {error}", args.listen));
            Failure::Taken
        })?;
        say(&format!("forwarding {} to {}", args.listen, args.peer));
        let forwarded = |(mut inside, _): (tokio::net::TcpStream, SocketAddr)| {
            let (stack, peer) = (stack.clone(), args.peer);
            async move {
                let mut outcome = Outcome::begin(peer);
                outcome.result = match TcpStream::connect(&stack, peer).await {
                    Ok(mut outside) => {
                        copy_bidirectional_with_sizes(&mut inside, &mut outside, CHUNK, CHUNK)
                            .await
                            .map(|(sent, received)| {
                                (outcome.sent, outcome.received) = (sent, received);
                            })
                    }
                    Err(error) => Err(error),
                };
                outcome
            }
        };
        each(
            args.count,
            args.json,
            async || listener.accept().await,
            forwarded,
        )
        .await
    })
}

/// Runs `work` with a device that is ready to start. The interrupt key ends it with `interrupted`.
fn run(
    host: &args::TcpHost,
    interrupted: Result<(), Failure>,
    work: impl AsyncFnOnce(device::Prepared) -> Result<(), Failure>,
) -> Result<(), Failure> {
    let prepared = device::prepare(host)?;
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|error| complain(&error))?;
    let done = runtime.block_on(async {
        let stop = Stop::on_interrupt(2, LINGER);
        tokio::select! {
            done = work(prepared) => done,
            () = stop.wanted() => interrupted,
        }
    });
    // Do not wait for a pending read.
    runtime.shutdown_background();
    done
}

/// Handles connections concurrently: `count` of them, or all. Returns the result of the connection
/// that ended last.
async fn each<C, F>(
    count: Option<u64>,
    json: bool,
    mut next: impl AsyncFnMut() -> io::Result<C>,
    handle: impl Fn(C) -> F,
) -> Result<(), Failure>
where
    F: Future<Output = Outcome> + 'static,
{
    let mut left = count.unwrap_or(u64::MAX);
    let mut last = Ok(());
    let tasks = tokio::task::LocalSet::new();
    tasks
        .run_until(async {
            let mut running = tokio::task::JoinSet::new();
            while left > 0 || !running.is_empty() {
                tokio::select! {
                    connection = next(), if left > 0 => {
                        let connection = connection.map_err(|error| complain(&error))?;
                        left -= 1;
                        running.spawn_local(handle(connection));
                    }
                    Some(ended) = running.join_next() => {
                        let outcome = ended.map_err(|error| complain(&error))?;
                        last = outcome.report(json);
                    }
                }
            }
            last
        })
        .await
}

/// A file to send. It is opened before capabilities are dropped, because root may read another
/// user's file.
fn open(path: &Path) -> Result<File, Failure> {
    File::open(path).map_err(|error| cannot_open(path, &error))
}

/// Sends everything from `source`, and waits until the peer has acknowledged it.
async fn send_all(
    source: &mut (impl AsyncRead + Unpin),
    stream: &mut TcpStream,
    sent: &mut u64,
) -> io::Result<()> {
    let mut source = BufReader::with_capacity(CHUNK, source);
    *sent = tokio::io::copy_buf(&mut source, stream).await?;
    finish(stream).await
}

/// Sends a whole file, and waits until the peer has acknowledged it. Several connections may read
/// it at once.
async fn send_file(file: &Arc<File>, stream: &mut TcpStream, sent: &mut u64) -> io::Result<()> {
    loop {
        let (file, offset) = (Arc::clone(file), *sent);
        let read = tokio::task::spawn_blocking(move || {
            let mut chunk = vec![0; SERVED_CHUNK];
            let length = file.read_at(&mut chunk, offset)?;
            chunk.truncate(length);
            Ok::<_, io::Error>(chunk)
        });
        let chunk = read.await.map_err(io::Error::other)??;
        if chunk.is_empty() {
            return finish(stream).await;
        }
        stream.write_all(&chunk).await?;
        *sent += chunk.len() as u64;
    }
}

/// Ends the stream, and waits until the peer has acknowledged everything.
async fn finish(stream: &mut TcpStream) -> io::Result<()> {
    stream.shutdown().await?;
    stream.acknowledged().await
}

/// The outcome of a connection.
struct Outcome {
    peer: SocketAddr,
    began: Instant,
    sent: u64,
    received: u64,
    result: io::Result<()>,
}

impl Outcome {
    fn begin(peer: SocketAddr) -> Self {
        Self {
            peer,
            began: Instant::now(),
            sent: 0,
            received: 0,
            result: Ok(()),
        }
    }

    /// Prints the outcome: a line on the standard error, or a JSON document on the standard output.
    fn report(&self, json: bool) -> Result<(), Failure> {
        let Self {
            peer,
            sent,
            received,
            ..
        } = self;
        let seconds = self.began.elapsed().as_secs_f64();
        let error = self.result.as_ref().err().map(ToString::to_string);
        if json {
            let document = json!({
                "peer": peer,
                "sent_bytes": sent,
                "received_bytes": received,
                "seconds": seconds,
                "error": error,
            });
            print(format!("{document}\n"))?;
        } else if let Some(error) = &error {
            say(&format!("error: {peer}: {error}"));
        } else {
            say(&format!(
                "{peer}: {sent} bytes sent, {received} received in {seconds:.3} s"
            ));
        }
        if error.is_some() {
            Err(Failure::Unconnected)
        } else {
            Ok(())
        }
    }
}
