"""Reads a whole table into memory and then goes through it again and again."""
import csv
import os
import tempfile
import time


def write(path, rows):
    with open(path, "w", newline="", encoding="utf-8") as f:
        out = csv.writer(f)
        for n in range(rows):
            out.writerow([n, f"name-{n}", n * 3.5, f"a comment about row {n}", n % 7])


def read(path):
    with open(path, newline="", encoding="utf-8") as f:
        return list(csv.reader(f))  # the line


with tempfile.TemporaryDirectory() as folder:
    path = os.path.join(folder, "table.csv")
    write(path, 450_000)
    table = read(path)
for epoch in range(40):
    total = 0.0
    for row in table[epoch::40]:
        total += float(row[2]) * int(row[4])
    print(f"epoch {epoch}: {total}", flush=True)
    time.sleep(.4)
