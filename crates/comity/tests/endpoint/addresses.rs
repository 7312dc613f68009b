//! Hosts with several addresses.

use std::net::{IpAddr, SocketAddr, UdpSocket};
use std::time::Duration;

use comity::{Endpoint, Event, Section, connect};

use super::{options, payload, soon};

/// A listener on all addresses, called at one that the system would not choose as a source. Every
/// packet must come from the called address, since a caller accepts no other.
#[expect(clippy::print_stdout, reason = "it says why it did not look")]
#[tokio::test]
async fn a_listener_on_all_addresses_answers_from_the_one_that_was_called() {
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
        // Marked packets are sent by other code.
        for type_of_service in [0, 0xb8] {
            let listener = options().type_of_service(type_of_service).build().unwrap();
            let endpoint = Endpoint::bind(SocketAddr::new(all, 0), listener).unwrap();
            let address = SocketAddr::new(called, endpoint.local_address().port());
            let calling = connect(address, options().build().unwrap());
            let (caller, accepted) = soon(async { tokio::join!(calling, endpoint.accept()) }).await;
            let (caller, accepted) = (caller.unwrap(), accepted.unwrap());
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
