"""What the tests share."""

import pathlib
import subprocess
import sys

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]

TEXT = """
[scenario]
name = "narrow"
duration = "10s"
warmup = "2s"
bins = "1s"
seeds = [3, 4]

[topology]
kind = "dumbbell"
bottleneck = { rate = "2Mbps", delay = "20ms", queue = 10 }
access = { rate = "10Mbps", delay = "2ms" }

[[flow]]
group = "reno"
controller = "reno"
count = 2

[[flow]]
group = "libra"
controller = "libra"

[[sweep]]
parameter = "topology.bottleneck.queue"
values = [10, 40]
"""

DICT = {
    "scenario": {
        "name": "narrow",
        "duration": "10s",
        "warmup": "2s",
        "bins": "1s",
        "seeds": [3, 4],
    },
    "topology": {
        "kind": "dumbbell",
        "bottleneck": {"rate": "2Mbps", "delay": "20ms", "queue": 10},
        "access": {"rate": "10Mbps", "delay": "2ms"},
    },
    "flow": [
        {"group": "reno", "controller": "reno", "count": 2},
        {"group": "libra", "controller": "libra"},
    ],
    "sweep": [{"parameter": "topology.bottleneck.queue", "values": [10, 40]}],
}


# A video and time-lined TCP in too narrow a link, measured from the start.
VIDEO = {
    "scenario": {"name": "video", "duration": "20s"},
    "topology": {**DICT["topology"], "bottleneck": {"rate": "2Mbps", "delay": "40ms", "queue": 20}},
    "flow": [
        {"group": "reno", "controller": "reno", "count": 2},
        {
            "group": "video",
            "transport": "sections",
            "controller": "steady",
            "latency": "400ms",
            "workload": {"kind": "video", "rate": "1500kbps", "fps": 30, "group": 30},
        },
        {
            "group": "timeline",
            "controller": "reno",
            "workload": {"kind": "greedy"},
            "timeline": {"section": "20kB", "deadline": "800ms"},
        },
    ],
}


@pytest.fixture(scope="session")
def file(tmp_path_factory):
    path = tmp_path_factory.mktemp("scenario") / "narrow.toml"
    path.write_text(TEXT, encoding="utf-8")
    return path


def command(*words, **options):
    """The command of the package, as a process."""
    return subprocess.run(
        [sys.executable, "-m", "comity", *map(str, words)],
        capture_output=True,
        text=True,
        timeout=120,
        **options,
    )
