"""Work that is to be done later, and holds all that it was made from until then."""
import time

pending = []


def schedule(number):
    image = bytes([number % 256]) * 200_000  # the line
    mean = sum(image[:100]) / 100

    def finish():
        return mean + len(image)

    pending.append(finish)


for number in range(2000):
    schedule(number)
    if number % 25 == 0:
        print(f"{number} images, {len(pending)} to finish", flush=True)
    time.sleep(.015)
