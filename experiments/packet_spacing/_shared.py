"""Measures that the figures of packet spacing share."""


def loss(run, group="psa"):
    """The share of the packets of a group, the agents, that were dropped."""
    flows = run.flows(group)
    return flows.dropped_data_packets.sum() / flows.sent_packets.sum()


def received(group):
    """The mean throughput of a flow of a group, in Mb/s."""
    return lambda run: run.flows(group).throughput_bps.mean() / 1e6


def smaller_over_larger(numbers):
    """The smaller of two rates over the larger one."""
    return numbers.min() / numbers.max()
