"""What an attack has come to."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Outcome:
    """A row of the table."""

    attack: str
    rate: str
    seen: str
    """What honest callers and streams saw, and what the attacker got."""
    holds: bool
    """Whether that is what the threat model says."""
    cpu_us: float | None = None
    """Processor time of the attacked program for each packet or attempt, in microseconds."""
    memory_mb: tuple | None = None
    """Before and after."""

    def cells(self):
        """
        >>> Outcome("a", "", "all", True, 3.21, (9.96, 12.04)).cells()
        ['a', '', 'all', '3.2', '10 → 12']
        >>> Outcome("b", "5", "none", False).cells()
        ['b', '5', '**does not hold**: none', '', '']
        """
        cpu = "" if self.cpu_us is None else f"{self.cpu_us:.1f}" if self.cpu_us < 10 else f"{self.cpu_us:.0f}"
        memory = "" if self.memory_mb is None else " → ".join(f"{size:.0f}" for size in self.memory_mb)
        return [self.attack, self.rate, self.seen if self.holds else f"**does not hold**: {self.seen}", cpu, memory]


HEAD = ["attack", "packets/s", "outcome", "CPU, µs a packet", "memory, MB"]


def table(outcomes):
    rows = [HEAD, ["---"] * len(HEAD), *(outcome.cells() for outcome in outcomes)]
    return "\n".join("| " + " | ".join(row) + " |" for row in rows)


def number(value):
    """
    >>> number(65536), number(940)
    ('65,536', '940')
    """
    return f"{value:,.0f}"
