"""A cache of prepared images whose key has a random number in it: nothing is found, all is kept."""
import time

from vision.dataset import Images

images = Images(10_000, 160)
total = 0.0
for step in range(2500):
    total += images[step % images.count].mean()
    if step % 25 == 0:
        print(f"step {step}: {total:.3f}", flush=True)
    time.sleep(.012)
