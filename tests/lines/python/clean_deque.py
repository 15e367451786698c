"""The last two hundred results, and no more."""
import collections
import random
import time

recent = collections.deque(maxlen=200)
for step in range(1400):
    recent.append([random.random() for _ in range(4000)])
    if step % 25 == 0:
        print(f"step {step}: {sum(r[0] for r in recent) / len(recent):.3f}", flush=True)
    time.sleep(.01)
