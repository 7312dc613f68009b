//! The costs of sealing and opening a packet, with all work around them, of a handshake, and of a
//! message 1 that somebody sends again.

use std::cell::RefCell;
use std::net::SocketAddr;

use comity::session::{
    Allow, BadParameters, Caller, CallerConfig, CallerCredentials, Cipher, Ecn, Listener,
    ListenerConfig, ListenerCredentials, PassphraseKey, PathFrame, PresharedKey, Protocol,
    Randomness, StaticKey, Transmit,
};
use comity_units::{PacketNumber, Seed, Span, Time};
use criterion::{BatchSize, Criterion, Throughput, criterion_group, criterion_main};

const PAYLOAD: usize = 1371;

/// Sends the requested number of packets of one size.
#[derive(Default)]
struct Bulk {
    next: u64,
    received: u64,
}

impl Protocol for Bulk {
    fn on_established(&mut self, _: Time, _: Option<Span>) {}
    fn on_packet(&mut self, _: Time, _: PacketNumber, _: Ecn, payload: &[u8]) {
        self.received += payload.len() as u64;
    }
    fn on_duplicate(&mut self) {}

    fn poll_transmit(&mut self, _: Time, out: &mut Vec<u8>) -> Option<Transmit> {
        out.resize(out.len() + PAYLOAD, 7);
        self.next += 1;
        Some(Transmit {
            number: PacketNumber::new(self.next),
            ecn: Ecn::Capable0,
            leave_by: Time::MAX,
        })
    }
    fn write_path_frame(
        &mut self,
        _: Time,
        _: PathFrame,
        _: usize,
        _: &mut Vec<u8>,
    ) -> Option<Transmit> {
        None
    }
    fn poll_path_frame(&mut self) -> Option<PathFrame> {
        None
    }
    fn on_path_changed(&mut self, _: Time, _: SocketAddr, _: SocketAddr) {}
    fn probe_timeout(&self) -> Span {
        Span::from_secs(1)
    }
    fn is_closed(&self) -> bool {
        false
    }
    fn next_timer(&self) -> Time {
        Time::MAX
    }
    fn on_timer(&mut self, _: Time) {}
}

type Ends = (Caller<Bulk>, Listener<Bulk>);

/// What both ends prove themselves with.
type Kind = (ListenerCredentials, CallerCredentials);

fn shared_key() -> Kind {
    let key = PresharedKey::new([7; 32]);
    (
        ListenerCredentials::Shared(key.clone()),
        CallerCredentials::Shared(key),
    )
}

fn passphrase() -> Kind {
    let key = PassphraseKey::new([7; 32]);
    (
        ListenerCredentials::Passphrase(key.clone()),
        CallerCredentials::Passphrase(key),
    )
}

fn static_keys() -> Kind {
    let (own, listener) = (StaticKey::new([1; 32]), StaticKey::new([2; 32]));
    let known = listener.public();
    (
        ListenerCredentials::Static {
            own: listener,
            allow: Allow::Anyone,
        },
        CallerCredentials::Static {
            own,
            listener: known,
        },
    )
}

fn ends((listening, calling): Kind, cipher: Cipher) -> Ends {
    let opener = || -> comity::session::Opener<Bulk> {
        Box::new(|_, _, _, _| Ok::<_, BadParameters>(Bulk::default()))
    };
    let mut randomness = Randomness::seeded(Seed::new(1));
    let mut listening = ListenerConfig::new(listening, vec![]);
    let mut calling = CallerConfig::new(calling, vec![]);
    (listening.cipher, calling.cipher) = (cipher, cipher);
    let listener = Listener::new(Time::ZERO, listening, opener(), randomness.split());
    let address = ([192, 0, 2, 1], 5000).into();
    let caller = Caller::new(Time::ZERO, address, calling, opener(), randomness);
    (caller.expect("valid"), listener.expect("valid"))
}

/// The three round trips before the caller may send.
fn shake_hands((caller, listener): &mut Ends) {
    let here = SocketAddr::from(([192, 0, 2, 1], 5000));
    let there = SocketAddr::from(([198, 51, 100, 7], 4000));
    let mut out = Vec::new();
    while caller.session().is_none() {
        out.clear();
        caller
            .poll_transmit(Time::ZERO, &mut out)
            .expect("an Initial");
        listener.handle_datagram(Time::ZERO, there, Ecn::NotCapable, &mut out);
        out.clear();
        listener
            .poll_transmit(Time::ZERO, &mut out)
            .expect("a reply");
        caller.handle_datagram(Time::ZERO, here, Ecn::NotCapable, &mut out);
    }
}

