//! The IP headers of an endpoint's packets, as a socket on the path sees them.

use std::io::{IoSlice, IoSliceMut};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};
use std::os::fd::AsRawFd;
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use comity::credentials::PresharedKey;
use comity::{Config, ConfigBuilder, Deliver, Endpoint, Section};
use nix::sys::socket::{
    ControlMessage, ControlMessageOwned, MsgFlags, SockaddrStorage, recvmsg, sendmsg, setsockopt,
    sockopt,
};

use crate::common::{CALL_TIMEOUT, opened};

/// EF, the class for audio: 46 as the upper six bits.
const EF: u8 = 0xb8;

fn options() -> ConfigBuilder {
    Config::builder()
        .preshared_key(PresharedKey::new([7; 32]))
        .deliver(Deliver::Early)
        .latency(Duration::from_secs(60))
        .connect_timeout(CALL_TIMEOUT)
}

/// Fields of a datagram's IP header.
#[derive(Clone, Copy, Debug)]
struct Header {
    type_of_service: u8,
    hops: u8,
}

/// Carries datagrams between any sender and `target`, and reports the headers of those to `target`.
/// It passes on the ECN bits or clears them, and ends when the receiver of its reports is dropped.
fn wire(target: SocketAddr, carries_marks: bool) -> (SocketAddr, mpsc::Receiver<Header>) {
    let any = |port| match target.ip() {
        IpAddr::V4(_) => SocketAddr::new(Ipv4Addr::LOCALHOST.into(), port),
        IpAddr::V6(_) => SocketAddr::new(Ipv6Addr::LOCALHOST.into(), port),
    };
    let socket = UdpSocket::bind(any(0)).unwrap();
    socket
        .set_read_timeout(Some(Duration::from_millis(50)))
        .unwrap();
    if target.is_ipv4() {
        setsockopt(&socket, sockopt::IpRecvTos, &true).unwrap();
        setsockopt(&socket, sockopt::Ipv4RecvTtl, &true).unwrap();
    } else {
        setsockopt(&socket, sockopt::Ipv6RecvTClass, &true).unwrap();
        setsockopt(&socket, sockopt::Ipv6RecvHopLimit, &true).unwrap();
    }
    let address = socket.local_addr().unwrap();
    let (header_sender, seen) = mpsc::channel();
    thread::spawn(move || {
        let mut bytes = vec![0; 65_536];
        let mut caller = None;
        loop {
            let mut slices = [IoSliceMut::new(&mut bytes)];
            let mut space = nix::cmsg_space!([i32; 8]);
            let fd = socket.as_raw_fd();
            let received =
                recvmsg::<SockaddrStorage>(fd, &mut slices, Some(&mut space), MsgFlags::empty());
            let (from, length, header) = match received {
                Ok(received) => {
                    let mut header = Header {
                        type_of_service: 0,
                        hops: 0,
                    };
                    for message in received.cmsgs().unwrap() {
                        match message {
                            ControlMessageOwned::Ipv4Tos(octet) => header.type_of_service = octet,
                            ControlMessageOwned::Ipv4Ttl(hops) => header.hops = hops as u8,
                            ControlMessageOwned::Ipv6TClass(class) => {
                                header.type_of_service = class as u8;
                            }
                            ControlMessageOwned::Ipv6HopLimit(hops) => header.hops = hops as u8,
                            _ => {}
                        }
                    }
                    let from = received.address.unwrap();
                    let from = match (from.as_sockaddr_in(), from.as_sockaddr_in6()) {
                        (Some(from), _) => SocketAddr::from(*from),
                        (_, Some(from)) => SocketAddr::from(*from),
                        _ => panic!("an address of IP"),
                    };
                    (from, received.bytes, header)
                }
                Err(_)
                    if header_sender
                        .send(Header {
                            type_of_service: 0,
                            hops: 0,
                        })
                        .is_err() =>
                {
                    return;
                }
                Err(_) => continue,
            };
            let to = if from == target {
                caller
            } else {
                caller = Some(from);
                if header_sender.send(header).is_err() {
                    return;
                }
                Some(target)
            };
            if let Some(to) = to {
                let slices = [IoSlice::new(&bytes[..length])];
                let to = SockaddrStorage::from(to);
                let marks = if carries_marks {
                    header.type_of_service & 3
                } else {
                    0
                };
                let class = i32::from(marks);
                let message = match target {
                    SocketAddr::V4(_) => ControlMessage::Ipv4Tos(&marks),
                    SocketAddr::V6(_) => ControlMessage::Ipv6TClass(&class),
                };
                // Datagrams without buffer space are lost, as on any network.
                let _ = sendmsg(fd, &slices, &[message], MsgFlags::empty(), Some(&to));
            }
        }
    });
    (address, seen)
}

