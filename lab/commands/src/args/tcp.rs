//! The options of `comity tcp`.

use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;

use clap::{Args, Subcommand, ValueEnum};
use comity_units::Span;

use super::values::{ControllerName, own_address, quantity};

#[derive(Debug, Subcommand)]
pub enum Tcp {
    /// Send a file over a TCP connection
    Send(TcpSend),
    /// Serve a file to every TCP connection
    Serve(TcpServe),
    /// Forward connections of local programs over TCP connections of Comity
    Proxy(TcpProxy),
    /// Send MPEG-1 video by the deadlines of its pictures (time-lined TCP)
    Stream(TcpVideoSend),
    /// Receive the video of `comity tcp stream`, and write what can be decoded
    Receive(TcpVideoReceive),
}

/// The host: a TUN device and its addresses.
#[derive(Debug, Args)]
#[command(next_help_heading = "Host")]
pub struct TcpHost {
    /// The TUN device; created if it does not exist
    #[arg(long, value_name = "NAME", default_value = "comity0")]
    pub(crate) tun: String,

    /// An address of the host behind the device; may be repeated
    #[arg(long = "address", value_name = "IP", required = true)]
    pub(crate) addresses: Vec<IpAddr>,

    /// Give the kernel this address on the device and bring the device up; may be repeated.
    /// Without it, the device has to be configured already
    #[arg(long = "kernel", value_name = "IP/PREFIX", value_parser = network)]
    pub(crate) kernel: Vec<String>,

    /// The largest IP packet in bytes
    #[arg(long, value_name = "BYTES", default_value_t = 1_500)]
    pub(crate) mtu: u16,

    /// The congestion controller; `comity list` describes them
    #[arg(long, value_name = "NAME", default_value = "cubic", value_parser = ControllerName::DRIVES_TCP)]
    pub(crate) cc: String,
}

#[derive(Debug, Args)]
#[command(
    after_help = "Comity's own TCP sends the file, from an address behind a TUN device. The command ends once the
peer has acknowledged everything. It needs CAP_NET_ADMIN to create and configure the device, and
drops all capabilities before it sends. A device that was made for you by
`ip tuntap add dev comity0 mode tun user $USER` needs none.

Exit codes:
  0    the peer acknowledged everything
  1    the device or the file failed
  2    the command line is wrong
  3    no connection was made, or it was lost
  6    the file cannot be opened
  130  interrupted; the connection was reset

Examples:
  nc -l 10.77.0.1 9000 > copy &
  sudo ~/.cargo/bin/comity tcp send clip.ts 10.77.0.1:9000 --address 10.77.0.2 --kernel 10.77.0.1/24"
)]
pub struct TcpSend {
    /// The file, or - for the standard input
    pub(crate) file: PathBuf,

    /// The peer's address and port
    #[arg(value_name = "IP:PORT")]
    pub(crate) peer: SocketAddr,

    #[command(flatten)]
    pub(crate) host: TcpHost,

    /// Print one JSON document
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
#[command(
    after_help = "Every connection receives the whole file and is then closed. The command serves until it is
interrupted, or until --count connections are over. It needs CAP_NET_ADMIN to create and configure
the device, and drops all capabilities before it serves.

Exit codes:
  0    it was interrupted, or --count connections are over
  1    the device failed
  2    the command line is wrong
  3    the last of --count connections was lost
  5    the port is in use
  6    the file cannot be opened

Examples:
  sudo ~/.cargo/bin/comity tcp serve clip.ts --port 8000 --address 10.77.0.2 --kernel 10.77.0.1/24 &
  nc 10.77.0.2 8000 > copy"
)]
pub struct TcpServe {
    /// The file
    pub(crate) file: PathBuf,

    /// The port, at every address of the host
    #[arg(long, value_name = "PORT", value_parser = clap::value_parser!(u16).range(1..))]
    pub(crate) port: u16,

    /// End after this many connections
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pub(crate) count: Option<u64>,

    #[command(flatten)]
    pub(crate) host: TcpHost,

    /// Print one JSON document for each connection, one per line
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
#[command(
    after_help = "A program that connects to the listening address, over the kernel's TCP, talks to the peer over
Comity's. The command forwards both directions and half closes, until it is interrupted, or until
--count connections are over. It needs CAP_NET_ADMIN to create and configure the device, and drops
all capabilities before it listens.

Exit codes:
  0    it was interrupted, or --count connections are over
  1    the device failed
  2    the command line is wrong
  3    the last of --count connections failed
  5    the listening address is in use, or does not belong to this host

Examples:
  sudo ~/.cargo/bin/comity tcp proxy :8080 10.77.0.1:80 --address 10.77.0.2 --kernel 10.77.0.1/24 &
  curl http://127.0.0.1:8080/"
)]
pub struct TcpProxy {
    /// The address to listen at, over the kernel's TCP, such as 127.0.0.1:8080 or :8080
    #[arg(value_name = "IP:PORT", value_parser = own_address)]
    pub(crate) listen: SocketAddr,

    /// The peer's address and port
    #[arg(value_name = "PEER:PORT")]
    pub(crate) peer: SocketAddr,

    /// End after this many connections
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pub(crate) count: Option<u64>,

