"""The extension module; `comity` is its public face."""

from collections.abc import Callable
from pathlib import Path
from typing import Literal, final

VERSION: str
ENGINE_VERSION: int

@final
class Table:
    def __len__(self) -> int: ...
    def columns(self) -> list[tuple[str, str, str]]: ...
    def address(self, column: str) -> int | None: ...
    def __arrow_c_schema__(self) -> object: ...
    def __arrow_c_stream__(self, requested_schema: object = None) -> object: ...

@final
class Results:
    def __len__(self) -> int: ...
    @property
    def name(self) -> str: ...
    @property
    def text(self) -> str: ...
    @staticmethod
    def tables() -> list[tuple[str, str]]: ...
    @staticmethod
    def meaning(table: str, column: str) -> str | None: ...
    def table(self, name: str) -> Table | None: ...
    def write(self, path: str, force: bool) -> None: ...

@final
class Scenario:
    def __new__(
        cls,
        path: Path,
        text: str | None,
        folder: Path,
        set: list[str],
        seeds: list[int] | None,
        controllers: dict[str, Callable[..., Controller]],
    ) -> Scenario: ...
    @staticmethod
    def from_parts(
        name: str, text: str, files: list[tuple[str, str]], set: list[str], seeds: list[int]
    ) -> Scenario: ...
    def parts(self) -> tuple[str, str, list[tuple[str, str]], list[str], list[int]]: ...
    def notes(self) -> list[str]: ...
    def choose(self, points: list[str], shard: str | None) -> list[int]: ...
    def seed(self, number: int) -> int: ...
    def simulate(self, numbers: list[int]) -> list[tuple[int, bytes | str]]: ...

@final
class Store:
    def __new__(
        cls, scenario: Scenario, command: str, out: str | None, force: bool
    ) -> Store: ...
    def missing(self, numbers: list[int]) -> list[int]: ...
    def run(
        self,
        numbers: list[int],
        threads: int | None,
        packets: bool,
        progress: Callable[[int, int], None] | None,
    ) -> list[tuple[int, int, str, BaseException | None]]: ...
    def add(self, record: bytes) -> None: ...
    def finish(self, numbers: list[int], tables: bool) -> tuple[Results, list[str]]: ...

def merge(stores: list[str]) -> tuple[Results, list[int]]: ...
def quantity(text: str) -> float | None: ...
def mean_with_interval(values: list[float]) -> tuple[float, float | None]: ...
def command(
    words: list[str],
    plot: Callable[[Path, str, Path, bool, int | None, list[str]], int],
) -> int: ...

@final
class Simulation:
    def __new__(cls, scenario: Scenario, packets: bool) -> Simulation: ...
    def run_until(self, time_s: float) -> None: ...
    def finish(self, command: str) -> Results: ...

@final
class Setup:
    """What a controller is built with."""

    mss_bytes: int
    """The payload of a full segment."""
    initial_window_bytes: int
    """The window before the first acknowledgement."""
    initial_ssthresh_bytes: float
    """The slow-start threshold before the first loss; infinite for none."""
    max_window_bytes: float
    """The largest window of the receiver; infinite for none."""
    seed: int
    """The seed of the flow's own random stream."""

@final
class Pacing:
    """How packets are spread in time."""

    @staticmethod
    def rate(rate_bps: float) -> Pacing:
        """At a rate: packets start `wire / rate` apart."""
    @staticmethod
    def bursts(rate_bps: float, size_bytes: float) -> Pacing:
        """At a rate, with up to `size_bytes` on the wire back to back."""
    @staticmethod
    def gap(gap_s: float) -> Pacing:
        """A gap from the end of one packet to the start of the next."""
    @staticmethod
    def bucket(rate_bps: float, peak_bps: float, depth_bytes: float) -> Pacing:
        """A token bucket, emptied at `peak_bps` at most."""
    @staticmethod
    def at(time_s: float) -> Pacing:
        """The next packet leaves no earlier than this."""