/// Sends 100 full packets through a wire to a listener on `host`. Returns the headers that the wire
/// saw.
async fn headers(host: IpAddr, caller: Config, carries_marks: bool) -> Vec<Header> {
    let listener = Endpoint::bind(SocketAddr::new(host, 0), options().build().unwrap()).unwrap();
    let (address, seen) = wire(listener.local_address(), carries_marks);
    let (called, accepted) = opened(comity::connect(address, caller), &listener).await;
    for _ in 0..4 {
        called.send(Section::new(vec![1; 35_000])).await.unwrap();
    }
    let receive = async {
        let mut sections = 0;
        while let Some(item) = accepted.recv().await {
            sections += usize::from(item.into_section().is_some());
        }
        sections
    };
    let (finished, sections) = tokio::join!(called.finish(), receive);
    assert_eq!((finished, sections), (Ok(()), 4));
    // While no datagram comes, the wire reports headers with zero hops.
    seen.try_iter().filter(|header| header.hops > 0).collect()
}

async fn check(host: IpAddr) {
    let marked = options().type_of_service(EF).time_to_live(23);
    let seen = headers(host, marked.build().unwrap(), true).await;
    assert!(seen.len() > 100, "{}", seen.len());
    for header in &seen {
        assert_eq!(
            (header.type_of_service & !3, header.hops),
            (EF, 23),
            "{header:?}"
        );
    }
    // ECN works too: packets of sections have ECT(0).
    let capable = seen.iter().filter(|header| header.type_of_service & 3 == 2);
    assert!(capable.count() >= 100, "{seen:?}");
    // The first acknowledgements show that the path clears those bits. The sender then stops
    // setting them.
    let marked = options().type_of_service(EF).time_to_live(23);
    let seen = headers(host, marked.build().unwrap(), false).await;
    let capable = seen.iter().filter(|header| header.type_of_service & 3 == 2);
    let capable = capable.count();
    assert!((1..=20).contains(&capable) && seen.len() > 100, "{capable}");

    let without = options().type_of_service(EF).ecn(false);
    let seen = headers(host, without.build().unwrap(), true).await;
    assert!(seen.len() > 100);
    for header in &seen {
        assert_eq!(header.type_of_service, EF, "{header:?}");
        assert_ne!(header.hops, 23, "as the system has it");
    }

    let seen = headers(host, options().build().unwrap(), true).await;
    assert!(seen.iter().all(|header| header.type_of_service & !3 == 0));
}

#[tokio::test]
async fn packets_carry_the_type_of_service_beside_ecn_and_the_hops() {
    check(Ipv4Addr::LOCALHOST.into()).await;
}

#[tokio::test]
#[expect(clippy::print_stdout, reason = "it says why it did not look")]
async fn ipv6_packets_carry_the_type_of_service_beside_ecn_and_the_hops() {
    if UdpSocket::bind((Ipv6Addr::LOCALHOST, 0)).is_err() {
        println!("skipped: this host has no IPv6");
        return;
    }
    check(Ipv6Addr::LOCALHOST.into()).await;
}

#[test]
fn invalid_types_of_service_are_refused() {
    let refused = options().type_of_service(0xb9).build().unwrap_err();
    assert_eq!(
        refused.to_string(),
        "type_of_service: is 185; expected a multiple of 4 from 0 to 252, such as 0xb8: the lowest two \
         bits belong to ECN"
    );
    let refused = options().time_to_live(0).build().unwrap_err();
    assert!(
        refused.to_string().starts_with("time_to_live: is 0; "),
        "{refused}"
    );
    let refused = options()
        .max_rate(comity::Rate::from_bps(999))
        .build()
        .unwrap_err();
    assert!(
        refused.to_string().starts_with("max_rate: is 999bps; "),
        "{refused}"
    );
}
