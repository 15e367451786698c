"""A search over settings that keeps everything about every trial."""
import random
import time


def trial(seed):
    rng = random.Random(seed)
    curve = [rng.random() for _ in range(9000)]  # the line
    return {"seed": seed, "best": max(curve), "curve": curve}


results = []
for step in range(2000):
    results.append(trial(step))
    if step % 20 == 0:
        print("trial", step, "best so far", max(r["best"] for r in results), flush=True)
    time.sleep(.02)
