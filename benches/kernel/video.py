#!/usr/bin/env python3
"""Fetches a video from nginx with TCP Libra and with other controllers in the lab, as root.

    sudo benches/kernel/video.py --comity target/release/comity --seeds 1-3

One nginx serves three paths of different round trips (experiments/kernel/video.toml), a curl at the
end of each fetches the video. For Libra, nginx runs in a cgroup that `comity kernel load libra
--cgroup` chose; for others its listeners have the controller. Prints what each client got, and puts
it into docs/guide/video-server.md with --page. Fails if a client did not begin to play, or a
connection of nginx did not use Libra.

Ends with 77 and says why where nginx, curl, ffmpeg, root or the kernel's part is missing.
"""

import argparse
import ctypes
import json
import os
import pathlib
import shutil
import socket
import statistics
import subprocess
import sys
import tempfile
import time

from three import jain, replaced

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
PAGE = ROOT / "docs/guide/video-server.md"
GROUPS = {"short": 30, "medium": 90, "long": 180}
CAPACITY = "20Mbps"
PORT = 8080
# The video: its rate, the length of its file, and what a player waits for.
RATE_BPS = 8_000_000
FILE_SECONDS = 30
REPEATS = 5
BUFFERED_SECONDS = 2
# Rates count from then on.
WARMUP = 10
# What the parts of a run learn from the bench.
FOLDER, CGROUP, CONTROLLER = (f"COMITY_VIDEO_{name}" for name in ["FOLDER", "CGROUP", "CONTROLLER"])
SKIPPED = 77
CLONE_NEWNET = 0x40000000


def skip(reason):
    print(f"video.py: skipped, {reason}", file=sys.stderr)
    raise SystemExit(SKIPPED)


# ---------------------------------------------------------------- parts of a run


def serve():
    """Becomes an nginx that listens in the source namespaces of all flows."""
    if group := os.environ.get(CGROUP):
        pathlib.Path(group, "cgroup.procs").write_text(str(os.getpid()))
    own = subprocess.run(["ip", "netns", "identify"], check=True, capture_output=True, text=True).stdout.strip()
    listeners = [listener(own.replace("short-0", f"{group}-0")) for group in GROUPS]
    enter(own)
    folder = pathlib.Path(os.environ[FOLDER])
    listens = "".join("listen {}:{};".format(*socket.getsockname()) for socket in listeners)
    configuration = folder / "nginx.conf"
    configuration.write_text(
        "daemon off; user root; worker_processes 1; error_log stderr; pid nginx.pid; events {}\n"
        f"http {{ access_log off; sendfile on; server {{ {listens} root {folder}; }} }}\n"
    )
    # nginx takes over open sockets, as in an upgrade of its program.
    environment = {**os.environ, "NGINX": "".join(f"{socket.fileno()};" for socket in listeners)}
    os.execvpe("nginx", ["nginx", "-p", str(folder), "-c", str(configuration)], environment)


def enter(namespace):
    with open(f"/run/netns/{namespace}", encoding="ascii") as file:
        if ctypes.CDLL(None, use_errno=True).setns(file.fileno(), CLONE_NEWNET):
            raise OSError(ctypes.get_errno(), f"cannot enter {namespace}")


def listener(namespace):
    show = ["ip", "-n", namespace, "-4", "-json", "address", "show", "dev", "lab0"]
    shown = json.loads(subprocess.run(show, check=True, capture_output=True).stdout)
    enter(namespace)
    listening = socket.create_server((shown[0]["addr_info"][0]["local"], PORT), backlog=64)
    if controller := os.environ.get(CONTROLLER):
        # Connections inherit it.
        listening.setsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, controller.encode())
    listening.set_inheritable(True)
    return listening


def play(address, seconds):
    """Plays the video with curl, and prints what arrived when."""
    begin = time.monotonic()
    while not can_connect(address):
        time.sleep(0.02)
    # The lab ends with the run, and what is printed before counts.
    length = seconds - (time.monotonic() - begin) - 2
    start = time.monotonic()
    curl = ["curl", "--silent", "--show-error", "--no-buffer", f"http://{address}:{PORT}/video.ts"]
    result = {"startup_s": None, "measured_bytes": 0, "measured_s": length - WARMUP}
    total = 0
    with subprocess.Popen(curl, stdout=subprocess.PIPE) as player:
        while chunk := player.stdout.read1(1 << 16):
            passed = time.monotonic() - start
            if passed > length:
                break
            total += len(chunk)
            if result["startup_s"] is None and total * 8 >= BUFFERED_SECONDS * RATE_BPS:
                result["startup_s"] = passed
            if passed >= WARMUP:
                result["measured_bytes"] += len(chunk)
        player.kill()
    print(json.dumps(result), flush=True)


def can_connect(address):
    try:
        socket.create_connection((address, PORT), timeout=1).close()
    except OSError:
        return False
    return True


# ---------------------------------------------------------------- the bench


