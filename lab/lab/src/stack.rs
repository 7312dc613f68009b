//! Flows of Comity's TCP. At each end, a host behind its own TUN device runs in the namespace of
//! that end. The kernel there has no address; it forwards packets between this device and the
//! lab's.

use std::io;
use std::net::{IpAddr, SocketAddr};

use comity_sim::host::FlowPlan;
use comity_sim::network::{FlowSpec, TcpSpec};
use comity_tcp::timeline::{self, GapStatistics};
use comity_tcp_host::net::{Stack, TcpListener, TcpStream, Tun};
use comity_tcp_host::{Config, Piece, PieceKind};
use comity_units::{Span, Time};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

use crate::clock::RunClock;
use crate::error::Error;
use crate::host::KernelSettings;
use crate::namespace::Namespace;
use crate::router::Interval;
use crate::tcp::{beyond_both, mtu};
use crate::tcp_flow::{CHUNK, Ends, Load, PATIENCE, Recorder, SAMPLING, TcpFlow};
use crate::tcp_info::TcpInfo;
use crate::timeline::{Submitter, Timeline};

/// The maximum number of pieces of a time-lined stream to read at a time.
const PIECES: usize = 64;
/// The device of the host.
const DEVICE: &str = "comity0";
/// The minimum send buffer, so that it never limits the window.
const MIN_SEND_BUFFER: usize = 4 << 20;
/// The minimum send buffer for sections, which wait there as in the simulator. It has room for one
/// section of the maximum size, and for a minute of video while the path carries nothing.
const MIN_SECTION_BUFFER: usize = 64 << 20;

/// The kernel's settings for a flow, and whether Comity's TCP can run it.
///
/// # Errors
/// If it cannot.
pub(crate) fn kernel_settings(flow: &FlowSpec, tcp: &TcpSpec) -> Result<KernelSettings, Error> {
    let refuse = |reason: String| Error::Flow {
        flow: flow.name.clone(),
        reason,
    };
    let mut keys = beyond_both(flow, tcp)
        .into_iter()
        .chain([("handshake", !tcp.config.handshake)]);
    if let Some((key, _)) = keys.find(|(_, is_set)| *is_set) {
        return Err(refuse(format!(
            "the flow or its preset sets `{key}`, which Comity's TCP cannot apply; expected preset = \"modern\" without that key"
        )));
    }
    // Any address is suitable for the check.
    let address = IpAddr::from([198, 18, 0, 1]);
    let mtu = mtu(flow, tcp)?;
    let config = config(tcp, mtu, address);
    config.check().map_err(|error| refuse(error.to_string()))?;
    Ok(KernelSettings {
        mtu,
        settings: vec![("ipv4/ip_forward", "1".into())],
        routes_only: true,
    })
}

fn config(tcp: &TcpSpec, mtu: u16, address: IpAddr) -> Config {
    let buffer = usize::try_from(tcp.config.receive_buffer.get()).unwrap_or(usize::MAX);
    let least = match tcp.timeline {
        Some(_) => MIN_SECTION_BUFFER,
        None => MIN_SEND_BUFFER,
    };
    Config {
        mtu: mtu.into(),
        tcp: tcp.config,
        controller: tcp.controller.clone(),
        parameters: tcp.parameters.clone(),
        send_buffer: buffer.saturating_mul(2).max(least),
        ..Config::new([address])
    }
}

/// The host of one end, before it starts.
struct Prepared {
    tun: Tun,
    config: Config,
}

impl Prepared {
    fn new(
        namespace: &Namespace,
        (flow, tcp): (&FlowSpec, &TcpSpec),
        address: IpAddr,
    ) -> Result<Self, Error> {
        let mtu = mtu(flow, tcp)?;
        let tun = namespace.within(|| {
            Tun::open(DEVICE, mtu).map_err(Error::system(format!(
                "cannot make the device of {}",
                namespace.name()
            )))
        })?;
        namespace.configure(&format!(
            "link set {DEVICE} up\nroute add {address}/32 dev {DEVICE}\n"
        ))?;
        let config = config(tcp, mtu, address);
        Ok(Self { tun, config })
    }

    /// Runs an end on a separate thread.
    fn spawn(
        self,
        recorder: &Recorder,
        end: impl AsyncFnOnce(Stack) -> io::Result<()> + Send + 'static,
    ) -> std::thread::JoinHandle<()> {
        let recorder = recorder.clone();
        std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread()
                .enable_all()
                .build();
            recorder.ended(runtime.and_then(|runtime| {
                runtime.block_on(async {
                    let stack = Stack::start(self.tun, self.config).map_err(io::Error::other)?;
                    end(stack).await
                })
            }));
        })
    }
}

