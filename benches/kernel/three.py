#!/usr/bin/env python3
"""Runs scenarios of TCP in three worlds, as root, and writes docs/results/three-worlds.md.

    sudo benches/kernel/three.py --comity target/release/comity --seeds 1-3

The worlds are the simulator, Comity's TCP on real packets (`stack = "comity"`) and the TCP of the
Linux kernel, both in the lab. The command needs the feature `kernel`, for Libra in the kernel.
Finished runs are kept in target/three and not repeated. The tables replace those of the page.
"""

import argparse
import contextlib
import csv
import pathlib
import statistics
import subprocess
import sys

from windows import picture

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
KEPT = ROOT / "target/three"
PAGE = ROOT / "docs/results/three-worlds.md"
PICTURE = PAGE.with_suffix(".svg")
WORLDS = {"simulator": None, "Comity's TCP": "comity", "Linux": "kernel"}
CONTROLLERS = ["libra", "cubic", "reno"]
FRIENDLY = "experiments/kernel/friendly.toml"
# No jitter of the ACKs.
EVEN = "topology.bottleneck.reverse={ queue = 1000 }"


class Runs:
    """Runs the command, and keeps results."""

    def __init__(self, comity, seeds):
        self.comity, self.seeds = comity, seeds
        KEPT.mkdir(parents=True, exist_ok=True)

    def flows(self, scenario, world, seeds, settings=(), flows="*", table="flows"):
        """The rows of a table; a run that the lab distrusts is repeated twice at most."""
        stack = WORLDS[world]
        name = "-".join([pathlib.Path(scenario).stem, stack or "sim", seeds, *settings])
        folder = KEPT / "".join(letter if letter.isalnum() else "-" for letter in name)
        for _ in range(3):
            if not folder.exists():
                self.run(scenario, stack, seeds, settings, flows, folder)
            rows = read(folder / f"{table}.csv")
            if stack is None or all(run["trusted"] == "true" for run in read(folder / "runs.csv")):
                return rows
            folder.rename(folder.with_name(f"{folder.name}-distrusted-{len(list(KEPT.iterdir()))}"))
        raise SystemExit(f"{name}: the lab trusts no run; leave the machine alone")

    def run(self, scenario, stack, seeds, settings, flows, folder):
        command = [self.comity, *(["lab"] if stack else ["sim"]), "run", str(ROOT / scenario)]
        command += ["--seeds", seeds, "--out", f"{folder}.csv", "--force"]
        for setting in [*settings, *([f"flow.{flows}.stack={stack}"] if stack == "comity" else [])]:
            command += ["--set", setting]
        print(" ".join(command[1:]), file=sys.stderr, flush=True)
        # Code 3: the results are not to be trusted, which the caller looks at.
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode not in (0, 3):
            raise SystemExit(done.stderr)
        pathlib.Path(f"{folder}.csv").rename(folder)


def read(path):
    with open(path, newline="") as file:
        return list(csv.DictReader(file))


def of_two(rows, group):
    """The goodput of both flows of a group in Mb/s."""
    return statistics.mean(float(row["goodput_bps"]) for row in rows if row["group"] == group) * 2 / 1e6


def jain(rates):
    """
    >>> jain([1, 1, 1]), round(jain([3, 0, 0]), 3)
    (1.0, 0.333)
    """
    return sum(rates) ** 2 / (len(rates) * sum(rate * rate for rate in rates))


def difference(value, other):
    """
    >>> difference(90, 100), difference(104, 100)
    ('−10.0 %', '+4.0 %')
    """
    return f"{(value / other - 1) * 100:+.1f} %".replace("-", "−")


def capacity(controller, rate, group):
    return [f"flow.{group}.parameters.capacity={rate}"] if controller == "libra" else []


