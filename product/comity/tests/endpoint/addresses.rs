//! Hosts with several addresses.

use std::net::{IpAddr, SocketAddr, UdpSocket};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

use comity::{Endpoint, Event, Section, connect};

use super::{options, payload};
use crate::common::{opened, soon};

/// A listener on all addresses, called at one that the system would not choose as a source. Every
/// packet must come from the called address, since a caller accepts no other.
#[expect(clippy::print_stdout, reason = "it says why it did not look")]
#[tokio::test]
async fn a_listener_on_all_addresses_answers_from_the_called_one() {
    for (all, called) in [
        ("0.0.0.0", "127.0.0.1"),
        ("0.0.0.0", "127.0.0.2"),
        ("::", "::1"),
        ("::", "127.0.0.2"),
    ] {
        let [all, called]: [IpAddr; 2] = [all, called].map(|address| address.parse().unwrap());
        if let Err(error) = UdpSocket::bind((all, 0)).and(UdpSocket::bind((called, 0))) {
            println!(
                "{all}, called at {called}: skipped, since this host has no such address ({error})"
            );
            continue;
        }
        // Marked packets are sent by different code.
        for type_of_service in [0, 0xb8] {
            let listener = options().type_of_service(type_of_service).build().unwrap();
            let endpoint = Endpoint::bind(SocketAddr::new(all, 0), listener).unwrap();
            let address = SocketAddr::new(called, endpoint.local_address().port());
            let calling = connect(address, options().build().unwrap());
            let (caller, accepted) = soon(opened(calling, &endpoint)).await;
            let mut events = caller.events();
            for (from, to) in [(&caller, &accepted), (&accepted, &caller)] {
                // Enough for batches.
                for section in 0..20 {
                    let given = Section::new(payload(section, 30_000)).deadline(Duration::MAX);
                    from.send(given).await.unwrap();
                }
                for section in 0..20 {
                    let item = soon(to.recv()).await.unwrap();
                    let received = item.into_section().expect("no gap");
                    assert!(received.payload == payload(section, 30_000));
                }
            }
            assert_eq!(soon(caller.finish()).await, Ok(()));
            while let Some(event) = soon(events.next()).await {
                let has_moved = matches!(event, Event::PathChanged { .. });
                assert!(!has_moved, "{address}: {event:?}");
            }
        }
    }
}

/// Passes datagrams between a caller and `target` until the test ends. Returns the address to call,
/// and the number and bytes of the caller's datagrams.
fn counting(target: SocketAddr) -> (SocketAddr, Arc<Mutex<(u64, u64)>>) {
    let socket = UdpSocket::bind((target.ip(), 0)).unwrap();
    let address = socket.local_addr().unwrap();
    let counted = Arc::new(Mutex::new((0, 0)));
    let counts = counted.clone();
    thread::spawn(move || {
        let mut bytes = vec![0; 65_536];
        let mut caller = None;
        while let Ok((length, from)) = socket.recv_from(&mut bytes) {
            let to = if from == target {
                caller
            } else {
                caller = Some(from);
                let mut counts = counts.lock().unwrap();
                *counts = (counts.0 + 1, counts.1 + length as u64);
                Some(target)
            };
            if let Some(to) = to {
                let _ = socket.send_to(&bytes[..length], to);
            }
        }
    });
    (address, counted)
}

/// The size of the headers on the wire depends on the family of the addresses.
#[expect(clippy::print_stdout, reason = "it says why it did not look")]
#[tokio::test]
async fn bytes_on_the_wire_are_those_of_the_path() {
    for (host, headers) in [("127.0.0.1", 28), ("::1", 48)] {
        let host: IpAddr = host.parse().unwrap();
        if let Err(error) = UdpSocket::bind((host, 0)) {
            println!("{host}: skipped, since this host has no such address ({error})");
            continue;
        }
        let options = options().build().unwrap();
        let endpoint = Endpoint::bind(SocketAddr::new(host, 0), options.clone()).unwrap();
        let (way, counted) = counting(endpoint.local_address());
        let (caller, accepted) = soon(opened(connect(way, options), &endpoint)).await;
        for number in 0..50 {
            let section = Section::new(payload(number, 30_000)).deadline(Duration::MAX);
            caller.send(section).await.unwrap();
            soon(accepted.recv()).await.unwrap();
        }
        assert_eq!(soon(caller.finish()).await, Ok(()));
        let sent = caller.stats().sent.counters;
        let (packets, bytes) = *counted.lock().unwrap();
        assert!(sent.packets > 1_000, "{host}: {}", sent.packets);
        // The handshake and the end, which are not counted, have up to 1,500 bytes a packet.
        let others = packets - sent.packets;
        assert!(others < 20, "{host}: {others} other packets");
        let uncounted = (bytes + packets * headers) as i64 - sent.wire_bytes as i64;
        let possible = 0..=(others * 1_500) as i64;
        assert!(
            possible.contains(&uncounted),
            "{host}: {uncounted} bytes of {others} packets"
        );
    }
}
