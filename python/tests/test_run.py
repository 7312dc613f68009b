"""Runs: equality with the command, determinism, arguments, exceptions and the interrupt key."""

import csv
import json
import os
import signal
import subprocess
import sys
import threading
import time
import warnings

import comity
import numpy
import pyarrow
import pytest
from conftest import DICT, TEXT, command


def test_the_tables_are_those_that_the_command_stores(file, tmp_path):
    said = command("sim", "run", file, "--out", tmp_path / "out.csv", "--quiet")
    assert said.returncode == 0, said.stderr
    results = comity.run(file)
    tables = {table.name for table in results}
    assert tables == {path.stem for path in (tmp_path / "out.csv").glob("*.csv")}
    for table in results:
        ours = table.arrow()
        with open(tmp_path / "out.csv" / f"{table.name}.csv", newline="") as stored:
            header, *rows = csv.reader(stored)
        assert len(rows) == len(table)
        for name in header:
            theirs = [row[header.index(name)] for row in rows]
            if name not in table.columns:
                assert set(theirs) <= {""}, f"{table.name}.{name} is not empty"
                continue
            kind = ours.schema.field(name).type
            read = {
                pyarrow.bool_(): lambda text: text == "true",
                pyarrow.int64(): int,
                pyarrow.float64(): float,
            }.get(kind, str)
            expected = [None if text == "" else read(text) for text in theirs]
            assert ours[name].to_pylist() == expected, f"{table.name}.{name}"


def test_the_numbers_are_those_that_the_command_prints(file):
    said = command("sim", "run", file, "--json", "--seeds", "7", "--set", "flow.reno.rwnd=6")
    printed = json.loads(said.stdout)
    results = comity.run(file, seeds=7, set={"flow.reno.rwnd": 6})
    assert len(results) == printed["totals"]["runs"] == 2
    rows = results.groups.arrow().to_pylist()
    for point in printed["points"]:
        for group in point["groups"]:
            of_group = [
                row["goodput_bps"]
                for row in rows
                if row["group"] == group["group"]
                and row["axis.topology.bottleneck.queue"]
                == point["axes"]["topology.bottleneck.queue"]
            ]
            assert len(of_group) == 1
            mean = group["goodput_bps"]["mean"]
            assert mean == pytest.approx(of_group[0] / group["flows"], rel=1e-9)
        fingerprints = [run["fingerprint"] for run in point["runs"]]
        assert set(fingerprints) <= set(results.runs.arrow()["fingerprint"].to_pylist())


def test_a_file_a_text_and_a_dict_are_the_same_scenario(file):
    tables = [
        [
            table.arrow().drop_columns(["scenario_hash"] if table.name == "runs" else [])
            for table in comity.run(scenario)
        ]
        for scenario in (file, str(file), TEXT, DICT)
    ]
    for other in tables[1:]:
        assert all(one.equals(two) for one, two in zip(tables[0], other))


def test_threads_change_nothing():
    one, two = (comity.run(TEXT, threads=threads, packets=True) for threads in (1, 2))
    assert all(a.arrow().equals(b.arrow()) for a, b in zip(one, two))
    again = comity.run(TEXT, seeds=numpy.arange(3, 5), packets=True)
    assert again.packets.arrow().equals(one.packets.arrow())
    other = comity.run(TEXT, seeds=[5, 6])
    fingerprints = [it.runs.arrow()["fingerprint"].to_pylist() for it in (one, other)]
    assert not set(fingerprints[0]) & set(fingerprints[1])


def test_seeds_that_change_nothing_are_warned_of(tmp_path):
    still = {"flow.libra.controller": "reno"}  # Libra draws random numbers.
    with pytest.warns(UserWarning, match="seeds change nothing at 2 of 2 points") as caught:
        comity.run(TEXT, seeds=[1, 2], set=still, out=tmp_path / "out")
    assert caught[0].filename == __file__
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        comity.run(TEXT, seeds=[1, 2])
        comity.run(TEXT, seeds=1, set=still)


def test_a_window_that_limits_a_group_is_warned_of():
    fat = {
        "scenario": {"name": "fat", "duration": "20s", "warmup": "5s"},
        "topology": {
            "kind": "dumbbell",
            "bottleneck": {"rate": "1Gbps", "delay": "98ms", "queue": 20000},
            "access": {"rate": "10Gbps", "delay": "1ms"},
        },
        "flow": [{"group": "tcp", "controller": "cubic"}],
    }
    with pytest.warns(UserWarning, match="receive window of tcp limits it, and not") as caught:
        comity.run(fat)
    assert [it.filename for it in caught] == [__file__]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        comity.run(fat, set={"flow.tcp.rwnd": "64MiB"})


