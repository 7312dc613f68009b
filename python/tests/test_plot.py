"""Pictures: every kind, on light and dark, with labels and units; colours that can be told apart."""

import itertools

import comity
import matplotlib.image
import numpy
import pytest
from comity import plot
from comity.plot import _style, _time, _transfers
from conftest import DICT, TEXT, VIDEO, command
from matplotlib import colors

@pytest.fixture(scope="module")
def results():
    return comity.run(TEXT, packets=True)


@pytest.fixture(scope="module")
def video():
    return comity.run(VIDEO, seeds=1, packets=True)


@pytest.fixture(scope="module")
def short():
    flow = {
        "group": "short",
        "controller": "cubic",
        "count": 100,
        "start": {"arrivals": "200ms"},
        "workload": {"kind": "file", "size": {"kind": "pareto", "mean": "10kB", "max": "1MB"}},
    }
    return comity.run({**DICT, "sweep": [], "flow": [*DICT["flow"], flow]}, seeds=1)


@pytest.fixture(scope="module")
def grid():
    second = {"parameter": "flow.reno.rwnd", "values": [4, 40]}
    return comity.run({**DICT, "sweep": [*DICT["sweep"], second]}, seeds=1)


def words(figure):
    """All texts of a picture."""
    return " ".join(text.get_text() for text in figure.findobj(lambda it: hasattr(it, "get_text")))


LABELS = {
    "cwnd": ["time (s)", "window (kB)", "cwnd of reno-0", "ssthresh of libra-0"],
    "throughput": ["time (s)", "goodput of a flow (Mb/s), means over", "reno, mean of 2", "libra"],
    "queue": ["time (s)", "longest queue in 1 s (packets)", "bottleneck", "drops"],
    "delay": ["one-way delay (ms)", "share of the data packets", "reno", "libra"],
    "completion": ["size of the flow (kB)", "flow completion time (ms)", "short (CUBIC), median"],
    "sequence": ["time (s)", "stream offset (kB)", "sent", "retransmitted", "dropped"],
    "shares": ["queue (packets)", "throughput of a flow (Mb/s)", "95 % confidence interval of 2 seeds"],
    "fairness": ["queue (packets)", "Jain's index (1 is equal)", "interval of 2 seeds", "reno"],
    "jain": ["time scale (s)", "Jain's index (1 is equal)", "reno", "all flows"],
    "slack": ["deadline of the frame (s)", "time left (ms), late below 0", "video", "TLTCP"],
    "heatmap": ["bottleneck.queue", "flow.reno.rwnd", "mean throughput (Mb/s)", "libra"],
}


@pytest.mark.parametrize("dark", [False, True])
@pytest.mark.parametrize("kind", LABELS)
def test_every_kind_has_labels_with_units_and_a_legend(
    kind, dark, results, grid, video, short, tmp_path
):
    of = {"heatmap": grid, "slack": video, "completion": short}.get(kind, results)
    figure = plot.KINDS[kind](of, dark=dark)
    text = words(figure)
    for label in LABELS[kind]:
        assert label in text, f"{label} is not in {text}"
    back = colors.to_rgb(figure.get_facecolor())
    assert (sum(back) < 1) == dark
    file = tmp_path / "picture.png"
    figure.savefig(file)
    pixels = matplotlib.image.imread(file)[..., :3].reshape(-1, 3)
    assert len(numpy.unique((pixels * 255).astype(int), axis=0)) > 20
    assert figure._repr_png_().startswith(b"\x89PNG")


def test_a_protocol_has_its_colour_in_every_picture(results):
    for kind in ("cwnd", "throughput", "delay", "shares"):
        (ax,) = plot.KINDS[kind](results).axes
        drawn = {colors.to_hex(line.get_color()).upper() for line in ax.get_lines()}
        assert {"#0072B2", "#D55E00"} <= drawn, kind


