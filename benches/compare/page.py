"""The tables as text, as a page, and as a part of the project's README."""

import platform
from textwrap import wrap

from goals import all_goals, summary
from scenario import DRAIN_S, LEAD_S, TRANSPORTS

BEGIN, END = "<!-- compare: begin, made by benches/compare -->", "<!-- compare: end -->"

ABOUT = {
    "published": (
        "The link has 8 Mb/s, 20 ms each way and a drop-tail queue of 60 packets, which greedy kernel TCP flows share. *Below* is\n"
        "three quarters of an equal share, and *above* is 4 Mb/s. All frames are alike, and no transport knows their importance."
    ),
    "networks": (
        "Other rates, round trips and queues, beside two greedy flows unless the name says otherwise. *Below* is three quarters of\n"
        "an equal share, and *above* is one and a half. Queues are two bandwidth-delay products unless the name says otherwise."
    ),
    "bbr": (
        "One kernel BBR flow shares 20 Mb/s and 10 ms each way with a source of three quarters of an equal share. *Left over* is the\n"
        "rate of the link minus the rate of TCP, and *used in time* is the fraction of it that carried frames on time."
    ),
    "tight": (
        "The sources below the share, with less time. *Possible* is the largest share of frames that any sender could have on time.\n"
        "It counts a frame if three delays together are within the latency: that of the packets in the queue of the bottleneck when\n"
        "the frame is submitted, that of the frame itself, and that of the path. The queue is computed from a capture of all packets\n"
        "that were offered to the bottleneck in that run, with the source's own earlier packets. The bound ignores headers and drops."
    ),
    "loss": (
        "Random loss on 20 Mb/s without competing flows. With 2 and 5 %, the path has 20 ms each way, and the latency is 200 ms. With\n"
        "10 and 20 %, they are 25 ms and 300 ms."
    ),
    "keys": (
        "The published network, with 4 Mb/s above the share. Groups of one second begin with a key frame of several times the mean\n"
        "size. Comity and QUIC know which frames other frames need."
    ),
    "changes": (
        "The published network, alone with 4 Mb/s or beside one CUBIC flow with 3 Mb/s. *Rate*: the link falls from 8 to 2 Mb/s for\n"
        "20 s. *Outage*: no packet passes in either direction for 3 s. *Route*: the delay is 60 ms longer each way for 20 s. *Late\n"
        "seconds* is the number of seconds with a frame that was not on time, from one second after the change to ten seconds later:\n"
        "the maximum over all changes and runs. The fall to 2 Mb/s does not count, because no sender can carry 4 Mb/s then."
    ),
}

TITLES = {
    "changes": "A path that changes",
    "published": "The published network",
    "networks": "Other networks",
    "bbr": "Beside BBR",
    "tight": "Tight deadlines",
    "loss": "Random loss",
    "keys": "Key frames",
}


def percent(share, digits=1):
    """
    >>> percent(0.99954, 2), percent(1.0)
    ('99.95 %', '100.0 %')
    """
    return f"{share * 100:.{digits}f} %"


def with_worst(row, of, digits=2):
    """The mean, and the worst run in brackets."""
    return f"{percent(row.mean(of), digits)} ({min(row.each(of)) * 100:.{digits}f})"


def delays(row):
    middle, most = (row.mean(lambda run, at=at: row.delay_ms(run, at)) for at in ("p50", "p99"))
    return f"{middle:.0f} / {most:.0f}"


def two(of):
    """A column of a mean with two digits."""
    return lambda row: f"{row.mean(getattr(row, of)):.2f}"


COLUMNS = {
    "on time (worst run)": lambda row: with_worst(row, row.on_time),
    "key frames on time (worst run)": lambda row: with_worst(row, row.keys_on_time),
    "on time": lambda row: percent(row.mean(row.on_time)),
    "decodable": lambda row: percent(row.mean(row.decodable)),
    "possible": lambda row: percent(row.mean(row.bound), 2),
    "delay, 50 / 99 %, ms": delays,
    "wire / submitted": two("wire"),
    "wire bound": lambda row: f"{row.mean(row.wire_bound):.3f}",
    "share carried": two("carried"),
    "wire in time": two("wire_in_time"),
    "left over, Mb/s": two("left_mbps"),
    "used in time": two("left_in_time"),
    "late seconds": lambda row: str(max(row.each(row.recovery_s))),
    "lost": lambda row: percent(row.mean(row.lost), 2),
    "TCP / share": two("tcp"),
    "CPU s": lambda row: f"{row.mean(row.cpu_s):.1f}",
}
MEANINGS = """\
- *on time*: the share of frames that are complete within the latency after their submission. The first frames count,
  too.
- *delay*: from submission to completion, over all complete frames.
- *wire / submitted*: bytes of IP packets that the source's host sent, over the bytes that the source submitted.
- *wire bound*: these bytes over the sum of 1.06 times the submitted bytes and 1.5 times the lost bytes; the goal is at
  most 1.
- *lost*: the share of the packets of the source's host that the bottleneck dropped.
- *share carried*: bytes on time and decodable, over the submitted bytes, or over the bytes that an equal share of the
  link carries in that time (headers included) if those are fewer.
- *wire in time*: bytes of frames on time, without headers, over all bytes on the wire.
- *TCP / share*: the rate of the competing flows on the wire, from one second after the programs start to the end of the
  source, over an equal share.
- *CPU s*: user and system time of both ends."""

