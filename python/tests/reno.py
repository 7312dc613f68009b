"""Reno in Python, and a scenario in which it and the built-in `reno` are the same."""

import math

import comity

RATE = 4_000_000


class Reno(comity.Controller):
    """RFC 5681 with byte counting (RFC 3465), written from its equations; in segments, as RFC 6928
    and the built-in `reno` count."""

    def __init__(self, setup, decrease=0.5):
        self.mss = setup.mss_bytes
        self.decrease = decrease
        self.cwnd = setup.initial_window_bytes / self.mss
        self.ssthresh = setup.initial_ssthresh_bytes / self.mss
        self.after_timeout = False
        self.decide()

    def decide(self):
        self.window_bytes = self.cwnd * self.mss
        self.ssthresh_bytes = self.ssthresh * self.mss
        self.phase = "slow_start" if self.cwnd < self.ssthresh else "congestion_avoidance"

    def reduced(self, flight):
        return max(min(flight / self.mss, self.cwnd) * self.decrease, 2.0)

    def on_ack(self, ack):
        if ack.in_recovery or ack.app_limited:
            return
        covered = ack.acked_bytes / self.mss
        if self.cwnd < self.ssthresh:
            self.cwnd += min(covered, 1.0 if self.after_timeout else 2.0)
        else:
            self.after_timeout = False
            self.cwnd += covered / self.cwnd
        self.decide()

    def on_loss(self, loss):
        self.ssthresh = self.cwnd = self.reduced(loss.in_flight_bytes)
        if loss.restart:
            self.cwnd = 1.0
        self.decide()

    def on_timeout(self, timeout):
        if timeout.consecutive <= 1:
            self.ssthresh = self.reduced(timeout.in_flight_bytes)
        self.cwnd = 1.0
        self.after_timeout = True
        self.decide()

    def on_deflated(self, amount_bytes):
        self.cwnd = max(self.cwnd - amount_bytes / self.mss, 1.0)
        self.decide()

    def on_idle(self, idle):
        least = min(idle.initial_window_bytes / self.mss, self.cwnd)
        self.ssthresh = max(self.ssthresh, 0.75 * self.cwnd)
        self.cwnd = max(math.ldexp(self.cwnd, -min(idle.halvings, 64)), least)
        self.decide()


def scenario(controller, transport="tcp", **flow):
    """Two flows of the tested controller and one of CUBIC on a lossy bottleneck."""
    return {
        "scenario": {"name": "custom", "duration": "20s", "bins": "500ms", "seeds": [1, 2, 3]},
        "topology": {
            "kind": "dumbbell",
            "bottleneck": {
                "rate": f"{RATE}bps",
                "delay": "20ms",
                "queue": 20,
                "losses": [{"model": "bernoulli", "probability": 0.002}],
            },
            "access": {"rate": "100Mbps", "delay": "1ms"},
        },
        "flow": [
            {
                "group": "tested",
                "controller": controller,
                "transport": transport,
                "count": 2,
                "start": {"spread": "1s"},
                **flow,
            },
            {"group": "cubic", "controller": "cubic"},
        ],
    }


RFC5681 = {
    "increase": "per_byte",
    "decrease_basis": "flight",
    "rounding": "exact",
    "grow_when_limited": False,
    "undo": False,
}
