"""Sweeps that survive: stores, shards, points and executors."""

import concurrent.futures
import contextlib
import json
import multiprocessing
import os
import signal
import threading
import time

import comity
import pytest
from conftest import TEXT, command

SEEDS = range(1, 11)


def tables(path):
    """The bytes of the tables at a path."""
    return {file.name: file.read_bytes() for file in path.iterdir()}


def rows(results):
    return {table.name: table.arrow().to_pylist() for table in results}


@pytest.fixture(scope="module")
def whole(file, tmp_path_factory):
    """The tables of an undisturbed sweep of 20 runs."""
    out = tmp_path_factory.mktemp("whole") / "out"
    results = comity.run(file, seeds=SEEDS, out=out)
    assert len(results) == 20
    return tables(out)


class Enough(Exception):
    pass


def stop_after(runs):
    def report(done, _):
        if done >= runs:
            raise Enough

    return report


def test_the_command_continues_what_python_began_and_the_other_way_round(file, tmp_path, whole):
    words = ["sim", "run", file, "--quiet", "--seeds", "1-10"]
    theirs = tmp_path / "theirs"
    assert command(*words, "--out", theirs).returncode == 0
    expected = rows(comity.read(theirs))

    begun = tmp_path / "begun"
    comity.run(file, seeds=SEEDS, out=begun, shard=(1, 2))
    said = command(*words, "--out", begun)
    assert "10 of 20 runs are already stored" in said.stderr and said.returncode == 0
    assert tables(begun) == tables(theirs)

    continued = tmp_path / "continued"
    assert command(*words, "--shard", "2/2", "--out", continued).returncode == 0
    calls = []
    results = comity.run(
        file, seeds=SEEDS, out=continued, progress=lambda done, _: calls.append(done)
    )
    assert min(calls) >= 10, "half of the runs are there from the beginning"
    assert rows(results) == expected
    assert tables(continued) == whole


def interrupt_when_stored(out):
    """Presses the interrupt key when a run is stored."""
    while True:
        with contextlib.suppress(comity.ResultsError):
            if len(comity.merge(out, partial=True)) > 0:
                return os.kill(os.getpid(), signal.SIGINT)
        time.sleep(0.01)


def test_a_sweep_that_is_cut_short_continues(file, tmp_path, whole):
    out = tmp_path / "out"
    long = {"scenario.duration": "600s"}
    threading.Thread(target=interrupt_when_stored, args=(out,), daemon=True).start()
    with pytest.raises(KeyboardInterrupt):
        comity.run(file, seeds=range(1, 1001), set=long, out=out)
    kept = len(comity.merge(out, partial=True))
    assert 0 < kept < 2000 and not out.exists()
    with pytest.raises(comity.ResultsError, match="has no tables yet"):
        comity.read(out)
    calls = []

    def report(done, runs):
        calls.append(done)
        raise Enough

    with pytest.raises(Enough):
        comity.run(file, seeds=range(1, 1001), set=long, out=out, progress=report)
    assert calls[0] >= kept

    # What a sweep has of another one is not done again, and nothing of it is lost.
    out = tmp_path / "more"
    comity.run(file, seeds=range(1, 4), out=out)
    comity.run(file, seeds=SEEDS, out=out)
    assert tables(out) == whole
    with pytest.raises(comity.ResultsError, match="14 runs of another sweep.*force=True"):
        comity.run(file, seeds=range(1, 4), out=out)
    assert tables(out) == whole
    assert len(comity.run(file, seeds=range(1, 4), out=out, force=True)) == 6


def test_shards_make_the_whole(file, tmp_path, whole):
    parts = [
        comity.run(file, seeds=SEEDS, shard=(part, 3), out=tmp_path / f"part{part % 2}")
        for part in (1, 2, 3)
    ]
    assert [len(part) for part in parts] == [7, 7, 6]
    numbers = [part.runs.arrow()["run"].to_pylist() for part in parts]
    assert sorted(sum(numbers, [])) == list(range(20))
    assert not (tmp_path / "part1").exists()
    with pytest.raises(comity.ResultsError, match="7 of 20 runs are missing: 1, 4, .* partial=True"):
        comity.merge(tmp_path / "part1")
    merged = comity.merge(tmp_path / "part0", tmp_path / "part1.runs")
    merged.write(tmp_path / "merged")
    assert tables(tmp_path / "merged") == whole
    with pytest.raises(comity.ResultsError, match="exists; expected a new path, or force=True"):
        merged.write(tmp_path / "merged")
    with pytest.raises(comity.ResultsError, match="no runs are stored at"):
        comity.merge(tmp_path / "nowhere")
    with pytest.raises(comity.ResultsError, match="nothing to merge"):
        comity.merge()


