"""Numbers taken from runs."""

import comity
import pytest
from comity.reproduction import Study
from conftest import TEXT


@pytest.mark.parametrize(
    "number",
    [
        lambda run: run.flows("reno").timeline_late.sum(),
        lambda run: run.flows("reno")["timeline_late"].sum(),
        lambda run: run.flows().loc[0, "timeline_late"],
    ],
)
def test_a_measure_of_a_column_that_no_run_fills_says_what_would_be_in_it(number):
    results = comity.run(TEXT, seeds=3)
    names = ("runs", "flows", "links")
    study = Study({name: getattr(results, name).arrow().to_pandas() for name in names}, [3])
    message = "no run fills the column `timeline_late` of the table `flows`: TLTCP: sections comp"
    with pytest.raises(ValueError, match=message):
        study.measure(number)
    for mistake in (lambda run: run.flows().nonsense, lambda run: run.links().goodput_bps):
        with pytest.raises(AttributeError):
            study.measure(mistake)
    assert len(study.measure(lambda run: run.flows("reno").goodput_bps.sum())) == 2
