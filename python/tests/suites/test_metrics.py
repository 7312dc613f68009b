"""The metrics of RFC 8868 on runs that are made by hand."""

import numpy as np
import pandas as pd
import pytest
from comity.reproduction import Run
from comity.suites import metrics


def a_run(**flows):
    """A run with bins of 0.5 s; a flow is its rate in each, in Mb/s, sent as delivered."""
    rows = [
        {
            "flow": name,
            "index": index,
            "bin_start_ns": round(bin * 5e8),
            "delivered_bytes": rate * 1e6 / 8 / 2,
            "sent_wire_bytes": rate * 1e6 / 8 / 2,
        }
        for index, (name, rates) in enumerate(flows.items())
        for bin, rate in enumerate(rates)
    ]
    table = pd.DataFrame(
        {
            "flow": list(flows),
            "group": list(flows),
            "index": range(len(flows)),
            "delay_p95_s": [0.1 * (1 + index) for index in range(len(flows))],
            "sent_packets": 200,
            "dropped_data_packets": range(len(flows)),
            "sections_submitted": 90,
            "sections_shed": 8,
            "sections_refused": 2,
            "sections_open": 20,
            "sections_on_time": 60,
        }
    )
    return Run({"flows": table, "flow_series": pd.DataFrame(rows)}, set(flows))


def test_rates_are_means_over_whole_intervals():
    run = a_run(a=[1, 3, 5, 7, 9], b=[2, 2, 2, 2, 2])
    assert metrics.rates(run, "a").tolist() == [[2e6, 6e6]]
    assert metrics.rates(run, "a", "b", over_s=0.5, start_s=1.0, end_s=2.0).tolist() == [
        [5e6, 7e6],
        [2e6, 2e6],
    ]
    assert metrics.delivered(run, "a", "b", start_s=0.5) == pytest.approx(
        (3 + 5 + 7 + 9 + 8) / 4 * 1e6
    )


def test_delays_losses_and_frames_are_those_of_the_flows():
    run = a_run(a=[1], b=[1])
    assert metrics.delay_ms(run, "a", "b") == pytest.approx(200)
    assert metrics.lost(run, "a", "b") == pytest.approx(1 / 400)
    # 60 of 90 + 8 + 2 frames; 20 have no outcome yet.
    assert metrics.in_time(run, "a") == pytest.approx(60 / 80)


def test_fairness_is_the_median_of_the_ratios():
    run = a_run(a=[1, 1, 3, 3, 2, 2], b=[1, 1, 1, 1, 1, 1])
    assert metrics.fairness(run, "a", "b", over_s=1) == pytest.approx(2)
    assert metrics.fairness(run, "a", "b", over_s=1, start_s=1, end_s=2) == pytest.approx(3)
    assert metrics.fairness(a_run(a=[1, 1], b=[0, 0]), "a", "b", over_s=1) == np.inf


def test_a_rate_is_stable_from_where_it_stays_near_its_level_for_five_seconds():
    steady = [2.0] * 40
    # Six bins of a rise; the mean of a second is within 20 % of 2 from the bin that follows on.
    run = a_run(rises=[0.1, 0.3, 0.6, 0.9, 1.2, 1.4, *steady])
    assert metrics.convergence(run, "rises", start_s=0, end_s=23) == pytest.approx(2.5)
    # The second half decides the level, and a dip within five seconds delays it.
    run = a_run(dips=[2.0] * 4 + [0.2] + steady)
    assert metrics.convergence(run, "dips", start_s=0, end_s=22) == pytest.approx(2.5)
    assert metrics.convergence(run, "dips", start_s=5, end_s=22) == 0
    swings = a_run(swings=[0.5, 0.5, 3.5, 3.5] * 10)
    assert np.isnan(metrics.convergence(swings, "swings", start_s=0, end_s=20))
    assert np.isnan(metrics.convergence(swings, "swings", start_s=0, end_s=3))


def test_swings_pass_both_watermarks():
    run = a_run(a=[1.3, 0.2, 0.5, 0.2, 1.5, 1.1, 0.3], b=[1.0] * 7)
    assert metrics.swings(run, "a") == 3
    assert metrics.swings(run, "a", "b") == 1.5


def test_variation_is_that_of_the_second_halves():
    run = a_run(a=[9, 9, 9, 9, 1, 1, 3, 3])
    assert metrics.variation(run, "a", periods=[(0, 4)]) == pytest.approx(0.5)


def test_what_is_possible_is_bounded_by_the_capacity_and_the_rates():
    steps = [(0, 1e6), (40, 2.5e6), (60, 0.6e6), (80, 1e6)]
    one = metrics.possible(steps, [(0, 100)], 1.5e6, 100)
    assert one == pytest.approx((40 * 1 + 20 * 1.5 + 20 * 0.6 + 20 * 1) / 100 * 1e6)
    two = metrics.possible(steps, [(0, 100), (50, 100)], 1.5e6, 100)
    assert two == pytest.approx((40 + 10 * 1.5 + 10 * 2.5 + 20 * 0.6 + 20) / 100 * 1e6)
    assert metrics.possible(steps, [(0, 50)], 1.5e6, 100) == pytest.approx((40 + 15) / 100 * 1e6)
