//! What the system says of processes: memory and processor time.

use std::fs;

use super::common::seconds_of;

/// The resident memory of this process, in bytes.
pub(crate) fn resident_bytes() -> u64 {
    let text = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = text.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    let kibibytes = line.and_then(|line| line.split_whitespace().next());
    1_024
        * kibibytes
            .and_then(|size| size.parse().ok())
            .unwrap_or(0_u64)
}

/// The processor time of a process.
pub(crate) fn of_process(id: u32) -> f64 {
    seconds_of(&fs::read_to_string(format!("/proc/{id}/stat")).unwrap_or_default())
}

/// The processor time of the endpoints' threads of this process.
pub(crate) fn of_endpoints() -> f64 {
    let tasks = fs::read_dir("/proc/self/task").into_iter().flatten();
    let stats = tasks.filter_map(|task| fs::read_to_string(task.ok()?.path().join("stat")).ok());
    stats
        .filter(|stat| stat.contains("(comity)"))
        .map(|stat| seconds_of(&stat))
        .sum()
}

/// The idle time of all processors, in seconds.
pub(crate) fn idle() -> f64 {
    let text = fs::read_to_string("/proc/stat").unwrap_or_default();
    let ticks = text
        .lines()
        .next()
        .and_then(|all| all.split_whitespace().nth(4)?.parse().ok());
    ticks.map_or(0.0, |ticks: f64| ticks / 100.0)
}
