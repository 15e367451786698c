"""A function behind two decorators of our own, one of which remembers all results."""
import time

from memo import counted, memoize


@counted
@memoize
def embedding(word):
    base = sum(map(ord, word))
    return bytearray((base + i) % 256 for i in range(40_000))  # the line


def main():
    for step in range(3000):
        vector = embedding(f"word-{step}")
        embedding("the")
        if step % 25 == 0:
            print(step, embedding.calls, vector[3], flush=True)
        time.sleep(.001)


main()
