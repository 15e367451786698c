"""A pool of workers that keep nothing."""
import multiprocessing
import time


def work(number):
    data = [number * i % 1009 for i in range(4000)]
    time.sleep(.002)
    return max(data)


if __name__ == "__main__":
    with multiprocessing.get_context("fork").Pool(2) as pool:
        for step in range(150):
            best = max(pool.imap_unordered(work, range(step * 40, step * 40 + 40)))
            if step % 5 == 0:
                print(f"step {step}: {best}", flush=True)
            time.sleep(.02)
