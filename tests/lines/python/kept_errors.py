"""Errors are kept with their traceback, and so is every variable of the function that failed."""
import time

errors = []


def decode(number):
    raw = bytes([number % 7]) * 180_000  # the line
    if raw[0] != 3:
        raise ValueError(f"record {number} has kind {raw[0]}")
    return len(raw)


good = 0
for number in range(2500):
    try:
        good += decode(number)
    except ValueError as error:
        errors.append(error)
    if number % 25 == 0:
        print(f"{number} records, {len(errors)} bad", flush=True)
    time.sleep(.012)