class Controller:
    """The base of congestion controllers that are written in Python.

    The transport calls a method `on_...` for each event, if the class has it, and reads the
    attributes after it. A subclass may take parameters in `__init__(self, setup, ...)`: the keys of
    `parameters` in the scenario. An exception ends the run.
    """

    window_bytes: float
    """How much payload may be in flight; infinite for a controller that only paces. Fractions of a
    byte count in Python alone. At first it is `setup.initial_window_bytes`."""
    pacing: Pacing | None
    """How packets are spread in time; `None`: as acknowledgements open the window."""
    ssthresh_bytes: float | None
    """The slow-start threshold, where the controller has one."""
    phase: Literal["slow_start", "congestion_avoidance", "steady", "probing"]
    """The phase, for traces and for the transport's own choices: "slow_start",
    "congestion_avoidance", "steady" or "probing".
    """
    wakeup_s: float | None
    """When `on_wakeup` is called, if ever. It is `None` again when that happens."""
    no_feedback_deadline_s: float | None
    """When the controller's own no-feedback timer expires. The transport probes no earlier."""
    timeout_repair: Literal["go_back_n", "first_segment"]
    """What TCP retransmits after a timeout: everything ("go_back_n"), or the "first_segment"."""
    capacity_bps: float | None
    """The capacity of the bottleneck, where the controller estimates it: for reports."""
    needs_rate_samples: bool = False
    """Whether acknowledgements have a `sample`. The transport then reports every acknowledgement
    that delivers something or shows a loss, also in a recovery. So it does with
    `on_packet_lost`."""

    def __init__(self, setup: Setup) -> None: ...
    def on_sent(self, sent: Sent) -> None:
        """A packet that counts against the window left."""
    def on_ack(self, ack: Ack) -> None:
        """New data was acknowledged."""
    def on_in_order_ack(self, ack: InOrderAck) -> None:
        """An acknowledgement covered the next packets in order."""
    def on_packet_acked(self, packet: PacketAcked) -> None:
        """An acknowledgement that lists packets lists this one. Not with TCP."""
    def on_packet_lost(self, packet: PacketLost) -> None:
        """One packet was declared lost, in an episode or outside of one."""
    def on_loss(self, loss: Loss) -> None:
        """Losses were declared, together, outside of any earlier loss episode."""
    def on_recovered(self) -> None:
        """The fast recovery that the last loss began is over."""
    def on_deflated(self, amount_bytes: int) -> None:
        """ns-2's NewReno takes these bytes from the window for good."""
    def on_timeout(self, timeout: Timeout) -> None:
        """The retransmission timer expired, or persistent congestion was found."""
    def on_spurious_loss(self, now_s: float) -> None:
        """The last loss or timeout was spurious."""
    def on_wakeup(self, now_s: float) -> None:
        """The time `wakeup_s` has come."""
    def on_idle(self, idle: Idle) -> None:
        """The flow sends again after a pause longer than its retransmission timeout."""
    def on_app_limited(self) -> None:
        """Nothing more can be sent for now after the next packet."""

@final
class Sent:
    """A packet left."""

    now_s: float
    """The time of the event, in seconds since the start of the run."""
    payload_bytes: int
    """Its payload."""
    wire_bytes: int
    """Its size on the wire."""
    number: int
    """Counts packets of this flow, retransmissions included."""
    in_flight_bytes: int
    """In flight, this packet included."""
    app_limited: bool
    """Whether the flow has nothing more to send now."""

@final
class RateSample:
    """The delivery rate over the flight of the newest acknowledged packet (BBR)."""

    delivered_bytes: int
    """Delivered between the sending and the acknowledgement of the sampled packet."""
    interval_s: float
    """The longer of the send and the acknowledgement interval of that data; zero without a rate."""
    sending_s: float | None
    """The time in which that data left; `None` before the first delivery of a flight."""
    prior_delivered_bytes: int
    """Delivered when the sampled packet left."""
    lost_bytes: int
    """Declared lost between the sending and the acknowledgement of the sampled packet."""
    sent_in_flight_bytes: int
    """The flight when the sampled packet left, that packet included."""
    app_limited: bool
    """Whether the application limited the flow when the sampled packet left."""
    rtt_s: float | None
    """The round trip of the sampled packet, unless it left more than once."""
    total_delivered_bytes: int
    """Delivered in all."""
    total_lost_bytes: int
    """Declared lost in all."""
    newly_delivered_bytes: int
    """Delivered by this acknowledgement."""
    newly_lost_bytes: int
    """Declared lost since the last sample."""
    prior_in_flight_bytes: int
    """The flight before this acknowledgement."""
    in_flight_bytes: int
    """The flight after it."""

