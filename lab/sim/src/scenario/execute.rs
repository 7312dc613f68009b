//! Executes the runs of a scenario, several at a time.

use std::collections::BTreeMap;
use std::num::NonZeroUsize;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc;

use super::{Run, RunSettings, Scenario};
use crate::custom::{CustomControllers, NoControllers};
use crate::engine::{Observer, RunOptions, run_with};
use crate::network::{Network, NetworkError};
use crate::packet_recorder::PacketRecorder;
use crate::report::{RunReport, Series};
use crate::series::Recorder;

/// Options for executing runs.
#[derive(Clone, Copy, Debug)]
pub struct Execution<'c> {
    /// How many runs execute at a time; `None` for one per processor.
    pub jobs: Option<NonZeroUsize>,
    /// Begins with the runs that are likely to take longest, so that the last ones to finish are
    /// short. Results always keep the order of the runs, so reports that finish early wait in
    /// memory.
    pub longest_first: bool,
    /// When this becomes true, no further run begins.
    pub cancel: Option<&'c AtomicBool>,
}

impl Execution<'_> {
    /// The default options for this many runs. With many runs the last ones matter little, and
    /// reports that finish early would fill the memory.
    pub const fn of(runs: usize) -> Self {
        const FEW: usize = 1_000;
        Self {
            jobs: None,
            longest_first: runs <= FEW,
            cancel: None,
        }
    }
}

impl Default for Execution<'_> {
    fn default() -> Self {
        Self {
            jobs: None,
            longest_first: true,
            cancel: None,
        }
    }
}

/// The outcome of one run.
#[derive(Clone, Debug)]
pub struct Outcome<'r, R, E> {
    /// The run.
    pub run: &'r Run,
    /// Its report, or the error.
    pub report: Result<R, E>,
}

/// The execution was cancelled before all runs were executed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Interrupted {
    /// How many outcomes were handed over.
    pub done: usize,
}

impl std::fmt::Display for Interrupted {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "interrupted after {} runs", self.done)
    }
}

impl std::error::Error for Interrupted {}

/// Executes one run, with time series if its settings say so: the `simulate` of [`execute()`].
///
/// # Errors
/// The engine's error about the network. A network from a valid scenario has none.
pub fn simulate(
    network: &Network,
    run: &Run,
    settings: &RunSettings,
) -> Result<RunReport, NetworkError> {
    observed(
        network,
        run,
        settings,
        false,
        &NoControllers,
        &AtomicBool::new(false),
    )
}

/// Why a run has no report.
#[derive(Clone, Debug, PartialEq)]
pub enum Stopped {
    /// The engine refused the network.
    Refused(NetworkError),
    /// The flag was set, or a custom controller failed.
    Requested,
}

impl std::fmt::Display for Stopped {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Refused(error) => error.fmt(f),
            Self::Requested => f.write_str("the run was stopped"),
        }
    }
}

impl std::error::Error for Stopped {}

/// As [`simulate()`], and also with every packet if `packets` is true, and with flows of `custom`
/// controllers. The run ends early when `stop` becomes true or a custom controller fails.
///
/// # Errors
/// [`Stopped`] says why the run has no report.
pub fn simulate_stoppable(
    network: &Network,
    run: &Run,
    settings: &RunSettings,
    packets: bool,
    custom: &impl CustomControllers,
    stop: &AtomicBool,
) -> Result<RunReport, Stopped> {
    let report =
        observed(network, run, settings, packets, custom, stop).map_err(Stopped::Refused)?;
    if stop.load(Ordering::Relaxed) || custom.has_failed() {
        return Err(Stopped::Requested);
    }
    Ok(report)
}

fn observed(
    network: &Network,
    run: &Run,
    settings: &RunSettings,
    packets: bool,
    custom: &impl CustomControllers,
    stop: &AtomicBool,
) -> Result<RunReport, NetworkError> {
    let options = RunOptions::default();
    let mut stop = (stop, UntilFailure(custom));
    let (mut bins, mut log) = records(network, settings, packets);
    let report = if bins.is_none() && log.is_none() {
        // Without observers the engine does not report events.
        run_with(network, run.seed, &options, custom, &mut stop)
    } else {
        let mut observer = (stop, (bins, log));
        let report = run_with(network, run.seed, &options, custom, &mut observer);
        (bins, log) = observer.1;
        report
    };
    Ok(with_records(report?, (bins, log), settings))
}

/// The records of a run beside its report.
pub(super) type Records = (Option<Recorder>, Option<PacketRecorder>);

