#!/usr/bin/env python3
"""Runs the commands of docs/guide as a reader would, and holds what they print against the pages.

The pages run one after the other, in the order of the guides' README, in one folder, from a copy of the repository that
only has what git tracks. Where this runs as root, the pages run as a user who is not. `cargo install` and `pip install`
take what `make test` has built. Ports are replaced by free ones.

What stands behind the ``` of a block:

    sh                 the commands run, each has to succeed
    sh fails           the last command has to fail
    sh repository      the commands begin in the repository
    sh &               the commands run in a terminal of their own
    sh root            with `sudo`: left out where this does not run as root
    sh if COMMAND      left out where this command fails
    python             the Python blocks of a page are one program
    LANGUAGE FILE      the block is saved as FILE
    text               the lines stand in what the page's commands printed, one behind the other, but for what "..."
                       leaves out, within a line or as one; numbers are near those that were printed
    text sample        as many lines as chance leaves: half of them at least, with any numbers
    ... no-run: WHY    the block is left out

After a page the repository has the files that it had before.

    SKIP_REASON   a file to write to why a part was left out
"""

import argparse
import contextlib
import os
import pathlib
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent
TARGET = pathlib.Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target")).resolve()
GUIDES = pathlib.Path("docs/guide")
PORTS = ["9000", "9001", "9002", "9100", "8080"]
# A user without an account: nothing else on the machine runs as this one.
USER = 61_284
# The longest time of a page in seconds.
LIMIT = 180
# A number, and how far one may be from that of a page: so much, or such a part of it.
NUMBER = r"(?<![\d.])(?:(?<!\w)[-+])?\d+(?:\.\d+)?(?:e[-+]?\d+)?"
NEAR, PART = 10.0, 0.15
# What sudo sets by default on Debian: commands in a home are not found.
SECURE_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

PRELUDE = r"""
set -eu
cargo() {
    [ "$1" = install ] || { command cargo "$@"; return; }
    mkdir -p ~/.cargo/bin
    cp "$GUIDES_COMITY" ~/.cargo/bin/comity
}
pip() {
    echo "$GUIDES_PYTHON" | tr : '\n' > "$(echo "$VIRTUAL_ENV"/lib/python*/site-packages)/guides.pth"
    printf '#!%s\nimport sys\nfrom comity.__main__ import main\nsys.exit(main())\n' "$VIRTUAL_ENV/bin/python" \
        > "$VIRTUAL_ENV/bin/comity"
    chmod +x "$VIRTUAL_ENV/bin/comity"
}
"""

SUDO = """\
#!/usr/bin/env python3
import os, socket, sys
with socket.socket(socket.AF_UNIX) as server:
    server.connect({path!r})
    socket.send_fds(server, [b"\\0".join(os.fsencode(word) for word in [os.getcwd(), *sys.argv[1:]])], [0, 1, 2])
    sys.exit(int(server.recv(16) or 1))
"""


def blocks(page):
    r'''The fenced blocks of a page: line, what stands behind the opening fence, and text.

    >>> list(blocks("# A\n```sh &\na\n```\n1. b\n\n   ```text\n     c\n   ```\n"))
    [(2, 'sh &', 'a\n'), (7, 'text', '  c\n')]
    '''
    mark, indent, begin, lines = None, "", 0, []
    for number, line in enumerate(page.splitlines(), 1):
        fence = line.lstrip()
        if mark is None and fence.startswith("```"):
            mark, indent, begin, lines = fence[3:].strip(), line[: -len(fence)], number, []
        elif mark is not None and fence == "```":
            yield begin, mark, "".join(f"{line}\n" for line in lines)
            mark = None
        elif mark is not None:
            lines.append(line.removeprefix(indent))


