//! Both halves of TCP-Real: the options on the wire, the state of the sockets, and the fallback.

use std::io::{Read as _, Write as _};

use comity_kernel::real::{Flow, Opening, Parameters, flows};
use comity_kernel::{Controller, Error, load, unload};
use comity_tcp::codec;
use nix::sys::socket::setsockopt;
use nix::sys::socket::sockopt::RcvBufForce;
use socket2::{Domain, Protocol, Socket, Type};

use super::{Pair, choose, in_a_namespace, kernel, settings};

const REAL: Controller = Controller::Real;
/// Frames with IPv4 packets, as they arrive, and the length of their header.
const ETHERNET_IPV4: u16 = 0x0800;
const ETHERNET_HEADER: usize = 14;

fn load_real() {
    let parameters = comity_kernel::Parameters::Real(Parameters::default());
    load(&settings(parameters)).unwrap();
}

fn flow_of(pair: &Pair) -> Flow {
    let flow = pair.flow(flows().unwrap(), |flow| &flow.socket);
    flow.expect("the flow is listed")
}

/// The flow at the other end.
fn peer_of(pair: &Pair) -> Option<Flow> {
    let local = pair.receiver.local_addr().unwrap();
    let remote = pair.sender.local_addr().unwrap();
    let mut flows = flows().unwrap().into_iter();
    flows.find(|flow| flow.socket.local == local && flow.socket.remote == remote)
}

#[test]
fn two_sockets_exchange_waves_and_levels() {
    let Some(kernel) = kernel(REAL) else { return };
    load_real();
    let mut pair = Pair::new(choose(REAL));
    pair.send(64 << 20);
    assert_eq!(pair.controller(), "real");
    let flow = flow_of(&pair);
    let sender = flow.sender.expect("it sends");
    let level = sender.level.expect("a level");
    assert!(sender.is_reported && (1..=24).contains(&level), "{flow:?}");
    assert_eq!(flow.socket.window, 2 * level);
    assert_eq!((flow.is_fallback, flow.malformed), (false, 0));
    // 1,025 segments in waves of at most 48.
    assert!((20..1_000).contains(&sender.wave), "{flow:?}");

    let peer = peer_of(&pair).expect("the receiver is listed");
    let meter = peer.meter.expect("it measures");
    assert_eq!(peer.sender, None);
    assert_eq!(meter.level.round() as u64, level);
    assert!(meter.rate.expect("a rate") > 100.0, "{peer:?}");
    drop(pair);
    if cfg!(feature = "bpf") {
        assert!(kernel.new_objects() > 8);
    }
    unload(REAL).unwrap();
    kernel.assert_nothing_is_left();
    assert!(matches!(flows(), Err(Error::NotLoaded(REAL))));
}

/// The sender's own Slow Start ends at the window of the first threshold; then the reports decide,
/// with the weights of the text.
#[test]
fn the_senders_own_slow_start_ends_at_the_threshold() {
    let Some(kernel) = kernel(REAL) else { return };
    let parameters = Parameters {
        // Twelve segments: loopback is so fast that few more are ever in flight.
        threshold_share: 0.25,
        opening: Opening::Sender,
        text_weights: true,
        ..Parameters::default()
    };
    load(&settings(comity_kernel::Parameters::Real(parameters))).unwrap();
    let mut pair = Pair::new(choose(REAL));
    let begins = flow_of(&pair);
    assert!(!begins.sender.expect("it sends").is_reported, "{begins:?}");
    pair.send(64 << 20);
    let flow = flow_of(&pair);
    let sender = flow.sender.expect("it sends");
    assert!(sender.is_reported, "{flow:?}");
    assert_eq!(flow.socket.window, 2 * sender.level.expect("a level"));
    let meter = peer_of(&pair).expect("the receiver is listed").meter;
    // The waves of the opening were longer than the initial window.
    assert!(meter.expect("it measures").wave > 3, "{flow:?}");
    drop(pair);
    unload(REAL).unwrap();
    kernel.assert_nothing_is_left();
}

