//! Verdicts on imaginary hosts.

use super::*;

/// A host without defects.
fn healthy() -> Facts {
    Facts {
        receive_buffer: Some(4_194_304),
        send_buffer: Some(16 << 20),
        loopback: Some(Ok(Loopback {
            segments: 64,
            arrived: (10, 10),
            coalesced: 10,
            marks: [true; 3],
            timestamps: true,
        })),
        clock: Some(Clock {
            current: "tsc".into(),
            available: vec!["tsc".into(), "hpet".into()],
            reading: Span::from_nanos(25),
        }),
        lateness: (1..=100).map(Span::from_micros).collect(),
        processors: Some(2),
        kernel: Some("5.6.0-amd64".into()),
        congestion_controls: Some(["reno", "cubic", "bbr"].map(String::from).into()),
        queueing: Some(Queueing {
            default: "fq".into(),
            interface: Some("eth0".into()),
        }),
        mtu: Some(Mtu::of_ipv4(1_500)),
        kernel_controllers: vec![("libra", vec![])],
        ports: vec![Port {
            number: 9_000,
            reached: Ok(vec![([127, 0, 0, 1].into(), true)]),
        }],
    }
}

/// The only finding that is not good after a change.
fn only(change: impl FnOnce(&mut Facts)) -> Finding {
    let mut facts = healthy();
    change(&mut facts);
    let mut findings = judge(&facts);
    findings.retain(|finding| finding.verdict != Verdict::Good);
    assert_eq!(findings.len(), 1, "{findings:?}");
    findings.remove(0)
}

fn loopback(change: impl FnOnce(&mut Loopback)) -> Finding {
    only(|facts| {
        if let Some(Ok(loopback)) = &mut facts.loopback {
            change(loopback);
        }
    })
}

#[test]
fn a_healthy_host_needs_no_fix() {
    let findings = judge(&healthy());
    assert_eq!(findings.len(), 15);
    for finding in findings {
        assert_eq!(finding.verdict, Verdict::Good, "{finding:?}");
        assert_eq!(finding.remedy, None, "{finding:?}");
    }
}

#[test]
fn unknown_facts_are_not_judged_bad() {
    for finding in judge(&Facts::default()) {
        assert_eq!(finding.verdict, Verdict::CouldBeBetter, "{finding:?}");
    }
}

/// 212,992 B = 1,703,936 bit: 17.04 ms of 100 Mb/s; 4 MiB = 33,554,432 bit.
#[test]
fn buffers_are_compared_with_the_size_that_an_endpoint_requests() {
    let found = only(|facts| facts.receive_buffer = Some(212_992));
    assert_eq!(found.check, "receive buffer");
    assert_eq!(
        found.found,
        "212992 of the 4194304 requested bytes: 17 ms of 100 Mb/s"
    );
    assert_eq!(found.verdict, Verdict::CouldBeBetter);
    assert_eq!(
        found.remedy.as_deref(),
        Some("sudo sysctl -w net.core.rmem_max=4194304")
    );
    let found = only(|facts| facts.send_buffer = Some(212_991));
    assert_eq!(found.verdict, Verdict::Bad);
    assert_eq!(
        found.remedy.as_deref(),
        Some("sudo sysctl -w net.core.wmem_max=4194304")
    );
    let found = only(|facts| facts.receive_buffer = Some(4_194_303));
    assert_eq!(found.verdict, Verdict::CouldBeBetter);
    let mut facts = healthy();
    facts.receive_buffer = Some(1 << 30);
    let found = &judge(&facts)[0];
    assert_eq!(
        (found.verdict, found.found.as_str()),
        (Verdict::Good, "4194304 bytes, 335 ms of 100 Mb/s")
    );
}

/// 1,452 and 1,200 bytes with 28 of UDP and IPv4.
#[test]
fn an_mtu_below_the_packet_size_is_reported() {
    let mtu = |bytes| only(|facts| facts.mtu = Some(Mtu::of_ipv4(bytes)));
    let found = mtu(1_479);
    assert_eq!(found.check, "MTU of the outgoing interface");
    assert!(
        found
            .found
            .starts_with("1479 bytes; full packets need 1480"),
        "{found:?}"
    );
    assert_eq!(
        found.remedy.as_deref(),
        Some("ip route get 192.0.2.1; ip link show")
    );
    for (bytes, verdict) in [(1_228, Verdict::CouldBeBetter), (1_227, Verdict::Bad)] {
        assert_eq!(mtu(bytes).verdict, verdict, "{bytes}");
    }
    assert!(mtu(1_227).found.contains("no connection is possible"));
    let mut facts = healthy();
    facts.mtu = Some(Mtu::of_ipv4(1_480));
    let findings = judge(&facts);
    assert!(
        findings
            .iter()
            .all(|finding| finding.verdict == Verdict::Good)
    );
}

