"""The comparison as rows, as a table of the terminal, as a CSV and as a page."""

import csv
import io
import math
import platform

from measure import significant

# Causes in experiments/worlds/causes.toml that begin so say only what was tried.
NOT_KNOWN = "not known"
HEAD = ("point", "runs", "quantity", "sim", "lab", "sim against lab", "verdict", "cause")
COLUMNS = (
    "scenario", "point", "quantity",
    "sim_runs", "sim", "sim_spread", "lab_runs", "lab", "lab_spread",
    "ratio", "difference", "verdict", "explained", "cause",
)
# The quantities of the table of kinds, by how their names end.
KINDS = (
    ("rate of a flow", "Mb/s a flow"), ("share", "share"), ("Jain's index", "Jain"),
    ("queueing delay", "queueing delay ms"), ("loss", "loss per mille"), ("sections on time", "on time %"),
)


def row_of(comparison, cause):
    """A comparison as a row of the CSV. Numbers are text, with the digits that they have everywhere.

    `explained` is empty where the worlds agree. `cause` is then empty, too; where no cause is known it
    says what was tried.

    >>> from measure import Comparison, Sample
    >>> pair = lambda quantity, sim, lab, cause=None: row_of(Comparison("tcp-rtt flows=2", quantity, Sample(sim), Sample(lab)), cause)
    >>> row = pair("tcp Mb/s a flow", (8.0, 8.2, 8.4), (6.0,), "not known: jitter changes nothing")
    >>> [row[name] for name in COLUMNS]
    ['tcp-rtt', 'flows=2', 'tcp Mb/s a flow', '3', '8.200', '0.10', '1', '6.000', '0', '1.37', '', 'differs', 'no', 'jitter changes nothing']
    >>> row = pair("tcp share", (1.0,), (0.9,), "whole segments")
    >>> row["ratio"], row["difference"], row["explained"], row["cause"]
    ('', '+0.1', 'yes', 'whole segments')
    >>> row = pair("tcp share", (1.0,), (1.0,), "whole segments")
    >>> row["difference"], row["verdict"], row["explained"], row["cause"]
    ('+0', 'agrees', '', '')
    >>> row = row_of(Comparison("tcp-rtt", "tcp share", None, Sample((1.0,))), None)
    >>> row["sim"], row["sim_runs"], row["lab"], row["verdict"], row["explained"]
    ('', '0', '1.000', 'one world', '')
    """
    scenario, _, point = comparison.point.partition(" ")
    row = dict.fromkeys(COLUMNS, "") | {"scenario": scenario, "point": point, "quantity": comparison.quantity}
    for name, world in (("sim", comparison.sim), ("lab", comparison.lab)):
        row[f"{name}_runs"] = str(len(world.values)) if world else "0"
        if world:
            row[name], row[f"{name}_spread"] = significant(world.median), significant(world.spread, 2)
    row["verdict"] = {True: "agrees", False: "differs", None: "one world"}[comparison.holds]
    if comparison.holds is None:
        return row
    if comparison.is_difference:
        row["difference"] = f"{comparison.sim.median - comparison.lab.median:+.3g}"
    elif math.isfinite(comparison.ratio):
        row["ratio"] = f"{comparison.ratio:.2f}"
    if not comparison.holds:
        cause = cause or NOT_KNOWN
        row["explained"] = "no" if cause.startswith(NOT_KNOWN) else "yes"
        row["cause"] = cause.removeprefix(NOT_KNOWN).lstrip(":; ") if row["explained"] == "no" else cause
    return row


