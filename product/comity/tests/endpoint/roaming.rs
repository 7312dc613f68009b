//! A host whose routes change, in a separate network namespace.

use std::collections::BTreeSet;
use std::net::{IpAddr, UdpSocket};
use std::process::Command;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use comity::{Deliver, Endpoint, Section, connect};

use super::options;
use crate::common::{opened, soon};

const NAME: &str = "endpoint::roaming::a_call_shows_fresh_ids_when_its_route_changes";
const INSIDE: &str = "COMITY_TEST_IN_NAMESPACE";
const OUTSIDE: &str = "10.9.1.1";
const HOMES: [&str; 3] = ["10.9.0.1", "10.9.0.2", "10.9.0.3"];

fn ip(arguments: &str) {
    let status = Command::new("ip").args(arguments.split(' ')).status();
    assert!(status.unwrap().success(), "ip {arguments}");
}

/// From now on, packets to other hosts leave from this address.
fn leave_from(home: &str) {
    ip(&format!(
        "route replace local {OUTSIDE} dev lo table local proto kernel scope host src {home}"
    ));
}

/// The direction (true for packets from the caller), the address of the caller, and the id.
type Seen = Arc<Mutex<BTreeSet<(bool, IpAddr, [u8; 8])>>>;

/// Carries datagrams between callers and `listener`, and records the ids of Data packets.
fn observer(listener: std::net::SocketAddr, seen: Seen) -> std::net::SocketAddr {
    let front = Arc::new(UdpSocket::bind((OUTSIDE, 0)).unwrap());
    let back = Arc::new(UdpSocket::bind("127.0.0.1:0").unwrap());
    back.connect(listener).unwrap();
    let address = front.local_addr().unwrap();
    let caller = Arc::new(Mutex::new(address));
    let note = move |seen: &Seen, is_up: bool, caller: IpAddr, datagram: &[u8]| {
        if datagram[0] >> 4 == 4 {
            let id = datagram[1..9].try_into().unwrap();
            seen.lock().unwrap().insert((is_up, caller, id));
        }
    };
    let up = (front.clone(), back.clone(), caller.clone(), seen.clone());
    std::thread::spawn(move || {
        let (front, back, caller, seen) = up;
        let mut buffer = [0; 65_535];
        while let Ok((length, from)) = front.recv_from(&mut buffer) {
            *caller.lock().unwrap() = from;
            note(&seen, true, from.ip(), &buffer[..length]);
            let _ = back.send(&buffer[..length]);
        }
    });
    std::thread::spawn(move || {
        let mut buffer = [0; 65_535];
        while let Ok(length) = back.recv(&mut buffer) {
            let to = *caller.lock().unwrap();
            note(&seen, false, to.ip(), &buffer[..length]);
            let _ = front.send_to(&buffer[..length], to);
        }
    });
    address
}

#[tokio::test]
#[expect(clippy::print_stderr, reason = "the test says that it is skipped")]
async fn a_call_shows_fresh_ids_when_its_route_changes() {
    if std::env::var_os(INSIDE).is_none() {
        let unshare = || {
            let mut command = Command::new("unshare");
            command.args(["--user", "--map-root-user", "--net"]);
            command
        };
        let can = unshare().args(["ip", "link", "set", "lo", "up"]).output();
        if !can.is_ok_and(|output| output.status.success()) {
            return eprintln!("skipped: there are no network namespaces here");
        }
        let mut again = unshare();
        again.arg(std::env::current_exe().unwrap());
        again
            .args(["--exact", NAME, "--nocapture"])
            .env(INSIDE, "1");
        let output = again.output().unwrap();
        let text = String::from_utf8_lossy(&output.stdout);
        let errors = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{text}{errors}");
        assert!(text.contains("1 passed"), "{text}");
        return;
    }
    ip("link set lo up");
    for address in HOMES.iter().chain([&OUTSIDE]) {
        ip(&format!("addr add {address}/32 dev lo"));
    }
    leave_from(HOMES[0]);
    let config = options().deliver(Deliver::Early).build().unwrap();
    let listener = Endpoint::bind("127.0.0.1:0".parse().unwrap(), config.clone()).unwrap();
    let seen = Seen::default();
    let outside = observer(listener.local_address(), seen.clone());
    let (caller, accepted) = soon(opened(connect(outside, config), &listener)).await;
    for home in HOMES {
        leave_from(home);
        for _ in 0..20 {
            for (from, to) in [(&caller, &accepted), (&accepted, &caller)] {
                from.send(Section::new("section")).await.unwrap();
                assert!(soon(to.recv()).await.unwrap().into_section().is_some());
            }
        }
        // No packet is on its way when the route changes: such packets would have old ids.
        tokio::time::sleep(Duration::from_millis(500)).await;
    }
    let seen = seen.lock().unwrap().clone();
    for is_up in [true, false] {
        let here = seen.iter().filter(|(up, ..)| *up == is_up);
        let ids: Vec<_> = here.map(|(_, _, id)| id).collect();
        let distinct: BTreeSet<_> = ids.iter().collect();
        assert_eq!(
            ids.len(),
            distinct.len(),
            "an id is at two addresses: {seen:?}"
        );
    }
    let homes: BTreeSet<IpAddr> = seen.iter().map(|(_, home, _)| *home).collect();
    let expected = HOMES.map(|home| home.parse().unwrap());
    assert_eq!(homes, BTreeSet::from(expected));
}
