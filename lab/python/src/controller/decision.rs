//! The decision of a controller, as attributes.

use comity_congestion::{Decision, Pacing as Spread, Phase, TimeoutRepair, table};
use comity_units::{DataSize, Rate, Time};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyTuple};

/// What a controller is built with.
#[pyclass(frozen, get_all, module = "comity")]
pub(crate) struct Setup {
    /// The payload of a full segment.
    mss_bytes: u64,
    /// The window before the first acknowledgement.
    initial_window_bytes: u64,
    /// The slow-start threshold before the first loss; infinite for none.
    initial_ssthresh_bytes: f64,
    /// The largest window of the receiver; infinite for none.
    max_window_bytes: f64,
    /// The seed of the flow's own random stream.
    seed: u64,
}

impl From<&table::Setup> for Setup {
    fn from(setup: &table::Setup) -> Self {
        Self {
            mss_bytes: setup.mss.get(),
            initial_window_bytes: setup.initial_window.get(),
            initial_ssthresh_bytes: limit(setup.initial_ssthresh),
            max_window_bytes: limit(setup.max_window),
            seed: setup.seed.get(),
        }
    }
}

/// A number of bytes, infinite without a limit.
fn limit(bytes: DataSize) -> f64 {
    match bytes {
        DataSize::MAX => f64::INFINITY,
        bytes => bytes.get() as f64,
    }
}

/// How packets are spread in time.
#[pyclass(frozen, eq, module = "comity")]
#[derive(Clone, PartialEq)]
pub(crate) struct Pacing(Spread);

#[pymethods]
impl Pacing {
    /// At a rate: packets start `wire / rate` apart.
    #[staticmethod]
    fn rate(rate_bps: f64) -> PyResult<Self> {
        Ok(Self(Spread::Rate(rate("rate_bps", rate_bps)?)))
    }

    /// At a rate, with up to `size_bytes` on the wire back to back.
    #[staticmethod]
    fn bursts(rate_bps: f64, size_bytes: f64) -> PyResult<Self> {
        Ok(Self(Spread::Bursts {
            rate: rate("rate_bps", rate_bps)?,
            size: bytes("size_bytes", size_bytes)?,
        }))
    }

    /// A gap from the end of one packet to the start of the next.
    #[staticmethod]
    fn gap(gap_s: f64) -> PyResult<Self> {
        Ok(Self(Spread::Gap(
            time("gap_s", gap_s)?.saturating_since(Time::ZERO),
        )))
    }

    /// A token bucket, emptied at `peak_bps` at most.
    #[staticmethod]
    fn bucket(rate_bps: f64, peak_bps: f64, depth_bytes: f64) -> PyResult<Self> {
        let average = rate("rate_bps", rate_bps)?;
        Ok(Self(Spread::Bucket {
            rate: average,
            peak: rate("peak_bps", peak_bps)?,
            depth: bytes("depth_bytes", depth_bytes)?,
            fair: average,
            proven: average,
        }))
    }

    /// The next packet leaves no earlier than this.
    #[staticmethod]
    fn at(time_s: f64) -> PyResult<Self> {
        Ok(Self(Spread::At(time("time_s", time_s)?)))
    }

    fn __repr__(&self) -> String {
        format!("<comity.Pacing {:?}>", self.0)
    }
}

