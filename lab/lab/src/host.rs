//! One end of a flow: a namespace with a TUN device.

use std::net::{Ipv4Addr, Ipv6Addr};

use tun_rs::{DeviceBuilder, SyncDevice};

use crate::error::Error;
use crate::namespace::{Namespace, Session};

/// The name of the device in every namespace.
const DEVICE: &str = "lab0";
/// The maximum number of packets that wait in a device for the router.
const DEVICE_QUEUE: u32 = 10_000;

/// A host of the lab.
#[derive(Debug)]
pub(crate) struct Host {
    pub(crate) namespace: Namespace,
    pub(crate) addresses: Addresses,
}

/// The addresses of a host, in the networks that RFC 2544 and RFC 5180 reserve for benchmarks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Addresses {
    pub(crate) v4: Ipv4Addr,
    pub(crate) v6: Ipv6Addr,
}

impl Addresses {
    /// The addresses of the source (`side` 0) or the destination (1) of a flow. There are 65,534 of
    /// each kind.
    pub(crate) fn of(flow: u16, side: u8) -> Self {
        let [high, low] = (flow + 1).to_be_bytes();
        let number = flow + 1;
        Self {
            v4: Ipv4Addr::new(198, 18 + side, high, low),
            v6: Ipv6Addr::new(0x2001, 2, 0, 0, 0, 0, u16::from(side) + 1, number),
        }
    }
}

/// The configuration of a host.
#[derive(Clone, Debug)]
pub(crate) struct HostConfig {
    /// The name of the namespace.
    pub(crate) name: String,
    pub(crate) addresses: Addresses,
    pub(crate) kernel: KernelSettings,
}

/// The kernel's settings in a host.
#[derive(Clone, Debug)]
pub(crate) struct KernelSettings {
    /// The maximum IP packet size of its device.
    pub(crate) mtu: u16,
    /// Settings below `/proc/sys/net`, with their values.
    pub(crate) settings: Vec<(&'static str, String)>,
    /// Whether the kernel only routes, because the addresses belong to a host behind a second
    /// device.
    pub(crate) routes_only: bool,
}

impl Host {
    /// Makes a host. The router gets the other end of its device.
    pub(crate) fn create(
        session: &Session,
        config: &HostConfig,
    ) -> Result<(Self, SyncDevice), Error> {
        let namespace = Namespace::create(session, &config.name)?;
        let device = namespace.within(|| {
            let purpose = || format!("cannot make the device of {}", namespace.name());
            let device = DeviceBuilder::new()
                .name(DEVICE)
                .mtu(config.kernel.mtu)
                .tx_queue_len(DEVICE_QUEUE)
                .build_sync()
                .map_err(Error::system(purpose()))?;
            device
                .set_nonblocking(true)
                .map_err(Error::system(purpose()))?;
            for (key, value) in &config.kernel.settings {
                std::fs::write(format!("/proc/sys/net/{key}"), value)
                    .map_err(Error::system(format!("cannot set net/{key} to {value}")))?;
            }
            Ok(device)
        })?;
        let Addresses { v4, v6 } = config.addresses;
        let commands = if config.kernel.routes_only {
            format!("link set {DEVICE} up\nroute add 198.18.0.0/15 dev {DEVICE}\n")
        } else {
            format!(
                "address add {v4}/15 dev {DEVICE}\n\
                 address add {v6}/48 dev {DEVICE} nodad\n\
                 link set {DEVICE} up\n"
            )
        };
        namespace.configure(&commands)?;
        let host = Self {
            namespace,
            addresses: config.addresses,
        };
        Ok((host, device))
    }

