//! The budget of memory that connections share.

use loom::thread;

use crate::check;
use crate::memory::{Charge, MemoryBudget};

const LIMIT: u64 = 800;

/// Whoever learns that a connection has to go finds it.
#[test]
fn the_driver_sees_which_connection_has_to_go() {
    check(3, || {
        let budget = MemoryBudget::new(LIMIT);
        let [large, small] = [(); 2].map(|()| budget.share());
        large.set_held(700, false);
        let task = thread::spawn(move || small.set_held(50, true));
        let is_known = budget.take_evictions();
        if is_known {
            assert!(large.is_evicted());
        }
        task.join().unwrap();
        assert!(is_known || budget.take_evictions());
    });
}

/// Two connections send the same payload, and both drop it.
#[test]
fn a_payload_counts_once_and_not_for_ever() {
    check(3, || {
        let budget = MemoryBudget::new(LIMIT);
        let [one, two] = [(); 2].map(|()| budget.share());
        let key = (1, 300);
        one.add_payload(key, 0).unwrap();
        let task = thread::spawn(move || {
            two.add_payload(key, 0).unwrap();
            assert_eq!(two.charged() % 300, 0);
            two.remove_payload(key);
        });
        assert!(budget.held() >= 300);
        one.remove_payload(key);
        task.join().unwrap();
        assert_eq!((one.charged(), budget.held()), (0, 0));
    });
}

/// Three connections change what they hold, one of them ends, and nothing of it stays counted.
#[test]
fn the_sum_is_that_of_all_shares() {
    check(2, || {
        let budget = MemoryBudget::new(LIMIT);
        let [one, two, three] = [(); 3].map(|()| budget.share());
        one.set_held(500, false);
        one.set_queued(20);
        let tasks = [
            // Loom does not know of the order that std's Arc makes, and would let another thread
            // that drops the last handle miss what this one wrote before.
            thread::spawn(move || drop(one)),
            // It looks for the largest while that ends.
            thread::spawn(move || {
                two.set_held(10, true);
                two.set_queued(1);
                two.set_held(4, false);
                assert!(two.limit() <= LIMIT);
                drop(two);
            }),
        ];
        three.set_held(7, false);
        for task in tasks {
            task.join().unwrap();
        }
        assert_eq!(budget.held(), 7);
    });
}
