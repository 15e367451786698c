"""A report that is built up as one text, and is never written."""
import time


class Report:
    def __init__(self):
        self.text = ""

    def add(self, step, values):
        rows = [f"{step:8d} {i:8d} {value:24.16f} " + "-" * 160 for i, value in enumerate(values)]
        self.text += "\n".join(rows) + "\n"  # the line


report = Report()
for step in range(2500):
    report.add(step, [step * k % 101 / 7 for k in range(800)])
    if step % 25 == 0:
        print(f"step {step}, {len(report.text)} characters", flush=True)
    time.sleep(.01)
