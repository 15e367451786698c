"""Tables as a dict of columns, one for each chunk of a log; all of them are kept to be joined at the end."""
import time

import numpy as np


class Frame:
    def __init__(self, columns):
        self.columns = columns

    @classmethod
    def read(cls, chunk, rows):
        return cls({
            "time": np.arange(chunk * rows, (chunk + 1) * rows, dtype=np.float64),  # the line
            "value": np.sin(np.arange(rows) * .01 + chunk),  # the line
            "flag": np.zeros(rows, dtype=np.int64) + chunk,  # the line
        })

    def mean(self, name):
        return self.columns[name].mean()


frames = []
for chunk in range(2000):
    frames.append(Frame.read(chunk, 12_000))
    if chunk % 25 == 0:
        print(f"chunk {chunk}: {frames[-1].mean('value'):.4f}", flush=True)
    time.sleep(.02)