def test_what_is_drawn_is_what_the_tables_say(results):
    flows = {row["flow"]: row for row in results.flows.arrow().to_pylist() if row["run"] == 0}
    (ax,) = plot.delay(results, only=["libra"]).axes
    (line,) = ax.get_lines()
    x, y = line.get_data()
    median = x[numpy.searchsorted(y, 0.5)] / 1e3
    assert median == pytest.approx(flows["libra-0"]["delay_median_s"], rel=0.02)
    (ax,) = plot.throughput(results, only=["libra"]).axes
    x, y = ax.get_lines()[-1].get_data()
    mean = y[x > 2].mean() * 1e6
    assert mean == pytest.approx(flows["libra-0"]["goodput_bps"], rel=1e-6)
    (ax,) = plot.jain(results).axes
    whole = ax.get_lines()[-1].get_data()[1][-1]
    rates = [row["goodput_bps"] for row in flows.values()]
    assert whole == pytest.approx(sum(rates) ** 2 / 3 / sum(it**2 for it in rates), abs=0.05)
    (ax,) = plot.sequence(results, only=["reno-0"]).axes
    repeated = [it for it in ax.get_lines() if it.get_label() == "retransmitted"]
    number = sum(len(it.get_xdata()) for it in repeated)
    assert number == flows["reno-0"]["retransmitted_packets"]


def test_completion_times_are_those_of_the_tables(results, short):
    points, median, high = plot.completion(short).axes[0].get_lines()
    x, y = points.get_data()
    (row,) = [row for row in short.groups.arrow().to_pylist() if row["group"] == "short"]
    assert len(x) == row["completion_count"] > 20
    assert y.mean() / 1e3 == pytest.approx(row["completion_mean_s"], rel=1e-6)
    flows = [it for it in short.flows.arrow().to_pylist() if 2e9 <= it["started_ns"] < 10e9]
    ended = [it for it in flows if it["completion_s"] is not None]
    expected = sorted((it["size_bytes"] / 1e3, it["completion_s"] * 1e3) for it in ended)
    assert numpy.array(sorted(zip(x, y))) == pytest.approx(numpy.array(expected))
    of_group = [it for it in flows if it["group"] == "short"]
    assert len(of_group) == row["completion_count"] + row["unfinished_flows"]
    assert numpy.all(median.get_ydata() <= high.get_ydata())
    assert len(median.get_xdata()) < len(x)
    with pytest.raises(comity.errors.PlotError, match="flow that ended"):
        plot.completion(results)


def test_completion_times_are_grouped_by_powers_of_two():
    size, took = numpy.array([4, 5, 7.9, 16]), numpy.array([1.0, 2, 9, 5])
    x, median, high = _transfers._by_size(size, took)
    assert x.tolist() == pytest.approx([(4 * 5 * 7.9) ** (1 / 3), 16])
    assert median.tolist() == [2, 5]
    assert high.tolist() == pytest.approx([2 + 0.9 * 7, 5])


@pytest.mark.parametrize(("bins", "joined"), [(1, 1), (120, 1), (121, 2), (240, 2), (5000, 50)])
def test_no_line_has_more_steps_than_can_be_seen(bins, joined):
    assert _time._joined(bins) == joined


def test_joined_bins_keep_what_was_delivered():
    results = comity.run(TEXT, seeds=1, set={"scenario.bins": "10ms"})
    (ax,) = plot.throughput(results, only=["libra"]).axes
    (line,) = ax.get_lines()
    table = results.flow_series.pandas()
    of = table[(table["run"] == 0) & (table["flow"] == "libra-0")].delivered_bytes
    x, y = line.get_data()
    assert 24 <= len(y) <= 120 < len(of)
    length = x[1] - x[0]
    assert y.sum() * 1e6 / 8 * length == pytest.approx(of.sum(), rel=0.02)
    assert f"means over {length:g} s" in ax.get_ylabel()


def test_a_controller_that_only_paces_has_no_window():
    """Its window without a limit would be all that is seen."""
    results = comity.run(VIDEO, seeds=1, set={"scenario.bins": "500ms"})
    (ax,) = plot.cwnd(results).axes
    assert not any("video" in it.get_label() for it in ax.get_lines())
    assert ax.get_ylim()[1] < 1000


def seen(colour, matrix):
    """A colour as a reader sees it, in CIE L*a*b*."""
    rgb = numpy.array(colors.to_rgb(colour))
    linear = numpy.where(rgb <= 0.04045, rgb / 12.92, ((rgb + 0.055) / 1.055) ** 2.4)
    linear = numpy.clip(matrix @ linear, 0, 1)
    to_xyz = numpy.array(
        [[0.4124, 0.3576, 0.1805], [0.2126, 0.7152, 0.0722], [0.0193, 0.1192, 0.9505]]
    )
    xyz = to_xyz @ linear / numpy.array([0.9505, 1.0, 1.089])
    f = numpy.where(xyz > 0.008856, numpy.cbrt(xyz), 7.787 * xyz + 16 / 116)
    return numpy.array([116 * f[1] - 16, 500 * (f[0] - f[1]), 200 * (f[1] - f[2])])