/// Empty records, as the settings and `packets` request.
pub(super) fn records(network: &Network, settings: &RunSettings, packets: bool) -> Records {
    (
        settings.bins.map(|bin| Recorder::new(network, bin)),
        packets.then(|| PacketRecorder::new(network)),
    )
}

/// Adds the records to the report.
pub(super) fn with_records(
    report: RunReport,
    (bins, log): Records,
    settings: &RunSettings,
) -> RunReport {
    RunReport {
        series: bins.map(|bins| Series {
            convergence: settings.convergence,
            ..bins.finish()
        }),
        packets: log.map(PacketRecorder::finish),
        ..report
    }
}

/// Ends a run whose custom controller failed.
#[derive(Debug)]
pub(super) struct UntilFailure<C>(pub(super) C);

impl<C: CustomControllers> Observer for UntilFailure<C> {
    const ACTIVE: bool = false;

    fn is_stopped(&self) -> bool {
        self.0.has_failed()
    }
}

/// Runs `runs` of `scenario` with `simulate` and hands each outcome to `on_outcome`, in the order
/// of `runs` whatever the number of threads.
///
/// `simulate` is called on several threads; [`simulate()`] runs the simulator. After every run
/// `on_finished` gets the number of finished runs. `on_outcome` and `on_finished` are called on the
/// caller's thread. Each network is built right before its run and dropped after it.
///
/// # Errors
/// [`Interrupted`] if `execution.cancel` was set before all runs were executed.
///
/// # Panics
/// If `simulate` panics, on the caller's thread.
pub fn execute<'r, R: Send, E: Send>(
    scenario: &Scenario,
    runs: &'r [Run],
    execution: &Execution<'_>,
    simulate: impl Fn(&Network, &Run, &RunSettings) -> Result<R, E> + Sync,
    mut on_finished: impl FnMut(usize),
    mut on_outcome: impl FnMut(Outcome<'r, R, E>),
) -> Result<(), Interrupted> {
    let cancelled = || {
        execution
            .cancel
            .is_some_and(|cancel| cancel.load(Ordering::Relaxed))
    };
    let order = order(scenario, runs, execution.longest_first);
    let mut done = 0;
    let jobs = execution.jobs.map_or(0, NonZeroUsize::get);
    let pool = rayon::ThreadPoolBuilder::new().num_threads(jobs).build();
    let (sender, receiver) = mpsc::channel();
    let work = |index: usize, sender: &mpsc::Sender<(usize, Option<Result<R, E>>)>| {
        let report = runs.get(index).filter(|_| !cancelled()).map(|run| {
            let (network, settings) = scenario.prepare(run);
            simulate(&network, run, &settings)
        });
        // The receiver is gone only if the caller's thread panicked.
        let _ = sender.send((index, report));
    };
    let mut collect = |receiver: mpsc::Receiver<(usize, Option<Result<R, E>>)>| {
        let mut early = BTreeMap::new();
        let mut finished = 0;
        for (index, report) in receiver {
            let Some(report) = report else { continue };
            finished += 1;
            on_finished(finished);
            early.insert(index, report);
            while let Some(report) = early.remove(&done) {
                if let Some(run) = runs.get(done) {
                    on_outcome(Outcome { run, report });
                }
                done += 1;
            }
        }
    };
    match pool {
        Ok(pool) => pool.in_place_scope_fifo(|scope| {
            for index in order {
                let (work, sender) = (&work, sender.clone());
                scope.spawn_fifo(move |_| work(index, &sender));
            }
            drop(sender);
            collect(receiver);
        }),
        // If no thread can be started, the runs execute here, one after another.
        Err(_) => {
            for index in order {
                work(index, &sender);
            }
            drop(sender);
            collect(receiver);
        }
    }
    if done < runs.len() {
        return Err(Interrupted { done });
    }
    Ok(())
}

/// The indices of the runs; with `longest_first`, the runs that probably take longest come first.
fn order(scenario: &Scenario, runs: &[Run], longest_first: bool) -> Vec<usize> {
    let mut order: Vec<usize> = (0..runs.len()).collect();
    // Without axes all runs take about as long.
    if longest_first && scenario.points() > 1 {
        let mut known: BTreeMap<usize, u64> = BTreeMap::new();
        let costs: Vec<u64> = runs
            .iter()
            .map(|run| {
                *known
                    .entry(run.point)
                    .or_insert_with(|| cost(&scenario.prepare(run).0))
            })
            .collect();
        order.sort_by_key(|index| std::cmp::Reverse(costs.get(*index).copied()));
    }
    order
}

