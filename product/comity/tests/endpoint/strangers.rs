//! Packets of strangers and routers at a socket must not do harm.

use std::net::{SocketAddr, UdpSocket};
use std::os::fd::{AsRawFd, OwnedFd};
use std::time::Duration;

use comity::{
    CloseCode, CloseReason, ConnectError, Connection, Endpoint, EndpointEvent, Section, connect,
};
use nix::sys::socket::{
    AddressFamily, MsgFlags, SockFlag, SockProtocol, SockType, SockaddrIn, sendto, socket,
};

use super::{loopback, options, pair, payload};
use crate::common::{opened, soon};

/// A socket for packets with hand-made headers. Without the permission for it, prints a note and
/// returns `None`.
#[expect(
    clippy::print_stderr,
    reason = "that a test was skipped has to be seen"
)]
fn raw(protocol: SockProtocol) -> Option<OwnedFd> {
    let opened = socket(
        AddressFamily::Inet,
        SockType::Raw,
        SockFlag::empty(),
        protocol,
    );
    match opened {
        Ok(socket) => Some(socket),
        Err(error) => {
            eprintln!("skipped: no raw socket here: {error}");
            None
        }
    }
}

fn send_raw(socket: &OwnedFd, packet: &[u8]) {
    let to = SockaddrIn::new(127, 0, 0, 1, 0);
    sendto(socket.as_raw_fd(), packet, &to, MsgFlags::empty()).unwrap();
}

/// Sends 40 sections one way. Returns the most datagrams of one system call.
async fn datagrams_in_a_call(
    endpoint: &Endpoint,
    connection: &Connection,
    reader: &Connection,
) -> f64 {
    let before = endpoint.stats();
    let send = async {
        for section in 0..40 {
            let given = Section::new(payload(section, 200_000)).deadline(Duration::MAX);
            connection.send(given).await.unwrap();
        }
    };
    let receive = async {
        for _ in 0..40 {
            soon(reader.recv()).await.unwrap().into_section().unwrap();
        }
    };
    tokio::join!(send, receive);
    let after = endpoint.stats();
    (after.datagrams_sent - before.datagrams_sent) as f64
        / (after.batches_sent - before.batches_sent) as f64
}

/// A reply to port 0 cannot be sent. The system would report the same error as for unsupported
/// batches.
#[tokio::test]
async fn a_datagram_from_port_0_does_not_end_batches() {
    let Some(socket) = raw(SockProtocol::Udp) else {
        return;
    };
    let options = options().build().unwrap();
    let (caller, accepted, endpoint) = pair(options.clone(), options).await;
    let before = datagrams_in_a_call(&endpoint, &accepted, &caller).await;
    // An Initial: version 1, a source, pattern 1, no cookie, a message of one byte, padding to
    // 1,200.
    let mut packet = vec![0; 8 + 1_200];
    packet[2..4].copy_from_slice(&endpoint.local_address().port().to_be_bytes());
    packet[4..6].copy_from_slice(&1_208_u16.to_be_bytes());
    for (at, byte) in [(8, 0x10), (12, 1), (20, 7), (21, 1), (24, 1)] {
        packet[at] = byte;
    }
    send_raw(&socket, &packet);
    let after = datagrams_in_a_call(&endpoint, &accepted, &caller).await;
    // Without batches, each call takes one datagram. With batches, the number depends on the host's
    // load.
    assert!(before > 1.0 && after > 1.0, "{before} and {after}");
    assert_eq!(endpoint.stats().retries_sent, 1, "that of the call");
}

/// An ICMP message about a datagram from `from` to `to`. It quotes the headers of the datagram (RFC
/// 792).
fn complaint(kind: u8, code: u8, from: SocketAddr, to: SocketAddr) -> Vec<u8> {
    // Its MTU is that of the loopback: the system would remember a smaller one for all connections.
    let mut message = vec![kind, code, 0, 0, 0, 0, 0xff, 0xff];
    let mut quoted = [0; 28];
    quoted[0] = 0x45;
    quoted[2..4].copy_from_slice(&1_028_u16.to_be_bytes());
    quoted[8] = 64;
    quoted[9] = 17;
    quoted[12..16].copy_from_slice(&[127, 0, 0, 1]);
    quoted[16..20].copy_from_slice(&[127, 0, 0, 1]);
    quoted[20..22].copy_from_slice(&from.port().to_be_bytes());
    quoted[22..24].copy_from_slice(&to.port().to_be_bytes());
    quoted[24..26].copy_from_slice(&1_008_u16.to_be_bytes());
    message.extend(quoted);
    let sum: u32 = { message.chunks(2) }
        .map(|pair| u32::from(u16::from_be_bytes([pair[0], pair[1]])))
        .sum();
    let folded = (sum & 0xffff) + (sum >> 16);
    let checksum = !((folded & 0xffff) + (folded >> 16)) as u16;
    message[2..4].copy_from_slice(&checksum.to_be_bytes());
    message
}

