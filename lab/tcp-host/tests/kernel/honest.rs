//! The kernel shows each hole that a test leaves, whatever happens on the way.

use super::lossy::{Disturbance, Lossy};
use super::{Joined, beside_kernel, config, exchange, join};
use crate::world::bytes;

/// Settings of the kernel.
type Settings = &'static [(&'static str, &'static str)];

const CLEAN: Disturbance = Disturbance {
    lost: 0,
    repeated: 0,
    overtaken: 0,
    damaged: 0,
};
const LOSSY: Disturbance = Disturbance { lost: 20, ..CLEAN };
const CHAOTIC: Disturbance = Disturbance {
    lost: 20,
    repeated: 20,
    overtaken: 20,
    damaged: 5,
};

#[test]
fn the_kernel_is_never_accused() {
    const ALL: Settings = &[];
    const NO_SACK: Settings = &[("tcp_sack", "0")];
    const NO_TIMESTAMPS: Settings = &[("tcp_timestamps", "0")];
    const NARROW: Settings = &[("tcp_rmem", "4096 65536 65536")];
    let cases = [
        (ALL, CLEAN, "cubic"),
        (ALL, LOSSY, "cubic"),
        (ALL, LOSSY, "bbr"),
        (ALL, CHAOTIC, "reno"),
        (NO_SACK, CLEAN, "cubic"),
        (NO_SACK, LOSSY, "cubic"),
        (NO_TIMESTAMPS, CHAOTIC, "cubic"),
        (NARROW, CLEAN, "cubic"),
    ];
    for (seed, (settings, disturbance, controller)) in (1..).zip(cases) {
        let wrap = |tun| Lossy::new(tun, disturbance, seed);
        let config = comity_tcp_host::Config {
            controller: controller.into(),
            ..config()
        };
        beside_kernel(config, settings, wrap, async move |stack| {
            let data = bytes(seed as u8, 8_000_000);
            let Joined { mut ours, theirs } = join(&stack, true, seed % 2 == 0, 5_100).await;
            let (at_kernel, at_host) =
                tokio::join!(exchange(theirs, b"ok"), exchange(&mut ours, &data));
            let what = format!("{settings:?} {disturbance:?} {controller}");
            assert!(at_kernel.unwrap() == data, "{what}");
            assert_eq!(at_host.unwrap(), b"ok", "{what}");
            assert_eq!(stack.statistics().false_feedback, 0, "{what}");
            let sender = ours.info().unwrap().sender;
            assert!(
                sender.skipped > 0 || disturbance.lost == 0,
                "{what}: {sender:?}"
            );
        });
    }
}