def pattern(line):
    """What a line of a page stands for: any number is as good as another, and "..." as anything.

    >>> bool(re.search(pattern("sent: 786 sections, ... 0 lost"), "  sent: 9 sections, 1 b, 2 lost in all"))
    True
    >>> bool(re.search(pattern("shed: 136 (too slow)"), "shed: 1 (to fit the rate)"))
    False
    >>> bool(re.search(pattern("20   reno  4.5"), "20 reno      11.25"))
    True
    >>> bool(re.search(pattern("comity-public-a5c5f52164ea"), "comity-public-415fd30e0f24"))
    True
    """

    def part(text):
        pieces = re.split(rf"(\s+|\b[0-9a-f]{{12,}}\b|{NUMBER})", text)
        literal = [re.escape(piece) for piece in pieces[::2]]
        between = [
            r"\s+" if not piece.strip() else r"[0-9a-f]{12,}" if re.fullmatch("[0-9a-f]{12,}", piece) else f"({NUMBER})"
            for piece in pieces[1::2]
        ]
        return "".join(a + b for a, b in zip(literal, [*between, ""]))

    return ".*".join(part(piece.strip()) for piece in line.strip().split("..."))


def has_near_numbers(line, printed):
    """Whether a printed line is that of a page, with numbers that are not far from the page's.

    >>> has_near_numbers("sent: 786 sections, ... 0 lost", "sent: 801 sections, 7 bytes, 2 lost")
    True
    >>> has_near_numbers("sent: 786 sections", "sent: 930 sections")
    False
    >>> has_near_numbers("0.39%  ...  35.31", "0.39%  0.41%  0.0  35.40")
    True
    >>> has_near_numbers("sent: 786 sections", "received: 786 sections")
    False
    """
    for found in re.finditer(pattern(line), printed):
        own = re.search(pattern(line.replace("...", "")), line.replace("...", ""))
        pairs = zip(found.groups(), own.groups() if own else found.groups())
        if all(abs(float(a) - float(b)) <= max(NEAR, PART * abs(float(b))) for a, b in pairs):
            return True
    return False


def behind(lines, printed):
    """The first line of a page that is not printed behind the line before it; None if all are.

    >>> printed = ["a 1", "b 2", "c 3", "d 4"]
    >>> behind(["b 2", "c 3"], printed), behind(["a 1", "...", "d 4"], printed), behind(["a 1", "d 4"], printed)
    (None, None, 'd 4')
    """
    places = None
    for line in lines:
        if line.strip() == "...":
            places = set(range(min(places, default=0), len(printed)))
            continue
        found = {at for at, each in enumerate(printed) if has_near_numbers(line, each)}
        if places is not None:
            # A page may break a long line.
            found = {at for at in found if at in places or at - 1 in places}
        if not found:
            return line
        places = found
    return None


def order(readme):
    """The pages in the order of the README, which is the first."""
    return ["README.md", *re.findall(r"^\| \[(\S+\.md)\]", readme, re.MULTILINE)]


def tracked():
    """The files that git tracks; in an archive without git, all but those that were built."""
    command = ["git", "ls-files", "-z"]
    with contextlib.suppress(FileNotFoundError):
        listed = subprocess.run(command, cwd=ROOT, check=False, capture_output=True)
        if listed.returncode == 0:
            names = [os.fsdecode(name) for name in listed.stdout.split(b"\0")[:-1]]
            return [name for name in names if (ROOT / name).is_file()]
    files = (path.relative_to(ROOT) for path in ROOT.rglob("*") if path.is_file())
    return [path for path in files if path.parts[0] not in ("target", ".git")]


