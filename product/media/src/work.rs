//! Counts the steps of loops that hostile input could make long, in the tests of this crate.

/// Counts this many steps of the present thread. Does nothing outside of tests.
#[cfg(not(test))]
pub(crate) const fn count(_steps: usize) {}

#[cfg(test)]
std::thread_local! {
    static STEPS: core::cell::Cell<usize> = const { core::cell::Cell::new(0) };
}

#[cfg(test)]
pub(crate) fn count(steps: usize) {
    STEPS.set(STEPS.get() + steps);
}

/// The number of steps that `run` takes.
#[cfg(test)]
pub(crate) fn of(run: impl FnOnce()) -> usize {
    let before = STEPS.get();
    run();
    STEPS.get() - before
}