KINDS = {
    "below": ("on time (worst run)", "delay, 50 / 99 %, ms", "wire / submitted", "wire bound", "lost", "TCP / share", "CPU s"),
    "above": ("on time (worst run)", "delay, 50 / 99 %, ms", "share carried", "wire in time", "lost", "TCP / share", "CPU s"),
    "bbr": ("on time (worst run)", "delay, 50 / 99 %, ms", "left over, Mb/s", "used in time", "lost", "TCP / share", "CPU s"),
    "loss": ("on time (worst run)", "delay, 50 / 99 %, ms", "wire / submitted", "wire bound", "lost", "CPU s"),
    "changes": ("late seconds", "on time (worst run)", "delay, 50 / 99 %, ms", "wire / submitted", "lost", "CPU s"),
    "tight": ("on time (worst run)", "possible", "delay, 50 / 99 %, ms", "wire / submitted", "lost", "TCP / share", "CPU s"),
    "keys": ("key frames on time (worst run)", "on time", "decodable", "share carried", "wire in time", "TCP / share", "CPU s"),
}


def kind_of(row):
    """Which table a row belongs to."""
    return row.chosen if row.chosen in KINDS else row.point.load


def markdown(head, lines):
    """
    >>> print(markdown(("a", "b"), [("c", "d")]))
    | a | b |
    |---|---|
    | c | d |
    """
    write = lambda cells: f"| {' | '.join(cells)} |"
    return "\n".join([write(head), "|" + "---|" * len(head), *map(write, lines)])


def table(rows, kind):
    """The rows of one kind as Markdown. A point stands in its first row.

    >>> from outcome import Outcome
    >>> from points import points_of
    >>> run = {"receiver": {"on_time": 0.5, "delay_ms": {"p50": 10.0, "p99": 20.0}, "processor": {"own_s": 0.5}},
    ...     "media": {"sent_wire_bytes": 106, "sent_packets": 100, "dropped_data_packets": 1}, "rivals_mbps": 4.8,
    ...     "sender": {"bytes_given": 100, "processor": {"own_s": 1.0}}, "trusted": True, "failed_attempts": []}
    >>> point = points_of("published")["1-cubic-below"]
    >>> for line in table([Outcome("published", point, name, (run,), 2) for name in ("SRT", "TCP")], "below").splitlines()[2:]: print(line)
    | 1-cubic-below | SRT | 50.00 % (50.00) | 10 / 20 | 1.06 | 0.985 | 1.00 % | 1.20 | 1.5 | 1 of 2 runs |
    |  | TCP | 50.00 % (50.00) | 10 / 20 | 1.06 | 0.985 | 1.00 % | 1.20 | 1.5 | 1 of 2 runs |
    """
    lines, last = [], None
    for row in rows:
        name = row.point.name
        lines.append((name if name != last else "", row.transport, *(COLUMNS[column](row) for column in KINDS[kind]), row.doubts))
        last = name
    return markdown(("point", "transport", *KINDS[kind], ""), lines)


def point_table(points):
    """What the names of points stand for.

    >>> from points import points_of
    >>> print(point_table([points_of("bbr")["buffer-40-packets"], points_of("networks")["codel-2-reno-below"]]).split("\\n", 2)[2])
    | buffer-40-packets | 20 | 20 | 40 | 1.2 | 1 bbr | 7.50 | 400 |
    | codel-2-reno-below | 8 | 40 | codel | – | 2 reno | 2.00 | 400 |
    """
    lines = [
        (point.name, f"{point.link_mbps:g}", f"{2 * point.delay_ms:g}", str(point.queue),
         f"{point.buffer_bdp:.1f}" if point.buffer_bdp is not None else "–",
         f"{point.rivals} {point.controller}" if point.rivals else "none", f"{point.mbps:.2f}", str(point.latency_ms))
        for point in points
    ]
    return markdown(("point", "link, Mb/s", "round trip, ms", "queue, packets", "BDP", "rivals", "source, Mb/s", "latency, ms"), lines)


