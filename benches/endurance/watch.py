"""Memory and open files of processes over their lives."""

import os
import statistics

PAGE = os.sysconf("SC_PAGE_SIZE")
# Samples that a process has to have for a judgement of its files and of its memory, which grows by steps until all of
# the program has run; and the share of its life that is its start.
ENOUGH, ENOUGH_FOR_MEMORY, START = 120, 600, 0.25


def sample(pid):
    """The resident bytes of a process and its open files; `None` if it has gone."""
    try:
        with open(f"/proc/{pid}/statm") as file:
            resident = int(file.read().split()[1]) * PAGE
        return resident, len(os.listdir(f"/proc/{pid}/fd"))
    except (FileNotFoundError, ProcessLookupError, IndexError):
        return None


def slope(points):
    """The slope of a line through points, by least squares.

    >>> slope([(0, 5), (1, 7), (2, 9)])
    2.0
    >>> slope([(3, 1)])
    0.0
    """
    if len(points) < 2:
        return 0.0
    return statistics.linear_regression(*zip(*points)).slope if len({x for x, _ in points}) > 1 else 0.0


def judge(samples):
    """What the samples of a life, of (time, resident bytes, open files), come to; `None` if they are too few.

    >>> flat = judge([(at, 10_000_000 + at % 7 * 4096, 9) for at in range(700)])
    >>> flat["grows"], flat["files"]
    (False, (9, 9, 9))
    >>> judge([(at, 10_000_000 + at * 20_000, 9) for at in range(700)])["grows"]
    True
    >>> judge([(at, 10_000_000, 9 + at // 100) for at in range(400)])["loses_files"]
    True
    """
    if len(samples) < ENOUGH:
        return None
    later = samples[int(len(samples) * START) :]
    half = len(later) // 2
    middle = [statistics.median(resident for _, resident, _ in part) for part in (later[:half], later[half:])]
    files = [statistics.median_low(files for _, _, files in part) for part in (later[:half], later[half:])]
    return {
        "first": samples[0][1],
        "settled": middle[0],
        "last": middle[1],
        "max": max(resident for _, resident, _ in samples),
        "per_hour": slope([(at / 3600, resident) for at, resident, _ in later]),
        "files": (int(files[0]), max(files for _, _, files in later), samples[-1][2]),
        # A page here and there is the allocator's; a leak goes on.
        "grows": len(samples) >= ENOUGH_FOR_MEMORY and middle[1] > middle[0] * 1.05 + (1 << 20),
        "loses_files": files[1] > files[0],
    }
