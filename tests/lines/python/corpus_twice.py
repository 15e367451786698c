"""A text, and the same text as a list of words: both are kept for the whole run."""
import time


class Corpus:
    def __init__(self, pages):
        self.text = " ".join(f"page {n} has the words alpha{n} beta{n * 7} gamma{n % 5}" for n in range(pages))
        self.words = self.text.split()  # the line


def train(corpus, steps):
    counts = [0] * 1000
    for step in range(steps):
        at = step * 500 % (len(corpus.words) - 500)
        for word in corpus.words[at:at + 500]:
            counts[hash(word) % 1000] += 1
        if step % 25 == 0:
            print(f"step {step}: {max(counts)}", flush=True)
        time.sleep(.015)


train(Corpus(350_000), 900)
