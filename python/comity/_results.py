"""Results as tables."""

from __future__ import annotations

import html
import json
import os
import typing
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

from . import _comity
from .errors import ResultsError

if typing.TYPE_CHECKING:
    import pandas
    import polars
    import pyarrow


#: The columns that compare the flows of a group with each other.
AMONG_FLOWS = ("jain", "f_best", "f_worst", "max_min_ratio")
#: How many rows and columns a notebook shows.
_SHOWN = 20
_LOOK = "text-align: right; white-space: nowrap"


class Table:
    """A table that other libraries share without a copy, through the Arrow PyCapsule interface.

    `polars.DataFrame(table)`, `pyarrow.table(table)`, DuckDB and others accept it directly. It has
    the columns in which some row has a value. Counts are signed. `units` and `meanings` describe
    the columns, and so does the metadata of the Arrow fields.
    """

    def __init__(self, name: str, source: typing.Any, columns: list[tuple[str, str, str]]) -> None:
        self._source = source
        self.name = name
        """The name of the table."""
        self.units: Mapping[str, str] = {column: unit for column, unit, _ in columns}
        """The unit of each column."""
        self.meanings: Mapping[str, str] = {column: meaning for column, _, meaning in columns}
        """What each column means."""

    @property
    def columns(self) -> list[str]:
        """The names of the columns."""
        return list(self.units)

    def __len__(self) -> int:
        return len(self._source)

    def __arrow_c_schema__(self) -> object:
        """The schema, for libraries that request only the schema."""
        return self._source.__arrow_c_schema__()

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        """The rows, for libraries that accept Arrow streams."""
        return self._source.__arrow_c_stream__(requested_schema)

    def polars(self) -> polars.DataFrame:
        """The table as a Polars data frame. Numbers are shared; Polars copies texts."""
        import polars

        return polars.DataFrame(self)

    def arrow(self) -> pyarrow.Table:
        """The table as a PyArrow table, shared."""
        import pyarrow

        return pyarrow.table(self)

    def pandas(self) -> pandas.DataFrame:
        """The table as a pandas data frame with columns of Arrow types, shared."""
        import pandas

        return self.arrow().to_pandas(types_mapper=pandas.ArrowDtype)

    def __repr__(self) -> str:
        columns = ", ".join(self.columns[:8]) + (", ..." if len(self.columns) > 8 else "")
        return f"<comity.Table {self.name}: {len(self)} rows; {columns}>"

    def _repr_html_(self) -> str | None:
        """The first rows and columns, for notebooks; `None` without a library to read them."""
        names = self.columns[:_SHOWN]
        rows = self._first(_SHOWN)
        if rows is None:
            return None
        text = html.escape
        heads = "".join(
            f'<th title="{text(self.meanings[name])}">{text(name)}'
            f"<br><small>{text(_unit(name, self.units[name]))}</small></th>"
            for name in names
        )
        lines = "".join(
            f"<tr>{''.join(f'<td>{text(_cell(row, name))}</td>' for name in names)}</tr>"
            for row in rows
        )
        said = f"{text(self.name)}: {len(self):,} row{'' if len(self) == 1 else 's'}"
        said += f", the first {_SHOWN} shown" if len(self) > _SHOWN else ""
        more = ", ".join(self.columns[_SHOWN:])
        said += f"; more columns: {text(more)}" if more else ""
        return (
            f'<div style="overflow-x: auto"><table style="{_LOOK}"><thead><tr>{heads}</tr></thead>'
            f"<tbody>{lines}</tbody></table></div><p>{said}</p>"
        )

    def _first(self, count: int) -> list[dict[str, typing.Any]] | None:
        try:
            return self.arrow().slice(0, count).to_pylist()
        except ImportError:
            pass
        try:
            return self.polars().head(count).to_dicts()
        except ImportError:
            return None


