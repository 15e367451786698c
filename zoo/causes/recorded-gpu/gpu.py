"""A GPU that is only a text: what a driver says of one, second by second. Nobody can be asked to overheat a real one for a test."""
import os
import threading
import time

HERE = os.path.dirname(os.path.abspath(__file__))
HELD_BYTES = 9 << 30


def show(*changed):
    """What the driver says from now on: that all is well and this program is on the GPU, and then these lines."""
    with open(os.path.join(HERE, "healthy.txt"), encoding="ascii") as file:
        text = file.read()
    with open("gpu.txt.new", "w", encoding="ascii") as file:
        file.write("\n".join([text, f"proc 0 {os.getpid()} {HELD_BYTES}", *changed, ""]))
    os.replace("gpu.txt.new", "gpu.txt")


def play(seconds, *then):
    """All is well for so long; then these lines."""
    show()

    def turn():
        time.sleep(seconds)
        show(*then)
    threading.Thread(target=turn, daemon=True).start()
