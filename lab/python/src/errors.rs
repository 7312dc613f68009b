//! Errors as exceptions of `comity.errors`.

use comity_sim::results::WriteError;
use comity_sim::results::store::StoreError;
use comity_sim::scenario::Problems;
use pyo3::prelude::*;
use pyo3::types::PyDict;

mod classes {
    use pyo3::import_exception;

    import_exception!(comity.errors, ResultsError);
    import_exception!(comity.errors, RunError);
    import_exception!(comity.errors, ScenarioError);
}

/// A scenario that cannot be read, with all its problems.
pub(crate) fn scenario(py: Python<'_>, problems: &Problems) -> PyErr {
    let sources = problems.sources();
    let list: PyResult<Vec<Py<PyAny>>> = (|| {
        let class = py.import("comity.errors")?.getattr("Problem")?;
        problems
            .iter()
            .map(|problem| {
                let source = problem.span.and_then(|span| sources.source(span));
                let position = problem.span.and_then(|span| sources.line_and_column(span));
                let fields = PyDict::new(py);
                fields.set_item("message", problem.message())?;
                fields.set_item("expected", problem.expected())?;
                fields.set_item("key", &problem.path)?;
                fields.set_item("value", problem.span.and_then(|span| sources.text(span)))?;
                fields.set_item("file", source.map(|source| &source.name))?;
                fields.set_item("line", position.map(|(line, _)| line))?;
                fields.set_item("column", position.map(|(_, column)| column))?;
                fields.set_item("point", &problem.point)?;
                Ok(class.call((), Some(&fields))?.unbind())
            })
            .collect()
    })();
    match list {
        Ok(list) => classes::ScenarioError::new_err((problems.to_string(), list)),
        Err(error) => error,
    }
}

/// A scenario that can be read, but not run with these arguments.
pub(crate) fn unfit(message: String) -> PyErr {
    classes::ScenarioError::new_err((message,))
}

/// A run that is over and cannot go on.
pub(crate) fn finished() -> PyErr {
    classes::RunError::new_err(("the simulation is finished; expected a new comity.Simulation",))
}

/// Results that cannot be made or stored.
pub(crate) fn results(error: &WriteError) -> PyErr {
    classes::ResultsError::new_err((error.to_string(),))
}

/// Runs that cannot be stored or read.
pub(crate) fn store(error: &StoreError) -> PyErr {
    let remedy = match error.is_refusal_to_replace() {
        true => ", or force=True to replace the results there",
        false => "",
    };
    classes::ResultsError::new_err((format!("{error}{remedy}"),))
}
