"""Jobs that need a machine of their own to be ill in: swap, slow disks, kills by the kernel, containers, power cuts.

They run in the virtual machine of tests/vm. MACHINES holds the options of `vm run`; a row is (name, label, options of
antifreeze run, command, more), where more may have

  machine  which of MACHINES
  before   sh: run as root in the machine first
  beside   a command that runs beside the job, outside of it
  box      the job's Antifreeze itself is in a cgroup with so many bytes: a container of somebody else
  cut      the machine loses its power so many seconds after the recording began, and is then turned on again
"""
from jobs import TRAINER, py

SLOW_SWAP = ["--mem", "1G", "--swap", "2G", "--slow", "40000000:600"]
MACHINES = {
    "swap": SLOW_SWAP,
    "large": ["--mem", "2G", "--swap", "1G", "--slow", "40000000:600"],
    "zram": ["--mem", "1G", "--zram", "768M"],
    "plain": ["--mem", "1G"],
    "disk": ["--mem", "1G", "--disk", "128M"],
    "slow": ["--mem", "1G", "--disk", "512M", "--slow", "1500000:60"],
    "slower": ["--mem", "1G", "--disk", "512M", "--slow", "500000:25"],
    "user": ["--mem", "1G", "--user"],
}
WATCH = ["--policy", "watch"]

# fill(mb): as grow(), but by one copy a megabyte: the machine is emulated, and Python slow in it.
# What is soft can be pressed together by zram.
FILL = """
import random
random.seed(3)
def fill(mb, soft=0):
    m = mmap.mmap(-1, mb * MB, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    one = (b'%08d' % mb) * (MB // 8) if soft else random.randbytes(4096) * 256
    for i in range(mb): m[i * MB:(i + 1) * MB] = one
    return m
begin = time.monotonic()
def going(seconds): return time.monotonic() - begin < seconds
def touch(m, n):
    for i in range(n): m[random.randrange(len(m) // 4096) * 4096] = i % 251
"""


def vm(name, label, machine, options, code, *args, **more):
    return f"vm-{name}", label, options, py(FILL + code, *args), {"machine": machine, **more}


def paging():
    """More is in use than there is RAM: written or read over and over, in turn or here and there."""
    use = "m = fill({mb}, {soft}); n = 0; one = m[:MB]; begin = time.monotonic()\nwhile going({seconds}): i = {where}; {how}; n += 1"
    turn, there = "n % {mb}", "random.randrange({mb})"
    write, read = "m[i * MB:(i + 1) * MB] = one", "b = m[i * MB:(i + 1) * MB]"
    for name, machine, mb, soft, seconds, where, how in (
            ("written-in-turn", "swap", 1200, 0, 45, turn, write), ("written-here-and-there", "swap", 1400, 0, 45, there, write),
            ("large", "large", 2500, 0, 50, turn, write), ("zram", "zram", 1500, 1, 40, there, write)):
        yield vm(f"thrash-{name}", "swap-thrash", machine, WATCH, use.format(mb=mb, soft=soft, seconds=seconds, where=where.format(mb=mb), how=how))
    # A fifth to a quarter of the time goes to swap, for there is little to write. Worth a word or not, but no data come late.
    yield vm("paging-touched", "swap-thrash|clean", "swap", WATCH, "m = fill(1200)\nwhile going(45): touch(m, 200)")
    yield vm("paging-read", "swap-thrash|clean", "swap", WATCH, use.format(mb=1200, soft=0, seconds=45, where=turn.format(mb=1200), how=read))
    for mb in (1000, 1200):  # cold memory is put away once; what is in use stays
        yield vm(f"put-away-{mb}mb", "clean", "swap", WATCH, f"cold = fill({mb})\nwarm = fill(120)\nwhile going(45): touch(warm, 500)")
    yield vm("put-away-zram", "clean", "zram", WATCH, "cold = fill(950, 1)\nwarm = fill(80, 1)\nwhile going(35): touch(warm, 500)")


def killed():
    for mb in (1200, 3000):
        yield vm(f"oom-machine-{mb}mb", "oom-killed", "plain", WATCH, f"time.sleep(6)\nfor i in range({mb} // 20): kept.append(fill(20))\ntime.sleep(20)")
    yield vm("oom-machine-leak", "leak", "plain", WATCH, "while going(90): kept.append(fill(6)); b = fill(3); time.sleep(.15); del b; time.sleep(.05)")
    yield vm("oom-swap-leak", "leak", "large", WATCH, "while going(120): kept.append(fill(20)); b = fill(3); time.sleep(.15); del b; time.sleep(.05)")
    neighbour = py(FILL + "time.sleep(10)\nwhile going(60): kept.append(fill(4)); time.sleep(.1)\n")
    yield vm("oom-by-neighbour", "oom-killed", "plain", WATCH, "m = fill(520)\nwhile going(50): touch(m, 200); time.sleep(.01)", beside=neighbour)
    for mb in (200, 400):
        yield vm(f"oom-box-{mb}mb", "oom-killed", "plain", WATCH, f"time.sleep(5); m = fill({mb * 2}); time.sleep(20)", box=mb << 20)
    yield ("vm-oom-box-trainer", "oom-killed", WATCH, [TRAINER, "--quiet", "--whole-dataset=900M"], {"machine": "plain", "box": 300 << 20})
    yield vm("oom-box-leak", "leak", "plain", WATCH, "while going(90): kept.append(fill(2)); b = fill(3); time.sleep(.15); del b; time.sleep(.05)", box=350 << 20)
    for mb in (300, 450):  # the job is steady; others fill a machine that has no swap, and what nobody uses has nowhere to go
        yield vm(f"no-room-{mb}mb", "host-exhaustion|oom-killed+swap-insufficient", "plain", [], f"cold = fill({mb - 60})\nwarm = fill(60)\nwhile going(70): touch(warm, 200); time.sleep(.01)",
                 beside=neighbour)


