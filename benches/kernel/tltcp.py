#!/usr/bin/env python3
"""Runs time-lined TCP on real packets and in the simulator, as root, for docs/results/tltcp.md.

    sudo benches/kernel/tltcp.py --comity target/release/comity --seeds 1-3

The simulator has the seeds 1 to 20. Finished runs are kept in target/three and not repeated. The
tables replace those of the page.
"""

import argparse
import pathlib
import statistics

from three import ROOT, Runs, replaced

PAGE = ROOT / "docs/results/tltcp.md"
WORLDS = {"simulator": "simulator", "lab": "Comity's TCP"}


def by(rows, *columns):
    """The rows by the values of columns.

    >>> by([{"a": 1, "b": 2}, {"a": 1, "b": 3}], "a")
    {(1,): [{'a': 1, 'b': 2}, {'a': 1, 'b': 3}]}
    """
    groups = {}
    for row in rows:
        groups.setdefault(tuple(row[column] for column in columns), []).append(row)
    return groups


def mean(rows, column):
    return statistics.mean(float(row[column]) for row in rows)


def fairness(runs):
    """F and S of figure 7 and 8, of the mix and of TCP alone."""
    lines = [
        "| flows | world | runs | F | S | S, all TCP | retransmitted: TLTCP | TCP |",
        "|---:|---|---:|---:|---:|---:|---:|---:|",
    ]
    found = {}
    for world, name in WORLDS.items():
        seeds = "1-20" if world == "simulator" else runs.seeds
        rows = runs.flows("experiments/tltcp/lab_fairness.toml", name, seeds)
        found[world] = by(rows, "axis.tltcp", "axis.tcp")
    for half in [2, 5]:
        for world, points in found.items():
            mix, alone = points[str(half), str(half)], points["0", str(2 * half)]
            timelined, tcp = ([row for row in mix if row["group"] == group] for group in ["tltcp", "tcp"])
            friendliness = mean(timelined, "goodput_bps") / mean(tcp, "goodput_bps")
            lines.append(
                f"| {2 * half} | {world} | {len(by(mix, 'run'))} | {friendliness:.3f} | {separation(mix):.3f} "
                f"| {separation(alone):.3f} | {mean(timelined, 'retransmitted_packets'):.1f} "
                f"| {mean(tcp, 'retransmitted_packets'):.1f} |"
            )
    return lines


def separation(rows):
    """S: the largest rate over the smallest, a mean over runs.

    >>> separation([{"run": 1, "goodput_bps": 4}, {"run": 1, "goodput_bps": 2}])
    2.0
    """
    rates = [[float(row["goodput_bps"]) for row in run] for run in by(rows, "run").values()]
    return statistics.mean(max(of) / min(of) for of in rates)


def video(runs):
    """The fates of the pictures beside a TCP flow."""
    lines = [
        "| rate, Mb/s | video over | world | runs | on time, % | late, % | not complete, % | video, Mb/s | TCP, Mb/s |",
        "|---:|---|---|---:|---:|---:|---:|---:|---:|",
    ]
    found = {}
    for world, name in WORLDS.items():
        seeds = "1-20" if world == "simulator" else runs.seeds
        rows = runs.flows("experiments/tltcp/lab_video.toml", name, seeds, flows="video")
        found[world] = by(rows, "axis.rate", "axis.time_lined", "group")
    for rate in ["2600kbps", "2000kbps", "1600kbps"]:
        for over, is_timelined in [("TLTCP", "true"), ("TCP", "false")]:
            for world, points in found.items():
                flows, tcp = (points[rate, is_timelined, group] for group in ["video", "tcp"])
                total = mean(flows, "timeline_sections")
                on_time, late = (mean(flows, f"timeline_{fate}") / total * 100 for fate in ["in_time", "late"])
                lines.append(
                    f"| {int(rate[:-4]) / 1e3:.1f} | {over} | {world} | {len(flows)} | {on_time:.1f} | {late:.1f} "
                    f"| {100 - on_time - late:.1f} | {mean(flows, 'goodput_bps') / 1e6:.2f} "
                    f"| {mean(tcp, 'goodput_bps') / 1e6:.2f} |"
                )
    return lines


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--comity", default=str(ROOT / "target/release/comity"))
    parser.add_argument("--seeds", default="1-3", help="the seeds of the lab's runs")
    arguments = parser.parse_args()
    runs = Runs(arguments.comity, arguments.seeds)
    page = pathlib.Path(PAGE).read_text()
    for name, table in [("fairness", fairness), ("video", video)]:
        page = replaced(page, name, "\n".join(table(runs)))
    PAGE.write_text(page)


if __name__ == "__main__":
    main()
