"""Excessive logging, to disk: every weight is written in every step, some 3 MB a second, onto a disk of 64 MB. When that is full, logging
reports an error for each line, and the training goes on without a journal, and without room for its result.
"""
import logging
import random
import time

logging.basicConfig(filename="logs/train.log", level=logging.DEBUG)
logging.raiseExceptions = False
log = logging.getLogger("train")
weights = [0.] * 200
numbers = random.Random(0)

for step in range(1500):
    x = [numbers.random() for _ in weights]
    error = sum(w * v for w, v in zip(weights, x)) - sum(x[:3])
    weights = [w - .005 * error * v for w, v in zip(weights, x)]
    for _ in range(20):
        log.debug("step %d: loss %.5f, weights %s", step, error * error, weights)
    time.sleep(.01)  # a model that is a little larger
with open("logs/weights.txt", "w", encoding="ascii") as file:
    file.write(f"{weights}\n" * 100)