def test_points_choose_runs(file, tmp_path):
    axis = "topology.bottleneck.queue"
    every = comity.run(file)
    some = comity.run(file, points={axis: 40})
    assert some.runs.arrow()["run"].to_pylist() == [2, 3]
    expected = [row for row in every.flows.arrow().to_pylist() if row[f"axis.{axis}"] == 40]
    assert some.flows.arrow().to_pylist() == expected
    assert len(comity.run(file, points={axis: [10, 40]}, shard=(1, 4))) == 1
    printed = command("sim", "run", file, "--json", "--point", f"{axis}=40")
    assert [point["axes"] for point in json.loads(printed.stdout)["points"]] == [{axis: 40}]
    with pytest.raises(comity.ScenarioError, match="has no value 41; expected one of 10, 40"):
        comity.run(file, points={axis: 41})
    with pytest.raises(comity.ScenarioError, match="did you mean"):
        comity.run(file, points={axis + "s": 40})


@pytest.mark.parametrize("start", ["fork", "spawn"])
def test_processes_do_the_same(file, tmp_path, whole, start):
    context = multiprocessing.get_context(start)
    calls = []
    with concurrent.futures.ProcessPoolExecutor(2, mp_context=context) as pool:
        results = comity.run(
            file,
            seeds=SEEDS,
            out=tmp_path / "out",
            executor=pool,
            progress=lambda *call: calls.append(call),
        )
    assert len(results) == 20 and calls == [(done, 20) for done in range(1, 21)]
    assert tables(tmp_path / "out") == whole


def test_threads_do_the_same_without_a_store(file):
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        assert rows(comity.run(file, executor=pool)) == rows(comity.run(file))


def test_the_files_of_a_scenario_travel_with_it(tmp_path):
    (tmp_path / "link.up").write_text("1\n3\n7\n")
    text = TEXT.replace('rate = "2Mbps"', 'trace = "link.up"')
    path = tmp_path / "traced.toml"
    path.write_text(text)
    here = rows(comity.run(path))
    # A process at another place.
    context = multiprocessing.get_context("spawn")
    with concurrent.futures.ProcessPoolExecutor(
        1, mp_context=context, initializer=os.chdir, initargs=("/",)
    ) as pool:
        assert rows(comity.run(path, executor=pool)) == here


def test_a_worker_that_dies_loses_nothing(file, tmp_path, whole):
    out = tmp_path / "out"
    pool = concurrent.futures.ProcessPoolExecutor(2, mp_context=multiprocessing.get_context("spawn"))

    def kill(done, _):
        if done == 3:
            os.kill(next(iter(pool._processes)), signal.SIGKILL)

    with pool, pytest.raises(comity.RunError, match="BrokenProcessPool") as caught:
        comity.run(file, seeds=SEEDS, out=out, executor=pool, progress=kill)
    failed = {failure.run for failure in caught.value.failures}
    kept = caught.value.results
    assert 3 <= len(kept) < 20 and len(kept) + len(failed) == 20
    assert failed.isdisjoint(kept.runs.arrow()["run"].to_pylist())
    with concurrent.futures.ThreadPoolExecutor(1) as pool:
        calls = []
        comity.run(
            file, seeds=SEEDS, out=out, executor=pool, progress=lambda *call: calls.append(call)
        )
    assert len(calls) == len(failed), "what was stored is not done again"
    assert tables(out) == whole


def test_a_broken_executor_fails_as_a_worker_does(file):
    pool = concurrent.futures.ThreadPoolExecutor(1)
    pool.shutdown()
    with pytest.raises(comity.RunError, match="4 of 4 runs failed\n.*worker failed: RuntimeError"):
        comity.run(file, executor=pool)


