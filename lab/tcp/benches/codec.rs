//! Nanoseconds to write and to read one header, for the segments that a transfer consists of.

use std::hint::black_box;
use std::net::Ipv4Addr;

use comity_tcp::checksum::{Checksum, PseudoHeader};
use comity_tcp::codec::{MAX_HEADER, Ports, decode, decode_unverified, encode, encoded_length};
use comity_tcp::{Flags, Options, SackBlock, SackBlocks, Segment, Timestamps};
use comity_units::SeqNo;
use criterion::{Criterion, criterion_group, criterion_main};

const ADDRESSES: PseudoHeader = PseudoHeader::V4 {
    source: Ipv4Addr::new(10, 0, 0, 1),
    destination: Ipv4Addr::new(10, 0, 0, 2),
};
const PORTS: Ports = Ports {
    source: 49_152,
    destination: 80,
};

fn segments() -> [(&'static str, Segment); 4] {
    let timestamps = Some(Timestamps { value: 1, echo: 2 });
    let mut sack = SackBlocks::EMPTY;
    for start in [1_000_000, 1_003_000, 1_006_000] {
        let start = SeqNo::new(start);
        sack.push(SackBlock {
            start,
            end: start + 1448,
        });
    }
    let plain = Segment {
        flags: Flags::ACK,
        window: 512,
        ..Segment::default()
    };
    let with = |options| Segment { options, ..plain };
    [
        ("plain", plain),
        (
            "timestamps",
            with(Options {
                timestamps,
                ..Options::default()
            }),
        ),
        (
            "timestamps_3_sack",
            with(Options {
                timestamps,
                sack,
                ..Options::default()
            }),
        ),
        (
            "syn",
            Segment {
                flags: Flags::SYN,
                ..with(Options {
                    mss: Some(1460),
                    window_scale: Some(7),
                    sack_permitted: true,
                    timestamps,
                    ..Options::default()
                })
            },
        ),
    ]
}

fn codec(criterion: &mut Criterion) {
    for (name, segment) in segments() {
        let mut bytes = [0; MAX_HEADER];
        criterion.bench_function(&format!("encode/{name}"), |bencher| {
            bencher.iter(|| {
                encode(
                    black_box(&segment),
                    PORTS,
                    &ADDRESSES,
                    Checksum::new(),
                    &mut bytes,
                )
            });
        });
        let header = &bytes[..encoded_length(&segment)];
        criterion.bench_function(&format!("decode/{name}"), |bencher| {
            bencher.iter(|| decode(black_box(header), &ADDRESSES));
        });
        criterion.bench_function(&format!("decode_unverified/{name}"), |bencher| {
            bencher.iter(|| decode_unverified(black_box(header)));
        });
    }
    let payload = [0x5a; 1448];
    criterion.bench_function("checksum/1448_bytes", |bencher| {
        bencher.iter(|| Checksum::new().then(black_box(&payload)).finish());
    });
}

criterion_group!(benches, codec);
criterion_main!(benches);
