"""functools.lru_cache(maxsize=None) on a function whose arguments never repeat."""
import functools
import time


@functools.lru_cache(maxsize=None)
def spectrum(start, length):
    return tuple((start * k) % 8191 / 8191 for k in range(length))  # the line


def main():
    energy = 0.0
    for step in range(2000):
        energy += sum(spectrum(step, 6000))
        if step % 20 == 0:
            print(f"step {step}: {energy:.1f}", flush=True)
        time.sleep(.012)


main()
