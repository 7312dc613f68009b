//! A controller of Python as one of the simulator.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use comity_congestion::table::{self, Parameters, Value, nearest};
use comity_congestion::{Controller as Plug, Decision, Event, Needs};
use comity_sim::{CustomController, CustomControllers};
use comity_units::Rate;
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyTuple};

use super::decision::{Controller, Setup};
use super::events::{Ack, Idle, InOrderAck, Loss, PacketAcked, PacketLost, Sent, Timeout};

/// The classes of controllers, by the names that scenarios call them.
pub(crate) type Controllers = BTreeMap<String, Py<PyAny>>;

/// The controllers of one run, and the exception that ended it.
#[derive(Clone)]
pub(crate) struct Run {
    classes: Arc<Controllers>,
    failure: Arc<Failure>,
}

/// The first exception of a run.
#[derive(Debug, Default)]
struct Failure {
    has_happened: AtomicBool,
    exception: Mutex<Option<PyErr>>,
}

impl Failure {
    fn set(&self, exception: PyErr) {
        let mut first = self
            .exception
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        first.get_or_insert(exception);
        self.has_happened.store(true, Ordering::Relaxed);
    }

    fn has_happened(&self) -> bool {
        self.has_happened.load(Ordering::Relaxed)
    }
}

impl Run {
    pub(crate) fn new(classes: &Arc<Controllers>) -> Self {
        Self {
            classes: Arc::clone(classes),
            failure: Arc::default(),
        }
    }

    /// The exception that ended the run, if one did.
    pub(crate) fn take_exception(&self) -> Option<PyErr> {
        let exception = &self.failure.exception;
        exception
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .take()
    }
}

impl CustomControllers for Run {
    fn build(
        &self,
        name: &str,
        setup: &table::Setup,
        parameters: &Parameters,
    ) -> Option<CustomController> {
        let class = self.classes.get(name)?;
        let built = Python::attach(|py| {
            let failure = Arc::clone(&self.failure);
            PythonController::new(class.bind(py), setup, parameters, failure)
        });
        Some(match built {
            Ok(controller) => Ok(Box::new(controller)),
            Err(exception) => {
                let reason = exception.to_string();
                self.failure.set(exception);
                Err(reason)
            }
        })
    }

    fn has_failed(&self) -> bool {
        self.failure.has_happened()
    }
}

/// The methods that take events, in the order of [`index`].
const METHODS: [&str; 13] = [
    "on_sent",
    "on_ack",
    "on_in_order_ack",
    "on_packet_acked",
    "on_packet_lost",
    "on_loss",
    "on_recovered",
    "on_deflated",
    "on_timeout",
    "on_spurious_loss",
    "on_wakeup",
    "on_idle",
    "on_app_limited",
];

/// The method of an event. A controller without a receiver's half gets no feedback, and no path
/// changes in the simulator.
const fn index(event: &Event<'_>) -> Option<usize> {
    Some(match event {
        Event::Sent(_) => 0,
        Event::Ack(_) => 1,
        Event::InOrderAck(_) => 2,
        Event::PacketAcked { .. } => 3,
        Event::PacketLost { .. } => 4,
        Event::Loss(_) => 5,
        Event::Recovered => 6,
        Event::Deflated(_) => 7,
        Event::Timeout(_) => 8,
        Event::SpuriousLoss { .. } => 9,
        Event::Wakeup(_) => 10,
        Event::Idle(_) => 11,
        Event::AppLimited => 12,
        Event::Feedback(_) | Event::PathChange(_) => return None,
    })
}

/// The arguments of the method of an event.
fn arguments<'py>(py: Python<'py>, event: Event<'_>) -> PyResult<Bound<'py, PyTuple>> {
    match event {
        Event::Sent(sent) => (Sent::from(sent),).into_pyobject(py),
        Event::Ack(ack) => (Ack::new(py, ack)?,).into_pyobject(py),
        Event::InOrderAck(ack) => (InOrderAck::from(ack),).into_pyobject(py),
        Event::PacketAcked {
            now,
            number,
            arrived_at,
        } => (PacketAcked::new(now, number, arrived_at),).into_pyobject(py),
        Event::PacketLost { now, loss } => (PacketLost::new(now, loss),).into_pyobject(py),
        Event::Loss(loss) => (Loss::from(loss),).into_pyobject(py),
        Event::Deflated(amount) => (amount.get(),).into_pyobject(py),
        Event::Timeout(timeout) => (Timeout::from(timeout),).into_pyobject(py),
        Event::SpuriousLoss { now } | Event::Wakeup(now) => (now.as_secs_f64(),).into_pyobject(py),
        Event::Idle(idle) => (Idle::from(idle),).into_pyobject(py),
        Event::Recovered | Event::AppLimited | Event::Feedback(_) | Event::PathChange(_) => {
            Ok(PyTuple::empty(py))
        }
    }
}

