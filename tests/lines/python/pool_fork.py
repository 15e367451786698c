"""Workers of a pool with a cache in a global: each of them has its own, and it grows."""
import multiprocessing
import time

cache = {}


def features(number):
    if number not in cache:
        cache[number] = bytearray((number + i) % 256 for i in range(12_000))  # the line
    time.sleep(.001)
    return sum(cache[number][:16])


def main():
    context = multiprocessing.get_context("fork")
    total = 0
    with context.Pool(2) as pool:
        for step in range(400):
            total += sum(pool.map(features, range(step * 100, step * 100 + 100), chunksize=10))
            if step % 5 == 0:
                print(f"step {step}: {total}", flush=True)


if __name__ == "__main__":
    main()