fn packets(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("protection");
    for (name, cipher) in [
        ("AES-128-GCM", Cipher::Aes128Gcm),
        ("ChaCha20-Poly1305", Cipher::ChaCha20Poly1305),
    ] {
        group.throughput(Throughput::Bytes(PAYLOAD as u64));
        let mut ends = ends(shared_key(), cipher);
        shake_hands(&mut ends);
        let (mut caller, mut listener) = ends;
        let mut out = Vec::with_capacity(2048);
        let there = SocketAddr::from(([198, 51, 100, 7], 4000));
        group.bench_function(format!("seal and open, {name}"), |bencher| {
            bencher.iter(|| {
                out.clear();
                caller
                    .poll_transmit(Time::ZERO, &mut out)
                    .expect("a packet");
                listener.handle_datagram(Time::ZERO, there, Ecn::NotCapable, &mut out);
                out[0]
            });
        });
        let opened: u64 = listener
            .ids()
            .filter_map(|id| listener.session(id))
            .map(|session| session.protocol().received)
            .sum();
        assert!(opened > 0 && opened.is_multiple_of(PAYLOAD as u64));
    }
    group.finish();
    for (name, kind) in [
        ("shared key", shared_key as fn() -> Kind),
        ("passphrase", passphrase),
        ("static keys", static_keys),
    ] {
        criterion.bench_function(&format!("handshake, both ends, {name}"), |bencher| {
            bencher.iter_batched_ref(
                || ends(kind(), Cipher::Aes128Gcm),
                shake_hands,
                BatchSize::SmallInput,
            );
        });
        criterion.bench_function(&format!("a replayed message 1, {name}"), |bencher| {
            let replays = RefCell::new(Replays::new(kind));
            bencher.iter_batched_ref(
                || replays.borrow_mut().next(),
                |(from, initial)| replays.borrow_mut().send(*from, initial),
                BatchSize::PerIteration,
            );
        });
    }
}

/// Somebody who sends a recorded message 1 with good cookies, each time from another network.
struct Replays {
    listener: Listener<Bulk>,
    recorded: Vec<u8>,
    now: Time,
    count: u32,
}

impl Replays {
    fn new(kind: fn() -> Kind) -> Self {
        let (mut caller, mut listener) = ends(kind(), Cipher::Aes128Gcm);
        let mut recorded = Vec::new();
        for _ in 0..2 {
            recorded.clear();
            let here = SocketAddr::from(([192, 0, 2, 1], 5000));
            let there = SocketAddr::from(([198, 51, 100, 7], 4000));
            let sent = caller.poll_transmit(Time::ZERO, &mut recorded);
            sent.expect("an Initial");
            let mut packet = recorded.clone();
            listener.handle_datagram(Time::ZERO, there, Ecn::NotCapable, &mut packet);
            let mut reply = Vec::new();
            let sent = listener.poll_transmit(Time::ZERO, &mut reply);
            sent.expect("a reply");
            caller.handle_datagram(Time::ZERO, here, Ecn::NotCapable, &mut reply);
        }
        let (_, listener) = ends(kind(), Cipher::Aes128Gcm);
        Self {
            listener,
            recorded,
            now: Time::ZERO,
            count: 0,
        }
    }

    /// Another address with its cookie in the packet.
    fn next(&mut self) -> (SocketAddr, Vec<u8>) {
        self.count = self.count.wrapping_add(1);
        // The budget has room for as much.
        self.now += Span::from_millis(1);
        let [a, b, c, _] = (self.count << 8).to_be_bytes();
        let from = SocketAddr::from(([a | 1, b, c, 1], 4000));
        let mut packet = self.recorded.clone();
        packet[14..].fill(0);
        self.listener
            .handle_datagram(self.now, from, Ecn::NotCapable, &mut packet);
        let mut retry = Vec::new();
        let sent = self.listener.poll_transmit(self.now, &mut retry);
        sent.expect("a Retry");
        let mut packet = self.recorded.clone();
        packet[15..51].copy_from_slice(&retry[14..]);
        (from, packet)
    }

    fn send(&mut self, from: SocketAddr, packet: &mut [u8]) -> usize {
        let now = self.now;
        self.listener
            .handle_datagram(now, from, Ecn::NotCapable, packet);
        let mut reply = Vec::new();
        let sent = self.listener.poll_transmit(now, &mut reply);
        sent.expect("an Answer").length
    }
}

criterion_group!(benches, packets);
criterion_main!(benches);
