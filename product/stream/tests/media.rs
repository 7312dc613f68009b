//! Media over a connection that a host made itself.

use comity::{Config, Connection, Deliver, Endpoint, Item, Section, connect};
use comity_media::LAYOUT_FEATURE;
use comity_stream::{MediaReceiver, MediaSender};
use std::time::Duration;

const FILM: &[u8] = include_bytes!("../../media/tests/vectors/h264.ts");

/// A connection to an endpoint that has not accepted it, without a deadline that a busy machine
/// could miss.
async fn call(send_buffer: u64) -> (Connection, Endpoint) {
    let config = Config::builder()
        .insecure()
        .latency(Duration::from_secs(60))
        .idle_timeout(Duration::from_secs(60))
        .deliver(Deliver::Early)
        .features(LAYOUT_FEATURE)
        .send_buffer(send_buffer)
        .build()
        .unwrap();
    let endpoint = Endpoint::bind("127.0.0.1:0".parse().unwrap(), config.clone()).unwrap();
    let caller = connect(endpoint.local_address(), config).await.unwrap();
    (caller, endpoint)
}

/// Everything that the next connection brings, as media.
async fn received(endpoint: &Endpoint) -> Vec<u8> {
    let connection = endpoint.accept().await.unwrap();
    let (mut receiver, mut bytes) = (MediaReceiver::default(), Vec::new());
    while let Some(item) = connection.recv().await {
        assert!(matches!(item, Item::Section(_)), "{item:?}");
        receiver.push(item, &mut bytes);
    }
    receiver.finish(&mut bytes);
    bytes
}

#[tokio::test]
async fn a_transport_stream_is_restored_although_it_waits_for_room() {
    let (to, endpoint) = call(65_536).await;
    let film = FILM.repeat(2);
    let mut pieces = film.chunks(10_000);
    let mut sender = MediaSender::new(to.clone());
    // Nothing is acknowledged yet, so the send buffer fills up.
    let refused = pieces.find(|piece| !sender.push(piece).unwrap());
    let length = sender.waiting_length();
    assert!(length.is_some_and(|length| length > 0));
    let send = async {
        for piece in refused.into_iter().chain(pieces) {
            while !sender.push(piece).unwrap() {
                to.room(sender.waiting_length().unwrap()).await;
            }
        }
        sender.finish().unwrap();
        sender.flush_all().await;
        assert_eq!(sender.waiting_length(), None);
        to.finish().await.unwrap();
    };
    let ((), bytes) = tokio::join!(send, received(&endpoint));
    assert!(bytes == film, "{} of {} bytes", bytes.len(), film.len());
}

#[tokio::test]
async fn sections_that_are_not_media_follow_each_other() {
    let (to, endpoint) = call(1 << 20).await;
    let send = async {
        for text in ["\u{ff}one", "two"] {
            to.send(Section::new(text)).await.unwrap();
        }
        to.finish().await.unwrap();
    };
    let ((), bytes) = tokio::join!(send, received(&endpoint));
    assert_eq!(bytes, "\u{ff}onetwo".as_bytes());
}
