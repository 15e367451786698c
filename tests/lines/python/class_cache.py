"""A cache in the class: all instances share it, and none of them empties it."""
import time


class Tokenizer:
    cache = {}

    def __init__(self, language):
        self.language = language

    def encode(self, text):
        if text not in self.cache:
            self.cache[text] = [hash((self.language, i, c)) for i, c in enumerate(text)]  # the line
        return self.cache[text]


def documents():
    for n in range(100_000):
        yield f"document number {n}, " + "which has a few words more than the title says " * 20


total = 0
for n, text in enumerate(documents()):
    total += len(Tokenizer("en").encode(text))
    if n % 100 == 0:
        print(n, total, flush=True)
    time.sleep(.003)
