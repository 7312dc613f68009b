//! The emulated bottleneck of a run, and the greedy flows that share it.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use bytes::Bytes;
use comity::credentials::{PresharedKey, Randomness};
use comity::{
    BindError, CloseCode, CloseReason, Config, ConfigError, ConnectError, Connection, DropPolicy,
    Endpoint, Reliability, Section, SendError, connect,
};
use comity_emulator::{Config as EmulatorConfig, Error as EmulatorError};
use comity_link::{Limit, LinkConfig, Loss, LossModel, LossPlace, Queue};
use comity_units::Seed;
use tokio::task::JoinHandle;
use tokio::time::timeout;

use super::recording::Setup;

/// The name of the video's connection.
pub(crate) const VIDEO: &str = "video";
/// Any free port of this host.
pub(super) const LOOPBACK: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), 0);
/// The length of the competitors' sections, which contain zeros.
const GREEDY: usize = 16_384;
/// How long to wait for the last sections, beyond the latency.
pub(super) const PATIENCE: Duration = Duration::from_secs(3);

/// Why the demonstration failed.
#[derive(Debug, thiserror::Error)]
pub(crate) enum DemoError {
    #[error(transparent)]
    Config(#[from] ConfigError),
    #[error(transparent)]
    Bind(#[from] BindError),
    #[error("the emulated bottleneck failed: {0}")]
    Emulator(#[from] EmulatorError),
    /// A flow could not connect.
    #[error("{flow} cannot connect: {reason}")]
    Connect {
        flow: String,
        reason: Box<ConnectError>,
    },
    /// The receiver's endpoint closed before all flows were connected.
    #[error("the receiver closed before all flows were connected")]
    NoReceiver,
    /// The video's connection was lost.
    #[error("the video's connection ended: {0}")]
    Ended(CloseReason),
    /// The connection refused a section.
    #[error("the video's connection refused a section: {0}")]
    Refused(SendError),
}

/// A flow: both ends of its connection.
#[derive(Clone)]
pub(super) struct Ends {
    pub(super) name: String,
    pub(super) sender: Arc<Connection>,
    pub(super) receiver: Arc<Connection>,
}

/// The competitors, and the endpoint that receives them.
pub(super) struct Rivals {
    pub(super) endpoint: Endpoint,
    pub(super) key: PresharedKey,
    pub(super) flows: Vec<Ends>,
    tasks: Vec<JoinHandle<()>>,
    is_over: Arc<AtomicBool>,
}

impl Rivals {
    /// An endpoint without competitors.
    pub(super) fn endpoint(setup: &Setup) -> Result<Self, DemoError> {
        let key = PresharedKey::new(Randomness::system().bytes());
        let config = video(setup, key.clone())?;
        Ok(Self {
            endpoint: Endpoint::bind(LOOPBACK, config)?,
            key,
            flows: Vec::new(),
            tasks: Vec::new(),
            is_over: Arc::new(AtomicBool::new(false)),
        })
    }

    /// The address of the endpoint.
    pub(super) fn target(&self) -> SocketAddr {
        self.endpoint.local_address()
    }

    /// Connects all competitors.
    pub(super) async fn connect(
        &mut self,
        setup: &Setup,
        bottleneck: SocketAddr,
    ) -> Result<(), DemoError> {
        for number in 1..=setup.flows {
            let name = format!("{} {number}", setup.rival());
            let config = Config::builder()
                .preshared_key(self.key.clone())
                .controller(&setup.rivals)
                .reliability(Reliability::Full)
                .drop_policy(DropPolicy::Never)
                .latency(setup.latency.into())
                .send_buffer(1 << 20)
                .stream_name(&name)
                .build()?;
            let ends = join(name, &self.endpoint, bottleneck, config).await?;
            self.flows.push(ends);
        }
        Ok(())
    }

    /// Starts the competitors.
    pub(super) fn begin(&mut self) {
        for ends in &self.flows {
            let filling = fill(ends.sender.clone(), self.is_over.clone());
            let draining = drain(ends.receiver.clone());
            self.tasks
                .extend([tokio::spawn(filling), tokio::spawn(draining)]);
        }
    }

    /// Connects and starts all competitors.
    pub(super) async fn start(
        &mut self,
        setup: &Setup,
        bottleneck: SocketAddr,
    ) -> Result<(), DemoError> {
        self.connect(setup, bottleneck).await?;
        self.begin();
        Ok(())
    }

    /// Ends the competitors, and the endpoint with all its connections.
    pub(super) async fn end(self) {
        self.is_over.store(true, Ordering::Relaxed);
        for ends in &self.flows {
            ends.sender.close(CloseCode::DONE, "the video is over");
        }
        for task in self.tasks {
            // If a competitor failed, its rate shows it.
            let _ = timeout(PATIENCE, task).await;
        }
        self.endpoint.close().await;
    }
}

/// The configuration of the video's connection.
pub(super) fn video(setup: &Setup, key: PresharedKey) -> Result<Config, ConfigError> {
    Config::builder()
        .preshared_key(key)
        .latency(setup.latency.into())
        .controller(&setup.controller)
        .stream_name(VIDEO)
        .build()
}

/// The bottleneck, in each direction.
pub(super) fn link(setup: &Setup) -> LinkConfig {
    let losses = if setup.loss > 0.0 {
        vec![Loss {
            model: LossModel::Bernoulli(setup.loss),
            place: LossPlace::AfterTransmission,
        }]
    } else {
        Vec::new()
    };
    LinkConfig {
        queue: Queue::DropTail(Limit::Packets(setup.queue)),
        losses,
        ..LinkConfig::new(setup.rate, setup.delay)
    }
}

pub(super) fn emulation(setup: &Setup, target: SocketAddr, listen: SocketAddr) -> EmulatorConfig {
    EmulatorConfig {
        forward: link(setup),
        backward: link(setup),
        seed: Seed::new(setup.seed),
        ..EmulatorConfig::new(listen, target)
    }
}

/// Connects a flow through the bottleneck.
pub(super) async fn join(
    name: String,
    endpoint: &Endpoint,
    bottleneck: SocketAddr,
    config: Config,
) -> Result<Ends, DemoError> {
    let (sender, receiver) = tokio::join!(connect(bottleneck, config), async {
        timeout(PATIENCE, endpoint.accept()).await.ok().flatten()
    });
    match (sender, receiver) {
        (Ok(sender), Some(receiver)) => Ok(Ends {
            name,
            sender: Arc::new(sender),
            receiver: Arc::new(receiver),
        }),
        (Err(reason), _) => Err(DemoError::Connect {
            flow: name,
            reason: reason.into(),
        }),
        (_, None) => Err(DemoError::NoReceiver),
    }
}

/// Submits more than the network carries, until `is_over` or the connection ends.
async fn fill(sender: Arc<Connection>, is_over: Arc<AtomicBool>) {
    let payload = Bytes::from(vec![0; GREEDY]);
    while !is_over.load(Ordering::Relaxed) {
        let section = Section::new(payload.clone()).deadline(Duration::MAX);
        if sender.send(section).await.is_err() {
            break;
        }
    }
}

async fn drain(receiver: Arc<Connection>) {
    while receiver.recv().await.is_some() {}
}

/// Seconds from one moment to another; negative if the second is earlier.
pub(super) fn since(from: Instant, to: Instant) -> f64 {
    match to.checked_duration_since(from) {
        Some(after) => after.as_secs_f64(),
        None => -from.saturating_duration_since(to).as_secs_f64(),
    }
}
