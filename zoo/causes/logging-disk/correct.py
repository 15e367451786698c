"""The same, with a journal that cannot fill a disk: what it needs in numbers, now and then, in files that are used again."""
import logging
import logging.handlers
import random
import time

journal = logging.handlers.RotatingFileHandler("logs/train.log", maxBytes=1 << 20, backupCount=2)
logging.basicConfig(handlers=[journal], level=logging.INFO)
log = logging.getLogger("train")
weights = [0.] * 200
numbers = random.Random(0)

for step in range(1500):
    x = [numbers.random() for _ in weights]
    error = sum(w * v for w, v in zip(weights, x)) - sum(x[:3])
    weights = [w - .005 * error * v for w, v in zip(weights, x)]
    log.debug("step %d: weights %s", step, weights)
    if step % 100 == 0:
        log.info("step %d: loss %.5f", step, error * error)
    time.sleep(.01)  # a model that is a little larger
with open("logs/weights.txt", "w", encoding="ascii") as file:
    file.write(f"{weights}\n" * 100)