def one(runs):
    """One flow: its window, rate and retransmissions."""
    lines = [
        "| controller | RTT, ms | loss | mean window, kB: simulator | Comity's TCP | Linux | retransmitted: simulator "
        "| Comity's TCP | Linux |",
        "|---|---:|---|---:|---:|---:|---:|---:|---:|",
    ]
    far = 0
    for controller in CONTROLLERS:
        settings = [f"flow.libra.controller={controller}"]
        rows = {}
        for world in WORLDS:
            # The kernel has its parameters when Libra is loaded.
            extra = [] if world == "Linux" else capacity(controller, "20Mbps", "libra")
            rows[world] = runs.flows("experiments/kernel/one.toml", world, "1", [*settings, *extra])
        for point, simulated in enumerate(rows["simulator"]):
            at = [rows[world][point] for world in WORLDS]
            windows = [float(row["mean_cwnd_bytes"]) for row in at]
            differences = [difference(window, windows[0]) for window in windows[1:]]
            far = max(far, abs(windows[1] / windows[0] - 1))
            loss = "full queue" if float(simulated["axis.loss"]) == 0 else "1 in 1,000"
            delay = float(simulated["axis.delay"].removesuffix("ms")) * 2
            sent_again = " | ".join(row["retransmitted_packets"] for row in at)
            lines.append(
                f"| {controller} | {delay:.0f} | {loss} | {windows[0] / 1e3:.1f} | {windows[1] / 1e3:.1f} "
                f"({differences[0]}) | {windows[2] / 1e3:.1f} ({differences[1]}) | {sent_again} |"
            )
    return lines


def fair(runs):
    """Three flows of different round trips: their shares."""
    lines = [
        "| controller | world | runs | share at 30 ms | 90 ms | 180 ms | Jain | lowest, highest |",
        "|---|---|---:|---:|---:|---:|---:|---|",
    ]
    for controller in [*CONTROLLERS, "bbr"]:
        for world in WORLDS:
            settings = [f"sweep.controller.values=['{controller}']"]
            extra = [] if world == "Linux" else capacity(controller, "20Mbps", "*")
            seeds = "1-20" if world == "simulator" else runs.seeds
            rows = runs.flows("experiments/kernel/fair.toml", world, seeds, [*settings, *extra])
            by_run = {}
            for row in rows:
                by_run.setdefault(row["run"], {})[row["group"]] = float(row["goodput_bps"])
            groups = ["short", "medium", "long"]
            shares = [
                statistics.mean(run[group] / sum(run.values()) for run in by_run.values()) for group in groups
            ]
            indices = [jain(list(run.values())) for run in by_run.values()]
            lines.append(
                f"| {controller} | {world} | {len(by_run)} | {shares[0]:.3f} | {shares[1]:.3f} | {shares[2]:.3f} "
                f"| {statistics.mean(indices):.3f} | {min(indices):.3f}, {max(indices):.3f} |"
            )
    return lines


def friendly(runs):
    """What two Reno flows keep beside two others, with and without jitter of the ACKs."""
    lines = [
        "| beside | world | runs | first two, Mb/s | of what they have beside Reno | second two, Mb/s "
        "| without jitter: first two, Mb/s | of what they have beside Reno | second two, Mb/s |",
        "|---|---|---:|---:|---:|---:|---:|---:|---:|",
    ]
    base = {}
    for controller in ["reno", "libra", "cubic"]:
        for world in WORLDS:
            settings = [f"sweep.controller.values=['{controller}']"]
            extra = [] if world == "Linux" else capacity(controller, "40Mbps", "second")
            seeds = "1-20" if world == "simulator" else runs.seeds
            line = f"| {controller} | {world} |"
            for jitter in [[], [EVEN]]:
                # Only the second two are Comity's: the first are the kernel's in the lab.
                all_settings = [*settings, *extra, *jitter]
                rows = runs.flows(FRIENDLY, world, seeds, all_settings, "second")
                first, second = (of_two(rows, group) for group in ["first", "second"])
                beside_reno = base.setdefault((world, *jitter), first)
                count = "" if jitter else f" {len({row['run'] for row in rows})} |"
                line += f"{count} {first:.1f} | {first / beside_reno:.2f} | {second:.1f} |"
            lines.append(line)
    return lines


