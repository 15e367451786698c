"""Reads JSON lines and keeps all that it has read."""
import io
import json
import time


def lines():
    for n in range(1_000_000):
        yield json.dumps({"id": n, "user": f"user-{n}", "tags": [f"tag-{n}-{i}" for i in range(20)], "where": {"x": n, "y": n / 3}})


def main():
    seen = []
    out = io.StringIO()
    for n, line in enumerate(lines()):
        seen.append(json.loads(line))  # the line
        out.seek(0)
        out.write(line)
        if n % 50 == 0:
            time.sleep(.008)
        if n % 5000 == 0:
            print(n, "records", flush=True)


main()
