"""Reads a large table row by row, again and again."""
import csv
import os
import tempfile
import time


def rows(path):
    with open(path, newline="", encoding="utf-8") as f:
        yield from csv.reader(f)


with tempfile.TemporaryDirectory() as folder:
    path = os.path.join(folder, "table.csv")
    with open(path, "w", newline="", encoding="utf-8") as f:
        out = csv.writer(f)
        for n in range(200_000):
            out.writerow([n, f"name-{n}", n * 3.5, f"a comment about row {n}"])
    for epoch in range(18):
        total = sum(float(row[2]) for row in rows(path))
        print(f"epoch {epoch}: {total}", flush=True)
        time.sleep(.6)
