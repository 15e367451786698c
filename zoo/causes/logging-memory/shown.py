"""Excessive logging, in RAM: a MemoryHandler collects records and writes them when there are ten million of them, or an error. Until then
each record keeps what it was given: the weights of its step.
"""
import logging
import logging.handlers
import random
import time

journal = logging.handlers.MemoryHandler(capacity=10_000_000, target=logging.FileHandler("train.log"))
logging.basicConfig(handlers=[journal], level=logging.DEBUG)
log = logging.getLogger("train")
weights = [0.] * 2000
numbers = random.Random(0)

for step in range(20_000):
    x = [numbers.random() for _ in weights]
    error = sum(w * v for w, v in zip(weights, x)) - sum(x[:3])
    weights = [w - .0005 * error * v for w, v in zip(weights, x)]  # the line
    log.debug("step %d: loss %.5f, weights %s", step, error * error, weights)
    if step % 500 == 0:
        print(f"step {step}: loss {error * error:.5f}", flush=True)
    time.sleep(.003)  # a model that is a little larger