def space():
    shared = ("from multiprocessing import shared_memory, resource_tracker\nn = 0\n"
              "while going(25):\n    s = shared_memory.SharedMemory(create=True, size={mb} * MB); kept.append(s); s.buf[:] = bytes({mb} * MB); n += 1; time.sleep(.3)\n")
    for small, mb in ((64, 4), (128, 10)):  # as containers have it
        yield vm(f"shm-{small}mb", "shm-full", "plain", [], shared.format(mb=mb), before=f"mount -o remount,size={small}M /dev/shm")
    yield vm("shm-written", "shm-full", "plain", [], "for i in range(400):\n    with open(f'/dev/shm/batch-{i}', 'wb') as f: f.write(bytes(3 * MB))\n    time.sleep(.25)",
             before="mount -o remount,size=96M /dev/shm")
    yield vm("shm-used-well", "clean", "plain", [], "while going(25):\n    with open('/dev/shm/batch', 'wb') as f: f.write(bytes(40 * MB))\n    time.sleep(.2); os.unlink('/dev/shm/batch')",
             before="mount -o remount,size=96M /dev/shm")
    for mb in (8, 30):
        yield vm(f"disk-checkpoints-{mb}mb", "disk-full|log-growth", "disk", [],
                 f"for n in range(60):\n    for i in range(10): b = fill(8); time.sleep(.1); del b\n    with open(f'/disk/{{n}}.ckpt', 'wb') as f: f.write(bytes({mb} * MB)); f.flush(); os.fsync(f.fileno())",
                 before="rm -rf /disk/*")
    yield vm("disk-checkpoint-replaced", "clean", "disk", [],
             "for n in range(12):\n    for i in range(15): b = fill(8); time.sleep(.1); del b\n    with open('/disk/new', 'wb') as f: f.write(bytes(12 * MB))\n    os.replace('/disk/new', '/disk/last')",
             before="rm -rf /disk/*")


def slow():
    made = "test -e /disk/data || { head -c 24M /dev/urandom > /disk/data; sync; }; echo 3 > /proc/sys/vm/drop_caches"
    for machine in ("slow", "slower"):
        yield vm(f"disk-{machine}-in-a-row", "data-stall", machine, [],
                 "f = open('/disk/data', 'rb', buffering=0)\nwhile going(40):\n    if len(f.read(65536)) < 65536: f.seek(0); os.posix_fadvise(f.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)\n", before=made)
        yield vm(f"disk-{machine}-here-and-there", "data-stall", machine, [],
                 "f = open('/disk/data', 'rb', buffering=0); os.posix_fadvise(f.fileno(), 0, 0, os.POSIX_FADV_RANDOM)\n"
                 "while going(40):\n    os.pread(f.fileno(), 4096, random.randrange(5900) * 4096); sum(range(2000))\n    if random.random() < .01: os.posix_fadvise(f.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)",
                 before=made)
    yield vm("disk-slow-but-computes", "clean", "slow", [],
             "f = open('/disk/data', 'rb', buffering=0)\nwhile going(35):\n    b = f.read(65536); end = time.monotonic() + .4\n    while time.monotonic() < end: sum(range(1000))\n", before=made)


def crowded():
    for n in (6, 16):
        yield vm(f"crowd-{n}", "cpu-oversubscription", "plain", [],
                 f"for i in range({n}):\n    if os.fork() == 0:\n        while going(42): sum(range(10000))\n        os._exit(0)\ntime.sleep(43)")
    yield ("vm-crowd-trainer", "cpu-oversubscription", [], ["sh", "-c", f"timeout -s INT 45 {TRAINER} --quiet --epochs 90 --threads 12 --workers 6; exit 0"], {"machine": "plain"})
    yield vm("two-of-two", "clean", "plain", [], "for i in range(2):\n    if os.fork() == 0:\n        while going(35): sum(range(10000))\n        os._exit(0)\ntime.sleep(36)")


def as_user():
    yield vm("user-leak", "leak", "user", ["--budget", "500M"], "while going(90): kept.append(fill(4)); b = fill(3); time.sleep(.15); del b; time.sleep(.05)")
    yield vm("user-burst", "host-exhaustion|oom-killed", "user", ["--budget", "300M"], "time.sleep(5); m = fill(700); time.sleep(20)")


def cut():
    yield vm("power-cut-idle", "machine-lost", "plain", [], "m = fill(100); time.sleep(600)", cut=8)
    yield vm("power-cut-at-work", "machine-lost", "plain", [], "while True: b = fill(60); time.sleep(.05); del b", cut=15)
    yield ("vm-power-cut-trainer", "machine-lost", [], [TRAINER, "--quiet", "--epochs", "9999"], {"machine": "plain", "cut": 12})


def every():
    for part in (paging, killed, space, slow, crowded, as_user, cut):
        yield from part()