def test_values_of_python_and_numpy_are_values_of_a_scenario():
    values = {
        "flow.reno.rwnd": numpy.int64(9),
        "topology.bottleneck": {"rate": "3Mbps", "delay": "20ms", "queue": 7},
        "scenario.duration": "3s",
        "sweep": [],
    }
    results = comity.run(DICT, seeds=numpy.array([1, 2]), set=values)
    assert len(results) == 2
    assert set(results.runs.arrow()["duration_ns"].to_pylist()) == {3_000_000_000}
    for bad in ({"scenario": None}, {"flow": [{"group": object()}]}, {1: 2}):
        with pytest.raises(comity.ScenarioError, match="expected a string"):
            comity.run(bad)


def test_a_wrong_scenario_says_what_the_command_says(tmp_path):
    path = tmp_path / "wrong.toml"
    path.write_text(TEXT.replace("count = 2", "cuont = 2").replace('"2Mbps"', '"2Mpbs"'))
    with pytest.raises(comity.ScenarioError) as caught:
        comity.run(path)
    error = caught.value
    assert isinstance(error, comity.Error) and isinstance(error, ValueError)
    said = command("sim", "run", path)
    assert said.returncode == 2
    assert str(error) in said.stderr
    rate, count = error.problems
    assert (rate.key, rate.value, rate.line) == ("topology.bottleneck.rate", '"2Mpbs"', 11)
    assert "bps" in rate.expected
    assert (count.file, count.line, count.column) == (str(path), 17, 1)
    assert count.expected.startswith("did you mean `count`?")
    assert count.value == "cuont"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"scenario": "nowhere.toml"}, "cannot be read"),
        ({"scenario": 7}, "expected a path, a text or a dict"),
        ({"set": {"flow.reno.rwnd": -1}}, "out of bounds"),
        ({"set": {"flow.nobody.rwnd": 1}}, "no such key"),
        ({"set": {"flow.reno.rwnd": "many"}}, "many"),
        ({"seeds": []}, "at least one"),
        ({"seeds": [1, 1]}, "seed"),
        ({"seeds": -1}, "expected 0 to"),
        ({"seeds": 2**63}, "expected 0 to"),
        ({"seeds": ["one"]}, "expected 0 to"),
        ({"seeds": 1.5}, "expected a number or several"),
        ({"seeds": "1-3"}, "expected a number or several"),
        ({"set": "flow.reno.rwnd=20"}, "set is .*expected a dict"),
        ({"controllers": [comity.Controller]}, "controllers is .*expected a dict"),
        ({"progress": 3}, "expected a bool or a function"),
        ({"threads": 0}, "expected a number from 1"),
        (
            {
                "scenario": TEXT.replace(
                    'controller = "libra"', 'transport = "command"\ncommand = ["true"]'
                )
            },
            "expected",
        ),
    ],
)
def test_wrong_arguments_are_scenario_errors(arguments, message):
    with pytest.raises(comity.ScenarioError, match=message):
        comity.run(**{"scenario": TEXT, **arguments})


def test_progress_counts_runs_and_its_errors_come_through():
    long = {"scenario.duration": "60s"}
    calls = []
    comity.run(TEXT, seeds=range(40), set=long, progress=lambda *call: calls.append(call))
    assert calls and all(runs == 80 and 0 <= done <= 80 for done, runs in calls)
    assert [done for done, _ in calls] == sorted(done for done, _ in calls)

    def refuse(done, runs):
        raise LookupError("enough")

    with pytest.raises(LookupError, match="enough"):
        comity.run(TEXT, seeds=range(40), set=long, progress=refuse)


def test_the_interrupt_key_ends_even_one_long_run():
    # A run of a day of virtual time would take many minutes.
    timer = threading.Timer(0.5, os.kill, (os.getpid(), signal.SIGINT))
    began = time.process_time()
    timer.start()
    with pytest.raises(KeyboardInterrupt):
        comity.run(TEXT, seeds=1, set={"scenario.duration": "100000s", "sweep": []})
    assert time.process_time() - began < 20
    assert len(comity.run(TEXT, seeds=1)) == 2, "the module works as before"


def test_the_gil_is_free_while_runs_run():
    ticks = []
    stop = threading.Event()

    def tick():
        while not stop.wait(0.01):
            ticks.append(time.monotonic())

    thread = threading.Thread(target=tick)
    thread.start()
    comity.run(TEXT, seeds=range(20), set={"scenario.duration": "60s"})
    stop.set()
    thread.join()
    assert len(ticks) > 5


def test_the_command_ends_as_the_program_does(file):
    assert command("sim", "run", "nowhere.toml").returncode == 6
    assert command("--nonsense").returncode == 2
    assert command("list", "nothing-of-this-name").returncode == 2
    assert command("sim", "run", file, "--quiet").returncode == 0
    process = subprocess.Popen(
        [sys.executable, "-m", "comity", "sim", "run", file]
        + ["--seed", "1", "--set", "scenario.duration=100000s", "--set", "sweep=[]"],
        stderr=subprocess.PIPE,
    )
    assert b"0 of 1 runs" in process.stderr.readline()
    process.send_signal(signal.SIGINT)
    _, said = process.communicate()
    assert process.returncode == 130 and b"interrupted" in said
