//! Tables as named, typed readers of rows. The rows exist only while they are written.

use std::borrow::Cow;

use crate::report::Summary;

/// Reads one value from a row.
pub(super) type Read<'a, R, T> = Box<dyn Fn(&R) -> Option<T> + 'a>;

/// The readers of one column, by its type in files.
pub(super) enum Values<'a, R> {
    Boolean(Read<'a, R, bool>),
    Integer(Read<'a, R, i64>),
    Number(Read<'a, R, f64>),
    Text(Read<'a, R, Cow<'a, str>>),
    Unsigned(Read<'a, R, u64>),
}

/// One column of a table.
pub(super) struct Column<'a, R> {
    pub(super) name: Cow<'static, str>,
    /// Whether some row may have no value.
    pub(super) is_optional: bool,
    /// Whether it counts things that only some scenarios have. Then a column of zeros is left out.
    pub(super) is_of_some: bool,
    pub(super) values: Values<'a, R>,
}

/// Reads one of the numbers of a summary.
type Field = fn(&Summary) -> f64;

/// The columns of a table, added one by one.
pub(super) struct Columns<'a, R>(pub(super) Vec<Column<'a, R>>);

impl<'a, R> Columns<'a, R> {
    pub(super) fn new() -> Self {
        Self(Vec::new())
    }

    pub(super) fn text(self, name: &'static str, read: impl Fn(&R) -> Cow<'a, str> + 'a) -> Self {
        self.always(
            name.into(),
            Values::Text(Box::new(move |row| Some(read(row)))),
        )
    }

    pub(super) fn unsigned(
        self,
        name: impl Into<Cow<'static, str>>,
        read: impl Fn(&R) -> u64 + 'a,
    ) -> Self {
        self.always(
            name.into(),
            Values::Unsigned(Box::new(move |row| Some(read(row)))),
        )
    }

    pub(super) fn number(self, name: &'static str, read: impl Fn(&R) -> f64 + 'a) -> Self {
        self.always(
            name.into(),
            Values::Number(Box::new(move |row| Some(read(row)))),
        )
    }

    pub(super) fn maybe_unsigned(
        self,
        name: &'static str,
        read: impl Fn(&R) -> Option<u64> + 'a,
    ) -> Self {
        self.maybe(name.into(), Values::Unsigned(Box::new(read)))
    }

    pub(super) fn maybe_number(
        self,
        name: impl Into<Cow<'static, str>>,
        read: impl Fn(&R) -> Option<f64> + 'a,
    ) -> Self {
        self.maybe(name.into(), Values::Number(Box::new(read)))
    }

    /// Adds the columns of a summary: its count, and the values that exist only if the count is
    /// above zero.
    pub(super) fn summary(self, prefix: &str, of: impl Fn(&R) -> Summary + Copy + 'a) -> Self {
        let fields: [(&str, Field); 7] = [
            ("mean_s", |summary| summary.mean),
            ("stddev_s", |summary| summary.stddev),
            ("min_s", |summary| summary.min),
            ("max_s", |summary| summary.max),
            ("median_s", |summary| summary.median),
            ("p95_s", |summary| summary.p95),
            ("p99_s", |summary| summary.p99),
        ];
        let count = self.count_of_some(format!("{prefix}_count"), move |row| of(row).count);
        fields.into_iter().fold(count, |columns, (name, field)| {
            columns.maybe_number(format!("{prefix}_{name}"), move |row| {
                let summary = of(row);
                (summary.count > 0).then(|| field(&summary))
            })
        })
    }

    /// Adds a count of things that only some scenarios have.
    pub(super) fn count_of_some(
        self,
        name: impl Into<Cow<'static, str>>,
        read: impl Fn(&R) -> u64 + 'a,
    ) -> Self {
        let mut columns = self.unsigned(name, read);
        if let Some(last) = columns.0.last_mut() {
            last.is_of_some = true;
        }
        columns
    }

    pub(super) fn maybe(mut self, name: Cow<'static, str>, values: Values<'a, R>) -> Self {
        self.0.push(Column {
            name,
            is_optional: true,
            is_of_some: false,
            values,
        });
        self
    }

    fn always(mut self, name: Cow<'static, str>, values: Values<'a, R>) -> Self {
        self.0.push(Column {
            name,
            is_optional: false,
            is_of_some: false,
            values,
        });
        self
    }
}

impl<'a, R> Column<'a, R> {
    /// The unit at the end of the name.
    pub(super) fn unit(&self) -> &'static str {
        const UNITS: [(&str, &str); 5] = [
            ("_bps", "bit/s"),
            ("_bytes", "B"),
            ("_ns", "ns"),
            ("_s", "s"),
            ("_packets", "packets"),
        ];
        if self.name.starts_with(AXIS) {
            return "as in the scenario";
        }
        UNITS
            .iter()
            .find(|(end, _)| self.name.ends_with(end))
            .map_or("1", |(_, unit)| unit)
    }

    /// Whether a table may leave it out if no row fills it.
    pub(super) const fn may_be_empty(&self) -> bool {
        self.is_optional || self.is_of_some
    }

    /// Whether this value of a row fills it.
    pub(super) fn is_filled_by(&self, cell: &Cell<'_>) -> bool {
        match cell {
            Cell::Missing => false,
            Cell::Unsigned(0) => !self.is_of_some,
            _ => true,
        }
    }

    /// The value in a row.
    pub(super) fn cell(&self, row: &R) -> Cell<'a> {
        match &self.values {
            Values::Boolean(read) => read(row).map_or(Cell::Missing, Cell::Boolean),
            Values::Integer(read) => read(row).map_or(Cell::Missing, Cell::Integer),
            Values::Number(read) => read(row).map_or(Cell::Missing, Cell::Number),
            Values::Text(read) => read(row).map_or(Cell::Missing, Cell::Text),
            Values::Unsigned(read) => read(row).map_or(Cell::Missing, Cell::Unsigned),
        }
    }
}