/// Starts both ends of a flow on separate threads.
pub(crate) fn start(
    ends: Ends<'_>,
    specs: (&FlowSpec, &TcpSpec),
    load: Load,
    plan: &FlowPlan,
    clock: &RunClock,
    interval: Interval,
) -> Result<TcpFlow, Error> {
    let address = SocketAddr::new(ends.address, ends.port);
    let destination = Prepared::new(ends.destination, specs, ends.address)?;
    let source = Prepared::new(ends.source, specs, ends.source_address)?;
    let recorder = Recorder::new(interval);
    let timeline = match &load {
        Load::Sections(timeline) => Some(timeline.clone()),
        _ => None,
    };
    let end = End {
        address,
        clock: clock.clone(),
        interval,
        recorder: recorder.clone(),
        drops_expired: specs.1.config.timeline.is_some(),
        timeline,
    };
    let receiver = {
        let end = end.clone();
        destination.spawn(&recorder, async move |stack| end.receive(&stack).await)
    };
    let plan = plan.clone();
    let sender = source.spawn(&recorder, async move |stack| {
        end.send(&stack, load, &plan).await
    });
    Ok(TcpFlow::new(recorder, vec![receiver, sender]))
}

/// The parameters that both ends of a flow share.
#[derive(Clone)]
struct End {
    /// The address of the destination.
    address: SocketAddr,
    clock: RunClock,
    interval: Interval,
    recorder: Recorder,
    /// The sections, if the flow has a timeline.
    timeline: Option<Timeline>,
    /// Whether the sender drops expired sections.
    drops_expired: bool,
}

impl End {
    /// Waits for `work` until `time`, or until the run is cancelled. Returns `None` if `work` is
    /// not done by then.
    async fn before<T>(&self, time: Time, work: impl Future<Output = T>) -> Option<T> {
        let mut work = std::pin::pin!(work);
        loop {
            if self.clock.now() >= time {
                return None;
            }
            let left = self.clock.clock().until(time).min(PATIENCE);
            if let Ok(done) = tokio::time::timeout(left, &mut work).await {
                return Some(done);
            }
        }
    }

    async fn receive(self, stack: &Stack) -> io::Result<()> {
        let listener = TcpListener::bind(stack, self.address, 1).map_err(io::Error::other)?;
        let end = self.interval.end;
        let Some(accepted) = self.before(end, listener.accept()).await else {
            return Ok(());
        };
        let (mut stream, _) = accepted?;
        let mut buffer = vec![0; CHUNK];
        if let Some(timeline) = &self.timeline {
            let read = self.read_sections(&stream, timeline, &mut buffer).await;
            let missing = stream
                .info()
                .map_or_else(|_| GapStatistics::default(), |info| info.gaps);
            self.recorder.sections(timeline.missed(missing));
            return read;
        }
        while let Some(length) = self.before(end, stream.read(&mut buffer)).await {
            match length? {
                0 => break,
                length => self.recorder.delivered(self.clock.now(), length as u64),
            }
        }
        Ok(())
    }

    /// Reads data and gaps until the end of the run or of the stream.
    async fn read_sections(
        &self,
        stream: &TcpStream,
        timeline: &Timeline,
        buffer: &mut [u8],
    ) -> io::Result<()> {
        let mut pieces = [Piece::default(); PIECES];
        while let Some(count) = self
            .before(
                self.interval.end,
                stream.receive_pieces(buffer, &mut pieces),
            )
            .await
        {
            let now = self.clock.now();
            let count = count?;
            if count == 0 {
                break;
            }
            for &Piece {
                kind,
                offset,
                length,
            } in pieces.iter().take(count)
            {
                timeline.read(
                    now,
                    match kind {
                        PieceKind::Data => timeline::Piece::Data { offset, length },
                        PieceKind::Gap => timeline::Piece::Gap { offset, length },
                    },
                );
                if kind == PieceKind::Data {
                    self.recorder.delivered(now, length);
                }
            }
        }
        Ok(())
    }