@final
class Ack:
    """New data was acknowledged."""

    now_s: float
    """The time of the event, in seconds since the start of the run."""
    acked_bytes: int
    """Newly acknowledged, cumulatively or selectively."""
    rtt_s: float | None
    """The round-trip time, when Karn's rule allows one."""
    in_flight_bytes: int
    """Still in flight."""
    app_limited: bool
    """Whether the flow had less to send than it was allowed, so its window is untested."""
    in_recovery: bool
    """Whether the flow is in a fast recovery."""
    marked: int
    """How many of the packets arrived with a congestion-experienced mark."""
    packets: int
    """How many packets are newly covered."""
    sample: RateSample | None
    """With `needs_rate_samples`."""

@final
class InOrderAck:
    """An acknowledgement covered the next packets in order."""

    now_s: float
    """The time of the event, in seconds since the start of the run."""
    number: int
    """The packet, as `Sent.number` named it."""
    arrived_s: float | None
    """When it arrived, on the clock of the receiver, if that says so."""
    tick_s: float | None
    """The tick of that clock."""

@final
class PacketAcked:
    """An acknowledgement lists one packet."""

    now_s: float
    """The time of the event, in seconds since the start of the run."""
    number: int
    """The packet, as `Sent.number` named it."""
    arrived_s: float | None
    """When it arrived, on the clock of the receiver, if the acknowledgement says so."""
    tick_s: float | None
    """The tick of that clock."""

@final
class PacketLost:
    """One packet was declared lost."""

    now_s: float
    """The time of the event, in seconds since the start of the run."""
    size_bytes: int
    """Its payload."""
    sent_in_flight_bytes: int
    """The flight when it left, the packet included."""
    lost_bytes: int
    """Declared lost since it left, the packet included."""
    app_limited: bool
    """Whether the application limited the flow when it left."""
    total_delivered_bytes: int
    """Delivered in all."""

@final
class Loss:
    """Losses were declared together, once for each episode."""

    now_s: float
    """The time of the event, in seconds since the start of the run."""
    sent_at_s: float
    """When the newest lost packet was sent."""
    lost_bytes: int
    """Declared lost together."""
    in_flight_bytes: int
    """In flight when the loss was found, the lost part included (RFC 5681's FlightSize)."""
    window_bytes: int
    """The window in force: the minimum of congestion window, with inflation, and receive window."""
    cause: Literal["reordering", "delay", "mark"]
    """Why: "reordering", "delay" or "mark". A mark is not a loss: the network marked a packet
    instead of dropping it."""
    restart: bool
    """Whether the flow restarts with one segment (Tahoe)."""

@final
class Timeout:
    """The retransmission timer expired."""

    now_s: float
    """The time of the event, in seconds since the start of the run."""
    in_flight_bytes: int
    """In flight when it expired."""
    window_bytes: int
    """The window that was in force."""
    consecutive: int
    """How many times in a row the timer has expired, this time included."""
    duplicate_seen: bool
    """Whether a duplicate acknowledgement arrived since the last advance or expiry."""

@final
class Idle:
    """The flow sends again after a pause in which everything was acknowledged."""

    now_s: float
    """The time of the event, in seconds since the start of the run."""
    pause_s: float
    """How long nothing was sent."""
    timeout_s: float
    """The retransmission timeout; shorter than the pause."""
    initial_window_bytes: int
    """The minimum window of a restart."""
    halvings: int
    """How often the window halves: once for every timeout of the pause after the first."""
