"""The command: runs cases, prints tables and pages, and says what is wrong."""

import json
from pathlib import Path

import comity
import pytest
from comity.suites.command import main

ROOT = Path(__file__).resolve().parents[3]

SCENARIO = """\
[scenario]
name = "narrow"
duration = "10s"
bins = "500ms"
seeds = { first = 1, count = 3 }

[topology]
kind = "dumbbell"
bottleneck = { rate = "1Mbps", delay = "20ms", queue = 10 }

[[flow]]
group = "media"
transport = "sections"
start = { spread = "100ms" }
workload = { kind = "greedy" }

[[sweep]]
name = "controller"
parameter = "flow.media.controller"
values = ["reno", "cubic"]

[[sweep]]
name = "queue"
parameter = "topology.bottleneck.queue"
values = [10, 40]
"""

SUITE = """
from comity.reproduction import Scenario
from comity.suites import Case, Column, Panel, Suite, metrics

one = Case(
    "1",
    "a greedy flow",
    "it fills the link.",
    Scenario("narrow.toml", quick={"seeds": 2, "only": {"queue": [10]}}),
    [
        Column("Mb/s", lambda run: metrics.delivered(run, "media") / 1e6),
        Column("delay, ms", lambda run: metrics.delay_ms(run, "media"), 0),
        Column("stable, s", lambda run: metrics.convergence(run, "media", start_s=0, end_s=10), 1),
    ],
    variants={"short": {"queue": 10}, "long": {"queue": 40}},
    differs="nothing",
    picture=Panel({"media": "media"}, [(0, 1e6)], "short"),
    scatter=("delay, ms", "Mb/s"),
)
SUITE = Suite(
    "narrow",
    "Narrow: one link",
    "About it.",
    [one],
    [
        ("rate", "1", "short", "Mb/s"),
        ("long", "1", "long", "Mb/s"),
        ("lab", "1", "short, in the lab", "Mb/s"),
    ],
    found="It is full.",
)
"""


@pytest.fixture
def experiments(tmp_path):
    def made(scenario=SCENARIO):
        folder = tmp_path / "experiments" / "narrow"
        folder.mkdir(parents=True)
        (folder / "narrow.toml").write_text(scenario)
        (folder / "suite.py").write_text(SUITE)
        return ["--experiments", str(folder.parent)]

    return made


def test_the_quick_form_leaves_out_what_it_does_not_run(experiments, capsys):
    arguments = [*experiments(), "--json"]
    assert main(arguments) == 0
    quick = json.loads(capsys.readouterr().out)
    assert main([*arguments, "--full"]) == 0
    full = json.loads(capsys.readouterr().out)
    assert (quick["form"], full["form"]) == ("quick", "full")

    def variants(document):
        (suite,) = document["suites"]
        (case,) = suite["cases"]
        assert (suite["suite"], case["id"]) == ("narrow", "narrow-1")
        return list(dict.fromkeys(number["variant"] for number in case["numbers"]))

    assert variants(quick) == ["short"]
    assert variants(full) == ["short", "long"]
    rates = {
        number["controller"]: number
        for number in full["suites"][0]["cases"][0]["numbers"]
        if number["metric"] == "Mb/s" and number["variant"] == "short"
    }
    assert list(rates) == ["reno", "cubic"]
    for number in rates.values():
        # 1,423 of 1,480 bytes of a packet are payload, and the first round trips are not full.
        assert 0.7 < number["value"] < 0.97
        assert number["low"] <= number["value"] <= number["high"]


def test_a_page_has_a_table_and_a_report_has_pictures(experiments, tmp_path, capsys):
    page, report = tmp_path / "page.md", tmp_path / "report.html"
    arguments = [*experiments(), "--page", str(page), "--report", str(report)]
    assert main([*arguments, "narrow-1"]) == 0
    assert "| `reno` |" in capsys.readouterr().out
    text = page.read_text(encoding="utf-8")
    assert "## Narrow: one link\n\nAbout it.\n\n| controller | rate |\n" in text
    assert "\n\nIt is full.\n\nWhat differs" in text
    assert "- 1: nothing" in text
    assert f"--page {page}" in text
    html = report.read_text(encoding="utf-8")
    assert html.count("<svg") == 1
    assert html.count("<table>") == 2
    assert "narrow.toml" in html
    assert "../" not in html


def test_results_of_the_lab_stand_beside_those_of_the_simulator(experiments, tmp_path, capsys):
    arguments = experiments()
    folder = tmp_path / "experiments" / "narrow"
    # The lab's results have the same columns.
    results = comity.run(folder / "narrow.toml", seeds=1, points={"queue": 10})
    results.write(tmp_path / "lab")
    assert main([*arguments, "--lab", str(tmp_path / "lab")]) == 0
    assert "| controller | rate | lab |" in capsys.readouterr().out
    other = tmp_path / "other"
    text = SCENARIO.replace('name = "narrow"', 'name = "other"')
    comity.run(text, seeds=1, points={"queue": 10}).write(other)
    assert main([*arguments, "--lab", str(other)]) == 2
    assert "has results of other: expected one of narrow" in capsys.readouterr().err


def test_what_there_is_is_listed(capsys):
    assert main(["--experiments", str(ROOT / "experiments"), "--list", "rfc8867-5.*"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 8
    assert lines[0].split() == "rfc8867-5.1 variable available capacity with a single flow".split()


def test_a_wrong_name_or_scenario_is_an_error_that_names_the_right_one(experiments, capsys):
    arguments = experiments(SCENARIO.replace("queue = 10", "queu = 10"))
    assert main([*arguments, "narow-1"]) == 2
    error = capsys.readouterr().err
    assert "no suite and no case is called 'narow-1'" in error
    assert "did you mean 'narrow-1'?" in error
    assert main(arguments) == 2
    error = capsys.readouterr().err
    assert "narrow.toml:9" in error
    assert "`queue`" in error
    assert main(["--experiments", "nowhere"]) == 2
    assert "expected a folder of suites" in capsys.readouterr().err
