"""itertools.tee: one of the two readers never reads, so all that the other has read is kept for it."""
import itertools
import time


def frames():
    for n in itertools.count():
        yield bytes((n % 251,)) * 150_000  # the line


for_training, for_preview = itertools.tee(frames())
total = 0
for step, frame in enumerate(for_training):
    total += frame[5]
    if step % 25 == 0:
        print("step", step, "total", total, flush=True)
    if step == 2000:
        break
    time.sleep(.012)
print(next(for_preview)[0])
