"""Every episode is taped into a file in memory, to be looked at if it was a good one."""
import io
import random
import struct
import time


class Tape:
    def __init__(self, episode):
        self.episode = episode
        self.file = io.BytesIO()
        self.reward = 0.0

    def add(self, state, reward):
        self.reward += reward
        self.file.write(struct.pack(f"{len(state)}d", *state))  # the line


def play(episode):
    tape = Tape(episode)
    state = [random.random() for _ in range(1500)]
    for turn in range(30):
        state[turn] += .1
        tape.add(state, state[turn] - .6)
    return tape


random.seed(6)
tapes = []
for episode in range(1000):
    tapes.append(play(episode))
    if episode % 25 == 0:
        best = max(tapes, key=lambda tape: tape.reward)
        print(f"episode {episode}: the best was {best.episode} with {best.reward:.2f}", flush=True)
    time.sleep(.02)
