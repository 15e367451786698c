"""Events as dataclasses with a payload that has a default."""
import time
from dataclasses import dataclass, field


@dataclass
class Event:
    name: str
    when: float
    payload: bytearray = field(default_factory=lambda: bytearray(32_000))  # the line


class Recorder:
    def __init__(self):
        self.events = []

    def record(self, name):
        event = Event(name, time.time())
        event.payload[:len(name)] = name.encode()
        self.events.append(event)


recorder = Recorder()
for step in range(2000):
    for what in ("loaded", "forward", "backward", "stepped", "logged", "checked"):
        recorder.record(f"{what} {step}")
    if step % 20 == 0:
        print(f"step {step}: {len(recorder.events)} events", flush=True)
    time.sleep(.015)
