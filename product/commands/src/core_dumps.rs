//! Turns off core dumps of a process that holds secrets.

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// The size below which the system writes no core file. With 1, it starts no program for core dumps
/// either; with 0, it would (`core(5)`).
const NO_DUMP: u64 = 1;

/// Turns core dumps off, because they would contain secrets.
///
/// Only the soft limit changes, so `prlimit --core=unlimited --pid PID` turns them on again.
/// Debuggers can still attach.
pub(crate) fn turn_off() {
    let maximum = getrlimit(Resource::Core).maximum;
    let current = Some(maximum.map_or(NO_DUMP, |maximum| maximum.min(NO_DUMP)));
    // A lower soft limit is always allowed.
    let _ = setrlimit(Resource::Core, Rlimit { current, maximum });
}