def serve_root(path, temporary):
    """Runs as root what the command `sudo` of the pages sends."""
    server = socket.socket(socket.AF_UNIX)
    server.bind(str(path))
    server.listen()
    os.chown(path, USER, USER)
    environment = {"PATH": SECURE_PATH, "HOME": "/root", "LANG": "C.UTF-8", "TMPDIR": str(temporary)}

    def answer(peer):
        with peer:
            message, descriptors, _, _ = socket.recv_fds(peer, 1 << 20, 3)
            folder, *command = [os.fsdecode(word) for word in message.split(b"\0")]
            streams = dict(zip(("stdin", "stdout", "stderr"), descriptors))
            try:
                found = shutil.which(command[0], path=SECURE_PATH)
                if found is None:
                    os.write(descriptors[2], f"sudo: {command[0]}: command not found\n".encode())
                    code = 1
                else:
                    code = subprocess.run([found, *command[1:]], cwd=folder, env=environment, **streams).returncode
            finally:
                for descriptor in descriptors:
                    os.close(descriptor)
            peer.sendall(str(code).encode())

    def listen():
        while True:
            peer, _ = server.accept()
            threading.Thread(target=answer, args=(peer,), daemon=True).start()

    threading.Thread(target=listen, daemon=True).start()


def free_ports():
    """As many free ports, for UDP and TCP."""
    with contextlib.ExitStack() as sockets:
        ports = []
        while len(ports) < len(PORTS):
            udp = sockets.enter_context(socket.socket(socket.AF_INET6, socket.SOCK_DGRAM))
            tcp = sockets.enter_context(socket.socket(socket.AF_INET6))
            udp.bind(("::", 0))
            with contextlib.suppress(OSError):
                tcp.bind(("::", udp.getsockname()[1]))
                ports.append(udp.getsockname()[1])
    return ports


def end(child):
    """Ends a script at the limit, and all that it leaves when it ends."""
    with contextlib.suppress(subprocess.TimeoutExpired):
        child.wait(LIMIT)
    with contextlib.suppress(ProcessLookupError):
        os.killpg(child.pid, signal.SIGKILL)


class Reader:
    """One who reads the pages: a home, a copy of the repository, and a user who is not root."""

    def __init__(self, folder, comity):
        self.is_root = os.geteuid() == 0
        self.home, self.repository, self.bin = folder / "home", folder / "comity", folder / "bin"
        for each in (self.home, self.repository, self.bin):
            each.mkdir()
        for name in tracked():
            to = self.repository / name
            to.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(ROOT / name, to)
        program = folder / "comity-program"
        shutil.copy(comity, program)
        packages = [TARGET / "python", *(TARGET / "python-venv").glob("lib/python*/site-packages")]
        self.python_version = packages[-1].parent.name
        self.python = self.readable(folder, [path for path in packages if path.exists()])
        (self.bin / "sudo").write_text(SUDO.format(path=str(folder / "root")))
        (self.bin / "sudo").chmod(0o755)
        self.environment = {
            "HOME": str(self.home),
            "PATH": f"{self.home}/.cargo/bin:{self.bin}:/usr/local/bin:/usr/bin:/bin",
            "LANG": "C.UTF-8",
            "MPLBACKEND": "agg",
            "GUIDES_COMITY": str(program),
            "GUIDES_PYTHON": ":".join(map(str, self.python)),
        }
        if self.is_root:
            subprocess.run(["chown", "--recursive", f"{USER}:{USER}", self.home, self.repository], check=True)
            folder.chmod(0o755)
            serve_root(folder / "root", folder)

    def readable(self, folder, paths):
        """These folders, or copies where another user cannot look into them."""
        for number, path in enumerate(paths):
            inside = [path.resolve(), *path.resolve().parents]
            if self.is_root and not all(each.stat().st_mode & 0o005 == 0o005 for each in inside):
                paths[number] = folder / f"python-{number}"
                shutil.copytree(path, paths[number], symlinks=True)
        return paths

    def files(self):
        return {path for path in self.repository.rglob("*") if not path.is_dir()}

    def run(self, script, where):
        """Runs a script as the user; its exit code, and what was printed."""
        command = ["bash", "-c", script]
        if self.is_root:
            user = ["setpriv", f"--reuid={USER}", f"--regid={USER}", "--clear-groups"]
            command = [*user, *command]
        with subprocess.Popen(
            command,
            cwd=where,
            env=self.environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,
        ) as child:
            # What is still running in the background after the last command would be waited for.
            threading.Thread(target=end, args=(child,), daemon=True).start()
            printed = []
            for line in child.stdout:
                if line.startswith("== "):
                    print(f"  {line[3:]}", end="", flush=True)
                else:
                    printed.append(line)
        return child.returncode, "".join(printed)