/// The base of congestion controllers that are written in Python.
///
/// The transport calls a method `on_...` for each event, if the class has it, and reads the
/// attributes after it. A subclass may take parameters in `__init__(self, setup, ...)`: the keys of
/// `parameters` in the scenario. An exception ends the run.
///
/// | method | is called |
/// | --- | --- |
/// | `on_sent(sent)` | when a packet that counts against the window leaves |
/// | `on_ack(ack)` | when new data is acknowledged |
/// | `on_loss(loss)` | once for each loss episode |
/// | `on_packet_lost(packet)` | for each packet that is declared lost |
/// | `on_recovered()` | when the fast recovery after the last loss ends |
/// | `on_timeout(timeout)` | when the retransmission timer expires |
/// | `on_spurious_loss(now_s)` | when the packets of the last loss or timeout arrive after all |
/// | `on_wakeup(now_s)` | at the time `wakeup_s` |
/// | `on_idle(idle)` | when the flow sends again after a pause |
/// | `on_app_limited()` | before a packet after which nothing more can be sent for now |
/// | `on_in_order_ack(ack)` | when an acknowledgement covers the next packets in order |
/// | `on_packet_acked(packet)` | for each packet that is acknowledged by its number, not with TCP |
/// | `on_deflated(amount_bytes)` | when ns-2's NewReno takes these bytes from the window |
///
/// With the class attribute `needs_rate_samples = True` acknowledgements have a `sample`.
#[pyclass(subclass, module = "comity")]
pub(crate) struct Controller {
    window_bytes: f64,
    ssthresh_bytes: Option<f64>,
    capacity: Option<Rate>,
    pub(super) decision: Decision,
}

impl Controller {
    pub(super) const fn capacity(&self) -> Option<Rate> {
        self.capacity
    }

    /// Takes a due wake-up away.
    pub(super) const fn use_up_wakeup(&mut self) {
        self.decision.wakeup = None;
    }
}

#[pymethods]
impl Controller {
    #[new]
    #[pyo3(signature = (setup, *args, **parameters))]
    fn new(
        setup: PyRef<'_, Setup>,
        args: &Bound<'_, PyTuple>,
        parameters: Option<&Bound<'_, PyDict>>,
    ) -> PyResult<Self> {
        // They are for `__init__`.
        let _ = (args, parameters);
        let mut controller = Self {
            window_bytes: 0.0,
            ssthresh_bytes: None,
            capacity: None,
            decision: Decision::default(),
        };
        controller.set_window_bytes(setup.initial_window_bytes as f64)?;
        Ok(controller)
    }

    /// Refuses parameters that no subclass takes.
    #[expect(clippy::unused_self, reason = "a method of Python")]
    fn __init__(&self, setup: &Bound<'_, PyAny>) {
        let _ = setup;
    }

    /// How much payload may be in flight; infinite for a controller that only paces. Fractions of a
    /// byte count in Python alone. At first it is `setup.initial_window_bytes`.
    #[getter]
    const fn window_bytes(&self) -> f64 {
        self.window_bytes
    }

    #[setter]
    fn set_window_bytes(&mut self, value: f64) -> PyResult<()> {
        self.decision.window = bytes("window_bytes", value)?;
        self.window_bytes = value;
        Ok(())
    }

    /// The slow-start threshold, where the controller has one.
    #[getter]
    const fn ssthresh_bytes(&self) -> Option<f64> {
        self.ssthresh_bytes
    }

    #[setter]
    fn set_ssthresh_bytes(&mut self, value: Option<f64>) -> PyResult<()> {
        self.decision.ssthresh = value
            .map(|value| bytes("ssthresh_bytes", value))
            .transpose()?;
        self.ssthresh_bytes = value;
        Ok(())
    }

    /// How packets are spread in time; `None`: as acknowledgements open the window.
    #[getter]
    fn pacing(&self) -> Option<Pacing> {
        Some(self.decision.pacing)
            .filter(|pacing| *pacing != Spread::Unpaced)
            .map(Pacing)
    }

    #[setter]
    fn set_pacing(&mut self, value: Option<PyRef<'_, Pacing>>) {
        self.decision.pacing = value.map_or(Spread::Unpaced, |pacing| pacing.0);
    }

