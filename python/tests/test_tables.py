"""Tables: zero copies, units, types, and what they are made into."""

import comity
import pandas
import polars
import pyarrow
import pytest
from conftest import DICT, TEXT, VIDEO


@pytest.fixture(scope="module")
def results():
    return comity.run(TEXT, packets=True)


def test_every_table_has_axes_seed_and_documented_columns(results):
    names = [table.name for table in results]
    known = [name for name, _ in comity._comity.Results.tables()]
    assert names == [name for name in known if name != "sections"]
    for table in results:
        assert {"run", "axis.topology.bottleneck.queue", "seed"} <= set(table.columns)
        schema = pyarrow.schema(table)
        assert schema.names == table.columns
        for field in schema:
            assert field.metadata[b"unit"].decode() == table.units[field.name] != ""
            assert field.metadata[b"meaning"].decode() == table.meanings[field.name] != ""
            assert not pyarrow.types.is_unsigned_integer(field.type)
        for column in table.arrow().columns:
            assert column.null_count < len(column) or len(table) == 0
    assert results.flows.units["goodput_bps"] == "bit/s"
    assert not any(name.startswith("sections_") for name in results.flows.columns)


def test_differences_of_counts_are_negative(results):
    frame = results.flows.polars()
    lost = frame.select(polars.col("received_packets") - polars.col("sent_packets"))
    assert lost.to_series().min() < 0


def test_a_million_rows_cross_without_a_copy():
    results = comity.run(
        TEXT,
        seeds=1,
        packets=True,
        set={"scenario.duration": "400s", "topology.bottleneck.rate": "10Mbps", "sweep": []},
    )
    table = results.packets
    assert len(table) > 1_000_000
    arrow, frame, pandas_frame = table.arrow(), table.polars(), table.pandas()
    for name in ("offered_ns", "arrival_ns", "sequence"):
        ours = table._source.address(name)
        chunk = arrow[name].chunk(0)
        assert chunk.buffers()[1].address == ours
        assert frame[name].to_arrow().buffers()[1].address == ours
        shared = pandas_frame[name].array.__arrow_array__().chunk(0)
        assert shared.buffers()[1].address == ours
    # The rows outlive what they were made from.
    expected = arrow["sequence"].to_pylist()[:1000]
    del results, table, arrow, pandas_frame
    assert frame["sequence"].to_list()[:1000] == expected


def test_data_frames_hold_the_same(results):
    for table in results:
        rows = table.arrow().to_pylist()
        assert table.polars().to_dicts() == rows
        frame = table.pandas()
        assert list(frame.columns) == table.columns and len(frame) == len(rows)
    frame = results.groups.pandas()
    means = frame.groupby(["axis.topology.bottleneck.queue", "group"])["goodput_bps"].mean()
    assert isinstance(means, pandas.Series) and len(means) == 4
    assert frame["goodput_bps"].to_numpy(dtype=float).sum() > 0


def test_a_distribution_function_is_one_line(results):
    histogram = results.delay_histogram.polars().filter(run=0, flow="libra-0")
    share = histogram["cumulative_share"]
    assert share.is_sorted() and share[-1] == 1.0
    flows = results.flows.polars().filter(run=0, flow="libra-0")
    assert histogram["count"].sum() == flows["delay_count"][0]
    median = histogram.filter(polars.col("cumulative_share") >= 0.5)["to_s"][0]
    assert median == pytest.approx(flows["delay_median_s"][0], rel=0.02)


def test_sections_are_those_that_flows_count():
    results = comity.run(VIDEO, seeds=1, packets=True)
    flows = {row["group"]: row for row in results.flows.arrow().to_pylist()}
    sections = results.sections.polars()
    assert sections["section_bytes"].min() > 0
    for group, names in {
        "video": {"on_time": "sections_on_time", "late": "sections_late"},
        "timeline": {"on_time": "timeline_in_time", "late": "timeline_late", "gap": "timeline_broken"},
    }.items():
        mine = sections.filter(flow=f"{group}-0")
        for outcome, column in names.items():
            assert len(mine.filter(outcome=outcome)) == flows[group][column], (group, outcome)
        assert len(mine) > 20
    assert len(sections.filter(flow="video-0", outcome="gap")) > 0
    known = sections.filter(polars.col("slack_s").is_not_null())
    assert (known["outcome"] == "on_time").equals(known["slack_s"] >= 0)
    left = (known["deadline_ns"] - known["completed_ns"]) / 1e9
    assert (left - known["slack_s"]).abs().max() < 1e-9


