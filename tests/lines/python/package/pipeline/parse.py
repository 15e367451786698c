from .record import Record


def parse(text):
    return [Record(*map(int, line.split(","))) for line in text.splitlines()]
