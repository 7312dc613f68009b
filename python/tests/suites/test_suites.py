"""The suites of RFC 8867 and RFC 9743: their scenarios read, and short runs have their numbers."""

import dataclasses
from pathlib import Path

import numpy as np
import pytest
from comity.reproduction import Scenario
from comity.reproduction.claims import Form
from comity.suites.case import found_in
from comity.suites.runs import studies

ROOT = Path(__file__).resolve().parents[3]
SUITES = {suite.id: suite for suite in found_in(ROOT / "experiments")}
CASES = [(suite.id, case) for suite in SUITES.values() for case in suite.cases]
#: The flows of RFC 8867 start within 100 s, those of RFC 9743 at once; two cases look at changes.
DURATIONS = {"rfc8867": "105s", "rfc9743": "6s", "no-feedback": "48s", "changes": "46s"}


def test_the_suites_have_these_cases():
    assert [f"{suite}-{case.id}" for suite, case in CASES] == [
        *(f"rfc8867-{section}" for section in ("5.1", "5.2", "5.3", "5.4", "5.5", "5.6", "5.7")),
        *(f"rfc8867-{section}" for section in ("5.8", "6.2", "6.3")),
        *(f"rfc9743-{name}" for name in ("collapse", "buffers", "rivals", "short-flows")),
        *(f"rfc9743-{name}" for name in ("real-time", "no-feedback", "queues", "satellite")),
        *(f"rfc9743-{name}" for name in ("changes", "bottlenecks", "reverse", "impaired")),
    ]


@pytest.mark.parametrize("suite", SUITES)
def test_the_overview_and_the_pictures_show_what_is_measured(suite):
    cases = {case.id: case for case in SUITES[suite].cases}
    for heading, case, variant, title in SUITES[suite].overview:
        assert variant.removesuffix(", in the lab") in cases[case].choices(), heading
        assert title in {column.title for column in cases[case].columns}, heading
    for case in cases.values():
        titles = [column.title for column in case.columns]
        assert len(titles) == len(set(titles)), case.id
        assert set(case.scatter or []) <= set(titles), case.id
        assert not case.picture or case.picture.variant in case.choices(), case.id


def shortened(suite, case):
    """A case with one controller, one seed and a shorter run."""

    def short(scenario):
        assert Path(scenario.path).is_file()
        return dataclasses.replace(
            scenario,
            set={
                **scenario.set,
                "scenario.duration": DURATIONS.get(case.id, DURATIONS[suite]),
                "scenario.warmup": "0s",
            },
            only={**scenario.only, "controller": ["steady"]},
            seeds=1,
        )

    several = not isinstance(case.scenario, Scenario)
    scenario = (
        {name: short(each) for name, each in case.scenario.items()}
        if several
        else short(case.scenario)
    )
    return dataclasses.replace(case, scenario=scenario)


@pytest.mark.parametrize(("suite", "case"), CASES, ids=lambda value: getattr(value, "id", value))
def test_a_short_run_has_every_variant_and_its_numbers(suite, case):
    short = shortened(suite, case)
    numbers = short.measured(studies(short, Form.FULL, None, lambda *_: None))
    assert list(numbers) == list(case.choices())
    for variant, columns in numbers.items():
        assert list(columns) == [column.title for column in case.columns]
        for values in columns.values():
            assert list(values.points["controller"]) == ["steady"]
        # Rates, delays and queues exist in any run; what needs later seconds does not.
        exist = [title for title, values in columns.items() if np.isfinite(values.value).all()]
        assert len(exist) >= len(columns) / 3, (variant, exist)
