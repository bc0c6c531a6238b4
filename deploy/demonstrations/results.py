"""Percentiles, tables and verdicts."""

import math


def percentile(values, share):
    """The smallest value that at least this share of all values does not exceed."""
    ordered = sorted(values)
    if not ordered:
        raise ValueError("no values")
    return ordered[max(0, math.ceil(share * len(ordered)) - 1)]


def milliseconds(seconds):
    return f"{seconds * 1e3:.0f} ms"


def table(heads, rows):
    """A table that is readable as text and as Markdown."""
    rows = [[str(cell) for cell in row] for row in rows]
    widths = [max(len(row[column]) for row in [heads, *rows]) for column in range(len(heads))]
    lines = [[cell.ljust(width) for cell, width in zip(row, widths)] for row in [heads, *rows]]
    lines.insert(1, ["-" * width for width in widths])
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


class Verdicts:
    """What a demonstration promises, and whether it held."""

    def __init__(self):
        self.missed = 0

    def expect(self, condition, text):
        self.missed += not condition
        print(f"{'pass' if condition else 'FAIL'}: {text}")


def examples(outcomes, most=3):
    """Some failures in words."""
    failed = [outcome for outcome in outcomes if outcome.failure]
    for outcome in failed[:most]:
        print(f"  failed: {outcome.call.protocol} {outcome.call.path} {outcome.failure}")
    return len(failed)
