//! The costs of sealing and opening a packet, with all work around them.

use std::net::SocketAddr;

use comity::session::{
    BadParameters, Caller, CallerConfig, CallerCredentials, Cipher, Ecn, Listener, ListenerConfig,
    ListenerCredentials, PathFrame, PresharedKey, Protocol, Randomness, Transmit,
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
    fn on_established(&mut self, _: Time) {}
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
    fn on_path_changed(&mut self, _: Time) {}
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

fn ends(cipher: Cipher) -> Ends {
    let opener = || -> comity::session::Opener<Bulk> {
        Box::new(|_, _, _, _| Ok::<_, BadParameters>(Bulk::default()))
    };
    let mut randomness = Randomness::seeded(Seed::new(1));
    let key = PresharedKey::new([7; 32]);
    let mut listening = ListenerConfig::new(ListenerCredentials::Shared(key.clone()), vec![]);
    let mut calling = CallerConfig::new(CallerCredentials::Shared(key), vec![]);
    (listening.cipher, calling.cipher) = (cipher, cipher);
    let listener = Listener::new(Time::ZERO, listening, opener(), randomness.split());
    let address = ([192, 0, 2, 1], 5000).into();
    let caller = Caller::new(Time::ZERO, address, calling, opener(), randomness);
    (caller.expect("valid"), listener.expect("valid"))
}

/// The two round trips before the caller may send.
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
        let mut ends = ends(cipher);
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
    criterion.bench_function("handshake, both ends, shared secret", |bencher| {
        bencher.iter_batched_ref(
            || ends(Cipher::Aes128Gcm),
            shake_hands,
            BatchSize::SmallInput,
        );
    });
}

criterion_group!(benches, packets);
criterion_main!(benches);
