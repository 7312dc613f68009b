"""Pictures read back: names are the table's own, only numbers are joined, nothing is cut."""

import itertools
import math
import re
import warnings

import comity
import pytest
from comity import plot
from comity.plot import _style
from conftest import DICT
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.lines import Line2D
from matplotlib.text import Text

#: What a reader calls the controllers of a scenario.
NAMES = {"libra": "TCP Libra", "reno": "TCP Reno", "cubic": "CUBIC"}
LONG = "a.name.of-sixty-three-letters-for-which-a-legend-finds-its-room"
CONTROLLERS = {"parameter": "flow.*.controller", "values": list(NAMES)}
ONE = {"parameter": "flow.other.controller", "values": list(NAMES)}
QUEUES = {"parameter": "topology.bottleneck.queue", "values": [40, 10, 20]}
DELAYS = {"parameter": "topology.bottleneck.delay", "values": ["80ms", "5ms", "0.02s"]}
MIXED = {"parameter": "topology.bottleneck.queue", "values": ["8kB", 20]}
OF_A_RUN = ["cwnd", "throughput", "delay", "jain"]
OF_A_SWEEP = ["shares", "fairness"]


def flows(*groups, controller="reno", count=2):
    start = {"spread": "200ms"}
    return [
        {"group": it, "controller": controller, "count": count, "start": start} for it in groups
    ]


def simulated(flow, *sweep, seeds=None):
    scenario = {**DICT["scenario"], "duration": "4s", "warmup": "1s", "bins": "500ms"}
    of = {**DICT, "scenario": scenario, "flow": flow, "sweep": list(sweep)}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return comity.run(of, seeds=seeds)


TWO = flows("near", "far")
LIBRA = flows("libra", controller="libra", count=1)
TWELVE = [it for number in range(12) for it in flows(f"group-{number}", count=1 + number % 2)]
SWEEPS = {
    "controllers": lambda: simulated(TWO, CONTROLLERS),
    "one controller": lambda: simulated([*flows("other", "reno"), *LIBRA], ONE, seeds=1),
    "queues": lambda: simulated([*TWO, *LIBRA], QUEUES),
    "delays": lambda: simulated(TWO, DELAYS, seeds=1),
    "mixed": lambda: simulated([*flows("near"), *LIBRA], MIXED),
    "two axes": lambda: simulated(TWO, CONTROLLERS, DELAYS, seeds=1),
    "two categories": lambda: simulated(TWO, MIXED, CONTROLLERS, seeds=1),
    "twelve groups": lambda: simulated(TWELVE, QUEUES, seeds=1),
    "twelve categories": lambda: simulated(TWELVE, CONTROLLERS, seeds=1),
    "long names": lambda: simulated(flows(LONG, f"_{LONG}", "x"), CONTROLLERS),
    "long bars": lambda: simulated([*flows(LONG, *"abcdef"), *LIBRA]),
}
AXES = {
    "queues": QUEUES, "delays": DELAYS, "mixed": MIXED, "controllers": CONTROLLERS,
    "one controller": ONE, "twelve groups": QUEUES, "twelve categories": CONTROLLERS,
    "long names": CONTROLLERS,
}  # fmt: skip
ARE_NUMBERS = ["queues", "delays", "twelve groups", "two axes"]
_made = {}


@pytest.fixture(params=SWEEPS)
def sweep(request):
    """A sweep and its results, which are made once."""
    if request.param not in _made:
        _made[request.param] = SWEEPS[request.param]()
    return request.param, _made[request.param]


def drawn(figure):
    FigureCanvasAgg(figure).draw()
    return figure


def legend(figure):
    """The texts of the legends, without the breaks of lines."""
    legends = [*figure.legends, *(ax.get_legend() for ax in figure.axes)]
    return [squeezed(text.get_text()) for it in legends if it for text in it.get_texts()]


def squeezed(text):
    """Where a line is broken, a blank may be lost."""
    return re.sub(r"\s", "", text)


def data_lines(figure):
    """The lines with a marker, which are those of data."""
    lines = [line for ax in figure.axes for line in ax.get_lines()]
    return [line for line in lines if line.get_marker() not in ("None", "", "|", "_", 2, 3)]


