"""Measures that the figures of packet spacing share."""


def loss(run):
    """The share of the agents' packets that were dropped."""
    flows = run.flows("psa")
    return flows.dropped_data_packets.sum() / flows.sent_packets.sum()


def smaller_over_larger(numbers):
    """The smaller of two rates over the larger one."""
    return numbers.min() / numbers.max()