#[test]
fn offloads_marks_and_timestamps_are_judged_separately() {
    let found = loopback(|loopback| loopback.segments = 1);
    assert_eq!(
        (found.check.as_str(), found.verdict),
        ("sending in batches (GSO)", Verdict::CouldBeBetter)
    );
    let found = loopback(|loopback| loopback.arrived = (0, 10));
    assert_eq!(found.found, "0 of 10 datagrams sent at once arrived");
    assert_eq!(found.verdict, Verdict::Bad);
    let found = loopback(|loopback| loopback.coalesced = 1);
    assert_eq!(found.check, "receiving in batches (GRO)");
    let found = loopback(|loopback| loopback.marks = [true, false, false]);
    assert_eq!(
        found.found,
        "ECT(1), CE did not survive the loopback interface"
    );
    let found = loopback(|loopback| loopback.timestamps = false);
    assert_eq!(found.check, "receive timestamps");
    let mut facts = healthy();
    facts.loopback = Some(Err("no such device".into()));
    let bad = judge(&facts)
        .into_iter()
        .find(|finding| finding.verdict == Verdict::Bad);
    assert_eq!(
        bad.map(|finding| finding.found).as_deref(),
        Some("UDP does not work on the loopback interface: no such device")
    );
}

#[test]
fn slow_clocks_and_late_timers_are_reported() {
    let clock = |current: &str, nanos| {
        only(|facts| {
            facts.clock = Some(Clock {
                current: current.into(),
                available: vec!["hpet".into(), "tsc".into()],
                reading: Span::from_nanos(nanos),
            });
        })
    };
    let found = clock("hpet", 100);
    assert_eq!(found.verdict, Verdict::CouldBeBetter);
    assert_eq!(
        found.remedy.as_deref(),
        Some(
            "echo tsc | sudo tee /sys/devices/system/clocksource/clocksource0/current_clocksource"
        )
    );
    assert_eq!(clock("tsc", 200).verdict, Verdict::CouldBeBetter);
    assert_eq!(clock("hpet", 2_000).verdict, Verdict::Bad);

    // Of 100 waits, the 50th and the 99th.
    let timers = |last: Span| {
        let mut waits: Vec<_> = (1..=98).map(Span::from_micros).collect();
        waits.extend([last, last]);
        only(|facts| facts.lateness = waits)
    };
    let found = timers(Span::from_micros(501));
    assert_eq!(
        found.found,
        "50 us late at the median of 100 waits, 501 us at the 99th percentile"
    );
    assert_eq!(found.verdict, Verdict::CouldBeBetter);
    assert_eq!(timers(Span::from_micros(5_001)).verdict, Verdict::Bad);
}

#[test]
fn the_rest_of_the_system() {
    let found = only(|facts| facts.processors = Some(1));
    assert_eq!(found.check, "processors");
    let found = only(|facts| facts.congestion_controls = Some(vec!["reno".into(), "cubic".into()]));
    assert_eq!(found.found, "reno, cubic; without bbr");
    assert_eq!(found.remedy.as_deref(), Some("sudo modprobe --all tcp_bbr"));
    let found = only(|facts| {
        facts.queueing = Some(Queueing {
            default: "pfifo_fast".into(),
            interface: Some("eth0".into()),
        });
    });
    assert_eq!(
        found.remedy.as_deref(),
        Some("sudo sysctl -w net.core.default_qdisc=fq && sudo tc qdisc replace dev eth0 root fq")
    );
    let lacks = ["no types: another kernel", "no root: sudo"].map(String::from);
    let found = only(|facts| facts.kernel_controllers = vec![("libra", lacks.into())]);
    assert_eq!(found.check, "controller libra in the kernel");
    assert_eq!(found.found, "cannot be loaded");
    assert_eq!(
        found.remedy.as_deref(),
        Some("no types: another kernel\n    no root: sudo")
    );
}

#[test]
fn kernel_versions_are_compared_as_numbers() {
    for (release, expected) in [
        ("6.18.44", Verdict::Good),
        ("5.10.0-8-amd64", Verdict::Good),
        ("5.5.19", Verdict::CouldBeBetter),
        ("4.18.0", Verdict::CouldBeBetter),
        ("4.9.0", Verdict::Bad),
        ("nonsense", Verdict::CouldBeBetter),
    ] {
        assert_eq!(kernel(Some(release)).verdict, expected, "{release}");
    }
}

#[test]
fn ports_are_free_and_reached_or_not() {
    let address = |last| std::net::IpAddr::from([192, 0, 2, last]);
    let port = |reached| {
        only(|facts| {
            facts.ports = vec![Port {
                number: 53,
                reached,
            }];
        })
    };
    let found = port(Err("in use".into()));
    assert_eq!(found.verdict, Verdict::Bad);
    assert_eq!(found.check, "UDP port 53");
    let found = port(Ok(vec![(address(1), true), (address(2), false)]));
    assert_eq!(found.verdict, Verdict::CouldBeBetter);
    assert_eq!(
        found.found,
        "free, and reached from this host at 192.0.2.1, but not at 192.0.2.2"
    );
    assert_eq!(port(Ok(vec![(address(1), false)])).verdict, Verdict::Bad);
}
