//! The results of a run.

use std::path::PathBuf;

use comity_sim::results::store::{StoreError, has_something};
use comity_sim::results::{self, Format, ResultSet, TABLES};
use pyo3::prelude::*;

use crate::errors;
use crate::table::Table;

/// The results of all runs of a scenario.
#[pyclass(frozen, module = "comity._comity")]
pub(crate) struct Results {
    pub(crate) set: ResultSet,
}

#[pymethods]
impl Results {
    fn __len__(&self) -> usize {
        self.set.runs.len()
    }

    /// The name of the scenario.
    #[getter]
    fn name(&self) -> &str {
        &self.set.scenario.name
    }

    /// The text of the scenario.
    #[getter]
    fn text(&self) -> &str {
        &self.set.scenario.text
    }

    /// The names of all tables and what they have a row for.
    #[staticmethod]
    fn tables() -> Vec<(&'static str, &'static str)> {
        TABLES.to_vec()
    }

    /// What a column of a table means.
    #[staticmethod]
    fn meaning(table: &str, column: &str) -> Option<String> {
        results::meaning(table, column)
    }

    /// The table of this name; `None` if the runs have none.
    fn table(&self, py: Python<'_>, name: &str) -> PyResult<Option<Table>> {
        let table = py.detach(|| results::table(&self.set, name));
        table
            .map_err(|error| errors::results(&error))?
            .map(Table::new)
            .transpose()
    }

    /// Stores everything at a path, whose extension says the format. Earlier results there are
    /// replaced with `force` alone.
    fn write(&self, py: Python<'_>, path: PathBuf, force: bool) -> PyResult<()> {
        let write = || {
            if !force && has_something(&path) {
                return Err(StoreError::Exists { path });
            }
            results::write(&self.set, Format::of(&path)?, &path)?;
            Ok(())
        };
        py.detach(write).map_err(|error| errors::store(&error))
    }
}
