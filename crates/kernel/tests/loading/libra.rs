//! What TCP Libra shows of its flows.

use comity_kernel::libra::{Flow, Parameters, flows};
use comity_kernel::{Controller, Error, load, loaded, unload};
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
