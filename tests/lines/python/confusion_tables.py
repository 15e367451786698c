"""Metrics with a confusion table for every batch, under the epoch and the number of the batch."""
import random
import time

import antifreeze

CLASSES = [f"class-{n}" for n in range(90)]


class Metrics:
    def __init__(self):
        self.tables = {}

    def update(self, epoch, batch, truth, guesses):
        table = {name: {other: 1e-9 * batch for other in CLASSES} for name in CLASSES}  # the line
        for right, guess in zip(truth, guesses):
            table[right][guess] += 1
        self.tables[epoch, batch] = table

    def accuracy(self, epoch, batch):
        table = self.tables[epoch, batch]
        return sum(table[name][name] for name in CLASSES) / sum(sum(row.values()) for row in table.values())


random.seed(1)
metrics = Metrics()
for step in antifreeze.steps(range(850)):
    epoch, batch = divmod(step, 100)
    truth = random.choices(CLASSES, k=256)
    guesses = [random.choice((right, random.choice(CLASSES))) for right in truth]
    metrics.update(epoch, batch, truth, guesses)
    if step % 25 == 0:
        print(f"epoch {epoch}, batch {batch}: {metrics.accuracy(epoch, batch):.3f}", flush=True)
    time.sleep(.025)
