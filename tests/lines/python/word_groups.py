"""Counts all groups of four words; nearly each of them is seen only once."""
import collections
import random
import time

import antifreeze

random.seed(8)
WORDS = [f"word{n}" for n in range(4000)]
counts = collections.Counter()


def documents(number):
    for _ in range(number):
        yield random.choices(WORDS, k=4000)


for step, words in enumerate(documents(850)):
    antifreeze.step()
    counts.update(zip(words, words[1:], words[2:], words[3:]))  # the line
    if step % 25 == 0:
        print(f"document {step}: {len(counts)} groups", flush=True)
    time.sleep(.02)
