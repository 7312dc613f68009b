"""A chain of programs as users run them: send, emulate, relay, emulate, recv."""

import json
import os
import pathlib
import signal
import subprocess
import threading
import time
from dataclasses import dataclass, field

import units

LENGTH = 2_400
RATE = 25
LATENCY_S = 0.5
ENDS = ("send", "relay", "recv")


class EnduranceError(Exception):
    """Something could not be run."""


@dataclass
class Life:
    """One process of a program, from its start to its end."""

    name: str
    pid: int
    began: float
    ended: float | None = None
    code: int | None = None
    was_killed: bool = False
    # Its list of gaps, its messages, and the objects that it prints.
    gaps: pathlib.Path | None = None
    errors: pathlib.Path | None = None
    said: pathlib.Path | None = None
    # The last of these objects.
    end: dict = field(default_factory=dict)
    # The first unit that a sender was fed, and the units that a receiver wrote.
    first: int = 0
    units: list = field(default_factory=list)
    broken: int = 0
    # What a receiver writes: a file, or a pipe that this thread reads.
    file: pathlib.Path | None = None
    reader: threading.Thread | None = None
    # (time, resident bytes, open files)
    samples: list = field(default_factory=list)


class Feeder:
    """Writes a unit each 40 ms to the sender of a chain, and keeps when it wrote which."""

    def __init__(self):
        self.times = []
        self.lock = threading.Lock()
        self.pipe, self.writer, self.index = None, None, 0
        self.is_over = False
        self.thread = threading.Thread(target=self.run, daemon=True)

    def switch(self, pipe):
        """The next unit is the first of another stream. Returns its number."""
        with self.lock:
            self.pipe, self.writer, self.index = pipe, units.Writer(LENGTH), 0
            return len(self.times)

    def run(self):
        due = time.monotonic()
        while not self.is_over:
            due = max(due + 1 / RATE, time.monotonic() - 1)
            time.sleep(max(0, due - time.monotonic()))
            with self.lock:
                if self.pipe is None:
                    continue
                try:
                    rest = memoryview(self.writer.unit(len(self.times), self.index))
                    while rest:
                        rest = rest[self.pipe.write(rest) :]
                except (BrokenPipeError, ValueError):
                    # The sender was killed. What it had not read it does not account for.
                    self.pipe = None
                    continue
                self.index += 1
                self.times.append(time.monotonic())

    def end(self):
        self.is_over = True
        self.thread.join()
        if self.pipe is not None:
            self.pipe.close()


