//! Time stamps of MPEG systems: ticks of 90 kHz that count modulo 2^33 (ISO/IEC 13818-1, 2.4.3.7).

/// Time stamps count modulo 2^33.
pub const WRAP: u64 = 1 << 33;

/// `later - earlier` on the circle of 33 bits, the shorter way round.
pub const fn difference(later: u64, earlier: u64) -> i64 {
    difference_within(WRAP, later, earlier)
}

/// The same on a circle of `wrap` ticks, at most 2^62.
pub const fn difference_within(wrap: u64, later: u64, earlier: u64) -> i64 {
    let forward = (later % wrap + wrap - earlier % wrap) % wrap;
    if forward < wrap / 2 {
        forward as i64
    } else {
        forward as i64 - wrap as i64
    }
}
