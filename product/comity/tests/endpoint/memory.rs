//! The memory of an endpoint, which the send buffers of its connections share.

use super::*;

const LENGTH: usize = 50_000;

fn section(number: u64) -> Section {
    Section::new(payload(number, LENGTH)).deadline(Duration::MAX)
}

/// Submits sections until the first refusal. Returns their number.
fn fill(connection: &Connection) -> u64 {
    let mut sections = 0;
    loop {
        match connection.try_send(section(sections)) {
            Ok(_) => sections += 1,
            Err(SendError::Full { held_sections, .. }) => {
                assert_eq!(u64::from(held_sections), sections);
                return sections;
            }
            Err(other) => panic!("{other}"),
        }
    }
}

/// An endpoint with a megabyte, and three connections whose peers acknowledge no sections.
async fn crowd() -> (Endpoint, Vec<(Connection, Connection)>) {
    let config = options().max_memory(1 << 20).send_buffer(512 << 10);
    let config = config.receive_buffer(64 << 10).build().unwrap();
    let endpoint = Endpoint::bind(loopback(), config).unwrap();
    let mut connections = Vec::new();
    for _ in 0..3 {
        let call = connect(endpoint.local_address(), options().build().unwrap());
        let (called, accepted) = opened(call, &endpoint).await;
        called.stop_receiving();
        connections.push((called, accepted));
    }
    (endpoint, connections)
}

#[tokio::test]
async fn a_task_waits_for_memory_that_another_connection_frees() {
    let (endpoint, connections) = crowd().await;
    let [first, second] = [0, 1].map(|at: usize| &connections[at].1);
    // The send buffer of the first one is full. Seven eighths of the memory leave less to the
    // second one, which is then beyond its share.
    assert_eq!(fill(first), 10);
    let sections = fill(second);
    assert!((6..=8).contains(&sections), "{sections}");
    for number in 0..2 {
        let id = SectionId(number);
        let free = async { assert!(first.cancel(StreamId(0), id)) };
        let send = second.send(section(sections + number));
        let (sent, ()) = soon(async { tokio::join!(send, free) }).await;
        assert_eq!(sent, Ok(SectionId(sections + number)));
        assert!(second.try_send(section(0)).is_err());
    }
    let free = async { assert!(first.cancel(StreamId(0), SectionId(2))) };
    soon(async { tokio::join!(second.room(LENGTH), free) }).await;
    second.try_send(section(0)).expect("room");
    assert_eq!((first.close_reason(), second.close_reason()), (None, None));
    assert_eq!(endpoint.stats().connections_evicted, 0);
    assert!(endpoint.stats().memory <= 1 << 20);
}

#[tokio::test]
async fn the_share_of_a_connection_is_free_for_its_sections() {
    let (endpoint, connections) = crowd().await;
    let [first, second, third] = [0, 1, 2].map(|at: usize| &connections[at].1);
    fill(first);
    fill(second);
    // A third of the memory, less the records.
    for number in 0..6 {
        let sent = soon(third.send(section(number))).await;
        assert_eq!(sent, Ok(SectionId(number)));
    }
    let end = soon(first.closed()).await;
    let CloseReason::Local { code, .. } = end else {
        panic!("{end}")
    };
    assert_eq!(code, CloseCode::REFUSED);
    assert_eq!(second.close_reason(), None);
    assert_eq!(third.close_reason(), None);
    assert_eq!(endpoint.stats().connections_evicted, 1);
}