# Machado, Oliveira and Fernandes (2009), full severity.
READERS = {
    "all cones": numpy.eye(3),
    "no L cones": numpy.array(
        [[0.152286, 1.052583, -0.204868], [0.114503, 0.786281, 0.099216], [-0.003882, -0.048116, 1.051998]]
    ),
    "no M cones": numpy.array(
        [[0.367322, 0.860646, -0.227968], [0.280085, 0.672501, 0.047413], [-0.011820, 0.042940, 0.968881]]
    ),
    "no S cones": numpy.array(
        [[1.255528, -0.076749, -0.178779], [-0.078411, 0.930809, 0.147602], [0.004733, 0.691367, 0.303900]]
    ),
}


@pytest.mark.parametrize("dark", [False, True])
def test_colours_can_be_told_apart_or_markers_differ(dark):
    styles = _style.styles()
    assert len({style.marker for style in styles.values()}) == len(styles)
    back = _style.paper(dark).back
    for reader, matrix in READERS.items():
        for name, style in styles.items():
            far = numpy.linalg.norm(seen(style.colour(dark), matrix) - seen(back, matrix))
            assert far > 25, f"{name} on its background, {reader}"
        # The protocols of the papers and what they run beside are often in one picture.
        common = ["reno", "cubic", "libra", "real", "iftp", "psp", "tltcp", "steady"]
        for one, two in itertools.combinations(common, 2):
            pair = [seen(styles[name].colour(dark), matrix) for name in (one, two)]
            assert numpy.linalg.norm(pair[0] - pair[1]) > 10, f"{one} and {two}, {reader}"


def test_what_is_missing_is_named(results, grid):
    plain = comity.run(TEXT, seeds=1, set={"scenario.duration": "3s"})
    bare = comity.run({**DICT, "scenario": {"name": "bare", "duration": "3s"}}, seeds=1)
    third = [("flow.reno.rwnd", [4]), ("flow.libra.rwnd", [40])]
    axes = [*DICT["sweep"], *({"parameter": name, "values": values} for name, values in third)]
    cube = comity.run({**DICT, "sweep": axes}, seeds=1)
    for kind, of, message in [
        ("throughput", bare, "scenario.bins"),
        ("sequence", plain, "packets=True"),
        ("slack", results, "no table `sections`; give a flow"),
        ("heatmap", results, "1 axes; expected two"),
        ("shares", cube, "3 axes; expected at most two"),
        ("fairness", cube, "3 axes; expected at most two"),
    ]:
        with pytest.raises(comity.PlotError, match=message):
            plot.KINDS[kind](of)
    with pytest.raises(comity.PlotError, match="no run 9"):
        plot.delay(results, run=9)
    with pytest.raises(comity.PlotError, match="no flow or group `nobody`"):
        plot.delay(results, only=["nobody"])
    with pytest.raises(comity.PlotError, match="no column `nothing`"):
        plot.heatmap(grid, value="nothing")


def test_the_command_draws_stored_results(file, results, tmp_path):
    stored = tmp_path / "stored"
    assert command("sim", "run", file, "--out", stored, "--quiet").returncode == 0
    for name in ("a.png", "b.svg", "c.pdf"):
        said = command("plot", stored, "--kind", "throughput", "--out", tmp_path / name)
        # A busy machine may take so long that it is said.
        lines = [line for line in said.stderr.splitlines() if line != "drawing throughput"]
        assert (said.returncode, lines) == (0, [f"wrote {tmp_path / name}"])
        assert (tmp_path / name).stat().st_size > 5_000
    said = command("plot", stored, "--kind", "nothing", "--out", tmp_path / "x.png")
    assert said.returncode == 2 and "expected one of cwnd, throughput" in said.stderr
    said = command("plot", tmp_path, "--kind", "delay", "--out", tmp_path / "x.png")
    assert said.returncode == 6 and "holds no results" in said.stderr
    said = command("plot", stored, "--kind", "delay", "--out", tmp_path / "none" / "x.png")
    assert said.returncode == 1 and not (tmp_path / "none").exists()
    said = command("plot", stored, "--kind", "sequence", "--out", tmp_path / "x.png")
    assert said.returncode == 2 and "packets=True" in said.stderr
    said = command("plot", "--help")
    assert all(kind in said.stdout for kind in plot.KINDS)