    /// The phase, for traces and for the transport's own choices: "slow_start",
    /// "congestion_avoidance", "steady" or "probing".
    #[getter]
    fn phase(&self) -> &'static str {
        word(PHASES, self.decision.phase)
    }

    #[setter]
    fn set_phase(&mut self, value: &str) -> PyResult<()> {
        self.decision.phase = meaning("phase", PHASES, value)?;
        Ok(())
    }

    /// When `on_wakeup` is called, if ever. It is `None` again when that happens.
    #[getter]
    fn wakeup_s(&self) -> Option<f64> {
        self.decision.wakeup.map(Time::as_secs_f64)
    }

    #[setter]
    fn set_wakeup_s(&mut self, value: Option<f64>) -> PyResult<()> {
        self.decision.wakeup = value.map(|value| time("wakeup_s", value)).transpose()?;
        Ok(())
    }

    /// When the controller's own no-feedback timer expires. The transport probes no earlier.
    #[getter]
    fn no_feedback_deadline_s(&self) -> Option<f64> {
        self.decision.no_feedback_deadline.map(Time::as_secs_f64)
    }

    #[setter]
    fn set_no_feedback_deadline_s(&mut self, value: Option<f64>) -> PyResult<()> {
        self.decision.no_feedback_deadline = value
            .map(|value| time("no_feedback_deadline_s", value))
            .transpose()?;
        Ok(())
    }

    /// What TCP retransmits after a timeout: everything ("go_back_n"), or the "first_segment".
    #[getter]
    fn timeout_repair(&self) -> &'static str {
        word(REPAIRS, self.decision.timeout_repair)
    }

    #[setter]
    fn set_timeout_repair(&mut self, value: &str) -> PyResult<()> {
        self.decision.timeout_repair = meaning("timeout_repair", REPAIRS, value)?;
        Ok(())
    }

    /// The capacity of the bottleneck, where the controller estimates it: for reports.
    #[getter]
    fn capacity_bps(&self) -> Option<u64> {
        self.capacity.map(Rate::as_bps)
    }

    #[setter]
    fn set_capacity_bps(&mut self, value: Option<f64>) -> PyResult<()> {
        self.capacity = value.map(|value| rate("capacity_bps", value)).transpose()?;
        Ok(())
    }
}

const PHASES: &[(&str, Phase)] = &[
    ("slow_start", Phase::SlowStart),
    ("congestion_avoidance", Phase::CongestionAvoidance),
    ("steady", Phase::Steady),
    ("probing", Phase::Probing),
];

const REPAIRS: &[(&str, TimeoutRepair)] = &[
    ("go_back_n", TimeoutRepair::GoBackN),
    ("first_segment", TimeoutRepair::FirstSegment),
];

fn word<T: PartialEq>(words: &[(&'static str, T)], meaning: T) -> &'static str {
    let found = words.iter().find(|(_, known)| *known == meaning);
    found.map_or("", |(word, _)| word)
}

fn meaning<T: Copy>(name: &str, words: &[(&str, T)], word: &str) -> PyResult<T> {
    let found = words.iter().find(|(known, _)| *known == word);
    found.map(|(_, meaning)| *meaning).ok_or_else(|| {
        let known: Vec<_> = words.iter().map(|(known, _)| *known).collect();
        let known = known.join("\", \"");
        refused(
            name,
            format_args!("{word:?}"),
            &format!("one of \"{known}\""),
        )
    })
}

fn refused(name: &str, value: impl std::fmt::Display, expected: &str) -> PyErr {
    PyValueError::new_err(format!("{name} is {value}; expected {expected}"))
}

/// Whole bytes; infinity is no limit.
fn bytes(name: &str, value: f64) -> PyResult<DataSize> {
    if value >= 0.0 {
        // A cast of a larger number is that of the largest.
        return Ok(DataSize::new(value as u64));
    }
    Err(refused(name, value, "a number of bytes from 0"))
}

fn rate(name: &str, value: f64) -> PyResult<Rate> {
    if value >= 1.0 {
        return Ok(Rate::from_bps(value as u64));
    }
    Err(refused(name, value, "a rate from 1 bit/s"))
}

/// The point in time, to the nanosecond; infinity is never.
pub(crate) fn time(name: &str, value: f64) -> PyResult<Time> {
    if value >= 0.0 {
        return Ok(Time::from_nanos((value * 1e9).round() as u64));
    }
    Err(refused(name, value, "a number of seconds from 0"))
}
