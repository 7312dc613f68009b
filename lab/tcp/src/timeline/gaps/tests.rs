use super::*;

#[test]
fn a_gap_is_next_once_the_application_is_at_it() {
    let mut gaps = Gaps::new(5);
    gaps.record(10, 20);
    assert!(!gaps.has_next(30), "data comes first");
    let mut gaps = Gaps::new(10);
    gaps.record(10, 20);
    assert!(!gaps.has_next(10), "it lies beyond the expected number");
    assert!(gaps.has_next(11) && gaps.has_next(30));
}

#[test]
fn memory_grows_with_gaps() {
    let mut gaps = Gaps::new(1);
    let empty = gaps.heap_memory();
    assert_eq!(empty, size_of::<Gaps>());
    for number in 1..=1_000 {
        gaps.record(10 * number, 10 * number + 5);
    }
    assert!(gaps.heap_memory() >= empty + 1_000 * size_of::<(u64, u64)>());
}
