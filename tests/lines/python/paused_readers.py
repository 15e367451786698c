"""A reader for each file, of which only the first part is taken; paused in the middle, it keeps its window."""
import itertools
import time

import antifreeze

readers = []


def read(number):
    window = bytearray(b"%07d " % number * 50_000)  # the line
    for start in range(0, len(window), 1000):
        window[start] = number % 256
        yield window[start:start + 1000]


def first_parts(number, count):
    reader = read(number)
    readers.append(reader)
    return list(itertools.islice(reader, count))


total = 0
for number in antifreeze.steps(range(1050)):
    total += sum(len(part) for part in first_parts(number, 3))
    if number % 25 == 0:
        print(f"file {number}: {total}", flush=True)
    time.sleep(.025)
