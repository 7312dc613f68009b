"""The peer against the built program, in both roles, and against the examples of the documents."""

import json
import os
import pathlib
import random
import re
import subprocess

import codec
import pytest
from handshake import AES, CHACHA, Direction, confirmation, exchange, prs, public
from peer import PATIENCE_S, Connection, Link, call, listen

ROOT = pathlib.Path(__file__).resolve().parents[3]
PROGRAM = os.environ.get("COMITY", ROOT / "target" / "debug" / "comity")
CLIP = ROOT / "experiments" / "demo" / "clip" / "clip.ts"
OURS = {"initial_credit": 256 * 1024, "idle_timeout": 1000 * PATIENCE_S}
# What no stall reaches: the program gives nothing up before the test does.
PATIENT = f"latency={PATIENCE_S}s&maxlatency=3600s&peeridletimeo={PATIENCE_S}s&linger={PATIENCE_S}s"
PASSPHRASE = "correct horse battery"
# A pattern, a cipher, whether packets are lost, and whether both ends prove their acknowledgements.
CASES = pytest.mark.parametrize(
    "pattern, cipher, loses, proofs", [(3, CHACHA, False, 1), (3, AES, True, 1), (2, AES, False, 1), (2, CHACHA, True, 0)]
)


def block(page, language):
    text = (ROOT / "docs" / "protocol" / page).read_text()
    return re.findall(rf"```{language}\n(.*?)```", text, re.DOTALL)


def credentials(pattern, folder, program_calls):
    """The settings of the program, the peer's secret and the program's public key."""
    own, other = random.Random(1).randbytes(32), random.Random(2).randbytes(32)
    texts = {"secret": PASSPHRASE, "key": f"comity-secret-{other.hex()}", "allow": f"comity-public-{public(own).hex()}"}
    for name, text in texts.items():
        (folder / name).touch(0o600)
        (folder / name).write_text(text)
    if pattern == 3:
        return f"passphrase=@{folder / 'secret'}", prs(PASSPHRASE), None
    peer = f"peerkey={texts['allow']}" if program_calls else f"allow={folder / 'allow'}"
    return f"key={folder / 'key'}&{peer}", own, public(other)


class Program:
    """The program beside a test: `objects` has the JSON that it printed, once it has ended."""

    def __init__(self, *arguments, codes=(0,)):
        pipe, self.codes = subprocess.PIPE, codes
        self.process = subprocess.Popen([PROGRAM, *map(str, arguments), "--json"], stdout=pipe, stderr=pipe, text=True)

    def __enter__(self):
        return self

    def __exit__(self, wrong, *_):
        if wrong:
            self.process.kill()
        try:
            out, err = self.process.communicate(timeout=PATIENCE_S)
        finally:
            self.process.kill()
        self.objects = [json.loads(line) for line in out.splitlines()]
        assert wrong or self.process.returncode in self.codes, err


@CASES
def test_the_program_receives_what_the_peer_sends(tmp_path, pattern, cipher, loses, proofs):
    settings, secret, other = credentials(pattern, tmp_path, False)
    uri = f"comity://127.0.0.1:0?mode=listener&deliver=early&rcvbuf=65536&{PATIENT}&{settings}"
    sections = [random.Random(at).randbytes(20_000) for at in range(15)]
    with Program("recv", uri, tmp_path / "out", "--gaps", tmp_path / "gaps") as program:
        host, port = json.loads(program.process.stdout.readline())["address"].split(":")
        connection = call(Link((host, int(port)), loses), pattern, secret, OURS | {"proofs": proofs}, other, cipher)
        connection.update_at = 20
        for section in sections:
            connection.submit(0, b"\x14" + section, PATIENCE_S * 10**6)
        connection.submit(0, b"\x14late", 0)
        connection.end()
        connection.run(lambda: connection.is_done() and connection.report and connection.report["with_gaps"])
        assert connection.closed is None
        connection.close(0, "that is all")
    assert (tmp_path / "out").read_bytes() == b"".join(sections)
    [gap] = map(json.loads, (tmp_path / "gaps").read_text().splitlines())
    assert (gap["section"], gap["count"], gap["reason"]) == (15, 1, "expired")
    assert connection.report["complete"] == 15 and connection.opens.phase == 1
    [reason] = [each["reason"] for each in program.objects if each["event"] == "disconnected"]
    assert "that is all" in reason


