"""A large list of small objects, read by forked workers: counting references writes to every page of it."""
import multiprocessing
import time


def load():
    return [f"sample number {n} of the whole collection" for n in range(900_000)]  # the line


def epoch(rank, samples):
    letters = 0
    for start in range(0, len(samples), 3000):
        for sample in samples[start:start + 3000]:
            letters += len(sample)
        time.sleep(.05)
        if start % 90_000 == 0:
            print(f"worker {rank}: {start} of {len(samples)}, {letters}", flush=True)


if __name__ == "__main__":
    collection = load()
    fork = multiprocessing.get_context("fork")
    workers = [fork.Process(target=epoch, args=(rank, collection)) for rank in range(4)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
