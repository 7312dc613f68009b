"""The tables as text and as a page."""

import platform

# What is said of a difference whose cause was not found; what was tried may follow.
NOT_KNOWN = "not known"
HEAD = ("point", "runs", "quantity", "sim", "lab", "sim against lab", "verdict", "cause")


def verdict(comparison):
    return {True: "agrees", False: "differs", None: "one world"}[comparison.holds]


def cells(comparison, cause):
    said = "" if comparison.holds else (cause or NOT_KNOWN)
    worlds = ["-" if world is None else str(world) for world in (comparison.sim, comparison.lab)]
    runs = "/".join(str(len(world.values)) if world else "0" for world in (comparison.sim, comparison.lab))
    return (comparison.point, runs, comparison.quantity, *worlds, comparison.distance, verdict(comparison), "" if comparison.holds is None else said)


def markdown(lines):
    """A table in Markdown, its columns aligned but for the last.

    >>> print(markdown([("a", "bc", "d"), ("def", "g", "long")]))
    | a   | bc | d |
    | --- | -- | - |
    | def | g  | long |
    """
    widths = [max(map(len, column)) for column in zip(*lines)]
    widths[-1] = len(lines[0][-1])
    row = lambda line: "| " + " | ".join(cell.ljust(width) for cell, width in zip(line, widths)) + " |"
    head, *rest = lines
    return "\n".join([row(head), row(["-" * width for width in widths]), *map(row, rest)])


def summary(compared):
    both = [comparison for comparison, _ in compared if comparison.holds is not None]
    agree = sum(comparison.holds for comparison in both)
    is_known = lambda cause: cause is not None and not cause.startswith(NOT_KNOWN)
    explained = sum(not comparison.holds and is_known(cause) for comparison, cause in compared if comparison.holds is not None)
    return f"{agree} of {len(both)} quantities agree; {explained} of the other {len(both) - agree} have a known cause."


def table(compared, doubts):
    lines = [HEAD]
    last = None
    for comparison, cause in compared:
        line = cells(comparison, cause)
        mark = " *" if comparison.point in doubts else ""
        lines.append((line[0] + mark, *line[1:]) if line[:2] != last else ("", "", *line[2:]))
        last = line[:2]
    found = [markdown(lines), "", summary(compared)]
    found += [f"* {label}: {count} of its runs in the lab cannot be trusted, after two repetitions: the machine was busy" for label, count in doubts.items()]
    return "\n".join(found)


def page(compared, doubts, refusals, command, drawing):
    """The page, which says by which command it was made."""
    by_scenario = {}
    for comparison, cause in compared:
        by_scenario.setdefault(comparison.point.split()[0], []).append((comparison, cause))
    parts = [
        "# One scenario in two worlds",
        "",
        f"Made by `{command}`, kernel {platform.release()}. Do not edit.",
        "",
        "Each scenario of [experiments/worlds](../../experiments/worlds) runs in the simulator and on real packets",
        "(`comity lab`), where `tcp` is the TCP of the Linux kernel. The table has medians over the seeds, and half",
        "the distance between the quartiles behind ±. Rates, queueing delays and losses agree within 10 %, shares and",
        "Jain's index within 0.05, sections on time within 2 points; delays also within 0.5 ms and losses within 0.1",
        "per mille. A share of 1 is an equal share. [Phase effects](phase.md) are kept out by a jitter of the",
        "acknowledgements.",
        "",
        summary(compared),
        "",
        f"![The ratio of the worlds for each point]({drawing})",
    ]
    for name, rows in by_scenario.items():
        of_scenario = {label: count for label, count in doubts.items() if label.split()[0] == name}
        parts += ["", f"## {name}", "", table(rows, of_scenario)]
    if refusals:
        parts += ["", "## Skipped", ""]
        parts += [f"- {world}: {label}: {reason}" for (world, label), reason in refusals.items()]
    return "\n".join(parts) + "\n"
