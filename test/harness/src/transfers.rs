//! Any text is a distribution of sizes, connections of a trace, or a typed error with an existing
//! line. Sizes keep within their bounds.

use comity_link::Random;
use comity_sim::transfers::{Sizes, TransfersError, parse_tmix};
use comity_units::{DataSize, Seed, Span};

/// The largest transfer of a file.
const LARGEST: DataSize = DataSize::new(1 << 50);

/// One input.
pub fn check(data: &[u8]) {
    let Ok(text) = core::str::from_utf8(data) else {
        return;
    };
    match Sizes::parse(text) {
        Ok(sizes) => {
            let mut random = Random::new(Seed::new(0));
            for _ in 0..64 {
                let size = sizes.draw(&mut random);
                assert!((sizes.min()..=LARGEST).contains(&size));
            }
            assert!(sizes.min() > DataSize::ZERO);
        }
        Err(error) => report(&error, text),
    }
    match parse_tmix(text) {
        Ok(connections) => {
            assert!((1..=text.lines().count()).contains(&connections.len()));
            for connection in connections {
                assert!(connection.initiator <= LARGEST && connection.acceptor <= LARGEST);
                assert!(connection.start <= Span::from_secs(365 * 24 * 3600));
            }
        }
        Err(error) => report(&error, text),
    }
}

fn report(error: &TransfersError, text: &str) {
    assert!((1..=text.lines().count().max(1)).contains(&error.line));
    assert!(!error.to_string().is_empty());
}
