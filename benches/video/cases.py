"""What is sent and over what: clips that ffmpeg makes, and paths of `comity emulate`."""

import random
import subprocess
from dataclasses import dataclass

FRAMES_PER_S = 25
CLIP_S = 15
FAULT_S = 6.37
"""When an outage begins, in seconds of the clip."""


@dataclass(frozen=True)
class Clip:
    """A transport stream of H.264, the same in each run."""

    name: str
    about: str
    mbps: float
    keys: str
    """The options of x264 that say where decoding can begin."""

    @property
    def is_large(self):
        return self.mbps >= 20

    def make(self, folder):
        """The file, made when it is not there."""
        file = folder / f"{self.name}.ts"
        if file.exists():
            return file
        # Noise fills a high rate; a test picture of this size would compress to less.
        picture = f"testsrc2=size={'1280x720' if self.is_large else '640x360'}:rate={FRAMES_PER_S}"
        if self.is_large:
            picture += ",noise=alls=40:allf=t:all_seed=1"
        rate = f"{self.mbps * 1000:.0f}k"
        part = file.with_suffix(".part.ts")
        command = [
            "ffmpeg", "-hide_banner", "-loglevel", "error", "-y", "-f", "lavfi", "-i", picture, "-t", str(CLIP_S),
            "-c:v", "libx264", "-preset", "ultrafast" if self.is_large else "veryfast", "-pix_fmt", "yuv420p",
            "-b:v", rate, "-maxrate", rate, "-bufsize", f"{self.mbps * 500:.0f}k",
            "-x264-params", f"{self.keys}:scenecut=0:nal-hrd=cbr:threads=1", "-f", "mpegts", str(part),
        ]
        subprocess.run(command, check=True)
        part.rename(file)
        return file


CLIPS = {
    clip.name: clip
    for clip in (
        Clip("seconds", "a key frame each second, 2 Mb/s", 2, "keyint=25:bframes=2"),
        Clip("long", "a key frame each 10 s, 2 Mb/s", 2, "keyint=250:bframes=2"),
        Clip("refresh", "gradual refresh over 2 s, no key frame but the first, 2 Mb/s", 2,
             "intra-refresh=1:keyint=50:bframes=0"),
        Clip("refresh-20", "gradual refresh over 2 s, 20 Mb/s", 20, "intra-refresh=1:keyint=50:bframes=0"),
        Clip("seconds-20", "a key frame each second, 20 Mb/s", 20, "keyint=25:bframes=2"),
        Clip("seconds-50", "a key frame each second, 50 Mb/s", 50, "keyint=25:bframes=2"),
    )
}


@dataclass(frozen=True)
class Case:
    """One clip over one path."""

    name: str
    clip: Clip
    round_trip_ms: int
    latency_ms: int
    loss: float = 0.0
    outage_s: float = 0.0
    link_mbps: float = 0.0
    """The rate of the path; 0 is no limit."""
    seed: int = 1

    @property
    def is_clean(self):
        return not (self.loss or self.outage_s)

    def path(self, ahead_s):
        """The options of the emulator, which starts so long before the clip.

        >>> Case("", CLIPS["long"], 40, 300, outage_s=0.25).path(2)
        ['--delay', '20.0ms', '--seed', '1', '--outage', '8.37s+0.25s']
        """
        options = ["--delay", f"{self.round_trip_ms / 2}ms", "--seed", str(self.seed)]
        if self.loss:
            options += ["--loss", f"{self.loss:g}%"]
        if self.outage_s:
            options += ["--outage", f"{ahead_s + FAULT_S:g}s+{self.outage_s:g}s"]
        if self.link_mbps:
            # The queue of a usual router: twice the bandwidth-delay product, and no shorter than 50 packets.
            packets = max(50, int(2 * self.link_mbps * 1e3 * self.round_trip_ms / 12_000))
            options += ["--rate", f"{self.link_mbps:.3g}Mbps", "--queue", str(packets)]
        return options


def named():
    """The cases of the table."""
    cases = [
        Case(f"{clip}, outage of {outage_s:g} s", CLIPS[clip], 40, latency_ms, outage_s=outage_s)
        for clip, latency_ms in (("refresh", 200), ("seconds", 200), ("long", 300))
        for outage_s in (0.25, 0.6, 2)
    ]
    cases += [
        Case("refresh, 2 % loss", CLIPS["refresh"], 60, 200, loss=2),
        Case("refresh, 2 % loss, 120 ms", CLIPS["refresh"], 60, 120, loss=2),
        Case("seconds, 2 % loss", CLIPS["seconds"], 60, 200, loss=2),
        Case("long, 2 % loss", CLIPS["long"], 60, 200, loss=2),
    ]
    cases += [
        Case(f"{clip}, clean", CLIPS[clip], round_trip_ms, latency_ms)
        for clip, round_trip_ms, latency_ms in (("refresh-20", 60, 200), ("seconds-20", 60, 200), ("seconds-50", 40, 250))
    ]
    return cases


def at_random(seed):
    """A clip, a fault and a path. The latency is three to ten round trips. In half of the cases the path has a rate, of 1.5
    to 6 times the clip's.

    >>> at_random(3) == at_random(3), at_random(3) == at_random(4)
    (True, False)
    """
    draw = random.Random(seed)
    clip = draw.choice([clip for clip in CLIPS.values() if not clip.is_large])
    round_trip_ms = draw.choice((10, 20, 40, 60, 100, 150))
    loss, outage_s = draw.choice(((0, 0), (0.5, 0), (2, 0), (5, 0), (0, 0.1), (0, 0.25), (0, 0.6), (0, 1), (0, 2), (1, 0.25)))
    return Case(
        f"random {seed}", clip, round_trip_ms, max(80, int(round_trip_ms * draw.uniform(3, 10))), loss, outage_s,
        clip.mbps * draw.uniform(1.5, 6) if draw.random() < 0.5 else 0, seed,
    )
