"""Each step's result in a segment of shared memory, and none is unlinked while the program runs."""
import time
from multiprocessing import shared_memory

segments = []


def publish(number):
    segment = shared_memory.SharedMemory(create=True, size=1_000_000)  # the line
    segment.buf[:] = bytes((number % 256,)) * segment.size
    segments.append(segment)


try:
    for number in range(600):
        publish(number)
        if number % 5 == 0:
            print("published", number, flush=True)
        time.sleep(.07)
finally:
    for segment in segments:
        segment.close()
        segment.unlink()