def faults(figure):
    """What leaves the picture, is cut at the edge of its panel, or lies on another text."""
    renderer = drawn(figure).canvas.get_renderer()
    found = []
    # An axes counts its labels, and of its ticks those that are drawn.
    parts = [*figure.texts, *figure.legends, figure._suptitle, *figure.axes]
    parts += [it for ax in figure.axes for it in (*ax.texts, *ax.get_lines())]
    for part in parts:
        box = part.get_tightbbox(renderer)
        inside = box is None or figure.bbox.padded(1).count_contains(box.corners()) == 4
        # A line without a point has no place.
        if not inside and all(map(math.isfinite, box.extents)):
            found.append(f"{part} leaves the picture")
    for line in data_lines(figure):
        ax = line.axes
        points = ax.transData.transform(line.get_xydata()[line_marks(line)])
        reach = line.get_markersize() / 2 * figure.dpi / 72
        inside = ax.bbox.padded(1 - reach)
        known = [it for it in points if math.isfinite(it[0]) and math.isfinite(it[1])]
        if line.get_clip_on() and any(not inside.contains(*point) for point in known):
            found.append(f"a marker of {line} is cut")
    texts = [figure._suptitle]
    texts += [it for ax in figure.axes for it in (ax.title, ax.xaxis.label, ax.yaxis.label)]
    texts += [figure._supxlabel, figure._supylabel]
    boxes = [
        (it.get_text(), it.get_window_extent(renderer)) for it in texts if it and it.get_text()
    ]
    boxes += [("the legend", it.get_window_extent(renderer)) for it in figure.legends]
    boxes += [("a panel", ax.bbox) for ax in figure.axes]
    for (one, first), (two, second) in itertools.combinations(boxes, 2):
        if first.padded(-1).overlaps(second.padded(-1)):
            found.append(f"{one} lies on {two}")
    return found


def line_marks(line):
    every = line.get_markevery()
    return every if isinstance(every, list) else slice(None, None, every)


def group_names(results):
    return list(dict.fromkeys(results.flows.arrow()["group"].to_pylist()))


def protocols(results, run=None):
    """The controllers of each group, as the table of flows has them."""
    found = {}
    for row in results.flows.arrow().to_pylist():
        if run in (None, row["run"]):
            found.setdefault(row["group"], set()).add(row["kind"].split("/")[0])
    return found


def names(of):
    """How a legend has to call groups: with the controller, unless they have several, or its
    name is that of the group.
    """
    called = {}
    for group, controllers in of.items():
        (only,) = controllers if len(controllers) == 1 else [None]
        told = only is None or only in group or NAMES[only] in group
        called[group] = squeezed(group if told else f"{group} ({NAMES[only]})")
    return called


@pytest.mark.parametrize("kind", OF_A_RUN)
def test_a_legend_has_the_names_of_its_own_run(kind, sweep):
    _, results = sweep
    groups = results.groups.arrow().to_pylist()
    for run in range(0, len(results), 2):
        of_run = [row for row in groups if row["run"] == run and row["flows"] > 1]
        several = {row["group"] for row in of_run}
        figure = plot.KINDS[kind](results, run=run)
        assert faults(figure) == []
        called = names(protocols(results, run))
        found = legend(figure)
        if kind == "jain":
            # A group that delivers nothing has no index.
            delivering = {row["group"] for row in of_run if row["goodput_bps"] > 0}
            expected = {called[group] for group in delivering} | {"allflows"}
            assert set(found) == expected, f"run {run}"
        elif kind == "delay":
            assert set(found) <= set(called.values()), f"run {run}"
        else:
            for group, name in called.items():
                tail = name[len(squeezed(group)) :]
                begins = {
                    "cwnd": f"cwndof{group}-0{tail}",
                    "throughput": f"{name},mean" if group in several else name,
                }[kind]
                assert any(it.startswith(begins) for it in found), f"run {run}: {begins}: {found}"


@pytest.mark.parametrize("kind", OF_A_SWEEP)
def test_a_sweep_has_the_names_of_its_tables(kind, sweep):
    name, results = sweep
    figure = plot.KINDS[kind](results)
    assert faults(figure) == []
    called = names(protocols(results))
    several = {row["group"] for row in results.groups.arrow().to_pylist() if row["flows"] > 1}
    if kind == "fairness":
        called = {**{group: called[group] for group in several}, "all": "allflows"}
    panels = [squeezed(ax.get_title()) for ax in figure.axes if ax.get_title()]
    if name == "long bars":
        labels = [squeezed(it.get_text()) for it in figure.axes[0].get_xticklabels()]
        assert set(labels) == set(called.values()) and legend(figure) == []
        return
    if name in ("two axes", "two categories") and kind == "fairness":
        assert set(panels) == set(called.values())
        assert legend(figure) == list(NAMES)
    else:
        assert set(legend(figure)) == set(called.values())
    lines = data_lines(figure)
    is_joined = {line.get_linestyle() not in ("None", "", " ") for line in lines}
    assert lines and is_joined == {name in ARE_NUMBERS}
    if name == "two categories":
        assert {squeezed(it.get_text()) for it in figure.axes[0].get_xticklabels()} == {"8kB", "20"}
    elif name not in ARE_NUMBERS:
        labels = [squeezed(it.get_text()) for it in figure.axes[0].get_xticklabels()]
        assert labels == [str(it) for it in AXES[name]["values"]]


