"""A cache of a fixed size: it fills, and then it stays."""
import functools
import random
import time


@functools.lru_cache(maxsize=300)
def table(key):
    return [key * i % 997 for i in range(5000)]


random.seed(7)
for step in range(1500):
    total = sum(table(random.randrange(900))[:10])
    if step % 25 == 0:
        print(f"step {step}: {total}, {table.cache_info().currsize} kept", flush=True)
    time.sleep(.01)