def test_an_interrupt_cancels_what_no_worker_has_begun(file, tmp_path):
    with concurrent.futures.ThreadPoolExecutor(1) as pool:
        with pytest.raises(Enough):
            comity.run(
                file, seeds=SEEDS, out=tmp_path / "out", executor=pool, progress=stop_after(2)
            )
    assert 2 <= len(comity.merge(tmp_path / "out", partial=True)) < 20


def test_runs_of_another_sweep_are_refused(file):
    """Such as those of a worker with another version of Comity."""

    class Elsewhere(concurrent.futures.Executor):
        def submit(self, work, parts, piece):
            *others, seeds = parts
            future = concurrent.futures.Future()
            future.set_result(work((*others, tuple(seed + 1 for seed in seeds)), piece))
            return future

    with pytest.raises(comity.ResultsError, match="another scenario, seed or version"):
        comity.run(file, executor=Elsewhere())


@pytest.mark.parametrize(
    "arguments, message",
    [
        ({"threads": 2, "executor": object()}, "both set"),
        ({"packets": True, "out": "out"}, "only in memory"),
        (
            {"controllers": {"mine": comity.Controller}, "out": "out"},
            "controllers and out are both set: .* a Python class has no such identity",
        ),
        (
            {"controllers": {"mine": comity.Controller}, "executor": object()},
            "controllers and executor are both set: a worker gets a scenario as text",
        ),
        ({"executor": object()}, "expected a concurrent.futures.Executor"),
        ({"shard": (4, 3)}, "shard is 4/3; .*such as 3/16"),
        ({"shard": (1, 2, 3)}, "expected a pair"),
        ({"shard": "1/3"}, "expected a pair"),
        ({"points": ["queue=20"]}, "points is .*expected a dict"),
    ],
)
def test_wrong_arguments_are_refused(file, arguments, message):
    with pytest.raises(comity.ScenarioError, match=message):
        comity.run(file, **arguments)
    with pytest.raises(comity.ResultsError, match="cannot store results as .xml"):
        comity.run(file, out="out.xml")


def test_a_dask_cluster_loses_a_worker_and_nothing_else(file, tmp_path, whole):
    import distributed

    out = tmp_path / "out"
    with distributed.LocalCluster(
        n_workers=2, threads_per_worker=1, protocol="tcp", dashboard_address=None
    ) as cluster, distributed.Client(cluster) as client:
        workers = client.run(os.getpid)
        assert len(set(workers.values())) == 2

        def kill(done, _):
            if done == 3:
                os.kill(next(iter(workers.values())), signal.SIGKILL)

        results = comity.run(
            file, seeds=SEEDS, out=out, executor=client.get_executor(), progress=kill
        )
    assert len(results) == 20
    assert tables(out) == whole


def test_a_value_for_a_swept_key_replaces_the_axis_or_is_refused(file, tmp_path):
    axis = "topology.bottleneck.queue"
    with pytest.warns(UserWarning, match=f"`{axis}` = 20 replaces the 2 values of the axis"):
        results = comity.run(file, set={axis: 20}, seeds=1)
    assert results.groups.arrow()[f"axis.{axis}"].to_pylist() == [20, 20]
    for value in ("banana", 0, {"kind": "red", "limti": 5}):
        with pytest.raises(comity.ScenarioError, match="bottleneck.queue"):
            comity.run(file, set={axis: value}, seeds=1)
    with pytest.raises(comity.ScenarioError, match="the sweep sets it as well"):
        comity.run(
            file, set={"topology.bottleneck": {"rate": "1Mbps", "delay": "1ms", "queue": 9}}
        )
    with pytest.raises(comity.ScenarioError, match="has no value 10"), pytest.warns(UserWarning):
        comity.run(file, set={axis: 20}, points={axis: 10})


def test_runs_of_another_sweep_are_not_forgotten(file, tmp_path):
    out = tmp_path / "parts"
    comity.run(file, out=out, shard=(1, 2), set={"scenario.duration": "3s"})
    with pytest.raises(comity.ResultsError) as raised:
        comity.run(file, out=out, shard=(1, 2))
    for part in ("parts.runs holds 2 runs of another sweep", "expected the scenario", "force=True"):
        assert part in str(raised.value)
    assert len(comity.merge(out, partial=True)) == 2
    comity.run(file, out=out, shard=(1, 2), force=True)
    assert len(comity.merge(out, partial=True)) == 2
