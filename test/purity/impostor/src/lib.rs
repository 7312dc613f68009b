//! A crate that uses `std`, like a careless dependency. Only `comity-purity`'s feature `prove-it`
//! links it.

/// The number of hardware threads, which only `std` can return.
pub fn threads() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from)
}
