"""A corpus as numbers: all sentences are encoded before the first is used, and each is a list of its own."""
import random
import time

import antifreeze


class Corpus:
    def __init__(self, sentences, seed):
        self.rng = random.Random(seed)
        self.offset = 50_000
        self.encoded = [self.encode(n) for n in range(sentences)]

    def encode(self, number):
        length = 20 + number % 40
        return [self.offset + self.rng.randrange(30_000) for _ in range(length)]  # the line

    def batch(self, number, size):
        start = number * size % (len(self.encoded) - size)
        return self.encoded[start:start + size]


corpus = Corpus(110_000, 5)
counts = [0] * 80_000
for step in antifreeze.steps(range(550)):
    for sentence in corpus.batch(step, 64):
        for token in sentence:
            counts[token] += 1
    if step % 25 == 0:
        print(f"step {step}: {max(counts)}", flush=True)
    time.sleep(.025)
