use super::*;
use crate::Sent;

const SIZE: DataSize = DataSize::new(1_200);
const CONFIG: GccConfig = GccConfig {
    max_window: DataSize::MAX,
    initial_rate: Rate::from_kbps(300),
    min_rate: Rate::from_kbps(30),
    max_rate: Rate::from_mbps(2),
    chi: 0.01,
    deltas: 60,
    beta: 0.85,
    window: Span::from_millis(500),
    loss_interval: Span::from_millis(200),
};

/// A flow that always has packets, on a path with a queue.
struct Flow {
    gcc: Gcc,
    /// The time to transmit a packet.
    transmission: Span,
    /// When the link has transmitted everything.
    idle_at: Time,
    now: Time,
    next: u64,
}

/// One way, without the queue.
const ONE_WAY: Span = Span::from_millis(20);

impl Flow {
    fn new(config: GccConfig, capacity: Rate) -> Self {
        Self {
            gcc: Gcc::new(config),
            transmission: capacity.transmission_time(SIZE),
            idle_at: Time::ZERO,
            now: Time::ZERO,
            next: 0,
        }
    }

    fn sent(&self, at: Time) -> Sent {
        Sent {
            now: at,
            payload: SIZE,
            wire: SIZE,
            number: PacketNumber::new(self.next),
            in_flight: SIZE,
            app_limited: false,
        }
    }

    /// Sends at the rate until `end`; every `lost`-th packet is lost. The acknowledgement of a
    /// packet arrives before the next packet leaves: the reverse path has no delay.
    fn run(&mut self, end: Time, lost: u64) {
        while self.now < end {
            let sent = self.sent(self.now);
            self.gcc.on_event(Event::Sent(&sent));
            self.idle_at = self.idle_at.max(self.now) + self.transmission;
            let arrived_at = self.idle_at + ONE_WAY;
            if self.next % lost != lost - 1 {
                self.acknowledge(&sent, arrived_at);
            }
            self.next += 1;
            self.now += self.gcc.rate().transmission_time(SIZE);
        }
    }

    fn acknowledge(&mut self, sent: &Sent, at: Time) {
        let now = sent.now;
        self.gcc.on_event(Event::PacketAcked {
            now,
            number: sent.number,
            arrived_at: Some(Arrived {
                at,
                tick: Span::from_micros(1),
            }),
        });
        self.gcc.on_event(Event::Ack(&Ack {
            now,
            acked: SIZE,
            rtt: Some(ONE_WAY * 2),
            in_flight: DataSize::ZERO,
            app_limited: false,
            in_recovery: false,
            marked: 0,
            packets: 1,
            sample: None,
        }));
    }

    fn queueing(&self) -> Span {
        self.idle_at.saturating_since(self.now)
    }

    fn rate(&self) -> f64 {
        self.gcc.rate().as_bps() as f64
    }
}

const NEVER: u64 = u64::MAX;

/// Without congestion the rate is 300 kb/s · 1.08^t: 1.4 Mb/s after 20 s. It grows once in 140 ms
/// and a packet, by less than 2 %.
#[test]
fn without_congestion_the_rate_grows_by_eight_percent_in_a_second() {
    let mut flow = Flow::new(CONFIG, Rate::from_mbps(100));
    for seconds in [5, 10, 20] {
        flow.run(Time::from_secs(seconds), NEVER);
        let expected = 300e3 * libm::pow(1.08, seconds as f64);
        let found = flow.rate() / expected;
        assert!((0.98..1.001).contains(&found), "{seconds} s: {found}");
    }
    flow.run(Time::from_secs(30), NEVER);
    assert_eq!(flow.gcc.rate(), CONFIG.max_rate);
}

/// The queue stays short, although nothing is lost: the delay alone holds the rate at the capacity.
#[test]
fn the_rate_stays_at_the_capacity_and_the_queue_short() {
    let capacity = Rate::from_kbps(600);
    let mut flow = Flow::new(CONFIG, capacity);
    flow.run(Time::from_secs(20), NEVER);
    let (mut rates, mut waits, mut seconds) = (0.0, 0.0, 0.0);
    while seconds < 100.0 {
        flow.run(flow.now + Span::from_millis(10), NEVER);
        let rate = flow.rate() / 600e3;
        assert!((0.8..1.08).contains(&rate), "{rate}");
        rates += flow.rate() * 0.01;
        waits += flow.queueing().as_secs_f64() * 0.01;
        seconds += 0.01;
    }
    let (share, wait) = (rates / 100.0 / 600e3, waits / 100.0);
    assert!((0.9..1.0).contains(&share), "{share}");
    // A packet alone takes 16 ms.
    assert!((0.0..0.03).contains(&wait), "{wait}");
}

/// Every fifth packet is lost: A_s falls by a tenth with each report, to the minimum rate.
#[test]
fn losses_above_ten_percent_lower_the_rate_and_those_below_two_do_not() {
    let mut flow = Flow::new(CONFIG, Rate::from_mbps(100));
    flow.run(Time::from_secs(1), 5);
    // The first report has one packet that arrived, the four others lower the rate:
    // 1.05 · 0.9^4 = 0.689. Reports of six packets have one or two lost.
    let after = flow.rate() / 300e3;
    assert!((0.6..0.75).contains(&after), "{after}");
    flow.run(Time::from_secs(60), 5);
    // A report of a packet or two may be without a loss.
    assert!(flow.gcc.rate() < Rate::from_kbps(40), "{}", flow.rate());
    let mut few = Flow::new(CONFIG, Rate::from_mbps(100));
    few.run(Time::from_secs(20), 400);
    let expected = 300e3 * libm::pow(1.08, 20.0);
    let found = few.rate() / expected;
    assert!((0.9..1.001).contains(&found), "{found}");
}

#[test]
fn the_rate_begins_within_its_limits() {
    for (initial, expected) in [(10, 30), (300, 300), (9_000, 2_000)] {
        let gcc = Gcc::new(GccConfig {
            initial_rate: Rate::from_kbps(initial),
            ..CONFIG
        });
        assert_eq!(gcc.rate(), Rate::from_kbps(expected));
        assert_eq!(gcc.decision().pacing, Pacing::Rate(gcc.rate()));
        assert_eq!(gcc.decision().target, Some(gcc.rate()));
        assert_eq!(gcc.decision().window, DataSize::MAX);
    }
}

/// In a pause R is close to zero, and neither limits the rate nor lets it grow.
#[test]
fn a_pause_changes_nothing() {
    for seconds in [5, 10] {
        let mut flow = Flow::new(CONFIG, Rate::from_kbps(400));
        flow.run(Time::from_secs(seconds), NEVER);
        let before = flow.gcc.rate();
        for _ in 0..10 {
            flow.now += Span::from_secs(1);
            flow.run(flow.now + Span::from_micros(1), NEVER);
        }
        assert_eq!(flow.gcc.rate(), before);
    }
}

/// At twice the capacity a group adds 5 ms, which the detector of the draft does not detect: the
/// queue grows without bound.
#[test]
fn without_the_number_of_groups_the_queue_is_not_noticed() {
    let letter = GccConfig {
        deltas: 1,
        ..CONFIG
    };
    let mut flow = Flow::new(letter, Rate::from_kbps(600));
    flow.run(Time::from_secs(40), NEVER);
    assert!(
        flow.queueing() > Span::from_secs(5),
        "{:?}",
        flow.queueing()
    );
    assert!(flow.rate() > 1.2 * 600e3, "{}", flow.rate());
}
