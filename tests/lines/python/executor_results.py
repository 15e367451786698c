"""Files are read ahead by a pool of threads; the futures stay in a dict after their results were used."""
import time
from concurrent.futures import ThreadPoolExecutor


class Loader:
    def __init__(self, count):
        self.count = count
        self.pool = ThreadPoolExecutor(2)
        self.coming = {}

    def read(self, number):
        time.sleep(.01)
        header = b"sample %08d " % number
        return header * 32_000  # the line

    def __iter__(self):
        for number in range(self.count):
            for ahead in range(number, min(number + 8, self.count)):
                if ahead not in self.coming:
                    self.coming[ahead] = self.pool.submit(self.read, ahead)
            yield self.coming[number].result()


total = 0
for step, raw in enumerate(Loader(800)):
    total += sum(raw[:2000])
    if step % 25 == 0:
        print(f"step {step}: {total}", flush=True)
    time.sleep(.03)
