//! A crate that uses `std`, as a careless dependency would. Only `comity-purity`'s feature
//! `prove-it` links it.

/// The number of threads that the machine offers: something that only `std` can know.
pub fn threads() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from)
}
