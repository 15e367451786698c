"""Sizes as people write them: "512MiB", "1.5G", 1 << 30. The same words as --budget has."""
import re

UNITS = {unit: 1 << 10 * power for power, unit in enumerate(["", "K", "M", "G", "T"])}
FORM = re.compile(r"\s*([0-9]+(?:\.[0-9]+)?)\s*([KMGT]?)(?:i?B)?\s*", re.I | re.A)


def parse_bytes(value):
    """A number of bytes; ValueError if it is none, or none that is above 0."""
    if isinstance(value, str):
        found = FORM.fullmatch(value)
        size = int(float(found.group(1)) * UNITS[found.group(2).upper()]) if found else 0
    elif isinstance(value, int) and not isinstance(value, bool):
        size = value
    else:
        size = 0
    if size <= 0:
        raise ValueError(f"{value!r} is no size: write \"512MiB\", \"2G\" or a number of bytes")
    return size


def say_bytes(size):
    """Short, for people: 1.5G."""
    for unit in reversed(UNITS):
        if size >= UNITS[unit]:
            number = f"{size / UNITS[unit]:.1f}"
            return (number[:-2] if number.endswith(".0") else number) + (unit or "B")
    return "0B"
