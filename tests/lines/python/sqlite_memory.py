"""Metrics in a database in memory."""
import sqlite3
import time


class Metrics:
    def __init__(self):
        self.db = sqlite3.connect(":memory:")
        self.db.execute("create table metrics (step integer, name text, value blob)")

    def log(self, step, name, value):
        self.db.execute("insert into metrics values (?, ?, ?)", (step, name, value))  # the line


metrics = Metrics()
for step in range(2500):
    weights = bytes((step % 200,)) * 90_000
    metrics.log(step, "weights", weights)
    metrics.log(step, "gradients", weights[::-1])
    if step % 25 == 0:
        print("step", step, flush=True)
    time.sleep(.012)