class Page:
    """What a page has the reader do."""

    def __init__(self, name, text, reader, replacements):
        self.name, self.expected, self.left_out = name, [], []
        self.files, self.needs_python, self.runs = {}, False, 0
        script, program, open_terminals = [], [], False
        self.blocks = list(blocks(text))
        code = "\n".join(text for _, mark, text in self.blocks if mark == "python")
        for line, mark, text in self.blocks:
            language, _, rest = mark.partition(" ")
            if "no-run: " in mark or mark.endswith("no-run"):
                if language != "text":
                    self.left_out.append((line, mark.partition("no-run: ")[2]))
                continue
            for old, new in replacements:
                text = text.replace(old, new)
            if language == "text":
                lines = [each for each in text.splitlines() if each.strip()]
                self.expected.append((line, lines, rest == "sample"))
            elif language == "python" and not rest:
                self.needs_python = True
                if code:
                    self.files["page.py"], code = code, ""
                    script.append(f"echo '== {self.name}:{line}: Python'\npython page.py")
                    self.runs += 1
            elif language == "sh":
                needed = rest.partition("if ")[2]
                if needed and reader.run(needed, reader.home)[0]:
                    self.left_out.append((line, f"{needed} fails"))
                    continue
                words = rest.split()
                if "root" in words and not reader.is_root:
                    self.left_out.append((line, "needs root"))
                    continue
                self.runs += 1
                self.needs_python |= "pip " in text
                first = text.splitlines()[0].replace("'", "'\\''")
                script.append(f"echo '== {self.name}:{line}: {first}'")
                if "repository" in words:
                    script.append(f"cd {reader.repository}")
                if "&" in words:
                    script.append(f"( {text} ) &")
                    open_terminals = True
                elif "fails" in words:
                    script.append(f"if {text.strip()}; then echo 'it did not fail'; exit 1; fi")
                else:
                    script.append(text)
                    if open_terminals:
                        script.append("wait")
                        open_terminals = False
            elif rest:
                self.files[rest] = text
        self.script = PRELUDE + "\n".join(script)

    def missing(self, printed):
        """The lines of the page that the commands did not print as they stand there."""
        printed_lines = [line for line in printed.splitlines() if line.strip()]
        for at, lines, is_sample in self.expected:
            if is_sample:
                absent = [line for line in lines if not re.search(pattern(line), printed)]
                if len(absent) > len(lines) // 2:
                    yield from ((at, line) for line in absent)
            elif line := behind(lines, printed_lines):
                yield at, line


def python_problem(reader):
    """Why the pages on Python cannot run here; nothing if they can."""
    if len(reader.python) < 2:
        return "Python's packages are not there: scripts/python.sh installs them"
    ask = "import ensurepip, sys; print('python%d.%d' % sys.version_info[:2])"
    code, version = reader.run(f'python3 -c "{ask}"', reader.home)
    if code or version.strip() != reader.python_version:
        return f"the user's python3 is not the {reader.python_version} of the packages, or has no ensurepip"
    return None


def kernel_problem(reader):
    """Why the page on the kernel cannot run here; nothing if it can."""
    if not reader.is_root:
        return "needs root"
    program = reader.environment["GUIDES_COMITY"]
    doctor = subprocess.run([program, "doctor"], check=False, capture_output=True, text=True).stdout
    if not re.search(r"controller libra in the kernel .*can be loaded", doctor):
        return "the kernel, or this build of comity, cannot load Libra (scripts/kernel.sh builds one)"
    if not shutil.which("nginx", path=SECURE_PATH) or not shutil.which("curl"):
        return "there is no nginx or no curl"
    return None


