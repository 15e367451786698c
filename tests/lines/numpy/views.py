"""Keeps a small piece of each large array; a view keeps the whole."""
import time

import numpy as np

corners = []


def load(number):
    image = np.full((600, 600), number % 255, dtype=np.uint8)  # the line
    image[:10] += 1
    return image


for number in range(2500):
    corners.append(load(number)[:8, :8])
    if number % 25 == 0:
        print(number, "images,", len(corners), "corners", flush=True)
    time.sleep(.022)
