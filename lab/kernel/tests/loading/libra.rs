//! What TCP Libra shows of its flows.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use comity_kernel::libra::{Flow, Parameters, flows};
use comity_kernel::{Controller, Error, Settings, load, loaded, unload};
use comity_units::{Rate, Span};

use super::{Pair, choose, kernel, settings};

const LIBRA: Controller = Controller::Libra;

fn transfer(bytes: usize) -> Flow {
    let mut pair = Pair::new(choose(LIBRA));
    pair.send(bytes);
    assert_eq!(pair.controller(), "libra");
    let flow = pair.flow(flows().unwrap(), |flow| &flow.socket);
    flow.expect("the flow is listed")
}

#[test]
fn a_socket_chooses_it_sends_with_it_and_shows_its_state() {
    let Some(kernel) = kernel(LIBRA) else { return };
    let parameters = comity_kernel::Parameters::Libra(Parameters {
        capacity: Some(Rate::from_mbps(100)),
        y: 1.5,
        memory: Some(Span::from_secs(30)),
        ..Parameters::default()
    });
    load(&settings(parameters)).unwrap();
    assert_eq!(loaded(LIBRA).unwrap().unwrap().parameters, parameters);

    let flow = transfer(8 << 20);
    assert!(flow.socket.window >= 10, "{flow:?}");
    let [least, most] = flow.rtt_range.unwrap();
    let rtt = flow.rtt.unwrap();
    assert!(
        least <= rtt && rtt <= most && most < Span::from_secs(1),
        "{flow:?}"
    );
    assert_eq!(flow.capacity, Some(Rate::from_mbps(100)));
    assert!((0.0..=1.0).contains(&flow.beta), "{flow:?}");

    if cfg!(feature = "bpf") {
        assert!(kernel.new_objects() > 8);
    }
    unload(LIBRA).unwrap();
    kernel.assert_nothing_is_left();
    assert!(matches!(flows(), Err(Error::NotLoaded(LIBRA))));
    assert!(matches!(unload(LIBRA), Err(Error::NotLoaded(LIBRA))));
}

#[test]
fn the_longest_prefix_of_the_destination_gives_the_capacity() {
    let Some(kernel) = kernel(LIBRA) else { return };
    let of = |capacity| Parameters {
        capacity,
        ..Parameters::default()
    };
    let with = |capacity, destinations: &[&str]| Settings {
        destinations: destinations
            .iter()
            .map(|text| text.parse().unwrap())
            .collect(),
        ..settings(comity_kernel::Parameters::Libra(of(capacity)))
    };
    let all = with(
        Some(Rate::from_mbps(100)),
        &[
            "10.0.0.0/8=1Mbps",
            "127.0.0.0/8=50Mbps",
            "127.0.0.1/32=30Mbps",
            "::1/128=20Mbps",
        ],
    );
    load(&all).unwrap();
    let mut kept = all;
    kept.destinations.sort_by_key(ToString::to_string);
    let mut read = loaded(LIBRA).unwrap().unwrap();
    read.destinations.sort_by_key(ToString::to_string);
    assert_eq!(read, kept);
    let capacity = |address: IpAddr| {
        let mut pair = Pair::at(address, choose(LIBRA));
        pair.send(100_000);
        let flow = pair.flow(flows().unwrap(), |flow| &flow.socket);
        let flow = flow.expect("the flow is listed");
        assert!(flow.capacity_is_exact);
        flow.capacity.expect("it is configured").as_mbps_f64()
    };
    assert_eq!(capacity(Ipv4Addr::LOCALHOST.into()), 30.0);
    assert_eq!(capacity(Ipv4Addr::new(127, 0, 0, 2).into()), 50.0);
    assert_eq!(capacity(Ipv6Addr::LOCALHOST.into()), 20.0);
    unload(LIBRA).unwrap();
    kernel.assert_nothing_is_left();

    load(&with(Some(Rate::from_mbps(100)), &["10.0.0.0/8=1Mbps"])).unwrap();
    assert_eq!(capacity(Ipv4Addr::LOCALHOST.into()), 100.0);
    unload(LIBRA).unwrap();
    let twice = with(None, &["10.0.0.0/8=1Mbps", "10.9.0.0/8=2Mbps"]);
    assert_eq!(
        load(&twice).unwrap_err().to_string(),
        "10.0.0.0/8 has two capacities, expected one"
    );
    kernel.assert_nothing_is_left();
}

#[test]
fn without_a_configured_capacity_it_is_estimated() {
    let Some(kernel) = kernel(LIBRA) else { return };
    load(&settings(comity_kernel::Parameters::Libra(
        Parameters::default(),
    )))
    .unwrap();
    let flow = transfer(8 << 20);
    // Loopback carries gigabits; a wrong unit would show as megabits or terabits.
    let capacity = flow.capacity.expect("an estimate").as_mbps_f64();
    assert!((500.0..1e6).contains(&capacity), "{flow:?}");
    unload(LIBRA).unwrap();
    kernel.assert_nothing_is_left();
}
