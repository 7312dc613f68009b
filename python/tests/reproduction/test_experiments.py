"""The figures of the five papers: what can be said of them without running anything."""

import pathlib
import re

from comity.reproduction.figures import found_in

ROOT = pathlib.Path(__file__).resolve().parents[3]
CLAIMS = found_in(ROOT / "experiments")


def test_every_paper_has_its_claims_and_each_a_name_of_its_own():
    ids = [claim.id for _, claim in CLAIMS]
    assert len(ids) == len(set(ids)) == 31 + 6
    # What the papers say in words, with bounds of ours: three statements of what a viewer sees,
    # three of packet spacing.
    assert {claim.id for _, claim in CLAIMS if claim.ours} == {
        "libra-video-pauses",
        "psp-bursts",
        "psp-fig1-2-live",
        "psp-numbers",
        "real-playback-pauses",
        "tltcp-mpeg-playback",
    }
    assert {system for system, _ in CLAIMS} == {
        "iftp",
        "libra",
        "packet_spacing",
        "tcp_real",
        "tltcp",
    }
    assert all(claim.paper.strip() and claim.says and claim.source for _, claim in CLAIMS)


def test_scenarios_exist_and_what_is_run_has_a_picture():
    for _, claim in CLAIMS:
        for scenario in claim.scenarios.values():
            assert pathlib.Path(scenario.path).is_file(), claim.id
        assert bool(claim.draw) == bool(claim.scenarios), claim.id


def test_the_tests_that_hold_claims_exist():
    named = [test for _, claim in CLAIMS for test in claim.tests]
    assert named
    for test in named:
        file, function = test.split(": ")
        text = (ROOT / file).read_text(encoding="utf-8")
        assert re.search(rf"#\[test\]\s*(#\[[^\n]*\]\s*)*fn {function}\(", text), test