    async fn send(self, stack: &Stack, load: Load, plan: &FlowPlan) -> io::Result<()> {
        // A flow may begin after its stop or the end of the run.
        if plan.started_at >= plan.stopped_at {
            return Ok(());
        }
        self.before(plan.started_at, std::future::pending::<()>())
            .await;
        let end = self.interval.end;
        let Some(stream) = self
            .before(end, TcpStream::connect(stack, self.address))
            .await
        else {
            return Ok(());
        };
        let mut sender = Sender {
            stream: stream?,
            until: plan.stopped_at.min(end),
            next_sample: self.clock.now(),
            end: self,
        };
        sender.write(stack, load).await?;
        // The connection stays open until the end of the run.
        sender.until = end;
        while sender.sample_until(end).await {}
        if let Some(timeline) = &sender.end.timeline {
            let sent = sender.stream.info()?.timeline.unwrap_or_default();
            sender.end.recorder.sections(timeline.sent(sent));
        }
        Ok(())
    }
}

/// The source's end of an open connection. Its state is sampled during the run.
struct Sender {
    end: End,
    stream: TcpStream,
    /// When the flow stops.
    until: Time,
    next_sample: Time,
}

impl Sender {
    /// Waits until `time` or the next sample, which it takes. Returns `false` at `time`, or when
    /// the flow stops.
    async fn sample_until(&mut self, time: Time) -> bool {
        let next = self.next_sample.min(time).min(self.until);
        self.end.before(next, std::future::pending::<()>()).await;
        self.sample();
        self.end.clock.now() < time.min(self.until)
    }

    /// Takes a sample if it is due.
    fn sample(&mut self) {
        let now = self.end.clock.now();
        if now < self.next_sample || now > self.end.interval.end {
            return;
        }
        self.next_sample = (self.next_sample + SAMPLING).max(now);
        let Ok(info) = self.stream.info() else {
            return;
        };
        let microseconds = |span: Option<Span>| {
            span.map_or(0, |span| {
                u32::try_from(span.as_micros()).unwrap_or(u32::MAX)
            })
        };
        let counts = info.sender;
        let info = TcpInfo {
            cwnd_bytes: info.congestion_window,
            ssthresh_bytes: info.ssthresh,
            srtt_us: microseconds(info.smoothed_rtt),
            min_rtt_us: microseconds(info.min_rtt),
            retransmitted: counts.retransmitted,
            recoveries: Some((counts.timeouts.into(), counts.fast_retransmits.into())),
        };
        self.end.recorder.sampled(now, info);
    }

    /// Writes this many zeros. Returns `false` if the flow stopped before.
    async fn put(&mut self, bytes: u64) -> io::Result<bool> {
        let zeros = [0; CHUNK];
        let mut left = usize::try_from(bytes).unwrap_or(usize::MAX);
        while left > 0 {
            if self.end.clock.now() >= self.until {
                return Ok(false);
            }
            let next = self.next_sample.min(self.until);
            let chunk = zeros.get(..left.min(CHUNK)).unwrap_or_default();
            if let Some(written) = self.end.before(next, self.stream.write(chunk)).await {
                left -= written?;
            }
            self.sample();
        }
        Ok(true)
    }

    /// Writes the load until the flow stops.
    async fn write(&mut self, stack: &Stack, load: Load) -> io::Result<()> {
        match load {
            Load::Greedy => while self.put(CHUNK as u64).await? {},
            Load::File(bytes) => {
                if !self.put(bytes).await? {
                    return Ok(());
                }
                self.stream.shutdown().await?;
                loop {
                    let next = self.next_sample.min(self.until);
                    if let Some(done) = self.end.before(next, self.stream.acknowledged()).await {
                        done?;
                        self.end.recorder.finished(self.end.clock.now());
                        return Ok(());
                    }
                    self.sample();
                    if self.end.clock.now() >= self.until {
                        return Ok(());
                    }
                }
            }
            Load::Sections(timeline) => {
                while self.end.clock.now() < self.until {
                    let mut submitter = Submitter {
                        stack,
                        stream: &self.stream,
                        clock: &self.end.clock,
                        drops_expired: self.end.drops_expired,
                    };
                    let next = timeline.submit(self.end.clock.now(), &mut submitter);
                    while self.sample_until(next).await {}
                }
            }
            Load::Scheduled(mut source) => {
                while source.peek() < self.until {
                    let next = source.peek();
                    while self.sample_until(next).await {}
                    let Some(bytes) = source.next_size() else {
                        break;
                    };
                    if !self.put(bytes.into()).await? {
                        break;
                    }
                }
            }
        }
        Ok(())
    }
}
