"""A disk at 2 MB/s: a file system with 2000 samples, in a file on the slow drive that zoo/causes/slow-drive has. Needs root and python3-fuse.

    slow_disk.py FOLDER      FOLDER/disk is where it is mounted
"""
import array
import os
import random
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "slow-drive"))
import slow_drive  # noqa: E402

SAMPLES, WIDTH = 2000, 4096


def write_samples(folder):
    numbers = random.Random(0)
    row = array.array("f", (numbers.random() for _ in range(WIDTH + SAMPLES)))
    for number in range(SAMPLES):
        with open(os.path.join(folder, f"{number}.bin"), "wb") as file:
            file.write(row[number:number + WIDTH].tobytes())


def main():
    folder = sys.argv[1]
    image, disk, mounted = (os.path.join(folder, name) for name in ("there/disk", "disk", "drive/disk"))
    os.mkdir(os.path.join(folder, "there"))
    os.mkdir(disk)
    with open(image, "wb") as file:
        file.truncate(64 << 20)
    subprocess.run(["/sbin/mkfs.ext4", "-q", "-O", "^has_journal", image], check=True)
    subprocess.run(["mount", "-o", "loop", image, disk], check=True)
    write_samples(disk)
    subprocess.run(["umount", disk], check=True)
    with slow_drive.mounted(folder):
        subprocess.run(["mount", "-o", "loop,ro", mounted, disk], check=True)
        try:
            slow_drive.wait()
        finally:
            subprocess.run(["umount", "-l", disk], check=False)


main()
