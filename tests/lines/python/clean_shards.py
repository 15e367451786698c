"""One part of the data after the other: the next is read while this one is used, and then this one goes."""
import threading
import time

import antifreeze


def read(number):
    return [(number, n, f"sample {n} of part {number}") for n in range(300_000)]


class Shards:
    def __init__(self, count):
        self.count = count
        self.next = None

    def ahead(self, number):
        self.next = read(number)

    def __iter__(self):
        self.ahead(0)
        for number in range(self.count):
            shard, self.next = self.next, None
            reader = threading.Thread(target=self.ahead, args=((number + 1) % self.count,))
            reader.start()
            yield shard
            del shard
            reader.join()


step = letters = 0
for shard in Shards(7):
    for start in range(0, len(shard), 3000):
        antifreeze.step()
        letters += sum(len(text) for _, _, text in shard[start:start + 3000])
        step += 1
        if step % 50 == 0:
            print(f"step {step}: {letters} letters", flush=True)
        time.sleep(.02)
    del shard
