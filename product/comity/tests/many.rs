//! A thousand connections on one socket.

use std::net::SocketAddr;
use std::time::Duration;

use comity::credentials::PresharedKey;
use comity::{Config, Deliver, Endpoint, Item, Section, SectionId, StreamId};
use tokio::task::JoinSet;

use crate::common::{CALL_TIMEOUT, soon};

const CONNECTIONS: u16 = 1_000;
const SECTIONS: u64 = 5;

fn options() -> Config {
    Config::builder()
        .preshared_key(PresharedKey::new([7; 32]))
        .deliver(Deliver::Early)
        .max_waiting(CONNECTIONS.into())
        .connect_timeout(CALL_TIMEOUT)
        .build()
        .expect("valid options")
}

/// Bytes that identify their connection and section.
fn payload(stream: u16, section: u64) -> Vec<u8> {
    [&stream.to_be_bytes()[..], &section.to_be_bytes()].concat()
}

/// All connections are open before any of them sends. Then all send at once in both directions.
/// Each end receives its own sections, whole and in order. The endpoint counts the connections, and
/// none remains at the end.
#[tokio::test]
async fn a_thousand_connections_share_two_sockets_and_keep_apart() {
    let loopback: SocketAddr = ([127, 0, 0, 1], 0).into();
    let listener = Endpoint::bind(loopback, options()).unwrap();
    let callers = Endpoint::for_calls(loopback, options()).unwrap();
    let address = listener.local_address();
    let mut calls = JoinSet::new();
    let (mut called, mut accepted) = (Vec::new(), Vec::new());
    for _ in 0..CONNECTIONS {
        // Sixteen at a time, as callers come: a listener without room gives up its oldest half-open
        // connections.
        if calls.len() == 16 {
            called.push(calls.join_next().await.unwrap().unwrap());
        }
        let callers = callers.clone();
        calls.spawn(async move { callers.connect(address).await.unwrap() });
    }
    called.extend(calls.join_all().await);
    for _ in 0..CONNECTIONS {
        accepted.push(soon(listener.accept()).await.unwrap());
    }
    for endpoint in [&listener, &callers] {
        let statistics = endpoint.stats();
        assert_eq!(statistics.connections, u64::from(CONNECTIONS));
    }
    // The stream identifies the caller; the accepted connection answers on the same stream.
    let mut answering = JoinSet::new();
    for connection in accepted {
        answering.spawn(async move {
            let mut stream = None;
            for number in 0..SECTIONS {
                let Some(Item::Section(section)) = connection.recv().await else {
                    panic!("not whole");
                };
                assert_eq!(section.id, SectionId(number));
                let first = *stream.get_or_insert(section.stream);
                assert_eq!(section.stream, first);
                assert_eq!(section.payload, payload(first.0, number));
                let answer = Section::new(section.payload)
                    .stream(first)
                    .deadline(Duration::MAX);
                connection.send(answer).await.unwrap();
            }
            assert!(connection.closed().await.is_clean());
            stream.expect("there were some").0
        });
    }
    let mut asking = JoinSet::new();
    for (connection, stream) in called.into_iter().zip(0..) {
        asking.spawn(async move {
            for number in 0..SECTIONS {
                let section = Section::new(payload(stream, number))
                    .stream(StreamId(stream))
                    .deadline(Duration::MAX);
                connection.send(section).await.unwrap();
            }
            for number in 0..SECTIONS {
                let item = connection.recv().await;
                let section = item.and_then(Item::into_section).expect("whole");
                assert_eq!(section.payload, payload(stream, number));
            }
            connection.finish().await.unwrap();
        });
    }
    asking.join_all().await;
    let mut streams = answering.join_all().await;
    streams.sort_unstable();
    assert!(streams.into_iter().eq(0..CONNECTIONS), "each of them once");
}
