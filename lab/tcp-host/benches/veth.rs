//! Throughput for each second of CPU time on a veth pair without offload, beside the kernel's TCP,
//! as root.
//!
//! ```text
//! cargo bench -p comity-tcp-host --bench veth -- --megabytes 500 --rounds 5
//! ```
//!
//! Two network namespaces are joined by a veth pair. In the first one, the kernel's TCP or Comity's
//! has one end of a connection; the peer in the second is always the kernel's. Comity's packets
//! pass the TUN device and the forwarding of the first namespace on their way. The whole machine's
//! CPU time counts, both ends and the network between them included, so nothing else should run.
//! The ways take turns, and medians are printed.
#![allow(clippy::print_stdout, reason = "a bench that reports")]
#![allow(clippy::disallowed_methods, reason = "it measures real time")]

use std::io::{self, Read as _, Write as _};
use std::net::{IpAddr, Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::process::{Command, Stdio};
use std::time::Instant;

use clap::{Parser, ValueEnum};
use comity_tcp_host::Config;
use comity_tcp_host::net::{self, Stack, Tun};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

const NEAR: &str = "comity-veth-a";
const FAR: &str = "comity-veth-b";
/// The kernel's addresses on the veth pair, near and far.
const KERNEL: Ipv4Addr = Ipv4Addr::new(198, 18, 0, 1);
const PEER: Ipv4Addr = Ipv4Addr::new(198, 18, 0, 2);
/// The address of Comity's host behind the TUN device of the near namespace.
const HOST: Ipv4Addr = Ipv4Addr::new(198, 18, 1, 2);
const PORT: u16 = 9_000;
const CHUNK: usize = 256 << 10;

#[derive(Parser)]
struct Arguments {
    /// Bytes of each transfer, in units of 10⁶
    #[arg(long, default_value_t = 500)]
    megabytes: u64,
    /// How often each way is measured
    #[arg(long, default_value_t = 5)]
    rounds: usize,
    /// The part of a process within a namespace: where its stream begins or ends
    #[arg(long, hide = true)]
    part: Option<Part>,
    /// Whether that is Comity's TCP
    #[arg(long, hide = true)]
    comity: bool,
    /// The address that a sender connects to
    #[arg(long, hide = true, default_value_t = IpAddr::V4(PEER))]
    to: IpAddr,
    /// `cargo bench` passes it
    #[arg(long, hide = true)]
    bench: bool,
}

#[derive(Clone, Copy, ValueEnum)]
enum Part {
    Send,
    Receive,
}

fn main() -> io::Result<()> {
    let arguments = Arguments::parse();
    match (arguments.part, arguments.comity) {
        (Some(part), false) => return kernel(part, &arguments),
        (Some(part), true) => return comity(part, &arguments),
        (None, _) => {}
    }
    if !nix::unistd::geteuid().is_root() {
        println!("skipped: network namespaces need root");
        return Ok(());
    }
    let _network = Network::build()?;
    let ways = [
        (
            "kernel sends",
            Way {
                comity: false,
                sends: true,
            },
        ),
        (
            "Comity sends",
            Way {
                comity: true,
                sends: true,
            },
        ),
        (
            "kernel receives",
            Way {
                comity: false,
                sends: false,
            },
        ),
        (
            "Comity receives",
            Way {
                comity: true,
                sends: false,
            },
        ),
    ];
    let mut rates = [const { Vec::new() }; 4];
    let mut costs = [const { Vec::new() }; 4];
    for _ in 0..arguments.rounds {
        for (index, (_, way)) in ways.iter().enumerate() {
            let (rate, cost) = way.measure(arguments.megabytes)?;
            rates[index].push(rate);
            costs[index].push(cost);
        }
    }
    let mut kernel = f64::NAN;
    for (index, (name, way)) in ways.iter().enumerate() {
        let (rate, cost) = (median(&mut rates[index]), median(&mut costs[index]));
        if !way.comity {
            kernel = cost;
        }
        println!(
            "{name:<15}  {rate:6.0} Mb/s  {cost:6.3} CPU seconds for each GB, {:.2} of the kernel's throughput for \
             each CPU second",
            kernel / cost
        );
    }
    Ok(())
}

fn median(values: &mut [f64]) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

/// Which TCP stands in the near namespace, and what it does.
#[derive(Clone, Copy)]
struct Way {
    comity: bool,
    sends: bool,
}

impl Way {
    /// One transfer: megabits for each second, and CPU seconds for each 10⁹ bytes.
    fn measure(self, megabytes: u64) -> io::Result<(f64, f64)> {
        let (near, far) = if self.sends {
            ("send", "receive")
        } else {
            ("receive", "send")
        };
        let to = match (self.sends, self.comity) {
            (true, _) => PEER,
            (false, true) => HOST,
            (false, false) => KERNEL,
        };
        let program = std::env::current_exe()?;
        let start = |namespace: &str, part: &str, comity: bool| {
            let mut command = Command::new("ip");
            command.args(["netns", "exec", namespace]).arg(&program);
            command.args(["--part", part, "--to", &to.to_string()]);
            command.args(["--megabytes", &megabytes.to_string()]);
            command
                .args(comity.then_some("--comity"))
                .stdout(Stdio::piped())
                .spawn()
        };
        let ends = [(NEAR, near, self.comity), (FAR, far, false)];
        let [first, second] = if self.sends { [ends[1], ends[0]] } else { ends };
        let mut receiver = start(first.0, first.1, first.2)?;
        // It writes a byte when it listens.
        if let Some(output) = &mut receiver.stdout {
            output.read_exact(&mut [0])?;
        }
        let (began, before) = (Instant::now(), busy()?);
        let mut sender = start(second.0, second.1, second.2)?;
        for child in [&mut sender, &mut receiver] {
            if !child.wait()?.success() {
                return Err(io::Error::other("a transfer failed"));
            }
        }
        let seconds = began.elapsed().as_secs_f64();
        let spent = busy()? - before;
        Ok((
            8.0 * megabytes as f64 / seconds,
            spent / (megabytes as f64 / 1e3),
        ))
    }
}

/// What all processors have spent since the machine started, in seconds.
fn busy() -> io::Result<f64> {
    let text = std::fs::read_to_string("/proc/stat")?;
    let line = text.lines().next().unwrap_or_default();
    // user, nice, system, idle, iowait, irq, softirq; the next ones are parts of these
    let ticks = line
        .split_whitespace()
        .skip(1)
        .map(|word| word.parse().unwrap_or(0.0));
    let ticks: Vec<f64> = ticks.take(7).collect();
    Ok((ticks.iter().sum::<f64>() - ticks[3] - ticks[4]) / 100.0)
}

/// The kernel's TCP.
fn kernel(part: Part, arguments: &Arguments) -> io::Result<()> {
    let mut chunk = vec![0; CHUNK];
    match part {
        Part::Receive => {
            let listener = TcpListener::bind((Ipv4Addr::UNSPECIFIED, PORT))?;
            ready()?;
            let (mut stream, _) = listener.accept()?;
            let mut left = arguments.bytes();
            while left > 0 {
                left = received(left, stream.read(&mut chunk)?)?;
            }
        }
        Part::Send => {
            let mut stream = TcpStream::connect((arguments.to, PORT))?;
            let mut left = arguments.bytes();
            while left > 0 {
                left -= stream.write(&chunk[..CHUNK.min(left as usize)])? as u64;
            }
            stream.shutdown(std::net::Shutdown::Write)?;
            // The peer closes when it has everything.
            stream.read_exact(&mut [0]).unwrap_err();
        }
    }
    Ok(())
}

/// Comity's TCP.
#[tokio::main(flavor = "current_thread")]
async fn comity(part: Part, arguments: &Arguments) -> io::Result<()> {
    let config = Config::new([IpAddr::V4(HOST)]);
    let tun = Tun::open("comity0", 1_500)?;
    run("ip -n comity-veth-a address replace 198.18.1.1/24 dev comity0")?;
    run("ip -n comity-veth-a link set comity0 up")?;
    let stack = Stack::start(tun, config).map_err(io::Error::other)?;
    let mut chunk = vec![0; CHUNK];
    let mut left = arguments.bytes();
    match part {
        Part::Receive => {
            let listener = net::TcpListener::bind(&stack, SocketAddr::from((HOST, PORT)), 1)
                .map_err(io::Error::other)?;
            ready()?;
            let (mut stream, _) = listener.accept().await?;
            while left > 0 {
                left = received(left, stream.read(&mut chunk).await?)?;
            }
            stream.shutdown().await?;
            stream.acknowledged().await
        }
        Part::Send => {
            let to = SocketAddr::new(arguments.to, PORT);
            let mut stream = net::TcpStream::connect(&stack, to).await?;
            while left > 0 {
                left -= stream.write(&chunk[..CHUNK.min(left as usize)]).await? as u64;
            }
            stream.shutdown().await?;
            stream.acknowledged().await
        }
    }
}

impl Arguments {
    fn bytes(&self) -> u64 {
        self.megabytes * 1_000_000
    }
}

/// Tells the parent that a sender may connect.
fn ready() -> io::Result<()> {
    let mut output = io::stdout();
    output.write_all(b"r")?;
    output.flush()
}

fn received(left: u64, length: usize) -> io::Result<u64> {
    match length {
        0 => Err(io::ErrorKind::UnexpectedEof.into()),
        length => Ok(left - length as u64),
    }
}

/// The namespaces, until it is dropped.
struct Network;

impl Network {
    fn build() -> io::Result<Self> {
        remove();
        let network = Self;
        for command in [
            "ip netns add comity-veth-a",
            "ip netns add comity-veth-b",
            "ip link add v netns comity-veth-a type veth peer name v netns comity-veth-b",
            "ip -n comity-veth-a address add 198.18.0.1/24 dev v",
            "ip -n comity-veth-b address add 198.18.0.2/24 dev v",
            "ip -n comity-veth-a link set v up",
            "ip -n comity-veth-b link set v up",
            "ip -n comity-veth-b route add 198.18.1.0/24 via 198.18.0.1",
            "ip netns exec comity-veth-a sysctl -q net.ipv4.ip_forward=1",
            "ip netns exec comity-veth-a ethtool -K v tso off gso off gro off sg off tx off rx off",
            "ip netns exec comity-veth-b ethtool -K v tso off gso off gro off sg off tx off rx off",
        ] {
            run(command)?;
        }
        Ok(network)
    }
}

impl Drop for Network {
    fn drop(&mut self) {
        remove();
    }
}

fn remove() {
    for namespace in [NEAR, FAR] {
        let mut command = Command::new("ip");
        command
            .args(["netns", "del", namespace])
            .stderr(Stdio::null());
        // It is missing the first time.
        let _ = command.status();
    }
}

fn run(command: &str) -> io::Result<()> {
    let mut words = command.split_whitespace();
    let program = words.next().unwrap_or_default();
    let output = Command::new(program).args(words).output()?;
    if output.status.success() {
        return Ok(());
    }
    let message = String::from_utf8_lossy(&output.stderr);
    Err(io::Error::other(format!("{command}: {}", message.trim())))
}
