"""The same two threads, with one order for the locks: the weights first, everywhere. Nobody waits in vain."""
import random
import threading
import time

weights, journal = [0.] * 20, []
weights_lock, journal_lock = threading.Lock(), threading.Lock()


def save():
    while True:
        time.sleep(.05)
        with weights_lock:
            with journal_lock:
                text = "\n".join(f"{loss:.4f}" for loss in journal[-1000:])
                with open("saved.txt", "w", encoding="ascii") as file:
                    file.write(f"{weights}\n{text}\n")


def learn(draw):
    x = [draw.random() for _ in weights]
    error = sum(w * v for w, v in zip(weights, x)) - sum(x[:3])
    with weights_lock:
        weights[:] = [w - .02 * error * v for w, v in zip(weights, x)]
        with journal_lock:
            journal.append(error * error)


numbers = random.Random(0)
for step in range(100_000):
    if step == 60_000:
        threading.Thread(target=save, daemon=True).start()
    learn(numbers)
    if step % 10_000 == 0:
        print(f"step {step}: loss {sum(journal[-1000:]) / len(journal[-1000:]):.5f}", flush=True)
