#!/usr/bin/env python3
"""Makes docs/results/deadline.md: punctuality and friendliness in the simulator, by the scenarios of experiments/deadline.

    python3 benches/deadline/deadline.py --page
"""

import argparse
import collections
import csv
import pathlib
import re
import statistics
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
sys.path.append(str(ROOT / "benches"))
from wrap import wrapped  # noqa: E402

SCENARIOS = ROOT / "experiments/deadline"
PAGE = ROOT / "docs/results/deadline.md"
NAMES = {"reno": "Reno", "cubic": "CUBIC"}


def tables_of(comity, name, *tables):
    """The rows of these tables of a scenario of experiments/deadline."""
    with tempfile.TemporaryDirectory() as folder:
        out = pathlib.Path(folder) / "results.csv"
        print(f"deadline: {name}.toml", file=sys.stderr, flush=True)
        subprocess.run([comity, "sim", "run", SCENARIOS / f"{name}.toml", "--out", out], check=True, stdout=subprocess.DEVNULL)
        return [list(csv.DictReader((out / f"{table}.csv").read_text(encoding="utf-8").splitlines())) for table in tables]


def flows_of(comity, name):
    """The rows of all flows of a scenario of experiments/deadline."""
    return tables_of(comity, name, "flows")[0]


def grouped(rows, axes):
    """The runs of each point, in order: for each run its video flow and the others.

    >>> rows = [{"axis.a": "1", "run": "0", "group": "video"}, {"axis.a": "1", "run": "0", "group": "tcp"}]
    >>> [(key, len(runs), len(runs[0][1])) for key, runs in grouped(rows, ["a"]).items()]
    [(('1',), 1, 1)]
    """
    points = collections.defaultdict(dict)
    for row in rows:
        key = tuple(row[f"axis.{axis}"] for axis in axes)
        video, others = points[key].setdefault(row["run"], ([], []))
        (video if row["group"] == "video" else others).append(row)
    return {key: [(video[0], others) for video, others in runs.values()] for key, runs in points.items()}


def queue_name(value):
    """
    >>> queue_name("60"), queue_name('{ kind = "codel", limit = 100 }')
    ('60 packets', 'CoDel')
    """
    if value.isdigit():
        return f"{value} packets"
    kind = re.search(r'kind = "(\w+)"', value)[1]
    return {"codel": "CoDel", "red": "RED"}[kind]


def percent(share):
    """
    >>> percent(0.995)
    '99.50 %'
    """
    return f"{100 * share:.2f} %"


def number(row, column):
    return float(row[column] or 0)


def settled(row, kind="sections"):
    """What was given to the transport and is not under way when the run ends."""
    unsent = number(row, "sections_refused") + number(row, "sections_shed") if kind == "sections" else 0
    return number(row, f"{kind}_submitted") + unsent - number(row, f"{kind}_open")


def on_time(row, kind="sections"):
    whole = settled(row, kind)
    return number(row, f"{kind}_on_time") / whole if whole else None


def carried(row):
    """Bytes on time and decodable over what an equal share carries, or what was given if that is less."""
    given = settled_bytes(row)
    return number(row, "sections_decodable_bytes") / min(given, number(row, "equal_share_bytes"))


def settled_bytes(row):
    return sum(number(row, f"sections_{fate}_bytes") for fate in ("submitted", "refused", "shed")) - number(row, "sections_open_bytes")


def tcp_share(video, others):
    """What each of the others has over an equal share of what all have.

    >>> tcp_share({"throughput_bps": "2"}, [{"throughput_bps": "4"}, {"throughput_bps": "6"}])
    1.25
    """
    rates = [number(row, "throughput_bps") for row in (video, *others)]
    return statistics.mean(rates[1:]) / statistics.mean(rates)


def contended(comity):
    yield "| video | rivals | on time | worst run | key frames | decodable | share carried | TCP / share |"
    yield "|---|---|---|---|---|---|---|---|"
    points = grouped(flows_of(comity, "contended"), ["rival", "rivals", "rate", "latency"])
    for (rival, rivals, rate, latency), runs in points.items():
        if rivals == "0" and rival != "reno":
            continue
        each = [on_time(video) for video, _ in runs]
        keys = statistics.mean(on_time(video, "intra") for video, _ in runs)
        decodable = statistics.mean(number(video, "sections_decodable") / settled(video) for video, _ in runs)
        used = statistics.mean(carried(video) for video, _ in runs)
        beside = "none" if rivals == "0" else f"{rivals} {NAMES[rival]}"
        tcp = "–" if rivals == "0" else f"{statistics.mean(tcp_share(*run) for run in runs):.2f}"
        yield (f"| {rate}, {latency} | {beside} | {percent(statistics.mean(each))} | {percent(min(each))} |"
               f" {percent(keys)} | {percent(decodable)} | {used:.2f} | {tcp} |")


def friendly(comity):
    points = grouped(flows_of(comity, "friendly"), ["rival", "rivals", "rate", "delay", "queue"])
    counts = list(dict.fromkeys(rivals for _, rivals, *_ in points))
    rival_names = list(dict.fromkeys(rival for rival, *_ in points))
    titles = [f"{count} {NAMES[rival]}" for rival in rival_names for count in counts]
    yield f"| rate | one-way delay | queue | {' | '.join(titles)} |"
    yield "|---" * (len(titles) + 3) + "|"
    for rate, delay, queue in dict.fromkeys(point[2:] for point in points):
        cells = []
        for rival in rival_names:
            for count in counts:
                runs = points[rival, count, rate, delay, queue]
                ratios = [number(video, "throughput_bps") / statistics.mean(number(row, "throughput_bps") for row in others)
                          for video, others in runs]
                cells.append(f"{statistics.median(ratios):.2f}")
        yield f"| {rate} | {delay} | {queue_name(queue)} | {' | '.join(cells)} |"