/// Routers report that packets are too long, unwanted or undeliverable. Anybody can forge such
/// reports.
#[tokio::test]
async fn errors_from_routers_do_not_end_connections() {
    let Some(socket) = raw(SockProtocol::Icmp) else {
        return;
    };
    let options = options().build().unwrap();
    let listener = Endpoint::bind(loopback(), options.clone()).unwrap();
    let calling = Endpoint::for_calls(loopback(), options.clone()).unwrap();
    let call = calling.connect(listener.local_address());
    let (caller, accepted) = opened(call, &listener).await;
    let (from, to) = (calling.local_address(), listener.local_address());
    for round in 0..20 {
        // Destination unreachable: net, host, protocol, port, too long, source route, unknown,
        // administratively.
        for code in [0, 1, 2, 3, 4, 5, 6, 7, 9, 10, 13] {
            send_raw(&socket, &complaint(3, code, from, to));
            // Parameter problem, time exceeded.
            send_raw(&socket, &complaint(12, 0, from, to));
            send_raw(&socket, &complaint(11, 0, from, to));
            let given = Section::new(payload(round, 30_000)).deadline(Duration::MAX);
            caller.send(given).await.unwrap();
            let item = soon(accepted.recv()).await.expect("it goes on");
            assert!(item.into_section().unwrap().payload == payload(round, 30_000));
        }
    }
    assert_eq!(soon(caller.finish()).await, Ok(()));
    // They do end an unanswered call at once.
    let deaf = UdpSocket::bind(loopback()).unwrap();
    let to = deaf.local_addr().unwrap();
    let complain = async {
        loop {
            send_raw(&socket, &complaint(3, 1, from, to));
            tokio::task::yield_now().await;
        }
    };
    let refused = tokio::select! {
        refused = calling.connect(to) => refused,
        () = complain => unreachable!("it goes on for ever"),
    };
    assert!(
        matches!(&refused, Err(ConnectError::Unreachable { address, .. }) if *address == to),
        "{refused:?}"
    );
}

/// Sections that will never be read are dropped, however many there are, and the connection's slot
/// is free again.
#[tokio::test]
async fn a_connection_dropped_unread_leaves_nothing_behind() {
    let options = options().build().unwrap();
    let (caller, accepted, endpoint) = pair(options.clone(), options).await;
    for section in 0..1_000 {
        let given = Section::new(payload(section, 100)).deadline(Duration::MAX);
        caller.send(given).await.unwrap();
    }
    // The receiver has all of them, and has delivered as many as its application would hold.
    soon(async {
        while accepted.stats().received.counters.wire_bytes < 100_000 {
            tokio::task::yield_now().await;
        }
    })
    .await;
    caller.close(CloseCode::DONE, "");
    soon(accepted.closed()).await;
    drop(accepted);
    soon(async {
        while endpoint.stats().connections > 0 {
            tokio::task::yield_now().await;
        }
    })
    .await;
}

#[tokio::test]
async fn a_socket_of_ipv6_calls_hosts_of_both_families() {
    let options = options().build().unwrap();
    let Ok(calling) = Endpoint::for_calls("[::]:0".parse::<SocketAddr>().unwrap(), options.clone())
    else {
        return;
    };
    for address in ["127.0.0.1:0", "[::1]:0"] {
        let address: SocketAddr = address.parse().unwrap();
        let endpoint = Endpoint::bind(address, options.clone()).unwrap();
        let called = soon(calling.connect(endpoint.local_address())).await;
        assert!(called.is_ok(), "{address}: {:?}", called.err());
        // A closed port does not answer. The system reports it in both cases.
        let closed = UdpSocket::bind(address).unwrap().local_addr().unwrap();
        let refused = soon(calling.connect(closed)).await;
        assert!(
            matches!(refused, Err(ConnectError::Unreachable { .. })),
            "{closed}: {refused:?}"
        );
        drop(connect(endpoint.local_address(), options.clone()).await);
    }
}

/// Callers that are never accepted do not accumulate.
#[tokio::test]
async fn callers_that_wait_to_be_accepted_are_bounded() {
    let waiting = options().max_waiting(3).build().unwrap();
    let endpoint = Endpoint::bind(loopback(), waiting).unwrap();
    let mut events = endpoint.events();
    let mut waiting = Vec::new();
    for _ in 0..3 {
        let called = connect(endpoint.local_address(), options().build().unwrap()).await;
        waiting.push(called.unwrap());
    }
    let called = connect(endpoint.local_address(), options().build().unwrap()).await;
    let reason = soon(called.unwrap().closed()).await;
    assert!(
        matches!(&reason, CloseReason::Peer { code, .. } if *code == CloseCode::REFUSED),
        "{reason:?}"
    );
    while !matches!(
        soon(events.next()).await,
        Some(EndpointEvent::Unaccepted { .. })
    ) {}
    assert_eq!(endpoint.stats().connections_unaccepted, 1);
    for connection in &waiting {
        assert_eq!(connection.close_reason(), None);
        assert!(soon(endpoint.accept()).await.is_some());
    }
}
