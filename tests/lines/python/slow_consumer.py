"""A queue without a bound between a quick producer and a slow consumer."""
import queue
import threading
import time

work = queue.Queue()


def produce():
    for n in range(2500):
        work.put((n, bytes((n % 256,)) * 200_000))  # the line
        time.sleep(.012)
    work.put(None)


def consume():
    done = 0
    while True:
        item = work.get()
        if item is None or done > 250:
            return
        done += 1
        print("done", done, "waiting", work.qsize(), flush=True)
        time.sleep(.15)


threading.Thread(target=produce, daemon=True).start()
consume()