def phase(runs):
    """The same for Reno in the simulator, where the second two have a little more delay."""
    lines = [
        "| more delay, µs | first two, Mb/s | second two, Mb/s | with jitter: first two, Mb/s | second two, Mb/s |",
        "|---:|---:|---:|---:|---:|",
    ]
    for delay in [0, 20, 50, 100, 150, 200]:
        line = f"| {delay} |"
        for jitter in [[EVEN], []]:
            access = f'flow.second.access={{ rate = "1Gbps", delay = "{2500 + delay}us", queue = 1000 }}'
            settings = ["sweep.controller.values=['reno']", access, *jitter]
            rows = runs.flows(FRIENDLY, "simulator", "1-20", settings, "second")
            line += f" {of_two(rows, 'first'):.1f} | {of_two(rows, 'second'):.1f} |"
        lines.append(line)
    return lines


def windows(runs):
    """A picture of the windows of one flow over time."""
    panels = {}
    of_one = ["sweep.delay.values=['45ms']", "sweep.loss.values=[0.001]", "sweep.queue.values=[600]"]
    of_real = ["sweep.rate.values=['5Mbps']", "sweep.delay.values=['15ms']", "sweep.drop.values=[0.05]"]
    of_real.append("sweep.direction.values=['both']")
    titles = {
        "libra": "Libra, 90 ms, 1 in 1,000 lost",
        "cubic": "CUBIC, 90 ms, 1 in 1,000 lost",
        "reno": "Reno, 90 ms, 1 in 1,000 lost",
        "real": "TCP-Real, 30 ms, on/off losses of 5 %",
    }
    for controller, title in titles.items():
        name, settings = ("real-one", of_real) if controller == "real" else ("one", of_one)
        settings = [*settings, f"flow.*.controller={controller}", "scenario.bins=100ms"]
        for world in WORLDS:
            extra = [] if world == "Linux" else capacity(controller, "20Mbps", "*")
            real = loaded(runs.comity, "real") if (controller, world) == ("real", "Linux") else contextlib.nullcontext()
            with real:
                every = [*settings, *extra]
                rows = runs.flows(f"experiments/kernel/{name}.toml", world, "1", every, table="flow_series")
            points = [(int(row["bin_start_ns"]) / 1e9, float(row["cwnd_bytes"]) / 1e3) for row in rows]
            panels.setdefault(title, {})[world] = points
    PICTURE.write_text(picture(panels))
    return [f"![The congestion windows of one flow in three worlds]({PICTURE.name})"]


@contextlib.contextmanager
def loaded(comity, controller, *options):
    """The kernel with a controller."""
    subprocess.run([comity, "kernel", "load", controller, *options], check=True)
    try:
        yield
    finally:
        subprocess.run([comity, "kernel", "unload", controller], check=False)


# The tables of the page, and the capacity that the kernel's Libra has for them.
TABLES = {
    "one": (one, "20Mbps"),
    "windows": (windows, "20Mbps"),
    "fair": (fair, "20Mbps"),
    "friendly": (friendly, "40Mbps"),
    "phase": (phase, "40Mbps"),
}


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--comity", default=str(ROOT / "target/release/comity"))
    parser.add_argument("--seeds", default="1-3", help="the seeds of the lab's runs")
    parser.add_argument("--only", choices=TABLES, nargs="+", default=TABLES, help="the tables to make")
    arguments = parser.parse_args()
    runs = Runs(arguments.comity, arguments.seeds)
    tables = {}
    for name in arguments.only:
        table, capacity_of = TABLES[name]
        with loaded(arguments.comity, "libra", "--capacity", capacity_of):
            tables[name] = "\n".join(table(runs))
    page = PAGE.read_text()
    for name, table in tables.items():
        page = replaced(page, name, table)
    PAGE.write_text(page)


def replaced(page, name, table):
    """The page with another table between its marks.

    >>> replaced("a\\n<!-- x: begin -->\\nold\\n<!-- x: end -->\\nb", "x", "new")
    'a\\n<!-- x: begin -->\\nnew\\n<!-- x: end -->\\nb'
    """
    begin, end = f"<!-- {name}: begin -->\n", f"\n<!-- {name}: end -->"
    before, rest = page.split(begin)
    return before + begin + table + end + rest.split(end)[1]


if __name__ == "__main__":
    main()
