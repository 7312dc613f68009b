"""Whether the machine had time for the programs of a lab.

The lab reports how late its router is, which runs at real-time priority. The programs at the ends of a path do not: on a
busy machine they are late where the router is punctual. A thread of ordinary priority that sleeps in short steps sees it.
"""

import collections
import threading
import time

STEP_S = 0.005
LATE_S = 0.005
MAX_LATE = 0.02
REMEMBERED_S = 1200
"""Longer than any lab; calls last for hours."""


def late_share(wakes, begin, end):
    """The share of the wake-ups between two moments that were late, from `[(moment, lateness)]`.

    >>> late_share([(0.0, 0.1), (1.0, 0.0), (2.0, 0.009), (3.0, 0.001), (4.0, 0.2)], 1.0, 3.0)
    0.3333333333333333
    """
    late = [lateness > LATE_S for moment, lateness in wakes if begin <= moment <= end]
    return sum(late) / len(late) if late else 0.0


class Watch:
    """Wakes up every few milliseconds, and remembers how late."""

    def __init__(self):
        self.wakes = collections.deque(maxlen=int(REMEMBERED_S / STEP_S))
        self.thread = threading.Thread(target=self.run, daemon=True)
        self.thread.start()

    def run(self):
        while True:
            due = time.monotonic() + STEP_S
            time.sleep(STEP_S)
            now = time.monotonic()
            self.wakes.append((now, now - due))

    def was_busy(self, begin, end):
        """Whether programs waited for the processor between two moments of `time.monotonic`."""
        return late_share(list(self.wakes), begin, end) > MAX_LATE
