"""Read sections from a TCP connection with nothing but `socket`: docs/protocol/sections-over-tcp.md.

As a program it prints one JSON line for each section, with its content's SHA-256 and how late it was by this
machine's clock, and a last line with the totals. With --save it writes the content of complete sections to a file.

    python3 section_reader.py 10.77.0.2 8000              connect, and read to the end
    python3 section_reader.py --listen 10.77.0.1 9000     wait for one connection, and read to the end

>>> import io
>>> def part(position, number, content, length, offset, due):
...     return HEADER.pack(b"CTS1", len(content), position, number, length, offset, due) + content
>>> stream = part(0, 0, b"whole", 5, 0, 7) + part(45, 2, b"be", 9, 0, 8) + part(87, 2, b"gun", 9, 2, 8)
>>> stream += part(130, 3, b"last", 4, 0, NEVER)
>>> for section in sections(io.BytesIO(stream).read):
...     print(section.number, section.due_us, section.is_complete, section.content)
0 7 True b'whole'
2 8 False b'begun'
3 None True b'last'
>>> list(sections(io.BytesIO(b"GET / HTTP/1.1" + bytes(30)).read))
Traceback (most recent call last):
    ...
ValueError: position 0: b'GET ', expected a header that begins with b'CTS1'
"""

import argparse
import hashlib
import json
import socket
import struct
import time
from typing import NamedTuple, Optional

HEADER = struct.Struct(">4sIQQIIQ")
NEVER = 2**64 - 1
LIMIT = 64 << 20


class Section(NamedTuple):
    """A section, or the beginning of one whose rest was left out."""

    number: int
    due_us: Optional[int]
    length: int
    content: bytes

    @property
    def is_complete(self):
        return len(self.content) == self.length


def sections(receive):
    """The sections of a stream. `receive(n)` returns up to n bytes, and none at the end, as socket.recv does."""
    position, begun = 0, None
    while header := exactly(receive, HEADER.size):
        magic, size, at, number, length, offset, due = HEADER.unpack(header)
        if magic != b"CTS1":
            raise ValueError(f"position {position}: {magic!r}, expected a header that begins with b'CTS1'")
        if at != position or length > LIMIT or not 0 < size <= length - offset:
            raise ValueError(f"position {position}: a header of position {at}, part {offset}+{size} of {length} bytes")
        if begun and begun.number != number:
            yield begun
            begun = None
        if offset != (len(begun.content) if begun else 0):
            raise ValueError(f"position {position}: section {number} goes on at {offset}, which is not its place")
        before = begun.content if begun else b""
        content = exactly(receive, size)
        begun = Section(number, None if due == NEVER else due, length, before + content)
        position += HEADER.size + size
        if begun.is_complete:
            yield begun
            begun = None
    if begun:
        yield begun


def exactly(receive, length):
    """That many bytes; none at the end of the stream."""
    pieces = []
    while length > 0 and (piece := receive(length)):
        pieces.append(piece)
        length -= len(piece)
    if pieces and length > 0:
        raise ValueError(f"the stream ends {length} bytes too early")
    return b"".join(pieces)


def main():
    parser = argparse.ArgumentParser(description="Read sections from a TCP connection.")
    parser.add_argument("address")
    parser.add_argument("port", type=int)
    parser.add_argument("--listen", action="store_true", help="wait for the connection instead of making it")
    parser.add_argument("--save", type=argparse.FileType("wb"), help="write complete sections to this file")
    parser.add_argument("--skip", type=int, default=0, help="leave out the first bytes of each section in that file")
    args = parser.parse_args()
    if args.listen:
        listener = socket.create_server((args.address, args.port))
        print(json.dumps({"listening": listener.getsockname()[1]}), flush=True)
        connection, _ = listener.accept()
        listener.close()
    else:
        connection = socket.create_connection((args.address, args.port))
    totals = {"complete": 0, "on_time": 0, "late": 0, "cut": 0, "left_out": 0}
    expected = 0
    with connection:
        for section in sections(connection.recv):
            now_us = time.time_ns() // 1000
            is_late = section.due_us is not None and section.due_us < now_us
            totals["left_out"] += section.number - expected
            expected = section.number + 1
            totals["complete" if section.is_complete else "cut"] += 1
            if section.is_complete:
                totals["late" if is_late else "on_time"] += 1
                if args.save:
                    args.save.write(section.content[args.skip :])
            line = {
                "number": section.number,
                "length": section.length,
                "arrived": len(section.content),
                "late_ms": None if section.due_us is None else (now_us - section.due_us) / 1000,
                "sha256": hashlib.sha256(section.content).hexdigest(),
            }
            print(json.dumps(line), flush=True)
    print(json.dumps({"totals": totals}), flush=True)


if __name__ == "__main__":
    main()
