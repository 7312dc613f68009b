"""Measures that the figures of TLTCP share: those of section 6.2."""

from comity.reproduction import best, friendliness, max_min_ratio, worst


def F(run):
    """The friendliness ratio: the mean throughput of TLTCP over that of TCP."""
    return friendliness(run.flows("tltcp").throughput_bps, run.flows("tcp").throughput_bps)


def S(run):
    """The separation index of all flows."""
    return max_min_ratio(run.flows().throughput_bps)


def F_worst(run):
    """The worst ratio of two halves of all flows."""
    return worst(run.flows().throughput_bps)


def F_best(run):
    """The best ratio of two halves of all flows."""
    return best(run.flows().throughput_bps)


#: Why flows with small windows are fair whatever the controller does.
NOTHING_LOST = (
    "the windows of all flows fit into the queue of 400 packets, so nothing is lost, and without "
    "losses every controller is fair"
)
#: The bounds of a friendliness ratio that the figures show as close to 1.
WANTED = (0.85, 1.2)
FRIENDLY = {"at_least": WANTED[0], "at_most": WANTED[1]}
