"""The scenario of a run, as `comity lab run` reads it."""

from points import CHANGE_BACK_S, CHANGE_S, OUTAGE_S, PACKET_BITS

LEAD_S = 3
"""How much older the greedy flows are."""
DRAIN_S = 6
"""How long the last frames, and the words of the programs, may take."""

TRANSPORTS = ("Comity", "SRT", "TCP", "QUIC")
# What can be told which frames others need.
TOLD_IMPORTANCE = ("Comity", "QUIC")
SRT_MARGIN_MS = 10
CODEL_PACKETS = 60
"""What CoDel's queue may hold when SRT connects: it has no fixed length, and the rivals have only just begun."""

HEAD = """
[scenario]
name = "compare"
duration = "{duration}s"
warmup = "{lead}s"
bins = "1s"

[topology]
kind = "dumbbell"
bottleneck = {{ rate = {rate}, delay = {delay}, queue = {queue},{losses} reverse = {{ queue = 1000{returning} }} }}

[[flow]]
group = "media"
transport = "command"
start = "{lead}s"
sender = "{program} send --connect {{address}}:{{port}} {options} {importance}"
receiver = "{program} receive --listen {{address}}:{{port}} {options}"
"""

RIVALS = """
[[flow]]
group = "tcp"
count = {rivals}
controller = "{controller}"
"""


def srt_latency_ms(point):
    """SRT's own latency. SRT adds the delay that its packets meet: that of the path, and of a queue that may be full, or
    of the frame itself if that is longer.

    >>> from points import points_of
    >>> srt_latency_ms(points_of("published")["1-cubic-below"]), srt_latency_ms(points_of("tight")["1-cubic-below-120-ms"])
    (280, 10)
    >>> srt_latency_ms(points_of("loss")["2-percent"]), srt_latency_ms(points_of("networks")["codel-2-reno-above"])
    (162, 280)
    """
    left_ms = point.latency_ms - point.delay_ms
    max_packets = 0 if not point.rivals else CODEL_PACKETS if point.queue == "codel" else point.queue
    full_queue_ms = max_packets * PACKET_BITS / point.link_mbps / 1e3
    frame_ms = point.mbps * 1e3 / point.fps / point.link_mbps
    return int(max(left_ms - max(full_queue_ms, frame_ms) - SRT_MARGIN_MS, SRT_MARGIN_MS))


def options_of(point, transport, seconds, seed):
    """What both programs are told."""
    options = [
        f"--transport {transport.lower()} --rate {point.mbps * 1000:.0f}kbps --fps {point.fps} --seconds {seconds}",
        f"--frames {point.frames} --seed {seed} --latency {point.latency_ms}ms",
    ]
    if point.frames == "key":
        options.append(f"--key-ratio {point.key_ratio}")
    if transport == "SRT":
        options.append(f"--srt-latency {srt_latency_ms(point)}ms")
    return " ".join(options)


def steps(first, then, key, unit):
    """A value, or one that changes and changes back.

    >>> steps(8000, None, "rate", "kbps")
    '"8000kbps"'
    >>> steps(20.0, 80, "delay", "ms")
    '[{ at = "0s", delay = "20.0ms" }, { at = "23.5s", delay = "80ms" }, { at = "43.5s", delay = "20.0ms" }]'
    """
    if then is None:
        return f'"{first}{unit}"'
    of = ((0, first), (LEAD_S + CHANGE_S, then), (LEAD_S + CHANGE_BACK_S, first))
    written = (f'{{ at = "{at}s", {key} = "{value}{unit}" }}' for at, value in of)
    return f"[{', '.join(written)}]"


def losses_of(point):
    """What destroys packets, in the forward and in the reverse direction.

    >>> from points import points_of
    >>> losses_of(points_of("changes")["outage-alone"])[1]
    ', losses = [{ model = "outage", at = "23.5s", lasts = "3s" }]'
    """
    if point.change == "outage":
        outage = f'losses = [{{ model = "outage", at = "{LEAD_S + CHANGE_S}s", lasts = "{OUTAGE_S}s" }}]'
        return f" {outage},", f", {outage}"
    return f' losses = [{{ model = "bernoulli", probability = {point.loss} }}],' if point.loss else "", ""


def scenario(point, transport, seconds, seed, program):
    """The text of one run.

    >>> from points import points_of
    >>> text = scenario(points_of("published")["1-cubic-below"], "SRT", 10, 3, "compare")
    >>> "send --connect {address}:{port} --transport srt --rate 3000kbps" in text, 'queue = 60, reverse' in text
    (True, True)
    >>> text = scenario(points_of("loss")["5-percent"], "Comity", 10, 3, "compare")
    >>> "probability = 0.05 }]" in text, 'group = "tcp"' in text
    (True, False)
    >>> text = scenario(points_of("keys")["2-cubic-60-fps-keys-9"], "QUIC", 10, 3, "compare")
    >>> [line.split("--seed 3 ")[1] for line in text.splitlines() if "--frames key" in line]
    ['--latency 400ms --key-ratio 9 --importance"', '--latency 400ms --key-ratio 9"']
    """
    queue = '{ kind = "codel", limit = 1000 }' if point.queue == "codel" else point.queue
    losses, returning = losses_of(point)
    has_importance = point.frames == "key" and transport in TOLD_IMPORTANCE
    head = HEAD.format(
        duration=LEAD_S + seconds + DRAIN_S, lead=LEAD_S, queue=queue, losses=losses, returning=returning,
        rate=steps(f"{point.link_mbps * 1000:.0f}", 2000 if point.change == "rate" else None, "rate", "kbps"),
        delay=steps(point.delay_ms, 80 if point.change == "route" else None, "delay", "ms"), program=program, options=options_of(point, transport, seconds, seed),
        importance="--importance" if has_importance else "",
    ).replace(' "\n', '"\n')
    return head + (RIVALS.format(rivals=point.rivals, controller=point.controller) if point.rivals else "")
