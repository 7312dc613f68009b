"""Units of media that say their number: made for a sender, and recognised in what a receiver wrote.

A unit is a picture of H.264 in a PES packet of its own: an access unit delimiter, and one slice that repeats the
unit's number. So every byte of a unit follows from its number, and each picture needs the ones that a group of
pictures makes it need.
"""

import pathlib
import sys

sys.path.append(str(pathlib.Path(__file__).resolve().parent.parent))
from crc import crc32  # noqa: E402

PACKET = 188
VIDEO, MAP, TABLE = 0x100, 0x1000, 0
GROUP = 25
HERTZ = 90_000
WORD = 19  # "#0000000000000012#" and a space


def unit(number, length):
    """A picture of about so many bytes.

    >>> unit(7, 40)[:12].hex(" ")
    '00 00 00 01 09 f0 00 00 01 01 9c 80'
    >>> unit(7, 40)[12:31]
    b'#0000000000000007# '
    """
    if number % GROUP == 0:
        slice_of = b"\x65\x88\x80"  # an IDR picture
    elif number % 3 == 0:
        slice_of = b"\x41\x98\x80"  # P
    else:
        slice_of = b"\x01\x9c\x80"  # B, which no other picture needs
    return b"\0\0\0\1\x09\xf0\0\0\1" + slice_of + b"#%016d# " % number * max(1, length // WORD)


def number_of(data):
    """The number that a unit says it has; `None` if it says none.

    >>> number_of(unit(1234567, 100)), number_of(b"nothing")
    (1234567, None)
    """
    at = data.find(b"#")
    digits = data[at + 1 : at + 17]
    return int(digits) if at >= 0 and len(digits) == 16 and digits.isdigit() else None


class Writer:
    """Makes a transport stream of units."""

    def __init__(self, length):
        self.length = length
        self.counters = {}

    def unit(self, number, index):
        """The packets of a unit, the `index`-th of this stream; tables come before each group."""
        tables = b"".join(self.tables()) if index % GROUP == 0 else b""
        stamp = index * HERTZ // GROUP
        data = unit(number, self.length)
        pts = bytes([0x21 | stamp >> 29 & 0x0E]) + (stamp >> 14 & 0xFFFE | 1).to_bytes(2, "big") + (stamp << 1 & 0xFFFE | 1).to_bytes(2, "big")
        pes = b"\0\0\1\xe0" + (len(data) + 8).to_bytes(2, "big") + b"\x80\x80\x05" + pts + data
        clock = (stamp << 15 | 0x7E00).to_bytes(6, "big")
        return tables + b"".join(self.packets(VIDEO, pes, b"\x10" + clock))

    def tables(self):
        yield from self.section(TABLE, b"\0\xb0\x0d\0\1\xc1\0\0\0\1" + (0xE000 | MAP).to_bytes(2, "big"))
        video = (0xE000 | VIDEO).to_bytes(2, "big")
        yield from self.section(MAP, b"\2\xb0\x12\0\1\xc1\0\0" + video + b"\xf0\0\x1b" + video + b"\xf0\0")

    def section(self, pid, section):
        data = b"\0" + section + crc32(section).to_bytes(4, "big")
        yield self.header(pid, True, 1) + data.ljust(PACKET - 4, b"\xff")

    def header(self, pid, begins, control):
        counter = self.counters.get(pid, 15) + 1 & 15
        self.counters[pid] = counter
        return bytes([0x47, begins << 6 | pid >> 8, pid & 0xFF, control << 4 | counter])

    def packets(self, pid, data, field):
        """Packets with these data. The first has this adaptation field, the last is filled up.

        >>> packets = list(Writer(100).packets(256, bytes(300), b"\\x10" + bytes(6)))
        >>> [len(packet) for packet in packets], [packet[3] for packet in packets]
        ([188, 188], [48, 49])
        """
        begins = True
        while data:
            room = PACKET - 4 - (len(field) + 1 if field else 0)
            if len(data) < room:
                field = (field or b"\0") if room - len(data) > 1 or field else field
                stuffing = PACKET - 5 - len(field) - len(data)
                whole = bytes([len(field) + stuffing]) + field + b"\xff" * stuffing if stuffing >= 0 else b"\0"
                yield self.header(pid, begins, 3) + whole + data
                return
            part, data = data[:room], data[room:]
            yield self.header(pid, begins, 3 if field else 1) + (bytes([len(field)]) + field if field else b"") + part
            begins, field = False, b""


class Reader:
    """Finds the units in a transport stream that comes piece by piece.

    >>> writer, reader = Writer(2_000), Reader(2_000)
    >>> stream = b"".join(writer.unit(number, number) for number in range(60))
    >>> for at in range(0, len(stream), 1000):
    ...     reader.feed(stream[at : at + 1000])
    >>> reader.end()
    >>> reader.units == list(range(60)), reader.broken
    (True, 0)
    """

    def __init__(self, length):
        self.length = length
        self.rest = b""
        self.open = None
        self.units = []
        # Units that have other bytes than those that were made.
        self.broken = 0

    def feed(self, data):
        data = self.rest + data
        whole = len(data) // PACKET * PACKET
        self.rest = data[whole:]
        for at in range(0, whole, PACKET):
            packet = data[at : at + PACKET]
            if packet[0] != 0x47:
                self.broken += 1
                continue
            pid = (packet[1] & 0x1F) << 8 | packet[2]
            if pid != VIDEO or not packet[3] & 0x10:
                continue
            payload = packet[5 + packet[4] if packet[3] & 0x20 else 4 :]
            if packet[1] & 0x40:
                self.end()
                self.open = bytearray(payload)
            elif self.open is not None:
                self.open += payload

    def end(self):
        """The unit that is open is over."""
        if self.open is None:
            return
        data = bytes(self.open[9 + self.open[8] :]) if len(self.open) > 9 else b""
        number = number_of(data)
        if number is not None and data == unit(number, self.length):
            self.units.append(number)
        else:
            self.broken += 1
        self.open = None
