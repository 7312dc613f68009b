"""Figure 5: sequence numbers over time of one TLTCP and one TCP flow."""

from comity.reproduction import claim


def packets_of(group):
    """What a flow of the group delivers, in packets of 1500 B."""
    return lambda run: run.flows(group).delivered_wire_bytes.mean() / 1500


@claim(
    "tltcp-fig5-timelined",
    says=(
        "at every deadline the sequence number jumps to a multiple of 467, and in 14 s each of "
        "two flows delivers about 900 packets"
    ),
    source="section 6, figure 5",
    scenario="fig05_jumps.toml",
    tests=["lab/sim/tests/tltcp.rs: figure_5_each_deadline_leads_to_the_next_multiple_of_467"],
)
def figure_5(runs, check):
    tltcp, tcp = runs.measure(packets_of("tltcp")), runs.measure(packets_of("tcp"))
    check("packets of TLTCP in 14 s", tltcp, within=(0.1, 900), paper=900)
    check("packets of TCP in 14 s", tcp, within=(0.1, 900), paper=900)
    check("TLTCP over TCP", tltcp / tcp, within=(0.05, 1), paper=1)


@figure_5.picture
def picture(runs, draw):
    series = {name: (runs.measure(packets_of(name.lower())), 900) for name in ("TLTCP", "TCP")}
    draw.bars("delivered in 14 s", series, over="none", x="", y="packets", wanted=(810, 990))
