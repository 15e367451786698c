"""An average of the weights over time, and a deep copy of it after each step, since one of them will be the best."""
import copy
import time
from array import array


class Average:
    def __init__(self, weights, decay=.99):
        self.decay = decay
        self.shadow = {name: array("d", values) for name, values in weights.items()}

    def update(self, weights, part):
        for name, values in weights.items():
            shadow = self.shadow[name]
            for k in range(part % 16, len(shadow), 16):
                shadow[k] += (1 - self.decay) * (values[k] - shadow[k])


class Trainer:
    def __init__(self):
        self.weights = {f"layer{n}": array("d", (n * k % 7 / 7 for k in range(15_000))) for n in range(4)}
        self.average = Average(self.weights)
        self.candidates = []

    def step(self, number):
        for values in self.weights.values():
            values[number % len(values)] -= .01
        self.average.update(self.weights, number)
        self.candidates.append((number, copy.deepcopy(self.average)))  # the line


trainer = Trainer()
for number in range(900):
    trainer.step(number)
    if number % 25 == 0:
        print(f"step {number}: {trainer.average.shadow['layer1'][3]:.4f}", flush=True)
    time.sleep(.025)
