"""A list as a default argument: it is the same list in every call, and it is never emptied."""
import time


def score(sample, weights, seen=[]):
    products = [value * weight for value, weight in zip(sample, weights)]  # the line
    seen.append(products)
    return sum(products) / len(seen)


def samples(length):
    for n in range(850):
        yield [(n * 31 + k) % 997 / 997 for k in range(length)]


weights = [1 + k % 13 / 7 for k in range(16_000)]
for step, sample in enumerate(samples(len(weights))):
    value = score(sample, weights)
    if step % 25 == 0:
        print(f"step {step}: {value:.4f}", flush=True)
    time.sleep(.025)
