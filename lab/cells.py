"""What the lab can run: jobs, guards, and the cells made of them. The host plans with it, the guest runs by it.

A cell is GUARD/JOB[/SWAP[/USER]]: `none/oversize`, `scope/leak-200/zram/user`. SWAP is disk (3 GiB at 30 MB/s and
300 IOPS), none or zram; USER is root or user, who comes through a real login. Guards that are Antifreeze are called by
the tier they are held to.
"""
import dataclasses
import fnmatch
import itertools
import typing


@dataclasses.dataclass(frozen=True)
class Job:
    about: str
    command: tuple
    fits: bool = False  # nothing may stop it
    needs_swap: bool = False  # to fit
    options: tuple = ()  # for antifreeze run
    beside: tuple = ()  # runs outside the job


@dataclasses.dataclass(frozen=True)
class Guard:
    about: str
    service: str = ""  # to be started before the job
    properties: tuple = ()  # of the job's unit
    tier: str = ""  # of Antifreeze
    cgroup1: bool = False  # needs a machine with cgroup v1


def lab_job(*words):
    return ("lab-job", *words)


# What exceeds the machine has no end of its own within the time of a cell. 960 MB of RAM are there, some 650 of them
# free beside the desktop.
JOBS = {
    "oversize": Job("1.4 GB, then random access", lab_job("oversize")),
    "leak-20": Job("grows by 20 MB/s", lab_job("leak", "20")),
    "leak-200": Job("grows by 200 MB/s", lab_job("leak", "200")),
    "leak-max": Job("grows as fast as it can", lab_job("leak")),
    "burst": Job("2 GB in one system call", lab_job("burst")),
    "workers": Job("8 forked workers copy a parent's 240 MB", lab_job("workers")),
    "shm": Job("fills /dev/shm, then 700 MB of its own", lab_job("shm")),
    "ignores-term": Job("leak-200 that ignores SIGTERM and SIGINT", lab_job("ignores-term")),
    "fork-storm": Job("forks without end, 256 KiB each", lab_job("fork-storm")),
    "page-cache": Job("reads a file of 4 GB", lab_job("page-cache"), fits=True),
    "neighbour": Job("a job of 350 MB; a browser-like program outside it grows by half the RAM", lab_job("steady"),
                     fits=True, needs_swap=True, beside=("lab-neighbour", "neighbour")),
    "epochs": Job("goes through 800 MB over and over and changes them, and may have them in swap", lab_job("epochs"),
                  fits=True, needs_swap=True, options=("--swap", "2G")),
    "shared-workers": Job("8 forked workers that only read a parent's 250 MB", lab_job("shared-workers"), fits=True),
    "peak": Job("372 MiB for 1.5 s under a budget of 400", lab_job("peak"), fits=True,
                options=("--budget", "400M", "--swap", "0")),
    "train-clean": Job("the C trainer, 8 steps", ("afz-trainer", "--steps", "8", "--threads", "2", "--quiet"), fits=True),
    "train-history": Job("the C trainer keeps 64 MiB a step", ("afz-trainer", "--retain-history=64M", "--threads", "2", "--quiet")),
    "train-dataset": Job("the C trainer loads 1200 MB", ("afz-trainer", "--whole-dataset=1200M", "--quiet")),
    "train-batch": Job("the C trainer with a batch of 100000", ("afz-trainer", "--large-batch=100000", "--quiet")),
}

GUARDS = {
    "none": Guard("nothing"),
    "earlyoom": Guard("earlyoom as Debian starts it", service="earlyoom"),
    "nohang": Guard("nohang with its desktop settings", service="nohang-desktop"),
    "oomd": Guard("systemd-oomd on the job's unit: memory pressure 50 %, swap", service="systemd-oomd",
                  properties=("ManagedOOMMemoryPressure=kill", "ManagedOOMMemoryPressureLimit=50%",
                              "ManagedOOMSwap=kill")),
    "memorymax": Guard("systemd-run -p MemoryMax=500M -p MemorySwapMax=0",
                       properties=("MemoryMax=500M", "MemorySwapMax=0")),
    "scope": Guard("antifreeze run, tier scope", tier="scope"),
    "cgroup2": Guard("antifreeze run, tier cgroup2", tier="cgroup2"),
    "cgroup1": Guard("antifreeze run, tier cgroup1", tier="cgroup1", cgroup1=True),
    "tier-none": Guard("antifreeze run, tier none", tier="none"),
}
SWAPS = ("disk", "none", "zram")
USERS = ("root", "user")

# `make lab`: every peer where a peer is tried hardest, every tier where it must hold, and two jobs nobody may stop.
TELLING = (
    "none/oversize", "none/leak-200", "earlyoom/leak-200", "nohang/leak-200", "oomd/leak-200", "memorymax/oversize",
    "scope/oversize/disk/user", "scope/leak-200/disk/user", "cgroup2/burst", "tier-none/leak-200/disk/user",
    "scope/neighbour/disk/user", "scope/shared-workers/disk/user",
)


class Cell(typing.NamedTuple):
    guard: str
    job: str
    swap: str = "disk"
    user: str = "root"

    @property
    def fits(self):
        return JOBS[self.job].fits and not (JOBS[self.job].needs_swap and self.swap == "none")

    @property
    def name(self):
        return "/".join((self.guard, self.job, self.swap, self.user))

    @property
    def machine(self):
        """Cells of the same machine may share a boot."""
        return (self.swap, GUARDS[self.guard].cgroup1)


def every():
    """All that can be."""
    for swap, user, guard, job in itertools.product(SWAPS, USERS, GUARDS, JOBS):
        if not (GUARDS[guard].cgroup1 and user == "user"):
            yield Cell(guard, job, swap, user)


def matrix():
    """`make lab-full`: all that is ours; of the peers every job on a disk, and two jobs everywhere."""
    for cell in every():
        if GUARDS[cell.guard].tier or cell.job in ("oversize", "leak-200") or cell[2:] == ("disk", "root"):
            yield cell


def parse(text):
    """The cell of that name; ValueError says what is wrong with it."""
    words = text.split("/")
    if not 2 <= len(words) <= 4:
        raise ValueError(f"{text}: not GUARD/JOB[/SWAP[/USER]]")
    cell = Cell(*words)
    for value, known in zip(cell, (GUARDS, JOBS, SWAPS, USERS)):
        if value not in known:
            raise ValueError(f"{text}: no {value}; there are {', '.join(known)}")
    if cell not in set(every()):
        raise ValueError(f"{text}: an ordinary user has no cgroup v1 to write to")
    return cell


def find(pattern):
    """The cells of a name, or of a pattern as a shell has it: `scope/*/disk/user`."""
    if not set(pattern) & set("*?["):
        return [parse(pattern)]
    found = [cell for cell in every() if fnmatch.fnmatchcase(cell.name, pattern)]
    if not found:
        raise ValueError(f"{pattern}: no cell is called so")
    return found