def test_a_missing_table_says_what_it_needs():
    results = comity.run(TEXT, seeds=1, set={"scenario.duration": "3s"})
    with pytest.raises(AttributeError, match="if packets were requested"):
        results.packets
    with pytest.raises(AttributeError, match="no table `flwos`; expected `runs`"):
        results.flwos
    assert "packets" not in results and "flows" in results


@pytest.mark.parametrize("ending", ["", ".csv", ".json"])
def test_stored_results_are_read_as_they_were(results, tmp_path, ending):
    path = tmp_path / f"stored{ending}"
    results.write(path)
    stored = comity.read(path)
    assert (stored.name, stored.text, len(stored)) == (results.name, TEXT, 4)
    for ours, theirs in zip(results, stored):
        assert (ours.name, ours.units, ours.meanings) == (theirs.name, theirs.units, theirs.meanings)
        expected = ours.arrow().to_pylist()
        if ending == ".csv":
            # CSV has no types: a text of digits comes back as a number.
            expected = [{k: str(v) for k, v in row.items()} for row in expected if ours.name == "groups"]
            got = [{k: str(v) for k, v in row.items()} for row in theirs.arrow().to_pylist() if ours.name == "groups"]
            assert got == expected
        else:
            assert theirs.arrow().to_pylist() == expected
    with pytest.raises(comity.ResultsError, match="exists; expected a new path, or force=True"):
        results.write(path)
    results.write(path, force=True)
    with pytest.raises(comity.ResultsError, match="stored already"):
        stored.write(path)


def test_a_json_file_that_is_none_of_ours_is_refused(tmp_path):
    (tmp_path / "other.json").write_text('{"metadata": {}}')
    with pytest.raises(comity.ResultsError, match="other.json holds no results: KeyError"):
        comity.read(tmp_path / "other.json")


def test_results_go_nowhere_else(results, tmp_path):
    with pytest.raises(comity.ResultsError, match="expected a folder with runs.parquet"):
        comity.read(tmp_path)
    (tmp_path / "precious.txt").write_text("x")
    with pytest.raises(comity.ResultsError, match="found .*precious.txt") as caught:
        results.write(tmp_path, force=True)
    assert isinstance(caught.value, OSError) and isinstance(caught.value, comity.Error)
    with pytest.raises(comity.ResultsError, match="existing directory"):
        results.write(tmp_path / "no" / "such" / "folder")


def cells(html):
    """The heading and the rows of a table in HTML, as texts."""
    import xml.etree.ElementTree as tree

    # Well-formed, so whatever stands in it is escaped.
    document = tree.fromstring(f"<body>{html.replace('<br>', '<br/>')}</body>")
    rows = [["|".join(cell.itertext()) for cell in row] for row in document.iter("tr")]
    return rows[0], rows[1:], document.find("p").text


def test_a_notebook_shows_a_table_with_units():
    results = comity.run(DICT, seeds=1)
    heads, rows, below = cells(results.groups._repr_html_())
    names = [head.partition("|")[0] for head in heads]
    hidden = results.groups.columns[len(names) :]
    assert names == results.groups.columns[: len(names)] and "loss_ratio" in hidden
    assert "goodput_bps|bit/s" in heads and "group" in heads
    of = results.groups.arrow().to_pylist()
    assert len(rows) == len(of) == 4
    assert below == f"groups: 4 rows; more columns: {', '.join(hidden)}"
    for row, true in zip(rows, of):
        shown = dict(zip(names, row))
        assert shown["group"] == true["group"]
        assert float(shown["goodput_bps"]) == pytest.approx(true["goodput_bps"], rel=1e-5)
        # One flow compares with nothing.
        assert (shown["jain"] == "") == (true["flows"] == 1)
    assert {true["flows"] for true in of} == {1, 2}
    source = pyarrow.table({"<i>": ["a <b> & 'c'", None]})
    foreign = comity.Table("<p>", source, [("<i>", "&", '"><')])
    assert cells(foreign._repr_html_()) == (["<i>|&"], [["a <b> & 'c'"], [""]], "<p>: 2 rows")


def test_a_notebook_shows_the_beginning_of_a_long_table(results, monkeypatch):
    _, rows, below = cells(results.packets._repr_html_())
    assert len(rows) == 20 and ", the first 20 shown" in below
    heads, rows, below = cells(results.flows._repr_html_())
    assert len(rows) == len(results.flows) == 12 and "shown" not in below
    assert len(heads) == 20 and results.flows.columns[20] in below
    # Without PyArrow, Polars reads the table; without both, its text is shown.
    monkeypatch.setattr(comity.Table, "arrow", missing)
    assert cells(results.flows._repr_html_())[1]
    monkeypatch.setattr(comity.Table, "polars", missing)
    assert results.flows._repr_html_() is None


def missing(self):
    raise ImportError