/// Data in both directions: each segment has both options.
#[test]
fn both_ends_may_send() {
    let Some(kernel) = kernel(REAL) else { return };
    load_real();
    let mut pair = Pair::new(choose(REAL));
    socket2::SockRef::from(&pair.receiver)
        .set_tcp_congestion(b"real")
        .unwrap();
    let mut echo = pair.receiver.try_clone().unwrap();
    let mut back = pair.sender.try_clone().unwrap();
    let bytes = 4 << 20;
    let echoing = std::thread::spawn(move || {
        let mut left = bytes;
        let mut buffer = vec![0; 1 << 16];
        while left > 0 {
            let read = echo.read(&mut buffer).unwrap();
            echo.write_all(&buffer[..read]).unwrap();
            left -= read;
        }
    });
    let reading = std::thread::spawn(move || {
        back.read_exact(&mut vec![0; bytes]).unwrap();
    });
    pair.sender.write_all(&vec![7; bytes]).unwrap();
    echoing.join().unwrap();
    reading.join().unwrap();
    for flow in [flow_of(&pair), peer_of(&pair).unwrap()] {
        let sender = flow.sender.expect("it sends");
        assert!(sender.is_reported && flow.meter.is_some(), "{flow:?}");
        assert_eq!((flow.is_fallback, flow.malformed), (false, 0));
    }
    drop(pair);
    unload(REAL).unwrap();
    kernel.assert_nothing_is_left();
}

/// The peer of a connection that is older than the program answers nothing.
#[test]
fn without_a_peer_the_flow_goes_on_with_reno() {
    let Some(kernel) = kernel(REAL) else { return };
    let mut pair = Pair::new(|_| {});
    load_real();
    choose(REAL)(&socket2::SockRef::from(&pair.sender));
    assert_eq!(pair.controller(), "real");
    pair.send(8 << 20);
    assert_eq!(pair.controller(), "reno");
    let flow = flow_of(&pair);
    assert_eq!((flow.is_fallback, flow.sender), (true, None));
    // Reno's slow start has gone beyond what Real begins with.
    assert!(flow.socket.window > 10, "{flow:?}");
    assert_eq!(peer_of(&pair), None);
    drop(pair);
    unload(REAL).unwrap();
    kernel.assert_nothing_is_left();
}

/// Nobody reports levels any more, so the window must not stay where it was.
#[test]
fn a_flow_that_outlives_the_program_goes_on_with_reno() {
    let Some(kernel) = kernel(REAL) else { return };
    load_real();
    let mut pair = Pair::new(choose(REAL));
    pair.send(1 << 20);
    assert_eq!(pair.controller(), "real");
    unload(REAL).unwrap();
    pair.send(8 << 20);
    assert_eq!(pair.controller(), "reno");
    drop(pair);
    kernel.assert_nothing_is_left();
}

/// The options of a segment.
#[derive(Debug)]
struct Seen {
    wave: Option<(u16, u16, u16)>,
    level: Option<u16>,
    payload: usize,
}

/// A socket that keeps every packet of a transfer of some megabytes.
fn packets() -> Socket {
    let protocol = Protocol::from(i32::from(ETHERNET_IPV4.to_be()));
    let socket = Socket::new(Domain::PACKET, Type::RAW, Some(protocol)).unwrap();
    socket.set_nonblocking(true).unwrap();
    setsockopt(&socket, RcvBufForce, &(256 << 20)).unwrap();
    socket
}

/// What a packet socket saw of a transfer, read with the codec of Comity's own TCP.
fn capture() -> Vec<Seen> {
    let socket = packets();
    Pair::new(choose(REAL)).send(8 << 20);
    let mut seen = Vec::new();
    let mut frame = vec![0; 1 << 17];
    while let Ok(length) = (&socket).read(&mut frame) {
        let packet = &frame[ETHERNET_HEADER..length];
        let header = usize::from(packet[0] & 0xf) * 4;
        let decoded = codec::decode_unverified(&packet[header..]).unwrap();
        let options = decoded.segment.options;
        seen.push(Seen {
            wave: options
                .wave
                .map(|wave| (wave.wave, wave.segments.get(), wave.position)),
            level: options.level.map(std::num::NonZeroU16::get),
            payload: decoded.payload.len(),
        });
    }
    seen
}

