"""Sequences are padded to the length of the longest; the loader keeps its batches, but shuffles in each epoch."""
import time

import numpy as np


def collate(sequences):
    longest = max(map(len, sequences))
    padded = np.zeros((len(sequences), longest, 16), dtype=np.float32)  # the line
    for row, sequence in enumerate(sequences):
        padded[row, :len(sequence)] = sequence[:, None] + np.arange(16)
        padded[row, len(sequence):] = -1
    return padded


class Loader:
    def __init__(self, sequences, size):
        self.sequences, self.size = sequences, size
        self.rng = np.random.default_rng(0)
        self.batches = {}

    def epoch(self):
        order = self.rng.permutation(len(self.sequences))
        for start in range(0, len(order), self.size):
            chosen = tuple(order[start:start + self.size])
            if chosen not in self.batches:
                self.batches[chosen] = collate([self.sequences[n] for n in chosen])
            yield self.batches[chosen]


loader = Loader([np.linspace(0, 1, 50 + n * 13 % 90) for n in range(1600)], 64)
step, mean = 0, 0.0
for epoch in range(30):
    for batch in loader.epoch():
        mean += .01 * (batch.mean() - mean)
        step += 1
        if step % 25 == 0:
            print(f"epoch {epoch}, step {step}: {mean:.4f}", flush=True)
        time.sleep(.028)