class Chain:
    """A sender, a relay and a receiver, with an emulator between each two."""

    def __init__(self, name, comity, folder, ports, options):
        self.name, self.comity, self.folder, self.options = name, comity, folder, options
        self.ports = ports  # of the emulator before the relay, the relay, the other emulator, the receiver
        self.feeder = Feeder()
        self.lives = []
        self.now = {}
        self.children = {}
        self.paths = [{}, {}]
        self.readers = []
        # Held by whoever starts, stops or ends programs of this chain.
        self.lock = threading.RLock()

    # --- starting ---

    def start(self):
        for name in ("recv", "down", "relay", "up", "send"):
            self.launch(name)
            self.wait_until_it_listens(name)
        self.feeder.thread.start()

    def command(self, name, life):
        up, relay, down, recv = self.ports
        keys = "&".join(["mode=listener", *self.options.get("keys", [])])
        calls = "&".join([f"latency={LATENCY_S * 1000:.0f}ms", *self.options.get("keys", [])])
        more = ["--json", "--gaps", str(life.gaps), "--statsfreq", "10s", *self.options.get("arguments", [])]
        match name:
            case "send":
                return ["send", "-", f"comity://10.77.0.1:{up}?{calls}", *more]
            case "relay":
                return ["relay", f"comity://127.0.0.1:{relay}?{keys}", f"comity://10.77.0.1:{down}?{calls}", *more]
            case "recv":
                return ["recv", f"comity://127.0.0.1:{recv}?{keys}", str(self.output(life)), *more]
            case "up" | "down":
                listen, to = (up, relay) if name == "up" else (down, recv)
                return ["emulate", "--listen", f"10.77.0.1:{listen}", "--to", f"127.0.0.1:{to}", "--json", "--late", "60s",
                        *self.link(name)]
        raise EnduranceError(f"no such program: {name}")

    def link(self, name):
        link = self.paths[name == "down"]
        return [word for key, value in link.items() for word in (f"--{key}", str(value))] or ["--delay", "5ms"]

    def output(self, life):
        """Where the receiver writes: to a pipe that is read here, or to a file."""
        disk = self.options.get("disk")
        return disk / f"{len(self.lives)}.ts" if disk else "-"

    def launch(self, name):
        with self.lock:
            number = len(self.lives)
            life = Life(name, 0, time.monotonic(), gaps=self.folder / f"{number}-{name}.gaps")
            life.errors = self.folder / f"{number}-{name}.err"
            command = [self.comity, *self.command(name, life)]
            to_pipe = name == "recv" and command[3] == "-"
            out = self.folder / f"{number}-{name}.out"
            life.said = life.errors if to_pipe else out
            if name == "recv" and not to_pipe:
                life.file = pathlib.Path(command[3])
            with life.errors.open("w") as errors, out.open("w") as out:
                child = subprocess.Popen(command, stdin=subprocess.PIPE if name == "send" else subprocess.DEVNULL,
                                         stdout=subprocess.PIPE if to_pipe else out, stderr=errors, bufsize=0)
            life.pid = child.pid
            self.lives.append(life)
            self.now[name], self.children[name] = life, child
            if name == "send":
                life.first = self.feeder.switch(child.stdin)
            if to_pipe:
                life.reader = threading.Thread(target=self.read, args=(life, child.stdout), daemon=True)
                life.reader.start()

    def wait_until_it_listens(self, name, patience=60):
        life, until = self.now[name], time.monotonic() + patience
        if name == "send":
            return
        while time.monotonic() < until:
            if '"listening"' in life.said.read_text():
                return
            time.sleep(0.02)
        raise EnduranceError(f"{self.name}: {name} does not listen: {life.errors.read_text()[-300:]}")

    @staticmethod
    def read(life, source):
        """Takes the units out of what a receiver writes."""
        reader = units.Reader(LENGTH)
        while data := source.read(1 << 16):
            reader.feed(data)
        reader.end()
        life.units, life.broken = reader.units, reader.broken

    # --- ending ---

    def finish(self, name, patience=60):
        """Waits for the end of a program, and keeps what it said."""
        child, life = self.children[name], self.now[name]
        try:
            child.wait(patience)
        except subprocess.TimeoutExpired:
            child.send_signal(signal.SIGKILL)
            child.wait()
            raise EnduranceError(f"{self.name}: {name} did not end within {patience} s") from None
        life.ended, life.code = life.ended or time.monotonic(), child.returncode
        if name == "send":
            child.stdin.close()
        if life.reader:
            life.reader.join()
        elif life.file:
            with life.file.open("rb") as file:
                self.read(life, file)
            life.file.unlink()
        if life.was_killed:
            return life
        lines = [line for line in life.said.read_text().splitlines() if line.startswith("{")]
        for line in reversed(lines):
            last = json.loads(line)
            if last["event"] in ("end", "report"):
                life.end = last
                break
        return life

    def kill(self, name):
        """Ends a program as a power cut does."""
        with self.lock:
            life = self.now[name]
            life.was_killed, life.ended = True, time.monotonic()
            self.children[name].send_signal(signal.SIGKILL)
            self.finish(name)

    def suspend(self, name, seconds):
        with self.lock:
            pid = self.now[name].pid
            os.kill(pid, signal.SIGSTOP)
            try:
                time.sleep(seconds)
            finally:
                os.kill(pid, signal.SIGCONT)

    def replace_path(self, name, link):
        """Another network between two programs: its packets come from another port."""
        with self.lock:
            self.paths[name == "down"] = link
            self.children[name].send_signal(signal.SIGINT)
            self.finish(name)
            self.launch(name)
            self.wait_until_it_listens(name)

    def end(self):
        """Lets everything arrive, and ends the programs in the order of the stream."""
        with self.lock:
            self.feeder.end()
            for name in ENDS:
                if self.options.get("interrupts") and name != "send":
                    time.sleep(3)
                    self.children[name].send_signal(signal.SIGINT)
                self.finish(name)
            for name in ("up", "down"):
                self.children[name].send_signal(signal.SIGINT)
                self.finish(name)
