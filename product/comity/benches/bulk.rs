//! The protocol's work for a bulk transfer without sockets: sections from one session to another in
//! virtual time. Every run sends the same packets, so instructions can be compared:
//!
//! ```sh
//! valgrind --tool=callgrind target/release/deps/bulk-* [packets]
//! ```
#![allow(clippy::print_stdout, reason = "a bench that reports")]

use std::net::SocketAddr;

use bytes::Bytes;
use comity::parts::{Seed, Time};
use comity::session::{
    Caller, CallerConfig, CallerCredentials, Ecn, Listener, ListenerConfig, ListenerCredentials,
    PresharedKey, Randomness, Session,
};
use comity::transport::{Delivery, Outgoing, Transport};
use comity::{Config, Deliver, Importance, Reliability, Span, StreamId};

type Failure = Box<dyn std::error::Error>;

/// Packets that leave together, as in one system call.
const BATCH: usize = 44;
const ONE_WAY: Span = Span::from_micros(130);
const SECTION: usize = 256 * 1024;

fn here() -> SocketAddr {
    ([192, 0, 2, 1], 5_000).into()
}

fn there() -> SocketAddr {
    ([198, 51, 100, 7], 4_000).into()
}

type Ends = (Caller<Transport>, Listener<Transport>);

fn connected(now: Time) -> Result<Ends, Failure> {
    let key = PresharedKey::new([7; 32]);
    let options = Config::builder()
        .preshared_key(key.clone())
        .deliver(Deliver::Early)
        .reliability(Reliability::Full)
        .build()?;
    let mut parameters = Vec::new();
    options.parameters().encode(&mut parameters)?;
    let listening = ListenerCredentials::Shared(key.clone());
    let listening = ListenerConfig::new(listening, parameters.clone());
    let calling = CallerConfig::new(CallerCredentials::Shared(key), parameters);
    let opener = || Transport::opener(options.clone(), Seed::new(3));
    let mut randomness = Randomness::seeded(Seed::new(1));
    let mut listener = Listener::new(now, listening, opener(), randomness.split())?;
    let mut caller = Caller::new(now, here(), calling, opener(), randomness)?;
    let mut out = Vec::new();
    while caller.session().is_none() {
        out.clear();
        caller.poll_transmit(now, &mut out).ok_or("no Initial")?;
        listener.handle_datagram(now, there(), Ecn::NotCapable, &mut out);
        out.clear();
        listener.poll_transmit(now, &mut out).ok_or("no reply")?;
        caller.handle_datagram(now, here(), Ecn::NotCapable, &mut out);
    }
    Ok((caller, listener))
}

/// Keeps a megabyte waiting and appends the packets that may leave. Returns their lengths.
fn send(
    now: Time,
    session: &mut Session<Transport>,
    payload: &Bytes,
    out: &mut Vec<u8>,
) -> Result<Vec<usize>, Failure> {
    if session.next_timer() <= now {
        session.on_timer(now);
    }
    let transport = session.protocol_mut();
    while transport.poll_event(now).is_some() {}
    while transport.backlog() < 1 << 20 {
        let section = Outgoing {
            stream: StreamId(0),
            importance: Importance(128),
            source_time: now,
            deadline: Time::MAX,
            needs: None,
            payload: payload.clone(),
        };
        transport.submit(now, section)?;
    }
    let packets = std::iter::from_fn(|| session.poll_transmit(now, out));
    Ok(packets.take(BATCH).map(|packet| packet.length).collect())
}

fn main() -> Result<(), Failure> {
    let mut arguments = std::env::args().skip(1);
    let most = arguments.find_map(|text| text.parse().ok());
    let most = most.unwrap_or(20_000);
    let mut now = Time::from_millis(1);
    let (mut caller, mut listener) = connected(now)?;
    let payload = Bytes::from(vec![7; SECTION]);
    let mut out = Vec::new();
    let (mut packets, mut answers, mut sections) = (0, 0, 0);
    while packets < most {
        now += ONE_WAY;
        out.clear();
        let session = caller.session_mut().ok_or("not connected")?;
        let lengths = send(now, session, &payload, &mut out)?;
        now += ONE_WAY;
        let mut rest = out.as_mut_slice();
        for length in lengths {
            let (datagram, behind) = rest.split_at_mut(length);
            rest = behind;
            listener.handle_datagram(now, there(), Ecn::Capable0, datagram);
            packets += 1;
        }
        if listener.next_timer() <= now {
            listener.on_timer(now);
        }
        while let Some(id) = listener.next_ready() {
            let session = listener.session_mut(id).ok_or("not there")?;
            while let Some(delivery) = session.protocol_mut().poll_delivery(now) {
                sections += u64::from(matches!(delivery, Delivery::Section(_)));
            }
            out.clear();
            while session.poll_transmit(now, &mut out).is_some() {
                caller.handle_datagram(now, here(), Ecn::Capable0, &mut out);
                answers += 1;
                out.clear();
            }
            listener.settle(id);
        }
    }
    println!("{packets} packets and {answers} answers, {sections} sections of {SECTION} bytes");
    Ok(())
}