def received(tmp_path, pattern, cipher, loses, proofs, *options):
    """What the program sends of a clip: all sections by stream."""
    settings, secret, other = credentials(pattern, tmp_path, True)
    link = Link(loses=loses)
    demands = f"requireproofs={bool(proofs)}".lower()
    uri = f"comity://127.0.0.1:{link.port}?{PATIENT}&conntimeo={PATIENCE_S}s&{demands}&{settings}"
    with Program("send", CLIP, uri, "--speed", "20", *options) as program:
        connection = listen(link, pattern, secret, OURS | {"proofs": proofs}, {other} if other else None, cipher)
        connection.update_at = 2
        connection.run()
    assert connection.closed == (0, "") and not connection.gaps and connection.opens.phase == 1
    assert connection.opens.is_aes == (cipher == AES)
    totals = program.objects[-1]["output"]["totals"]
    assert totals["sectionsAcknowledged"] == len(connection.whole) == sum(connection.lengths.values())
    lengths = connection.lengths.items()
    return {stream: [connection.whole[stream, at] for at in range(length)] for stream, length in lengths}


@CASES
def test_the_peer_receives_the_bytes_that_the_program_sends(tmp_path, pattern, cipher, loses, proofs):
    [sections] = received(tmp_path, pattern, cipher, loses, proofs, "--opaque").values()
    assert {section[0] for section in sections} == {0x14}
    assert b"".join(section[1:] for section in sections) == CLIP.read_bytes()


def elementary_streams(clip):
    """The payloads of the PES packets of each PID of a transport stream."""
    found = {}
    for packet in (clip[at : at + 188] for at in range(0, len(clip), 188)):
        pid, payload = int.from_bytes(packet[1:3], "big") & 0x1FFF, packet[4:]
        payload = payload[1 + payload[0] :] if packet[3] & 0x20 else payload
        if packet[3] & 0x10:
            payload = payload[9 + payload[8] :] if packet[1] & 0x40 and payload.startswith(b"\0\0\1") else payload
            found[pid] = found.get(pid, b"") + payload
    return found


def test_the_peer_receives_pictures_and_sound_as_they_are_in_the_clip(tmp_path):
    streams, clip = received(tmp_path, 3, AES, True, 1), CLIP.read_bytes()
    assert all(table[0] == 0x12 and table[4:] in clip for table in streams.pop(0))
    inside = elementary_streams(clip)
    for sections in streams.values():
        units = [section[7 + 5 * (section[1] & 1) + 5 * (section[1] >> 1 & 1) :] for section in sections]
        [pid] = {int.from_bytes(section[2:4], "big") for section in sections}
        assert {section[0] for section in sections} == {0x11} and b"".join(units) == inside[pid]
    assert len(streams) == 2


def test_the_program_gives_up_what_expires_while_there_is_no_credit(tmp_path):
    settings, secret, other = credentials(2, tmp_path, True)
    link = Link()
    uri = f"comity://127.0.0.1:{link.port}?latency=500ms&peeridletimeo={PATIENCE_S}s&conntimeo={PATIENCE_S}s&{settings}"
    # Where this host stalls for longer than the latency, no section arrives at all.
    with Program("send", CLIP, uri, "--speed", "20", "--opaque", codes=(0, 3)) as program:
        connection = listen(link, 2, secret, {"initial_credit": 25_000, "latency": 0, "proofs": 1}, {other})
        # The peer withholds all further credit, until the program gives a section up.
        connection.known, connection.on_blocked = 2**62, lambda *_: None
        connection.run(lambda: connection.floors.get(0, 0) > len(connection.whole))
        connection.states_credit = True
        del connection.on_blocked
        connection.run()
    # Of what expired below the floor, no Drop frame has to tell.
    missing = [at for at in range(connection.lengths[0]) if (0, at) not in connection.whole]
    assert missing and all(at < connection.floors[0] or (0, at) in connection.gaps for at in missing)
    totals = program.objects[-1]["output"]["totals"]
    assert totals["sectionsAcknowledged"] <= len(connection.whole)
    assert totals["sectionsSubmitted"] == connection.lengths[0]


