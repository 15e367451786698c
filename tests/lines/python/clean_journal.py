"""A journal that is gathered in memory and written to a file now and then."""
import os
import tempfile
import time


class Journal:
    def __init__(self, file, most):
        self.file, self.most = file, most
        self.lines = []

    def add(self, step, values):
        self.lines.extend(f"step {step} value {k}: {value:.12f} and a remark about it" for k, value in enumerate(values))
        if len(self.lines) > self.most:
            self.file.seek(0)
            self.file.writelines(self.lines)
            self.lines.clear()


with tempfile.TemporaryDirectory() as folder, open(os.path.join(folder, "journal"), "w", encoding="utf-8") as f:
    journal = Journal(f, 900_000)
    for step in range(650):
        journal.add(step, [step * k % 701 / 701 for k in range(5500)])
        if step % 25 == 0:
            print(f"step {step}: {len(journal.lines)} lines wait", flush=True)
        time.sleep(.02)