def clean_up(folder, reader):
    """Ends what the page on the kernel began and did not come to end."""
    with contextlib.suppress(FileNotFoundError, ProcessLookupError):
        os.kill(int((folder / "nginx.pid").read_text()), signal.SIGTERM)
    unload = [reader.environment["GUIDES_COMITY"], "kernel", "unload", "libra"]
    subprocess.run(unload, check=False, capture_output=True)


def cgroup_root():
    for line in pathlib.Path("/proc/mounts").read_text().splitlines():
        if line.split()[2] == "cgroup2":
            return line.split()[1]
    return "/sys/fs/cgroup"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--comity", type=pathlib.Path, default=TARGET / "debug/comity", help="the program")
    parser.add_argument("pages", nargs="*", metavar="PAGE", help="only these, such as stream.md (all)")
    options = parser.parse_args()
    if not options.comity.exists():
        parser.error(f"there is no {options.comity}: make test builds it")
    failed, skipped, began = [], [], time.monotonic()
    with tempfile.TemporaryDirectory(prefix="comity-guides-") as temporary:
        folder = pathlib.Path(temporary)
        reader = Reader(folder, options.comity.resolve())
        replacements = [(f":{port}", f":{free}") for port, free in zip(PORTS, free_ports())]
        replacements += [
            ("listen 8080", replacements[-1][1].replace(":", "listen ")),
            ("/sys/fs/cgroup/libra", f"{cgroup_root()}/comity-guides"),
            ("/srv/libra", str(folder / "srv")),
            ("/run/nginx-libra.pid", str(folder / "nginx.pid")),
            ("/var/log/nginx-libra.log", str(folder / "nginx.log")),
        ]
        before = reader.files()
        names = order((ROOT / GUIDES / "README.md").read_text())
        assert len(names) == len(list((ROOT / GUIDES).glob("*.md"))), f"the README of {GUIDES} names {names}"
        for name in names:
            if options.pages and name not in ["README.md", *options.pages]:
                continue
            page = Page(name, (ROOT / GUIDES / name).read_text(), reader, replacements)
            problem = python_problem(reader) if page.needs_python else None
            if name == "video-server.md":
                problem = kernel_problem(reader)
            for line, why in page.left_out if not problem else [(1, problem)]:
                print(f"  {name}:{line}: left out: {why}", flush=True)
            if problem:
                skipped.append(f"{name}: {problem}")
                continue
            tour = reader.home / "comity-tour"
            where = tour if tour.exists() else reader.repository
            for file, text in page.files.items():
                (where / file).write_text(text)
            started = time.monotonic()
            code, printed = reader.run(page.script, where)
            problems = [f"the exit code is {code}"] if code else []
            if name == "video-server.md" and code:
                clean_up(folder, reader)
            if not code:
                problems += [f"line {at}: not printed so: {line}" for at, line in page.missing(printed)]
            if left := sorted(str(path.relative_to(reader.repository)) for path in reader.files() - before):
                problems.append(f"it leaves in the repository: {', '.join(left)}")
            verdict = "failed" if problems else "passed"
            print(f"{name}: {page.runs} blocks {verdict}, {time.monotonic() - started:.0f} s", flush=True)
            if problems:
                print(printed, *(f"*** {name}: {problem}" for problem in problems), sep="\n", flush=True)
                failed.append(name)
    if skipped and "SKIP_REASON" in os.environ:
        pathlib.Path(os.environ["SKIP_REASON"]).write_text("; ".join(skipped))
    print(f"guides: {time.monotonic() - began:.0f} s" + (f", failed: {', '.join(failed)}" if failed else ""))
    return int(bool(failed))


if __name__ == "__main__":
    sys.exit(main())
