import time

from .read import Reader


def run(steps):
    reader = Reader()
    for step in range(steps):
        for record in reader.page(step):
            record.touch()
        if step % 25 == 0:
            print(f"page {step}", flush=True)
        time.sleep(.01)