def test_a_legend_of_completion_times_counts_the_flows_that_did_not_end():
    def short(group, size, **of):
        (flow,) = flows(group, **of)
        start = {"at": "1s", "spread": "500ms"}
        return {**flow, "start": start, "workload": {"kind": "file", "size": size}}

    # The link carries 750 kB in 3 s: of the large flows, none ends.
    groups = [short("near", "20kB"), short("far", "3kB"), short("large", "1MB", controller="cubic")]
    results = simulated([*groups, *LIBRA], seeds=1)
    figure = plot.completion(results)
    assert faults(figure) == []
    assert set(legend(figure)) == {
        "near(TCPReno),median", "near(TCPReno),95thpercentile",
        "far(TCPReno),median", "far(TCPReno),95thpercentile", "large(CUBIC),2didnotend",
    }  # fmt: skip
    rows = {row["group"]: row for row in results.groups.arrow().to_pylist()}
    assert [rows[it]["unfinished_flows"] for it in ("near", "far", "large")] == [0, 0, 2]
    assert rows["libra"]["unfinished_flows"] is None


@pytest.mark.parametrize("value", ["mean_throughput_bps", "jain"])
def test_a_heatmap_has_the_names_of_its_tables(value):
    cubic = flows("cubic", controller="cubic", count=1)
    swept = simulated([*TWO, *cubic], {**ONE, "parameter": "flow.near.controller"}, DELAYS, seeds=1)
    figure = plot.heatmap(swept, value=value)
    assert faults(figure) == []
    *panels, bar = figure.axes
    # The index of one flow says nothing.
    groups = ["near", "far(TCPReno)"] + (["cubic"] if value != "jain" else [])
    assert [squeezed(ax.get_title()) for ax in panels] == groups
    assert [it.get_text() for it in panels[0].get_xticklabels()] == list(NAMES)
    assert [it.get_text() for it in panels[0].get_yticklabels()] == DELAYS["values"]


def test_quantities_lie_where_their_numbers_are():
    figure = plot.shares(simulated(TWO, DELAYS, seeds=1))
    assert figure.axes[0].get_xlabel() == "topology.bottleneck.delay (ms)"
    for line in data_lines(figure):
        assert list(line.get_xdata()) == pytest.approx([5, 20, 80])


def test_the_index_that_is_drawn_is_that_of_the_tables():
    results = _made.get("controllers") or SWEEPS["controllers"]()
    figure = plot.fairness(results)
    containers = {it.get_label(): it[0] for it in figure.axes[0].containers}
    tables = {"near": results.groups, "far": results.groups, "all flows": results.runs}
    for name, table in tables.items():
        rows = [
            row for row in table.arrow().to_pylist() if name == "all flows" or row["group"] == name
        ]
        for number, controller in enumerate(NAMES):
            seeds = [it["jain"] for it in rows if it["axis.flow.*.controller"] == controller]
            assert len(seeds) == 2
            drawn_at = containers[name].get_ydata()[number]
            assert drawn_at == pytest.approx(sum(seeds) / 2)
    assert figure.axes[0].get_ylim()[1] > 1


def test_groups_of_one_flow_have_no_index():
    alone = simulated(flows("near", "far", count=1), QUEUES, seeds=1)
    assert legend(plot.fairness(alone)) == ["allflows"]
    with pytest.raises(comity.PlotError, match="at least two"):
        plot.fairness(simulated(flows("near", count=1), QUEUES, seeds=1))
    with pytest.raises(comity.PlotError, match="several flows"):
        plot.heatmap(simulated(LIBRA, QUEUES, DELAYS, seeds=1), value="jain")


def test_a_fault_is_found():
    look = plot._data.Look("near", "#0072B2", "o", "-")
    figure, (ax,) = _style.picture("a title", False)
    _style.curve(ax, look, [0, 1], [0.5, 1.0], "near", markevery=1)
    ax.set_ylim(0, 1)
    assert faults(figure) == []
    ax.plot([0, 1], [0.5, 1.0], marker="o")
    (cut,) = faults(figure)
    assert "is cut" in cut
    figure, (ax,) = _style.picture("a title", False)
    ax.text(1.2, 0.5, "beyond the edge")
    ax.set_xlim(0, 1)
    ax.texts[0].set_in_layout(False)
    (out,) = faults(figure)
    assert "leaves the picture" in out
