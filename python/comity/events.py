"""The events of a `comity.Controller`.

A method of a controller gets one of these objects. Times are seconds since the start of the run;
amounts are bytes of payload. The transport reports the events of one acknowledgement in this order:
`on_packet_lost`, `on_loss`, `on_packet_acked`, `on_in_order_ack`, `on_recovered`, `on_ack`.
"""

from ._comity import (
    Ack,
    Idle,
    InOrderAck,
    Loss,
    PacketAcked,
    PacketLost,
    RateSample,
    Sent,
    Timeout,
)

__all__ = [
    "Ack",
    "Idle",
    "InOrderAck",
    "Loss",
    "PacketAcked",
    "PacketLost",
    "RateSample",
    "Sent",
    "Timeout",
]
