"""Programs that run beside the attacks, and what they use of the machine."""

import contextlib
import json
import os
import pathlib
import queue
import signal
import socket
import subprocess
import threading
import time
from dataclasses import dataclass

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
CLIP = ROOT / "experiments/demo/clip/clip.ts"
PASSPHRASE = "correct horse battery"
LISTENER = "comity://127.0.0.1:0?mode=listener"
# What a program that hangs is given.
PATIENCE = 60


class AttackError(Exception):
    """Something could not be run or measured."""


class Skipped(Exception):
    """An attack cannot be run here, for this reason."""


@dataclass(frozen=True)
class Usage:
    """What a process has used."""

    cpu_s: float
    memory_mb: float
    peak_mb: float


class Program:
    """A command that prints JSON, one object a line."""

    def __init__(self, *command, environment=None):
        self.command = [str(part) for part in command]
        self.child = subprocess.Popen(
            self.command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env={**os.environ, "COMITY_PASSPHRASE": PASSPHRASE, **(environment or {})},
        )
        self.events, self.said, self.last = queue.Queue(), b"", None
        self.readers = [threading.Thread(target=read, daemon=True) for read in (self.read_events, self.read_words)]
        for reader in self.readers:
            reader.start()

    def read_events(self):
        for line in self.child.stdout:
            self.events.put((time.monotonic(), json.loads(line)))
        self.events.put((time.monotonic(), None))

    def read_words(self):
        for line in self.child.stderr:
            self.said += line

    def timed_event(self, name, patience=PATIENCE):
        """The next event of this name, behind the time at which it came."""
        until = time.monotonic() + patience
        while True:
            try:
                at, event = self.events.get(timeout=max(0.0, until - time.monotonic()))
            except queue.Empty:
                raise AttackError(f"{self.command}: no event {name} within {patience} s: {self.said.decode()}") from None
            if event is None:
                raise AttackError(f"{self.command}: ended without an event {name}: {self.said.decode()}")
            self.last = event
            if event["event"] == name:
                return at, event

    def event(self, name, patience=PATIENCE):
        return self.timed_event(name, patience)[1]

    def fresh(self, name):
        """The first event of this name from now on."""
        while not self.events.empty():
            if self.events.get()[1] is None:
                raise AttackError(f"{self.command}: ended without another event {name}: {self.said.decode()}")
        return self.event(name)

    def says(self, text, patience=PATIENCE):
        """Waits until it has printed a text for people."""
        until = time.monotonic() + patience
        while text not in self.said:
            if self.child.poll() is not None or time.monotonic() > until:
                raise AttackError(f"{self.command}: did not say {text}: {self.said.decode()}")
            time.sleep(0.01)

    def address(self):
        return self.event("listening")["address"]

    def usage(self):
        """The processor time of all threads, to the nanosecond, and the memory in use."""
        if self.child.poll() is not None:
            raise AttackError(f"{self.command}: ended with {self.child.returncode}: {self.said[-500:].decode()}")
        process = pathlib.Path(f"/proc/{self.child.pid}")
        nanoseconds = 0
        for task in (process / "task").iterdir():
            with contextlib.suppress(FileNotFoundError):
                nanoseconds += int((task / "schedstat").read_text().split()[0])
        status = dict(line.split(":", 1) for line in (process / "status").read_text().splitlines())
        peak, now = (int(status[key].split()[0]) / 1000 for key in ("VmHWM", "VmRSS"))
        return Usage(nanoseconds / 1e9, now, peak)

    def signal(self, number):
        self.child.send_signal(number)

    def end(self, patience=PATIENCE):
        """Waits for the end; the exit code and the last event."""
        try:
            code = self.child.wait(patience)
        except subprocess.TimeoutExpired:
            raise AttackError(f"{self.command}: runs still after {patience} s") from None
        for reader in self.readers:
            reader.join(PATIENCE)
        while not self.events.empty():
            self.last = self.events.get()[1] or self.last
        return code, self.last

    def rest(self, name):
        """The events of this name until the end."""
        found = []
        while True:
            _, event = self.events.get(timeout=PATIENCE)
            if event is None:
                return found
            self.last = event
            if event["event"] == name:
                found.append(event)

    def stop(self):
        """Interrupts it and waits; the seconds that it took and the last event."""
        began = time.monotonic()
        self.signal(signal.SIGTERM)
        _, last = self.end()
        return time.monotonic() - began, last

    def __enter__(self):
        return self

    def __exit__(self, *_):
        if self.child.poll() is None:
            self.child.kill()
        self.child.wait()
        for pipe in (self.child.stdout, self.child.stderr):
            pipe.close()


class Programs:
    """The command under attack, the attacker, and the folder for what they write."""

    def __init__(self, comity, attack, folder, clip):
        self.comity, self.attack_program = comity, attack
        self.folder, self.clip = folder, clip

    def run(self, *arguments):
        return Program(self.comity, *arguments, "--json")

    def attack(self, *arguments):
        return Program(self.attack_program, *arguments)

    def listener(self, *more):
        """A sender that listens, serves everybody, and has nothing to send."""
        return self.live_sender(free_port(), LISTENER, "--all", *more)

    def live_sender(self, port, uri, *more):
        """A sender that listens, and sends what comes to a port."""
        program = self.run("send", f"udp://127.0.0.1:{port}", uri, *more)
        # At that port.
        program.event("listening")
        return program, program.address()

    def receiver(self, *more, uri=LISTENER, output="/dev/null"):
        program = self.run("recv", uri, output, *more)
        return program, program.address()

    def emulator(self, to, *more):
        program = self.run("emulate", "--listen", "127.0.0.1:0", "--to", to, *more)
        return program, program.address()

    def sender(self, address, *more):
        return self.run("send", self.clip, f"comity://{address}", *more)


def free_port():
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as line:
        line.bind(("127.0.0.1", 0))
        return line.getsockname()[1]


def grown(path, size, patience=20):
    """When a file has grown beyond a size."""
    until = time.monotonic() + patience
    while time.monotonic() < until:
        if size_of(path) > size:
            return time.monotonic()
        time.sleep(0.005)
    return float("inf")


def size_of(path):
    with contextlib.suppress(FileNotFoundError):
        return os.path.getsize(path)
    return 0


def sections_on_time(last):
    """Sections on time by the last event of a receiver, and how many came to it or are missing in all."""
    totals = last["input"]["totals"]
    on_time = totals["sectionsOnTime"]
    return on_time, on_time + totals["sectionsLate"] + totals["sectionsGap"]


def socket_drops(address):
    """Packets that the system dropped because the program at this address did not fetch them in time."""
    host, port = address.rsplit(":", 1)
    wanted = f"{int.from_bytes(socket.inet_aton(host), 'little'):08X}:{int(port):04X}"
    for line in pathlib.Path("/proc/net/udp").read_text().splitlines()[1:]:
        fields = line.split()
        if fields[1] == wanted:
            return int(fields[-1])
    raise AttackError(f"no socket at {address}")
