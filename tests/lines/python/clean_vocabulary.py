"""A vocabulary that learns new words quickly at first, and knows them all in the end."""
import random
import time

import antifreeze


class Vocabulary:
    def __init__(self):
        self.vectors = {}

    def vector(self, word):
        if word not in self.vectors:
            self.vectors[word] = [word * k % 101 / 101 for k in range(300)]
        return self.vectors[word]


rng = random.Random(4)
vocabulary = Vocabulary()
total = 0.0
for step in antifreeze.steps(range(750)):
    for _ in range(140):
        total += vocabulary.vector(rng.randrange(13_000))[5]
    if step % 25 == 0:
        print(f"step {step}: {len(vocabulary.vectors)} words, {total:.1f}", flush=True)
    time.sleep(.02)