    /// The kernel's counters for the host, while its device exists.
    pub(crate) fn counters(&self) -> Result<Counters, Error> {
        self.namespace.within(|| {
            let read = |table: &str| {
                std::fs::read_to_string(format!("/proc/thread-self/net/{table}"))
                    .map_err(Error::system(format!("cannot read net/{table} of a host")))
            };
            Ok(Counters::of(
                &read("dev")?,
                &read("snmp")?,
                &read("netstat")?,
            ))
        })
    }
}

/// The kernel's counters for a host since its creation.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Counters {
    /// Packets that the device dropped because the router did not read them in time.
    pub(crate) device_drops: u64,
    /// Datagrams that a full socket dropped.
    pub(crate) socket_drops: u64,
    /// TCP segments that were retransmitted.
    pub(crate) retransmitted: u64,
    /// Expiries of TCP's retransmission timer.
    pub(crate) timeouts: u64,
    /// Entries of TCP into fast recovery.
    pub(crate) recoveries: u64,
}

impl Counters {
    fn of(devices: &str, snmp: &str, netstat: &str) -> Self {
        let of = |text, table, name| counter(text, table, name).unwrap_or(0);
        let recoveries = ["TCPRenoRecovery", "TCPSackRecovery"];
        Self {
            device_drops: sent_drops(devices).unwrap_or(0),
            socket_drops: of(snmp, "Udp", "RcvbufErrors"),
            retransmitted: of(snmp, "Tcp", "RetransSegs"),
            timeouts: of(netstat, "TcpExt", "TCPTimeouts"),
            recoveries: recoveries
                .iter()
                .map(|name| of(netstat, "TcpExt", name))
                .sum(),
        }
    }
}

/// A counter in the kernel's tables: a line of names, followed by a line of values.
fn counter(text: &str, table: &str, name: &str) -> Option<u64> {
    let mut lines = text
        .lines()
        .filter_map(|line| line.strip_prefix(table)?.strip_prefix(':'));
    let at = lines.next()?.split_whitespace().position(|of| of == name)?;
    lines.next()?.split_whitespace().nth(at)?.parse().ok()
}

/// The number of packets that a device did not send, from the kernel's table.
fn sent_drops(counters: &str) -> Option<u64> {
    let line = counters
        .lines()
        .find_map(|line| line.trim_start().strip_prefix(DEVICE)?.strip_prefix(':'))?;
    // Eight columns for reception, then bytes, packets, errors and drops of transmission.
    line.split_whitespace().nth(11)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_those_of_benchmark_networks() {
        let first = Addresses::of(0, 0);
        assert_eq!(first.v4.to_string(), "198.18.0.1");
        assert_eq!(first.v6.to_string(), "2001:2::1:1");
        let far = Addresses::of(299, 1);
        assert_eq!(far.v4.to_string(), "198.19.1.44");
        assert_eq!(far.v6.to_string(), "2001:2::2:12c");
    }

    #[test]
    fn counters_are_read_by_name() {
        let netstat = "TcpExt: SyncookiesSent TCPTimeouts TCPRenoRecovery TCPSackRecovery\n\
                       TcpExt: 9 7 2 3\nIpExt: TCPTimeouts\nIpExt: 4\n";
        let snmp = "Tcp: InSegs RetransSegs\nTcp: 100 12\n\
                    Udp: InDatagrams RcvbufErrors\nUdp: 50 1\nUdpLite: RcvbufErrors\nUdpLite: 6\n";
        let counters = Counters::of("", snmp, netstat);
        let expected = Counters {
            device_drops: 0,
            socket_drops: 1,
            retransmitted: 12,
            timeouts: 7,
            recoveries: 5,
        };
        assert_eq!(counters, expected);
        assert_eq!(counter(snmp, "Udp", "Unknown"), None);
        assert_eq!(counter("Udp: RcvbufErrors", "Udp", "RcvbufErrors"), None);
    }

    #[test]
    fn drops_are_read_from_the_kernels_table() {
        let table = "Inter-|   Receive  |  Transmit\n    lo: 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16\n  \
                     lab0: 10 1 0 0 0 0 0 0 9000 7 0 42 0 0 0 0\n";
        assert_eq!(sent_drops(table), Some(42));
        assert_eq!(sent_drops("nothing"), None);
    }
}