#[test]
fn the_options_on_the_wire_are_those_of_the_codec() {
    let Some(kernel) = kernel(REAL) else { return };
    load_real();
    let seen = in_a_namespace(Vec::new(), capture);
    let waves: Vec<(u16, u16, u16)> = seen.iter().filter_map(|seen| seen.wave).collect();
    let data = seen.iter().filter(|seen| seen.payload > 1).count();
    let levels = seen.iter().filter(|seen| seen.level.is_some()).count();
    assert!(waves.len() > 20 && levels > 20, "{waves:?}");
    assert_eq!(waves.len(), data, "every data segment has a wave");
    for pair in waves.windows(2) {
        let ((wave, segments, position), (next, _, after)) = (pair[0], pair[1]);
        let follows = next == wave && after >= position;
        let begins = next == wave + 1 && position == segments;
        assert!(follows || begins, "{pair:?}");
    }
    assert!(
        seen.iter()
            .any(|seen| seen.payload == 0 && seen.level.is_some()),
        "an acknowledgement with a level"
    );
    unload(REAL).unwrap();
    kernel.assert_nothing_is_left();
}

/// The one's complement of the one's complement sum of 16-bit words (RFC 1071).
fn checksum(bytes: &[u8]) -> u16 {
    let words = bytes.chunks(2).map(|pair| {
        let low = pair.get(1).copied().unwrap_or(0);
        u32::from(u16::from_be_bytes([pair[0], low]))
    });
    let sum: u32 = words.sum();
    let folded = (sum & 0xffff) + (sum >> 16);
    !((folded & 0xffff) + (folded >> 16)) as u16
}

/// The state of the receiver after acknowledgements whose options are malformed.
fn disturbed() -> Flow {
    let capture = packets();
    let mut pair = Pair::new(choose(REAL));
    let port = pair.receiver.local_addr().unwrap().port();
    let from = pair.sender.local_addr().unwrap();
    pair.send(1 << 20);
    // The numbers of the last packet to the receiver; its acknowledgement moved nothing.
    let mut last = None;
    let mut frame = vec![0; 1 << 17];
    while let Ok(length) = (&capture).read(&mut frame) {
        let decoded = codec::decode_unverified(&frame[ETHERNET_HEADER + 20..length]).unwrap();
        if frame[ETHERNET_HEADER + 22..ETHERNET_HEADER + 24] == port.to_be_bytes() {
            let header = &frame[ETHERNET_HEADER + 20..][..12];
            last = Some((header.to_vec(), decoded.payload.len() as u32));
        }
    }
    let (mut header, payload) = last.expect("a packet to the receiver");
    let number = u32::from_be_bytes(header[4..8].try_into().unwrap()).wrapping_add(payload);
    header[4..8].copy_from_slice(&number.to_be_bytes());
    let raw = Socket::new(Domain::IPV4, Type::RAW, Some(Protocol::TCP)).unwrap();
    for options in [
        // Level 0; position 3 of 2; another length; the same twice.
        &[254, 4, 0, 0][..],
        &[254, 8, 0, 1, 0, 2, 0, 3],
        &[254, 6, 0, 1, 0, 1, 1, 1],
        &[254, 4, 0, 1, 254, 4, 0, 1],
    ] {
        let offset = (5 + options.len() as u8 / 4) << 4;
        let segment = [&header[..], &[offset, 0x10, 1, 0, 0, 0, 0, 0], options].concat();
        let pseudo = [127, 0, 0, 1, 127, 0, 0, 1, 0, 6, 0, segment.len() as u8];
        let sum = checksum(&[&pseudo[..], &segment].concat());
        let mut segment = segment;
        segment[16..18].copy_from_slice(&sum.to_be_bytes());
        raw.send_to(&segment, &from.into()).unwrap();
    }
    // Loopback has delivered them: what the connection carries afterwards arrives behind them.
    pair.send(1 << 20);
    peer_of(&pair).expect("the receiver is listed")
}

#[test]
fn malformed_options_are_ignored_and_counted() {
    let Some(kernel) = kernel(REAL) else { return };
    load_real();
    let flow = in_a_namespace(Vec::new(), disturbed);
    assert_eq!(flow.malformed, 4);
    assert!(flow.meter.is_some(), "{flow:?}");
    unload(REAL).unwrap();
    kernel.assert_nothing_is_left();
}