def among_themselves(comity):
    """The rows of flows that meet nobody but each other."""
    yield "| controller | flows | queue | Jain, median | worst run | lost, all packets of the run |"
    yield "|---|---|---|---|---|---|"
    flow_rows, group_rows = tables_of(comity, "among_themselves", "flows", "groups")
    point_of = lambda row: (row["axis.controller"], row["axis.flows"], row["axis.queue"])
    for point in dict.fromkeys(map(point_of, group_rows)):
        controller, flows, queue = point
        each = [number(row, "jain") for row in group_rows if point_of(row) == point]
        rows = [row for row in flow_rows if point_of(row) == point]
        lost = sum(number(row, "dropped_data_packets") for row in rows) / sum(number(row, "sent_packets") for row in rows)
        yield f"| `{controller}` | {flows} | {queue_name(queue)} | {statistics.median(each):.3f} | {min(each):.3f} | {100 * lost:.1f} % |"


SPANS = [(0, 5), (5, 10), (10, 20), (20, 40)]


def newcomer(comity):
    """The rows of a flow that comes late: its rate over that of all flows together, times their number."""
    yield "| controller | others | " + " | ".join(f"{first} to {last} s" for first, last in SPANS) + " |"
    yield "|---|---" + "|---" * len(SPANS) + "|"
    flows, series = tables_of(comity, "newcomer", "flows", "flow_series")
    points = {row["run"]: (row["axis.controller"], row["axis.others"]) for row in flows}
    began = {row["run"]: number(row, "started_ns") for row in flows if row["group"] == "newcomer"}
    bytes_in = collections.Counter()
    for row in series:
        after = (number(row, "bin_start_ns") - began[row["run"]]) / 1e9
        for span in SPANS:
            if span[0] <= after < span[1]:
                bytes_in[row["run"], span, row["flow"].startswith("newcomer")] += number(row, "delivered_bytes")
    share = lambda run, span, flows: flows * bytes_in[run, span, True] / (bytes_in[run, span, True] + bytes_in[run, span, False])
    for point in dict.fromkeys(points.values()):
        controller, others = point
        medians = [statistics.median(share(run, span, int(others) + 1) for run in points if points[run] == point) for span in SPANS]
        yield f"| `{controller}` | {others} | " + " | ".join(f"{median:.2f}" for median in medians) + " |"


def lossy(comity):
    yield "| controller | lost at random | jitter up to | on time | worst run |"
    yield "|---|---|---|---|---|"
    points = grouped(flows_of(comity, "lossy"), ["loss", "jitter", "controller"])
    for (loss, jitter, controller), runs in points.items():
        each = [on_time(video) for video, _ in runs]
        yield f"| `{controller}` | {100 * float(loss):.0f} % | {jitter} | {percent(statistics.mean(each))} | {percent(min(each))} |"


def page(comity):
    return "\n".join([
        "# Punctual and friendly, in the simulator", "",
        "Made by `python3 benches/deadline/deadline.py --page`. Do not edit.", "",
        "[compare.md](compare.md) answers the same questions beside kernel TCP in the lab. Here the competing flows are the",
        "simulated TCP of preset \"modern\". Each row has five seeds. The first 10 s of a run do not count.", "",
        "## Frames on time", "",
        "A video of 30 frames a second (`experiments/deadline/contended.toml`) crosses a link of 8 Mb/s with 20 ms each way and",
        "a drop-tail queue of 60 packets. It has a key frame each second, and two B frames between the other frames. The mean",
        "sizes of I, P and B frames are 5 : 2 : 1. *Share carried* is the bytes on time and decodable over the bytes that an",
        "equal share carries, or over the submitted bytes if those are fewer. *TCP / share* is the goodput of each TCP flow",
        "over an equal share of the total.", "",
        *contended(comity), "",
        "## A greedy flow over a rival", "",
        "The rate of a greedy flow over that of each greedy TCP flow beside it (`experiments/deadline/friendly.toml`). Values",
        "are medians over the seeds, from the tenth second of the flow to its 60th. The aim is 0.67 to 1.5.", "",
        *friendly(comity), "",
        "## Greedy flows among themselves", "",
        "The link has 8 Mb/s and 20 ms each way (`experiments/deadline/among_themselves.toml`). All flows begin within one",
        "second, and losses at the beginning count. The aim is a Jain index of 0.98.", "",
        *among_themselves(comity), "",
        "## A greedy newcomer", "",
        "The share of a greedy flow that begins 20 s after others of the same controller",
        "(`experiments/deadline/newcomer.toml`), by the time since its start. An equal share is 1. Values are medians over the",
        "seeds. The aim is an equal share within 10 s.", "",
        *newcomer(comity), "",
        "## Random loss", "",
        "A video of 4 Mb/s runs alone on 20 Mb/s with 50 ms and a deadline of 300 ms (`experiments/deadline/lossy.toml`).", "",
        *lossy(comity), "",
    ])


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--comity", default=ROOT / "target/release/comity", type=pathlib.Path)
    parser.add_argument("--page", action="store_true", help="write docs/results/deadline.md")
    options = parser.parse_args()
    if not options.comity.exists():
        sys.exit(f"{options.comity} is not there; cargo build --release -p comity-cli makes it")
    text = wrapped(page(options.comity))
    print(text)
    if options.page:
        PAGE.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
