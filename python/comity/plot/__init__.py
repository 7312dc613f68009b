"""Pictures of results: one style, one colour and marker for each protocol.

Every function takes results, from `comity.run` or `comity.read`, and returns a Matplotlib figure
that a notebook shows by itself; `figure.savefig("name.svg")` stores it. `dark=True` suits dark
pages. `run` is the run to draw; `only` names the flows, groups or links to draw.

| function | draws | needs |
|---|---|---|
| `cwnd` | congestion window and slow-start threshold over time | `bins` |
| `throughput` | goodput of each flow over time | `bins` |
| `queue` | longest queue of each link over time, and drops | `bins` |
| `delay` | distribution function of the one-way delay | |
| `completion` | completion time of each flow over its size, medians and 95th percentiles | flows that end |
| `sequence` | packets of a TCP flow over time, drops and retransmissions | `packets=True` |
| `shares` | throughput per flow of each group over the sweep, 95 % confidence intervals | |
| `fairness` | Jain's fairness index over the sweep, 95 % confidence intervals | several flows |
| `jain` | Jain's fairness index of one run over time scales | `bins` |
| `slack` | time left until the deadline of each frame | `packets=True` |
| `heatmap` | a number of each group over two axes of the sweep | two axes |
"""

from ._fairness import fairness, heatmap, jain, shares
from ._packets import sequence, slack
from ._style import Style, protocol, style

# For a picture of one's own, in a notebook. The API reference has no list of Matplotlib's names.
from ._style import Picture as Picture
from ._time import cwnd, delay, queue, throughput
from ._transfers import completion

KINDS = {
    "cwnd": cwnd,
    "throughput": throughput,
    "queue": queue,
    "delay": delay,
    "completion": completion,
    "sequence": sequence,
    "shares": shares,
    "fairness": fairness,
    "jain": jain,
    "slack": slack,
    "heatmap": heatmap,
}
"""The kinds of pictures by name, as `comity plot --kind` takes them."""

__all__ = [
    "KINDS",
    "Style",
    "completion",
    "cwnd",
    "delay",
    "fairness",
    "heatmap",
    "jain",
    "protocol",
    "queue",
    "sequence",
    "shares",
    "slack",
    "style",
    "throughput",
]