def section(chosen, rows, drawing):
    """A set: what it is, its picture, its points, and a table for each kind of row."""
    parts = [f"## {TITLES[chosen]}", "", ABOUT[chosen], "", f"![{TITLES[chosen]}: frames on time with each transport]({drawing})", ""]
    if chosen in ("networks", "bbr"):
        points = {row.point.name: row.point for row in rows}
        parts += [point_table(points.values()), ""]
    for kind in dict.fromkeys(map(kind_of, rows)):
        parts += [table([row for row in rows if kind_of(row) == kind], kind), ""]
    return parts


def remarks(found):
    """How many rows need a second look.

    >>> remarks([])
    'All rows have all runs, and all runs are trusted.'
    """
    doubtful = sum(bool(row.doubts) for row in found)
    if not doubtful:
        return "All rows have all runs, and all runs are trusted."
    return f"{doubtful} of {len(found)} rows have a remark in their last column: they have fewer runs, or a run failed or is not trusted."


def counted(runs):
    """
    >>> counted(1), counted(5)
    ('1 run', '5 runs')
    """
    return f"{runs} run{'' if runs == 1 else 's'}"


def page(found, drawings, command, runs, seconds):
    """The page, which says by which command it was made; `drawings` has the file of the picture of each set."""
    parts = [
        "# Comity beside SRT, TCP and QUIC",
        "",
        f"Made by `{command}`, kernel {platform.release()}. Do not edit.",
        "",
        f"Comity, SRT, TCP and QUIC send the same frames in the [lab](../reference/lab.md), in up to {counted(runs)} of {seconds} s for each",
        f"transport. Greedy flows of the kernel begin {LEAD_S} s earlier, and a run ends {DRAIN_S} s after the source.",
        "[benches/compare](../../benches/compare/README.md) describes how each transport is used.",
        "",
        summary(all_goals(found)),
        "",
        remarks(found),
        "",
        MEANINGS,
        "",
    ]
    for chosen in dict.fromkeys(row.chosen for row in found):
        parts += section(chosen, [row for row in found if row.chosen == chosen], drawings[chosen])
    return "\n".join(parts)


def readme_part(found, picture, results):
    """What stands between the markers of the README: the picture, and how many frames were on time below the share.

    >>> from outcome import Outcome
    >>> from points import points_of
    >>> runs = tuple({"receiver": {"on_time": on_time}, "seconds": 60} for on_time in (1.0, 0.98))
    >>> text = readme_part([Outcome("published", points_of("published")["2-reno-below"], "SRT", runs, 2)], "a.svg", "a.md")
    >>> print("\\n".join(text.splitlines()[-3:]))
    | beside | Comity | SRT | TCP | QUIC |
    |---|---|---|---|---|
    | 2 Reno flows | – | 99.00 % (98.00) | – | – |
    """
    rows = {}
    for row in found:
        if row.chosen == "published" and row.point.load == "below":
            rows.setdefault(row.point, {})[row.transport] = row
    title = {"cubic": "CUBIC", "reno": "Reno"}
    lines = [
        (f"{point.rivals} {title[point.controller]} flow{'s' if point.rivals > 1 else ''}",
         *(with_worst(of[name], of[name].on_time) if name in of else "–" for name in TRANSPORTS))
        for point, of in rows.items()
    ]
    runs = {len(of.runs) for row in rows.values() for of in row.values()}
    runs = counted(max(runs)) if len(runs) == 1 else f"{min(runs)} to {counted(max(runs))}"
    seconds = next(run["seconds"] for row in rows.values() for of in row.values() for run in of.runs)
    return "\n".join([
        f"![Frames on time with Comity, SRT, TCP and QUIC beside kernel TCP]({picture})",
        "",
        *wrap(
            "Frames on time (worst run in brackets) of a video that needs three quarters of an equal share of 8 Mb/s, with 400 ms for "
            f"each frame, beside TCP flows of the Linux kernel. Means of {runs} of {seconds} s. The lower half of the picture has a "
            f"video that needs more than its share ([results]({results})).",
            100,
        ),
        "",
        markdown(("beside", *TRANSPORTS), lines),
        "",
    ])


def put_between_markers(text, part):
    """A text with this part between its markers.

    >>> put_between_markers(f"a\\n{BEGIN}\\nold\\n{END}\\nb\\n", "new\\n") == f"a\\n{BEGIN}\\nnew\\n{END}\\nb\\n"
    True
    """
    before, _, rest = text.partition(BEGIN)
    _, mark, behind = rest.partition(END)
    if not mark:
        raise ValueError(f"the file has no line {BEGIN} with a line {END} behind it")
    return f"{before}{BEGIN}\n{part}{END}{behind}"