def test_the_codec_reads_and_writes_the_example_of_the_page():
    [example] = block("core.md", "hex")
    packet = bytes.fromhex("".join(line.split("#")[0] for line in example.splitlines()))
    data = codec.read_datagram(packet)
    payload = codec.read_payload(bytes.fromhex(data["payload"]))
    assert [frame["frame"] for frame in payload["frames"]] == ["ack", "floor", "section", "section"]
    assert codec.write_datagram(data | {"payload": codec.write_payload(payload).hex()}) == packet


@pytest.mark.parametrize("pattern, vectors", [*zip((1, 3), block("handshake.md", "vector"))])
def test_the_handshake_has_the_values_of_the_page(pattern, vectors):
    value = {name: bytes.fromhex(digits) for name, digits in (line.split(" = ") for line in vectors.splitlines())}
    caller, listener = (int.from_bytes(value[f"connection of the {end}"], "big") for end in ("caller", "listener"))
    start = pattern, True, value["secret"], caller, value["cookie"]
    state = exchange(*start, random=value["random of the caller"])
    assert state.message(bytes([CHACHA, 1, 0, 0, 0, 2]), True) == value["message 1"]
    assert state.message(value["message 2"], False) == bytes([CHACHA])
    digest, to_listener, to_caller = state.result()
    assert [digest, to_listener, to_caller] == [value[name] for name in ("hash", "key to the listener", "key to the caller")]
    assert confirmation(digest, to_listener, "confirm").encrypt(bytes(12), b"caller's", digest) == value["message 3"]
    sent = Direction(CHACHA, digest, to_listener), Direction(CHACHA, digest, to_caller)
    assert sent[0].seal(listener, 0, b"deadline") == value["packet 0 to the listener"]
    assert sent[1].seal(caller, 5, b"deadline") == value["packet 5 to the caller"]


class Kept:
    """A link that keeps what leaves."""

    def __init__(self):
        self.packets = []
        self.send = self.packets.append


ACK = {"frame": "ack", "delay": 0, "arrival": 0, "ranges": [[0, 0]], "ecn": None, "proof": 0}
SECTION = {"frame": "section", "stream": 0, "section": 0, "floor": 0, "offset": 0, "total": 9}
SECTION |= {"source_time": 0, "deadline": None, "importance": 0, "needs": None, "repeated": False, "data": "00"}
END = {"frame": "end", "stream": 0, "sections": 2}


@pytest.mark.parametrize("code, frames", [
    (None, [ACK, SECTION | {"deadline": 10**12}, SECTION | {"offset": 1, "deadline": 10**12}, END, END]),
    (8, [ACK | {"proof": 1}]),
    (8, [ACK | {"proof": None}]),
    (8, [ACK | {"ranges": [[1, 1]]}]),
    (2, [ACK | {"ecn": [1, 0, 0]}]),
    (2, [SECTION | {"deadline": 0}]),
    (7, [SECTION, SECTION | {"total": 8}]),
    (7, [END, END | {"sections": 3}]),
    (7, [END, SECTION | {"section": 2}]),
    (7, [SECTION | {"section": 2}, END]),
    (6, [SECTION | {"section": 1024}]),
    (2, [{"frame": "feedback_wave", "level": 1}]),
])
def test_the_peer_takes_nothing_against_a_rule(code, frames):
    links, keys, theirs = (Kept(), Kept()), [bytes(32), bytes([1] * 32)], codec.read_parameters(b"") | {"proofs": 1}

    def end(at):
        directions = [Direction(CHACHA, bytes(32), keys[which]) for which in (at, 1 - at)]
        return Connection(links[at], at, 1 - at, directions, {"proofs": 1}, theirs)

    one, two = end(0), end(1)
    two.send([{"frame": "ping"}])
    two.sent[0]["token"] = 0
    one.send(frames)
    try:
        two.handle(links[0].packets[0])
        assert code is None and two.sent[0]["acked"] and two.open
    except codec.Fault as wrong:
        assert wrong.args[1] == code