/// The prefix of the names of axis columns.
pub(super) const AXIS: &str = "axis.";

/// One value.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Cell<'a> {
    Boolean(bool),
    Integer(i64),
    Missing,
    Number(f64),
    Text(Cow<'a, str>),
    Unsigned(u64),
}

/// A count as tables store it. It is signed, because readers subtract counts, and a difference of
/// unsigned ones wraps. A count beyond the range becomes the largest number.
pub(super) fn signed(count: u64) -> i64 {
    i64::try_from(count).unwrap_or(i64::MAX)
}

/// A table that is about to be written.
pub(super) struct Table<'a, R> {
    pub(super) name: &'static str,
    pub(super) columns: Columns<'a, R>,
    pub(super) rows: Box<dyn Iterator<Item = R> + 'a>,
}

/// An operation on each table in turn.
pub(super) trait Visitor {
    type Error;

    fn visit<R>(&mut self, table: Table<'_, R>) -> Result<(), Self::Error>;

    /// Visits the table that `make` makes.
    fn table<'a, R>(&mut self, make: impl Fn() -> Table<'a, R>) -> Result<(), Self::Error> {
        self.visit(make())
    }
}

/// Shows a visitor only the columns that some row fills.
pub(super) struct Filled<'v, V>(pub(super) &'v mut V);

impl<V: Visitor> Visitor for Filled<'_, V> {
    type Error = V::Error;

    fn visit<R>(&mut self, table: Table<'_, R>) -> Result<(), V::Error> {
        self.0.visit(table)
    }

    fn table<'a, R>(&mut self, make: impl Fn() -> Table<'a, R>) -> Result<(), V::Error> {
        // Rows can be read only once, so the table is made twice.
        let Table { columns, rows, .. } = make();
        let mut filled: Vec<bool> = columns.0.iter().map(|it| !it.may_be_empty()).collect();
        for row in rows {
            for (column, filled) in columns.0.iter().zip(&mut filled) {
                *filled = *filled || column.is_filled_by(&column.cell(&row));
            }
            if filled.iter().all(|filled| *filled) {
                break;
            }
        }
        let mut table = make();
        let mut filled = filled.into_iter();
        table.columns.0.retain(|_| filled.next().unwrap_or(true));
        self.0.visit(table)
    }
}