class Results:
    """The results of all runs of a scenario, as tables.

    Each table is made on first access. If the runs do not have it, such as `flow_series` without
    `bins`, the access raises `AttributeError`, which says what is missing.
    """

    runs: Table
    """One row for each run."""
    groups: Table
    """One row for each group of flows in a run."""
    flows: Table
    """One row for each flow of a run."""
    links: Table
    """One row for each link of a run."""
    flow_series: Table
    """One row for each flow and bin, if the scenario sets `bins`."""
    link_series: Table
    """One row for each link and bin, likewise."""
    flow_variation: Table
    """One row for each flow and time scale, likewise."""
    delay_histogram: Table
    """One row for each flow and bin of its one-way delays."""
    queueing_delay_histogram: Table
    """One row for each link and bin of its queueing delays."""
    packets: Table
    """One row for each packet at each link, if `packets` was requested."""

    def __init__(self, native: _comity.Results) -> None:
        self._native = native
        self._rows: dict[str, str] = dict(_comity.Results.tables())

    @property
    def name(self) -> str:
        """The name of the scenario."""
        return self._native.name

    @property
    def text(self) -> str:
        """The text of the scenario, without overrides."""
        return self._native.text

    def _load(self, name: str) -> Table | None:
        table = self._native.table(name)
        return None if table is None else Table(name, table, table.columns())

    def __getattr__(self, name: str) -> Table:
        if name.startswith("_") or name not in self._rows:
            raise AttributeError(f"results have no table `{name}`; expected {_any(self._rows)}")
        table = self._load(name)
        if table is None:
            raise AttributeError(f"these results have no table `{name}`, which has: {self._rows[name]}")
        # Found as an attribute from now on.
        self.__dict__[name] = table
        return table

    def __contains__(self, name: object) -> bool:
        return isinstance(name, str) and name in self._rows and hasattr(self, name)

    def __iter__(self) -> Iterator[Table]:
        """All tables that the runs have."""
        return (getattr(self, name) for name in self._rows if name in self)

    def __len__(self) -> int:
        """The number of runs."""
        return len(self._native)

    def write(self, path: str | os.PathLike[str], *, force: bool = False) -> None:
        """Stores all tables as `comity sim run --out` does: NAME, NAME.csv or NAME.json.

        With `force`, replaces earlier results at the path, and never anything else.

        Raises:
            ResultsError: They cannot be stored. No partial results remain.
        """
        self._native.write(os.fspath(path), force)

    def __repr__(self) -> str:
        return f"<comity.Results {self.name}: {len(self)} runs>"


class StoredResults(Results):
    """Results that were stored as Parquet, CSV or JSON."""

    def __init__(
        self,
        path: Path,
        metadata: Mapping[str, typing.Any],
        find: Callable[[str], pyarrow.Table | None],
    ) -> None:
        self._rows = dict(_comity.Results.tables())
        self._path = path
        self._metadata = metadata
        self._find = find

    @property
    def name(self) -> str:
        """The name of the scenario."""
        return str(self._metadata["scenario_name"])

    @property
    def text(self) -> str:
        """The text of the scenario, without overrides."""
        return str(self._metadata["scenario_text"])

    def _load(self, name: str) -> Table | None:
        table = self._find(name)
        if table is None:
            return None
        stored = (table.schema.metadata or {}).get(b"comity.units")
        units = self._metadata["units"][name] if stored is None else json.loads(stored)
        table = _signed_and_filled(table)
        meanings = _comity.Results.meaning
        columns = [(it, units.get(it, "1"), meanings(name, it) or "") for it in table.column_names]
        return Table(name, table, columns)

    def __len__(self) -> int:
        return len(self.runs)

    def write(self, path: str | os.PathLike[str], *, force: bool = False) -> None:
        raise ResultsError(f"these results are stored already, at {self._path}")


def read(path: str | os.PathLike[str]) -> Results:
    """Reads results that `comity sim run --out NAME` or `Results.write` stored: a folder of
    Parquet or CSV files, or a JSON file. Needs PyArrow.

    Raises:
        ResultsError: There are none at the path.
    """
    place = Path(path)
    if (place / "runs.parquet").exists():
        return _parquet(place)
    if (place / "runs.csv").exists():
        return _csv(place)
    if place.is_file() and place.suffix == ".json":
        return _json(place)
    if Path(f"{place}.runs").is_dir():
        raise ResultsError(
            f"{place} has no tables yet: its runs are stored in {place}.runs; expected a sweep that "
            "has ended, or comity.merge to read its runs"
        )
    raise ResultsError(
        f"{place} holds no results; expected a folder with runs.parquet or runs.csv, or a JSON "
        "file, as `comity sim run --out` stores"
    )