class Bench:
    """Runs the command, with the video in a folder of its own."""

    def __init__(self, comity, seconds, folder):
        self.comity, self.seconds, self.folder = comity, seconds, pathlib.Path(folder)
        encode = ["ffmpeg", "-v", "error", "-f", "lavfi", "-i", "testsrc2=size=640x360:rate=25"]
        encode += ["-t", str(FILE_SECONDS), "-c:v", "mpeg2video", "-b:v", str(RATE_BPS), "-minrate", str(RATE_BPS)]
        encode += ["-maxrate", str(RATE_BPS), "-bufsize", "4M", "-muxrate", str(RATE_BPS * 21 // 20)]
        once = self.folder / "once.ts"
        subprocess.run([*encode, once], check=True)
        # A transport stream may follow another.
        with open(self.folder / "video.ts", "wb") as video:
            for _ in range(REPEATS):
                video.write(once.read_bytes())

    def libra(self, seed):
        """A run in a cgroup that uses Libra; every connection has to."""
        group = cgroup_root() / f"comity-video-{os.getpid()}"
        group.mkdir()
        load = [self.comity, "kernel", "load", "libra", "--capacity", CAPACITY, "--cgroup", group]
        try:
            loaded = subprocess.run(load, check=False, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
            if "cannot run libra here" in loaded.stderr:
                skip(loaded.stderr.strip())
            if loaded.returncode:
                raise SystemExit(f"video.py: {loaded.stderr.strip()}")
            results, flows = self.run(seed, {CGROUP: str(group)})
        finally:
            subprocess.run([self.comity, "kernel", "unload", "libra"], check=False, capture_output=True)
            group.rmdir()
        if flows < len(GROUPS):
            raise SystemExit(f"video.py: {flows} connections used Libra, expected {len(GROUPS)}")
        return results

    def results(self, controller, seed):
        return self.libra(seed) if controller == "libra" else self.run(seed, {CONTROLLER: controller})[0]

    def run(self, seed, environment):
        """What each client printed, and the maximum number of flows of Libra."""
        logs = self.folder / "logs"
        command = [self.comity, "lab", "run", "experiments/kernel/video.toml", "--seeds", str(seed), "--quiet"]
        command += ["--set", f"scenario.duration={self.seconds}s", "--logs", str(logs)]
        environment = {**os.environ, **environment, FOLDER: str(self.folder)}
        flows = 0
        with subprocess.Popen(command, cwd=ROOT, env=environment) as lab:
            while lab.poll() is None:
                flows = max(flows, self.flows())
                time.sleep(1)
        if lab.returncode == 3:
            print("video.py: the lab does not trust this run", file=sys.stderr)
        elif lab.returncode:
            raise SystemExit(f"video.py: the lab ended with {lab.returncode}")
        outputs = {group: self.output(logs, group) for group in GROUPS}
        shutil.rmtree(logs)
        return outputs, flows

    def output(self, logs, group):
        files = list(logs.rglob(f"{group}-0.receiver.out"))
        text = files[0].read_text() if files else ""
        if not text:
            raise SystemExit(f"video.py: the client {group} printed nothing")
        result = json.loads(text)
        if result["startup_s"] is None:
            raise SystemExit(f"video.py: the client {group} did not begin to play")
        return result

    def flows(self):
        status = subprocess.run([self.comity, "kernel", "status", "--json"], check=False, capture_output=True)
        return len(json.loads(status.stdout)["flows"]) if status.returncode == 0 else 0


def cgroup_root():
    for line in pathlib.Path("/proc/mounts").read_text().splitlines():
        if line.split()[2] == "cgroup2":
            return pathlib.Path(line.split()[1])
    return skip("no cgroup file system of version 2 is mounted")


def row(name, results):
    """The row of a controller: the means of its runs.

    >>> client = {"startup_s": 2.0, "measured_bytes": 1_000_000, "measured_s": 8.0}
    >>> row("libra", [dict.fromkeys(GROUPS, client)])
    '| libra | 1 | 2.0 | 2.0 | 2.0 | 1.00 | 1.00 | 1.00 | 1.000 |'
    """
    rates = [[run[group]["measured_bytes"] * 8 / run[group]["measured_s"] / 1e6 for group in GROUPS] for run in results]
    startups = [statistics.mean(run[group]["startup_s"] for run in results) for group in GROUPS]
    cells = [f"{startup:.1f}" for startup in startups]
    cells += [f"{statistics.mean(of):.2f}" for of in zip(*rates)]
    cells += [f"{statistics.mean(jain(of) for of in rates):.3f}"]
    return f"| {name} | {len(results)} | {' | '.join(cells)} |"


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--comity", default=str(ROOT / "target/release/comity"))
    parser.add_argument("--controllers", nargs="+", default=["libra", "cubic", "bbr"])
    parser.add_argument("--seeds", default="1-3")
    parser.add_argument("--seconds", type=int, default=60, help="the length of a run")
    parser.add_argument("--page", action="store_true", help="write the table into the guide")
    arguments = parser.parse_args()
    if os.geteuid() != 0:
        skip("it needs root: run it with sudo")
    for program in ["nginx", "curl", "ffmpeg"]:
        if not shutil.which(program, path=os.environ["PATH"] + ":/usr/sbin"):
            skip(f"there is no {program} (Debian: apt-get install {program})")
    first, _, last = arguments.seeds.partition("-")
    seeds = range(int(first), int(last or first) + 1)
    lines = [
        "| controller | runs | start-up at 30 ms, s | 90 ms | 180 ms | rate at 30 ms, Mb/s | 90 ms | 180 ms | Jain |",
        "|---|---:|---:|---:|---:|---:|---:|---:|---:|",
    ]
    with tempfile.TemporaryDirectory() as folder:
        bench = Bench(arguments.comity, arguments.seconds, folder)
        for name in arguments.controllers:
            results = []
            for seed in seeds:
                print(f"video.py: {name}, seed {seed}: {arguments.seconds} s", file=sys.stderr, flush=True)
                results.append(bench.results(name, seed))
            lines.append(row(name, results))
    table = "\n".join(lines)
    print(table)
    if arguments.page:
        PAGE.write_text(replaced(PAGE.read_text(), "video", table))


if __name__ == "__main__":
    if sys.argv[1:2] == ["serve"]:
        serve()
    elif sys.argv[1:2] == ["play"]:
        play(sys.argv[2], float(sys.argv[3]))
    else:
        main()
