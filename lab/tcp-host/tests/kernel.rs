//! The kernel's TCP, in a network namespace that the test makes and that ends with it.
//!
//! Without root, `/dev/net/tun` or `ip` the tests say what is missing and pass; with
//! `COMITY_NEED_LAB=1` they fail.

mod aborts;
mod black_hole;
mod honest;
mod lossy;
mod many;
mod sections;
mod single;

use std::fs::OpenOptions;
use std::future::Future;
use std::io::Write as _;
use std::net::{IpAddr, SocketAddr};
use std::process::{Command, Stdio};
use std::time::Duration;

use comity_tcp_host::Config;
use comity_tcp_host::net::{Device, Stack, TcpListener, TcpStream, Tun};
use nix::sched::{CloneFlags, unshare};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};

const DEVICE: &str = "comity0";
/// No test takes longer.
const PATIENCE: Duration = Duration::from_secs(120);

fn kernel(is_v4: bool) -> IpAddr {
    if is_v4 {
        IpAddr::from([10, 77, 0, 1])
    } else {
        IpAddr::from([0xfd77, 0, 0, 0, 0, 0, 0, 1])
    }
}

fn host(is_v4: bool) -> IpAddr {
    if is_v4 {
        IpAddr::from([10, 77, 0, 2])
    } else {
        IpAddr::from([0xfd77, 0, 0, 0, 0, 0, 0, 2])
    }
}

fn config() -> Config {
    Config::new([host(true), host(false)])
}

/// Why the tests cannot run, if they cannot.
pub(crate) fn missing() -> Option<String> {
    if !nix::unistd::geteuid().is_root() {
        return Some("network namespaces need root".into());
    }
    if let Err(reason) = OpenOptions::new()
        .read(true)
        .write(true)
        .open("/dev/net/tun")
    {
        return Some(format!("/dev/net/tun cannot be opened: {reason}"));
    }
    let ip = Command::new("ip").arg("-V").stdout(Stdio::null()).status();
    ip.is_err()
        .then(|| "`ip` is missing: install iproute2".into())
}

/// Says that this test is skipped, or fails if it must not be.
pub(crate) fn is_skipped(reason: &str) {
    let is_needed = std::env::var_os("COMITY_NEED_LAB").is_some();
    assert!(!is_needed, "COMITY_NEED_LAB is set, and: {reason}");
    let test = std::thread::current().name().map(ToOwned::to_owned);
    let line = format!("{}: skipped, {reason}\n", test.unwrap_or_default());
    std::io::stderr().write_all(line.as_bytes()).unwrap();
}

/// Runs commands of `ip` in the namespace of this thread, one per line.
pub(crate) fn ip(commands: &str) {
    let mut child = Command::new("ip")
        .args(["-batch", "-"])
        .stdin(Stdio::piped())
        .spawn()
        .unwrap();
    let mut stdin = child.stdin.take().unwrap();
    stdin.write_all(commands.as_bytes()).unwrap();
    drop(stdin);
    assert!(child.wait().unwrap().success(), "ip: {commands}");
}

/// Sets the kernel's `net.ipv4` settings in the namespace of this thread.
fn set(settings: &[(&str, &str)]) {
    for (key, value) in settings {
        std::fs::write(format!("/proc/sys/net/ipv4/{key}"), value).unwrap();
    }
}

/// Runs `work` with a host beside the kernel, in a namespace of its own. `wrap` may disturb the
/// packets between them.
fn beside_kernel<D, F>(
    config: Config,
    settings: &'static [(&'static str, &'static str)],
    wrap: impl FnOnce(Tun) -> D + Send,
    work: impl FnOnce(Stack) -> F + Send,
) where
    D: Device,
    F: Future<Output = ()>,
{
    if let Some(reason) = missing() {
        return is_skipped(&reason);
    }
    std::thread::scope(|scope| {
        // The namespace ends with the thread, its sockets and its device.
        let thread = scope.spawn(|| {
            unshare(CloneFlags::CLONE_NEWNET).unwrap();
            ip("link set lo up\n");
            let tun = Tun::open(DEVICE, u16::try_from(config.mtu).unwrap()).unwrap();
            ip(&format!(
                "address add {}/24 dev {DEVICE}\nlink set {DEVICE} up\n",
                kernel(true)
            ));
            if config.mtu >= comity_tcp_host::MIN_MTU_V6 {
                ip(&format!(
                    "address add {}/64 dev {DEVICE} nodad\n",
                    kernel(false)
                ));
            }
            set(settings);
            let runtime = tokio::runtime::Builder::new_current_thread()
                .enable_all()
                .build()
                .unwrap();
            runtime.block_on(async {
                let stack = Stack::start(wrap(tun), config).unwrap();
                tokio::time::timeout(PATIENCE, work(stack))
                    .await
                    .expect("the test ends in time");
            });
        });
        if let Err(panic) = thread.join() {
            std::panic::resume_unwind(panic);
        }
    });
}

/// Writes `data`, ends the stream, and reads the peer's to its end.
async fn exchange(stream: impl AsyncRead + AsyncWrite, data: &[u8]) -> std::io::Result<Vec<u8>> {
    let (mut reader, mut writer) = tokio::io::split(stream);
    let mut received = Vec::new();
    let (written, read) = tokio::join!(
        async {
            writer.write_all(data).await?;
            writer.shutdown().await
        },
        reader.read_to_end(&mut received)
    );
    written?;
    read?;
    Ok(received)
}

/// Every reset answered a segment of no connection, such as the second acknowledgement of a FIN
/// that was retransmitted in vain.
fn assert_no_connection_was_reset(stack: &Stack) {
    let statistics = stack.statistics();
    assert!(
        statistics.resets <= statistics.dropped_unknown,
        "{statistics:?}"
    );
}

/// The two ends of a connection between the host and the kernel.
struct Joined {
    ours: TcpStream,
    theirs: tokio::net::TcpStream,
}

/// Opens a connection.
async fn join(stack: &Stack, is_v4: bool, kernel_opens: bool, port: u16) -> Joined {
    if kernel_opens {
        let address = SocketAddr::new(host(is_v4), port);
        let listener = TcpListener::bind(stack, address, 8).unwrap();
        let (theirs, ours) =
            tokio::join!(tokio::net::TcpStream::connect(address), listener.accept());
        let (theirs, (ours, peer)) = (theirs.unwrap(), ours.unwrap());
        assert_eq!(theirs.local_addr().unwrap(), peer);
        Joined { ours, theirs }
    } else {
        let address = SocketAddr::new(kernel(is_v4), port);
        let listener = tokio::net::TcpListener::bind(address).await.unwrap();
        let (ours, theirs) = tokio::join!(TcpStream::connect(stack, address), listener.accept());
        let (ours, (theirs, peer)) = (ours.unwrap(), theirs.unwrap());
        assert_eq!(ours.addresses().unwrap(), (peer, address));
        Joined { ours, theirs }
    }
}
