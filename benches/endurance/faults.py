"""What goes wrong, and when: drawn from a seed."""

import subprocess
import time

# What all chains have between them: interface, addresses, queue.
SHARED = ("interface down", "narrow interface", "full queue", "another address")


def tool(*command):
    return subprocess.run(command, capture_output=True, text=True, check=False)


def point(source):
    """Packets to the emulators come from this address of the interface from now on."""
    return tool("ip", "route", "replace", "local", "10.77.0.1", "dev", "lo", "table", "local", "src", source)


def prepare():
    """The network of the run, in a namespace of its own. Returns which faults it cannot have, with the reason."""
    for command in (["ip", "link", "set", "lo", "up"], *(["ip", "addr", "add", f"10.77.0.{host}/32", "dev", "lo"] for host in (1, 2, 3))):
        done = tool(*command)
        if done.returncode:
            raise OSError(f"{' '.join(command)}: {done.stderr.strip()}")
    lacking = {}
    done = point("10.77.0.2")
    if done.returncode:
        lacking["another address"] = done.stderr.strip()
    done = fill_queue()
    if done.returncode:
        lacking["full queue"] = done.stderr.strip()
    empty_queue()
    return lacking


def fill_queue():
    """A queue for one packet before a rate of less than the chains need: the system refuses the rest."""
    return tool("tc", "qdisc", "replace", "dev", "lo", "root", "tbf", "rate", "1mbit", "burst", "4000", "limit", "4000")


def empty_queue():
    tool("tc", "qdisc", "del", "dev", "lo", "root")


class Shared:
    """Faults of the interface that everything goes over."""

    def __init__(self, randomness):
        self.randomness = randomness
        self.address = 2

    def inject(self, kind):
        match kind:
            case "interface down":
                seconds = self.randomness.uniform(0.2, 3)
                tool("ip", "link", "set", "lo", "down")
                time.sleep(seconds)
                tool("ip", "link", "set", "lo", "up")
                point(f"10.77.0.{self.address}")
                return f"{seconds:.1f} s"
            case "narrow interface":
                size = self.randomness.randrange(1_280, 1_480)
                tool("ip", "link", "set", "lo", "mtu", str(size))
                time.sleep(self.randomness.uniform(5, 15))
                tool("ip", "link", "set", "lo", "mtu", "65536")
                return f"{size} bytes"
            case "full queue":
                seconds = self.randomness.uniform(1, 5)
                fill_queue()
                time.sleep(seconds)
                empty_queue()
                return f"{seconds:.1f} s"
            case "another address":
                self.address = 5 - self.address
                point(f"10.77.0.{self.address}")
                return f"10.77.0.{self.address}"
        raise ValueError(kind)


def link(randomness):
    """A network between two programs, as options of `comity emulate`.

    >>> import random
    >>> drawn = [link(random.Random(seed)) for seed in range(50)]
    >>> any("mtu" in one for one in drawn), all(1_300 <= one.get("mtu", 1_400) <= 1_500 for one in drawn)
    (True, True)
    """
    drawn = {"delay": f"{randomness.randrange(1, 41)}ms", "seed": randomness.randrange(1 << 30)}
    if randomness.random() < 0.5:
        drawn["loss"] = f"{randomness.choice([0.1, 1, 3, 8])}%"
    if randomness.random() < 0.4:
        drawn["mtu"] = randomness.randrange(1_300, 1_500)
    if randomness.random() < 0.3:
        drawn["jitter"] = "{ kind = 'uniform', max = '15ms', reorder = true }"
    if randomness.random() < 0.2:
        drawn["duplication"] = "5%"
    return drawn


class Kept:
    """Faults that a chain has to outlast without a new process or connection."""

    kinds = ("suspended", "another path")

    def __init__(self, chain, randomness):
        self.chain, self.randomness = chain, randomness

    def inject(self, kind):
        match kind:
            case "suspended":
                name, seconds = self.randomness.choice(["send", "relay", "recv", "up", "down"]), self.randomness.uniform(0.3, 10)
                self.chain.suspend(name, seconds)
                return f"{self.chain.name}, {name} for {seconds:.1f} s"
            case "another path":
                name, drawn = self.randomness.choice(["up", "down"]), link(self.randomness)
                self.chain.replace_path(name, drawn)
                return f"{self.chain.name}, {name}: {drawn}"
        raise ValueError(kind)


class Struck(Kept):
    """Faults that end processes and connections, too."""

    kinds = ("killed", "killed", "killed", "disk full", "suspended", "another path")

    def inject(self, kind):
        match kind:
            case "killed":
                name = self.randomness.choice(["send", "relay", "recv", "up", "down"])
                self.chain.kill(name)
                time.sleep(self.randomness.uniform(0, 3))
                self.chain.launch(name)
                self.chain.wait_until_it_listens(name)
                return f"{self.chain.name}, {name}"
            case "disk full":
                self.fill_disk()
                return "the receiver's"
        return super().inject(kind)

    def fill_disk(self):
        disk = self.chain.options["disk"]
        filler = disk / "filler"
        with self.chain.lock:
            try:
                with filler.open("wb", buffering=0) as file:
                    while file.write(bytes(1 << 16)):
                        pass
            except OSError:
                pass
            # The receiver has no room for its next section and ends. That can take until the media come again.
            life = self.chain.finish("recv", patience=60)
            filler.unlink()
            if life.code != 1:
                raise OSError(f"a receiver with a full disk ended with {life.code}, not with 1")
            self.chain.launch("recv")
            self.chain.wait_until_it_listens("recv")
