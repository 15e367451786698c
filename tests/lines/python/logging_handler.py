"""A log handler that keeps its records for a summary that is never made."""
import logging
import time


class Keep(logging.Handler):
    def __init__(self):
        super().__init__()
        self.records = []

    def emit(self, record):
        self.records.append(record)


keep = Keep()
log = logging.getLogger("trainer")
log.setLevel(logging.DEBUG)
log.addHandler(keep)
for step in range(2500):
    log.debug("step %d, state %s", step, "".join(chr(97 + (step + i) % 26) for i in range(300)) * 600)  # the line
    if step % 25 == 0:
        print(f"step {step}, {len(keep.records)} log records", flush=True)
    time.sleep(.013)
