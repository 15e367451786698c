"""A network drive at 2 MB/s: a folder that is given out through FUSE, piece by piece. Needs root and python3-fuse.

    slow_drive.py FOLDER      FOLDER/there is what lies on the server (rows.bin, 16 MB, is made here), FOLDER/drive is where it is mounted
"""
import array
import contextlib
import os
import random
import signal
import subprocess
import sys
import threading
import time

try:
    import fuse
except ImportError:  # Debian's package belongs to Debian's own interpreter
    if sys.executable == "/usr/bin/python3":
        raise
    os.execv("/usr/bin/python3", ["/usr/bin/python3", "-B", *sys.argv])

BYTES_PER_S = 2e6
ROWS, WIDTH = 8192, 512
fuse.fuse_python_api = (0, 2)
wire = threading.Lock()


def write_rows(path):
    numbers = random.Random(0)
    row = array.array("f", (numbers.random() for _ in range(ROWS)))
    with open(path, "wb") as file:
        for number in range(ROWS):
            file.write((row[number:] + row[:number])[:WIDTH].tobytes())


class Drive(fuse.Fuse):
    """What is asked for comes from the folder `there`, one request after the other."""

    def getattr(self, path):
        return os.lstat(self.there + path)

    def readdir(self, path, offset):
        yield from (fuse.Direntry(name) for name in (".", "..", *os.listdir(self.there + path)))

    def read(self, path, length, offset):
        with wire:
            time.sleep(length / BYTES_PER_S)
        with open(self.there + path, "rb") as file:
            return os.pread(file.fileno(), length, offset)


def serve(folder):
    drive = Drive()
    drive.there = os.path.join(folder, "there")
    drive.parse(["-f", "-o", "ro,fsname=server:/data,subtype=slowdrive", os.path.join(folder, "drive")])
    drive.main()


@contextlib.contextmanager
def mounted(folder):
    """The drive, as long as somebody is in here."""
    os.mkdir(os.path.join(folder, "drive"))
    server = os.fork()
    if server == 0:
        serve(folder)
        os._exit(0)
    while not os.path.ismount(os.path.join(folder, "drive")):
        time.sleep(.05)
        if os.waitpid(server, os.WNOHANG)[0]:
            sys.exit(f"{folder}/drive could not be mounted: this takes root, and /dev/fuse")
    try:
        yield
    finally:
        subprocess.run(["umount", "-l", os.path.join(folder, "drive")], check=False)
        os.waitpid(server, 0)


def wait():
    """Says that all is ready, and stays until it is told to end."""
    signal.signal(signal.SIGTERM, lambda *_: sys.exit())
    print("ready", flush=True)
    signal.pause()


if __name__ == "__main__":
    os.mkdir(os.path.join(sys.argv[1], "there"))
    write_rows(os.path.join(sys.argv[1], "there", "rows.bin"))
    with mounted(sys.argv[1]):
        wait()
