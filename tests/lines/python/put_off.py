"""Writing the results is put off by an hour for each batch, and the batch waits with it."""
import sched
import time


class Writer:
    def __init__(self):
        self.later = sched.scheduler(time.monotonic, time.sleep)
        self.written = 0

    def write(self, name, values):
        self.written += len(values)

    def put_off(self, name, values):
        self.later.enter(3600, 1, self.write, (name, values))


def batch(number):
    return [f"{number}/{k}: {(number * k) % 1009}" for k in range(8000)]  # the line


writer = Writer()
for number in range(900):
    values = batch(number)
    writer.put_off(f"batch-{number}", values)
    writer.later.run(blocking=False)
    if number % 25 == 0:
        print(f"batch {number}: {writer.written} written, {len(writer.later.queue)} later", flush=True)
    time.sleep(.022)