def csv_of(rows):
    """The rows as a CSV.

    >>> print(csv_of([dict.fromkeys(COLUMNS, "1") | {"cause": "a, b"}]), end="")
    scenario,point,quantity,sim_runs,sim,sim_spread,lab_runs,lab,lab_spread,ratio,difference,verdict,explained,cause
    1,1,1,1,1,1,1,1,1,1,1,1,1,"a, b"
    """
    text = io.StringIO()
    writer = csv.DictWriter(text, COLUMNS, lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    return text.getvalue()


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


def counts(rows):
    """How many rows have both worlds, agree, differ with a known cause, and differ without one.

    >>> row = lambda verdict, explained="": {"verdict": verdict, "explained": explained}
    >>> counts([row("agrees"), row("differs", "yes"), row("differs", "no"), row("differs", "no"), row("one world")])
    (4, 1, 1, 2)
    """
    verdicts = [row["verdict"] for row in rows]
    explained = [row["explained"] for row in rows]
    return len(rows) - verdicts.count("one world"), verdicts.count("agrees"), explained.count("yes"), explained.count("no")


def summary(rows):
    """
    >>> summary([{"verdict": "agrees", "explained": ""}, {"verdict": "differs", "explained": "yes"}])
    '1 of 2 quantities agree; 1 of the other 1 have a known cause.'
    """
    both, agree, explained, _ = counts(rows)
    return f"{agree} of {both} quantities agree; {explained} of the other {both - agree} have a known cause."


def label_of(row):
    return f"{row['scenario']} {row['point']}".strip()


def cells(row):
    """A row as the terminal has it."""
    worlds = [f"{row[world]} ±{row[f'{world}_spread']}" if row[world] else "-" for world in ("sim", "lab")]
    distance = f"×{row['ratio']}" if row["ratio"] else row["difference"] or "-"
    said = row["cause"] if row["explained"] != "no" else f"{NOT_KNOWN}: {row['cause']}" if row["cause"] else NOT_KNOWN
    return (label_of(row), f"{row['sim_runs']}/{row['lab_runs']}", row["quantity"], *worlds, distance, row["verdict"], said)


def distrusted(doubts):
    """A line for each point whose runs in the lab cannot be trusted, from `{label: runs}`."""
    return [f"{label}: {count} of its runs in the lab cannot be trusted, after two repetitions: the machine was busy" for label, count in doubts.items()]


def table(rows, doubts):
    """All rows, for a terminal; points that the lab distrusts have a star.

    >>> from measure import Comparison, Sample
    >>> row = row_of(Comparison("tcp-rtt", "tcp share", Sample((1.0,)), Sample((0.9,))), None)
    >>> print(table([row], {"tcp-rtt": 2}))
    | point     | runs | quantity  | sim      | lab       | sim against lab | verdict | cause |
    | --------- | ---- | --------- | -------- | --------- | --------------- | ------- | ----- |
    | tcp-rtt * | 1/1  | tcp share | 1.000 ±0 | 0.9000 ±0 | +0.1            | differs | not known |
    <BLANKLINE>
    0 of 1 quantities agree; 0 of the other 1 have a known cause.
    * tcp-rtt: 2 of its runs in the lab cannot be trusted, after two repetitions: the machine was busy
    """
    lines = [HEAD]
    last = None
    for line in map(cells, rows):
        mark = " *" if line[0] in doubts else ""
        lines.append((line[0] + mark, *line[1:]) if line[:2] != last else ("", "", *line[2:]))
        last = line[:2]
    return "\n".join([markdown(lines), "", summary(rows), *(f"* {line}" for line in distrusted(doubts))])


def groups(rows):
    """The table of the scenarios, with their sum."""
    by_scenario = {}
    for row in rows:
        by_scenario.setdefault(row["scenario"], []).append(row)
    lines = [("scenario", "points", "quantities", "agree", "differ, explained", "differ, not explained")]
    for name, of_scenario in (*by_scenario.items(), ("all", rows)):
        points = len({label_of(row) for row in of_scenario})
        lines.append((name, *map(str, (points, *counts(of_scenario)))))
    return markdown(lines)


def kinds(rows):
    """The table of the quantities.

    >>> row = lambda quantity, verdict: {"quantity": quantity, "verdict": verdict, "explained": ""}
    >>> print(kinds([row("tcp share", "agrees"), row("loss per mille", "agrees")]))
    | quantity | compared | agree | differ, explained | differ, not explained |
    | -------- | -------- | ----- | ----------------- | --------------------- |
    | share    | 1        | 1     | 0                 | 0                     |
    | loss     | 1        | 1     | 0                 | 0                     |
    """
    lines = [("quantity", "compared", "agree", "differ, explained", "differ, not explained")]
    for name, ending in KINDS:
        of_kind = [row for row in rows if row["quantity"].endswith(ending)]
        if of_kind:
            lines.append((name, *map(str, counts(of_kind))))
    return markdown(lines)


def causes(rows):
    """The table of the known causes, the most frequent first."""
    by_cause = {}
    for row in rows:
        if row["explained"] == "yes":
            by_cause.setdefault(row["cause"], []).append(row)
    lines = [("differences", "points", "cause")]
    for cause, of_cause in sorted(by_cause.items(), key=lambda item: -len(item[1])):
        lines.append((str(len(of_cause)), str(len({label_of(row) for row in of_cause})), cause))
    return markdown(lines)


def unexplained(rows):
    """A line for each point with differences that have no known cause: the medians in both worlds.

    >>> from measure import Comparison, Sample
    >>> of = lambda quantity, sim, cause=None: row_of(Comparison("tcp-rtt flows=2", quantity, Sample((sim,)), Sample((1.0,))), cause)
    >>> print(unexplained([of("tcp share", 1.2), of("tcp Jain", 1.0), of("loss per mille", 2.0, "not known: jitter changes nothing")]))
    | point           | simulator, lab |
    | --------------- | -------------- |
    | tcp-rtt flows=2 | tcp share 1.200, 1.000; loss per mille 2.000, 1.000 (jitter changes nothing) |
    """
    by_point = {}
    for row in rows:
        if row["explained"] == "no":
            by_point.setdefault(label_of(row), []).append(row)
    lines = [("point", "simulator, lab")]
    for label, of_point in by_point.items():
        values = "; ".join(f"{row['quantity']} {row['sim']}, {row['lab']}" for row in of_point)
        tried = "; ".join(dict.fromkeys(row["cause"] for row in of_point if row["cause"]))
        lines.append((label, f"{values} ({tried})" if tried else values))
    return markdown(lines)


def page(rows, doubts, refusals, command, data, drawing, kernel=None):
    """The page, which says by which command it was made. `data` and `drawing` are the files beside it.

    >>> from measure import Comparison, Sample
    >>> of = lambda point, sim: row_of(Comparison(point, "tcp share", Sample((sim,)), Sample((1.0,))), None)
    >>> made = page([of("tcp-rtt", 1.0), of("comity-reno", 1.2)], {}, {}, "make worlds", "w.csv", "w.svg", "6.18").splitlines()
    >>> print("\\n".join(made[2:4]))
    They agree in 1 of 2 quantities. 0 of the 1 differences have a known cause, and 1 have none.
    With TCP alone, 1 of 1 quantities agree. With Comity's transport, alone or beside TCP, 0 of 1 agree.
    >>> [line for line in made if line.startswith("## ")], made[-1]
    (['## Groups', '## Not explained'], '| comity-reno | tcp share 1.200, 1.000 |')
    """
    alone = [row for row in rows if row["scenario"].startswith("tcp-")]
    of = lambda some: "{1} of {0}".format(*counts(some))
    both, agree, explained, not_explained = counts(rows)
    parts = [
        "# Do the simulator and the kernel agree?",
        "",
        f"They agree in {of(rows)} quantities. {explained} of the {both - agree} differences have a known cause, and {not_explained} have none.",
        f"With TCP alone, {of(alone)} quantities agree. With Comity's transport, alone or beside TCP, {of([row for row in rows if row not in alone])} agree.",
        "",
        "Each scenario of [experiments/worlds](../../experiments/worlds) runs in the simulator and on real packets",
        "(`comity lab`), where `tcp` is the TCP of the Linux kernel. The medians over the seeds are compared. Two medians",
        "agree if they differ by at most 10 % (rates, queueing delays, losses), 0.05 (shares, Jain's index) or 2 points",
        "(sections on time). Delays also agree if they differ by at most 0.5 ms, and losses by at most 0.1 per mille. A",
        "share of 1 is an equal share. ACKs have some jitter, which prevents [phase effects](phase.md).",
        "",
        f"[{data}]({data}) has a row for each quantity of each point: the runs, medians and spreads (half the distance",
        "between the quartiles) of both worlds, `ratio` (simulator over lab) or `difference` (simulator minus lab), the",
        "verdict, and the cause of a difference.",
        "",
        f"![The ratio of the worlds for each point]({drawing})",
        "",
        f"Made by the following command, kernel {kernel or platform.release()}. Do not edit.",
        "",
        "```sh",
        command,
        "```",
        "",
        "## Groups",
        "",
        groups(rows),
        "",
        kinds(rows),
    ]
    if explained:
        parts += ["", "## Known causes", "", causes(rows)]
    if not_explained:
        parts += ["", "## Not explained", "", unexplained(rows)]
    if doubts:
        parts += ["", "## Not trusted", "", *(f"- {line}" for line in distrusted(doubts))]
    if refusals:
        parts += ["", "## Skipped", ""]
        parts += [f"- {world}: {label}: {reason}" for (world, label), reason in refusals.items()]
    return "\n".join(parts) + "\n"
