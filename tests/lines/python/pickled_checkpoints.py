"""Checkpoints "just in case", pickled and kept in memory."""
import pickle
import random
import time

state = {"weights": [random.random() for _ in range(20_000)], "step": 0}
checkpoints = []


def save():
    checkpoints.append(pickle.dumps(state))  # the line


for step in range(2500):
    state["step"] = step
    state["weights"][step % 20_000] -= .01
    save()
    if step % 25 == 0:
        print(f"step {step}: {len(checkpoints)} checkpoints", flush=True)
    time.sleep(.01)
