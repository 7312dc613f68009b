//! Any datagrams to a listener with an open connection. It never panics, stays within its limits,
//! and sends at most three times the bytes received from an address to it.
//!
//! An input is a list of datagrams, each after 4 bytes: its source, the delay before it, an
//! optional repair, and its length in steps of 8 bytes.

use std::net::SocketAddr;

use comity::session::{
    BadParameters, Caller, CallerConfig, CallerCredentials, Ecn, Listener, ListenerConfig,
    ListenerCredentials, Opener, PathFrame, Protocol, Randomness, Transmit,
};
use comity_units::{PacketNumber, Seed, Span, Time};

/// Acknowledges every packet once, and echoes challenges.
#[derive(Default)]
struct Echo {
    next: u64,
    due: u32,
    frames: Vec<PathFrame>,
}

impl Echo {
    fn transmit(&mut self) -> Option<Transmit> {
        self.next += 1;
        Some(Transmit {
            number: PacketNumber::new(self.next),
            ecn: Ecn::NotCapable,
            leave_by: Time::MAX,
        })
    }
}

impl Protocol for Echo {
    fn on_established(&mut self, _: Time, _: Option<Span>) {
        self.due += 1;
    }
    fn on_packet(&mut self, _: Time, _: PacketNumber, _: Ecn, payload: &[u8]) {
        self.due += 1;
        if let Some(bytes) = payload.first_chunk() {
            self.frames = vec![PathFrame::Challenge(*bytes), PathFrame::Response(*bytes)];
        }
    }
    fn on_duplicate(&mut self) {}

    fn poll_transmit(&mut self, _: Time, out: &mut Vec<u8>) -> Option<Transmit> {
        self.due = self.due.checked_sub(1)?;
        out.extend([0; 5]);
        self.transmit()
    }
    fn write_path_frame(
        &mut self,
        _: Time,
        _: PathFrame,
        length: usize,
        out: &mut Vec<u8>,
    ) -> Option<Transmit> {
        out.resize(out.len() + length, 0);
        self.transmit()
    }
    fn poll_path_frame(&mut self) -> Option<PathFrame> {
        self.frames.pop()
    }
    fn on_path_changed(&mut self, _: Time, _: SocketAddr, _: SocketAddr) {}
    fn probe_timeout(&self) -> Span {
        Span::from_millis(100)
    }
    fn is_closed(&self) -> bool {
        self.next > 500
    }
    fn next_timer(&self) -> Time {
        Time::MAX
    }
    fn on_timer(&mut self, _: Time) {}
}

fn opener() -> Opener<Echo> {
    Box::new(|_, _, _, parameters| match parameters {
        [] => Ok(Echo::default()),
        _ => Err(BadParameters::Unfit),
    })
}

fn address(which: u8) -> SocketAddr {
    ([10, 0, 0, which % 8], 4000).into()
}

fn index(address: SocketAddr) -> usize {
    match address {
        SocketAddr::V4(address) => address.ip().octets()[3].into(),
        SocketAddr::V6(_) => unreachable!("nobody has such an address"),
    }
}

/// One input.
pub fn check(input: &[u8]) {
    let mut now = Time::from_secs(1);
    let mut randomness = Randomness::seeded(Seed::new(1));
    let config = ListenerConfig {
        max_connections: 6,
        ..ListenerConfig::new(ListenerCredentials::Insecure, vec![])
    };
    let mut listener = Listener::new(now, config, opener(), randomness.split())
        .expect("the configuration is valid");
    let config = CallerConfig::new(CallerCredentials::Insecure, vec![]);
    let mut caller = Caller::new(now, address(7), config, opener(), randomness)
        .expect("the configuration is valid");
    let mut out = Vec::new();
    let mut traffic = [(0_usize, 0_usize); 8];
    // Where a peer has proved that it receives: beyond that, the core controls the sending.
    let mut proved = [false; 8];
    let mut input = input;
    while let Some((&[from, wait, repair, steps], rest)) = input.split_first_chunk() {
        let length = (8 * usize::from(steps)).min(rest.len());
        let (bytes, rest) = rest.split_at(length);
        input = rest;
        now += Span::from_millis(u64::from(wait) * 20);
        let mut datagram = bytes.to_vec();
        if repair & 1 != 0 {
            datagram.resize(datagram.len().max(1200), 0);
        }
        if repair & 2 != 0 {
            // The present packet of a genuine caller.
            out.clear();
            caller.on_timer(now);
            if caller.poll_transmit(now, &mut out).is_some() {
                datagram.clone_from(&out);
            }
        }
        if repair & 4 != 0
            && let Some(id) = listener.ids().nth(usize::from(repair >> 4))
            && let Some(field) = datagram.get_mut(1..9)
        {
            field.copy_from_slice(&id.get().to_be_bytes());
        }
        traffic[usize::from(from % 8)].0 += datagram.len();
        listener.handle_datagram(now, address(from), Ecn::NotCapable, &mut datagram);
        for id in listener.ids() {
            if let Some(session) = listener
                .session(id)
                .filter(|session| session.is_confirmed())
            {
                proved[index(session.address())] = true;
            }
        }
        if listener.next_timer() <= now {
            listener.on_timer(now);
        }
        loop {
            out.clear();
            let Some(sent) = listener.poll_transmit(now, &mut out) else {
                break;
            };
            assert_eq!(sent.length, out.len());
            traffic[index(sent.to)].1 += out.len();
            caller.handle_datagram(now, address(7), Ecn::NotCapable, &mut out);
        }
        while listener.poll_event().is_some() {}
        while caller.poll_event().is_some() {}
        assert!(listener.half_open() <= listener.connections() && listener.connections() <= 6);
    }
    for ((received, sent), proved) in traffic.into_iter().zip(proved) {
        assert!(
            proved || sent <= 3 * received,
            "{sent} bytes for {received}"
        );
    }
}