    #[command(flatten)]
    pub(crate) host: TcpHost,

    /// Print one JSON document for each connection, one per line
    #[arg(long)]
    pub(crate) json: bool,
}

/// Which pictures of a video are sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Pictures {
    /// As the receiver's reports suggest: all, I and P, or I only
    Auto,
    /// All pictures
    All,
    /// I and P pictures
    Ip,
    /// I pictures
    I,
}

#[derive(Debug, Args)]
#[command(
    after_help = "The pictures of an elementary stream of MPEG-1 (or MPEG-2) video are sent in real time. Each is one
section with a deadline (TLTCP, section 4). An I picture and the P pictures up to the next I picture
are due when the I picture is shown, --latency after the start. A B picture is due with the earlier
of the pictures that it needs. If both ends are Comity, the sender skips obsolete pictures.
Otherwise the command says so: it drops pictures that expire before they have sequence numbers, and
TCP delivers the others, perhaps late. With --pictures auto, the player's reports decide whether all
pictures, I and P, or only I are sent; without reports, the sender's own counters decide.

Exit codes:
  0    every picture was acknowledged, skipped or dropped
  1    the device failed, or the file is not MPEG-1 or MPEG-2 video
  2    the command line is wrong
  3    no connection was made, or it was lost
  6    the file cannot be opened
  130  interrupted; the connection was reset

Examples:
  ffmpeg -f lavfi -i testsrc2=duration=30 -c:v mpeg1video -b:v 2M film.m1v
  sudo ~/.cargo/bin/comity tcp stream film.m1v 10.77.0.2:9000 --tun comity1 --address 10.78.0.2 --kernel 10.78.0.1/24
  nc -l 10.77.0.1 9000 | ffplay - &
  sudo ~/.cargo/bin/comity tcp stream film.m1v 10.77.0.1:9000 --raw --address 10.77.0.2 --kernel 10.77.0.1/24"
)]
pub struct TcpVideoSend {
    /// The elementary stream
    pub(crate) file: PathBuf,

    /// The player's address and port
    #[arg(value_name = "IP:PORT")]
    pub(crate) peer: SocketAddr,

    /// The time from the submission of a group of pictures to its deadline
    #[arg(long, value_name = "TIME", default_value = "2s", value_parser = quantity::<Span>)]
    pub(crate) latency: Span,

    /// The pictures to send
    #[arg(long, value_name = "WHICH", default_value = "auto")]
    pub(crate) pictures: Pictures,

    /// Send only the bytes of the pictures, for receivers other than `comity tcp receive`
    #[arg(long)]
    pub(crate) raw: bool,

    /// Do not offer time-lined TCP
    #[arg(long)]
    pub(crate) plain: bool,

    #[command(flatten)]
    pub(crate) host: TcpHost,

    /// Print one JSON document
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
#[command(
    after_help = "The command waits for one connection of `comity tcp stream`, and ends with it. It writes the
pictures that arrived by their deadlines, together with all pictures that they depend on, as an
elementary stream for ffmpeg. It reports to the sender which sections were in time. Deadlines are
compared by the system's clock, which has to agree with the sender's.

Exit codes:
  0    the stream ended
  1    the device failed, writing failed, or the stream is not from `comity tcp stream`
  2    the command line is wrong
  3    the connection was lost before the end of the stream
  5    the port is in use
  6    the output exists, or cannot be opened
  130  interrupted; the written data is kept

Examples:
  sudo ~/.cargo/bin/comity tcp receive copy.m1v --port 9000 --address 10.77.0.2 --kernel 10.77.0.1/24
  sudo ~/.cargo/bin/comity tcp receive - --port 9000 --address 10.77.0.2 --kernel 10.77.0.1/24 | ffplay -"
)]
pub struct TcpVideoReceive {
    /// The file to write, or - for the standard output
    pub(crate) output: PathBuf,

    /// The port, at the first address of the host
    #[arg(long, value_name = "PORT", value_parser = clap::value_parser!(u16).range(1..))]
    pub(crate) port: u16,

    /// How often to report to the sender
    #[arg(long, value_name = "TIME", default_value = "1s", value_parser = interval)]
    pub(crate) report: Span,

    /// Replace the output if it exists
    #[arg(long)]
    pub(crate) overwrite: bool,

    #[command(flatten)]
    pub(crate) host: TcpHost,

    /// Print one JSON document
    #[arg(long)]
    pub(crate) json: bool,
}

/// Reads a time between reports.
fn interval(text: &str) -> Result<Span, String> {
    let interval = quantity(text)?;
    match interval < Span::from_millis(10) {
        true => Err("expected at least 10ms".to_owned()),
        false => Ok(interval),
    }
}

/// Reads an address with the length of its network's prefix.
fn network(text: &str) -> Result<String, String> {
    let parsed = text.split_once('/').and_then(|(address, length)| {
        let address: IpAddr = address.parse().ok()?;
        let length: u8 = length.parse().ok()?;
        let longest = if address.is_ipv4() { 32 } else { 128 };
        (length <= longest).then(|| format!("{address}/{length}"))
    });
    parsed.ok_or_else(|| {
        "expected an address and a prefix length, such as 10.77.0.1/24 or fd77::1/64".to_owned()
    })
}