/// An object of Python that takes the events of one flow.
#[derive(Debug)]
struct PythonController {
    object: Py<Controller>,
    methods: [Option<Py<PyAny>>; METHODS.len()],
    needs: Needs,
    /// The decision of the object after the last event.
    decision: Decision,
    capacity: Option<Rate>,
    failure: Arc<Failure>,
}

impl PythonController {
    fn new(
        class: &Bound<'_, PyAny>,
        setup: &table::Setup,
        parameters: &Parameters,
        failure: Arc<Failure>,
    ) -> PyResult<Self> {
        let py = class.py();
        let keywords = PyDict::new(py);
        for (name, value) in parameters.iter() {
            match value {
                Value::Number(number) => keywords.set_item(name, number)?,
                Value::Flag(flag) => keywords.set_item(name, flag)?,
                other => keywords.set_item(name, other.to_string())?,
            }
        }
        let made = class.call((Setup::from(setup),), Some(&keywords))?;
        let object = made.cast_into::<Controller>().map_err(|error| {
            let made = error.into_inner();
            PyTypeError::new_err(format!(
                "{} made a {}; expected a comity.Controller",
                class,
                made.get_type()
            ))
        })?;
        check_names(object.as_any())?;
        let mut methods = [const { None }; METHODS.len()];
        for (method, name) in methods.iter_mut().zip(METHODS) {
            *method = object.getattr_opt(name)?.map(Bound::unbind);
        }
        let [_, _, in_order_ack, packet_acked, packet_lost, ..] = &methods;
        let needs = Needs {
            rate_samples: packet_lost.is_some() || flag(object.as_any(), "needs_rate_samples")?,
            in_order_acks: in_order_ack.is_some(),
            packet_numbers: packet_acked.is_some(),
            ..Needs::default()
        };
        let (decision, capacity) = (object.borrow().decision, object.borrow().capacity());
        Ok(Self {
            object: object.unbind(),
            methods,
            needs,
            decision,
            capacity,
            failure,
        })
    }

    /// Calls the method of an event, and reads the decision.
    fn report(&mut self, py: Python<'_>, method: usize, event: Event<'_>) -> PyResult<()> {
        let object = self.object.bind(py);
        if let Event::Wakeup(_) = event {
            object.borrow_mut().use_up_wakeup();
        }
        if let Some(Some(method)) = self.methods.get(method) {
            method.bind(py).call1(arguments(py, event)?)?;
        }
        let object = object.borrow();
        if let (Event::Wakeup(now), Some(next)) = (event, object.decision.wakeup)
            && next <= now
        {
            return Err(PyValueError::new_err(format!(
                "wakeup_s is {} after the wake-up at {}; expected a later time, or None",
                next.as_secs_f64(),
                now.as_secs_f64()
            )));
        }
        self.decision = object.decision;
        self.capacity = object.capacity();
        Ok(())
    }
}

/// Refuses methods that look like those of events, but are not.
fn check_names(object: &Bound<'_, PyAny>) -> PyResult<()> {
    for name in object.dir()? {
        let name: String = name.extract()?;
        if name.starts_with("on_") && !METHODS.contains(&&*name) {
            let expected = match nearest(&name, METHODS) {
                Some(nearest) => format!("did you mean `{nearest}`?"),
                None => format!("expected one of {}", METHODS.join(", ")),
            };
            let class = object.get_type().name()?;
            return Err(PyTypeError::new_err(format!(
                "{class} has `{name}`, but there is no such event; {expected}"
            )));
        }
    }
    Ok(())
}

fn flag(object: &Bound<'_, PyAny>, name: &str) -> PyResult<bool> {
    object
        .getattr_opt(name)?
        .map_or(Ok(false), |value| value.extract())
}

impl Plug for PythonController {
    fn on_event(&mut self, event: Event<'_>) {
        let Some(method) = index(&event) else {
            return;
        };
        let is_handled = self.methods.get(method).is_some_and(Option::is_some);
        let is_needed = is_handled || matches!(event, Event::Wakeup(_));
        if !is_needed || self.failure.has_happened() {
            return;
        }
        if let Err(exception) = Python::attach(|py| self.report(py, method, event)) {
            self.failure.set(exception);
            // No wake-up may hold the time of a run that is about to end.
            self.decision.wakeup = None;
        }
    }

    fn decision(&self) -> Decision {
        self.decision
    }

    fn needs(&self) -> Needs {
        self.needs
    }

    fn capacity(&self) -> Option<Rate> {
        self.capacity
    }
}