/// A rough measure of the work in a run: its length times its flows, weighted by the rate of the
/// slowest link.
fn cost(network: &Network) -> u64 {
    use comity_link::RateProfile;
    let slowest = network
        .links
        .iter()
        .filter_map(|link| match &link.config.rate {
            RateProfile::Unlimited => None,
            RateProfile::Constant(rate) => Some(rate.as_bps()),
            RateProfile::Steps(steps) => steps.iter().map(|(_, rate)| rate.as_bps()).max(),
            RateProfile::Deliveries(trace) => Some(trace.mean_rate().as_bps()),
        })
        .filter(|bps| *bps > 0)
        .min()
        .unwrap_or(1_000_000_000);
    // A packet of 1,500 bytes has 12,000 bits. A flow costs a little even if no packet arrives.
    let packets_per_second = slowest / 12_000 + network.flows.len() as u64;
    packets_per_second.saturating_mul(network.duration.as_millis().max(1))
}

#[cfg(test)]
mod tests {
    use super::super::{NoFiles, Reading};
    use super::*;

    fn scenario() -> Scenario {
        let text = r#"
            [scenario]
            name = "x"
            duration = "1s"
            seeds = { count = 5 }
            [topology]
            kind = "dumbbell"
            bottleneck = { rate = "1Mbps", delay = "1ms" }
            access = { rate = "10Mbps", delay = "1ms" }
            [[flow]]
            group = "tcp"
            [[sweep]]
            parameter = "scenario.duration"
            values = ["1s", "100s", "10s"]
            [[sweep]]
            parameter = "flow.tcp.count"
            range = { from = 1, to = 8 , step = 1 }
        "#;
        Scenario::parse("x", text, NoFiles, &Reading::default()).unwrap()
    }

    /// A substitute for the engine, whose result depends on all properties of a run.
    fn checked(network: &Network, run: &Run, _: &RunSettings) -> Result<u64, String> {
        if run.seed.get() == 3 {
            return Err("three".into());
        }
        Ok(run.seed.get() * 1_000_000
            + network.flows.len() as u64 * 1_000
            + network.duration.as_millis())
    }

    fn outcomes(jobs: usize, longest_first: bool) -> Vec<(usize, Result<u64, String>)> {
        let scenario = scenario();
        let runs = scenario.runs();
        let mut outcomes = Vec::new();
        let mut finished = Vec::new();
        let execution = Execution {
            jobs: NonZeroUsize::new(jobs),
            longest_first,
            cancel: None,
        };
        execute(
            &scenario,
            &runs,
            &execution,
            checked,
            |done| finished.push(done),
            |outcome| outcomes.push((outcome.run.number, outcome.report)),
        )
        .unwrap();
        assert_eq!(finished, (1..=runs.len()).collect::<Vec<_>>());
        outcomes
    }

    #[test]
    fn outcomes_come_in_the_order_of_the_runs_whatever_the_threads() {
        let one = outcomes(1, false);
        assert_eq!(one.len(), 3 * 8 * 5);
        // Point 9 is the second of the durations with the second of the counts; seed 2 is its
        // second run.
        assert_eq!(one[9 * 5 + 1], (9 * 5 + 1, Ok(2_000_000 + 2_000 + 100_000)));
        assert_eq!(one[9 * 5 + 2].1, Err("three".into()));
        for (jobs, longest_first) in [(1, true), (2, false), (7, true)] {
            assert_eq!(outcomes(jobs, longest_first), one);
        }
    }

    #[test]
    fn the_longest_runs_begin_first() {
        let scenario = scenario();
        let runs = scenario.runs();
        let order = order(&scenario, &runs, true);
        // 100 s with eight flows is the longest, 1 s with one flow the shortest.
        assert_eq!(runs[order[0]].point, 15);
        assert_eq!(runs[*order.last().unwrap()].point, 0);
    }

    #[test]
    fn a_cancelled_execution_hands_over_a_prefix() {
        let scenario = scenario();
        let runs = scenario.runs();
        let cancel = AtomicBool::new(false);
        let execution = Execution {
            jobs: NonZeroUsize::new(1),
            longest_first: false,
            cancel: Some(&cancel),
        };
        let mut numbers = Vec::new();
        let interrupted = execute(
            &scenario,
            &runs,
            &execution,
            |network, run, settings| {
                if run.number == 6 {
                    cancel.store(true, Ordering::Relaxed);
                }
                checked(network, run, settings)
            },
            |_| {},
            |outcome| numbers.push(outcome.run.number),
        );
        assert_eq!(interrupted, Err(Interrupted { done: 7 }));
        assert_eq!(numbers, (0..7).collect::<Vec<_>>());
    }
}