def _parquet(folder: Path) -> Results:
    from pyarrow import parquet

    prefix = b"comity."
    metadata = {
        key[len(prefix) :].decode(): value.decode()
        for key, value in (parquet.read_schema(folder / "runs.parquet").metadata or {}).items()
        if key.startswith(prefix)
    }

    def find(name: str) -> pyarrow.Table | None:
        file = folder / f"{name}.parquet"
        return parquet.read_table(file) if file.exists() else None

    return StoredResults(folder, metadata, find)


def _csv(folder: Path) -> Results:
    from pyarrow import csv

    metadata = json.loads((folder / "metadata.json").read_text(encoding="utf-8"))

    def find(name: str) -> pyarrow.Table | None:
        file = folder / f"{name}.csv"
        return csv.read_csv(file) if file.exists() else None

    return StoredResults(folder, metadata, find)


def _json(file: Path) -> Results:
    import pyarrow

    try:
        document = json.loads(file.read_text(encoding="utf-8"))
        metadata, tables = document["metadata"], document["tables"]
    except (ValueError, TypeError, KeyError) as error:
        raise ResultsError(
            f"{file} holds no results: {error!r}; expected the JSON of `comity sim run --out`"
        ) from error

    def find(name: str) -> pyarrow.Table | None:
        return pyarrow.Table.from_pylist(tables[name]) if name in tables else None

    return StoredResults(file, metadata, find)


def merge(*stores: str | os.PathLike[str], partial: bool = False) -> Results:
    """Reads the runs that several processes or machines stored, as `comity results merge` does.

    Args:
        stores: The `out` of each, or its folder `OUT.runs`.
        partial: Whether runs may be missing, because the sweep still runs or some runs failed.

    Raises:
        ResultsError: There are no runs, the runs belong to different sweeps, or some are missing.
    """
    if not stores:
        raise ResultsError("there is nothing to merge; expected the `out` of one sweep or more")
    native, missing = _comity.merge([os.fspath(store) for store in stores])
    if missing and not partial:
        some = ", ".join(map(str, missing[:12])) + (", ..." if len(missing) > 12 else "")
        raise ResultsError(
            f"{len(missing)} of {len(missing) + len(native)} runs are missing: {some}; expected "
            "all, or partial=True to do without them"
        )
    return Results(native)


def _unit(name: str, unit: str) -> str:
    """A unit in a heading. Counts and names have none, and the values of an axis include theirs."""
    return "" if unit == "1" or name.startswith("axis.") else unit


def _cell(row: Mapping[str, typing.Any], name: str) -> str:
    """A value in six digits or more. It is empty if there is none, or for a group of one flow."""
    value = row[name]
    if value is None or (name in AMONG_FLOWS and row.get("flows") == 1):
        return ""
    if isinstance(value, float):
        return f"{value:.0f}" if 1e6 <= abs(value) < 1e15 else f"{value:.6g}"
    return str(value)


def unfilled(table: str, column: str) -> str | None:
    """Why results have no such column; `None` if it is not a column of the table."""
    meaning = _comity.Results.meaning(table, column)
    return meaning and f"no run fills the column `{column}` of the table `{table}`: {meaning}"


def _signed_and_filled(table: pyarrow.Table) -> pyarrow.Table:
    """The columns with a value in some row, with signed numbers, as a run returns them."""
    import pyarrow

    filled = [
        name
        for name, column in zip(table.column_names, table.columns)
        if len(column) == 0 or column.null_count < len(column)
    ]
    table = table.select(filled)
    signed = [
        field.with_type(pyarrow.int64()) if field.type == pyarrow.uint64() else field
        for field in table.schema
    ]
    return table.cast(pyarrow.schema(signed, metadata=table.schema.metadata))


def _any(names: typing.Iterable[str]) -> str:
    return ", ".join(f"`{name}`" for name in names)
