#!/usr/bin/python3
"""Truth: do our figures agree with psutil, free and the kernel's own files, to the unit?

    test_truth.py ANTIFREEZE [FIXTURE...]

Live: a small tree of processes and the machine are read by `antifreeze watch --json`, by psutil before and after, and by
`free`. A value must equal what psutil says, or lie between what it said before and after. The machine moves while we
look, so each value has some tries; a value in the wrong unit or from the wrong field never passes.

On fixtures nothing moves: every value must be what the recorded file says, read here by other code.
"""
import json
import os
import re
import subprocess
import sys
import time

try:
    import psutil
except ImportError:
    print("skipped: python3-psutil is not installed")
    sys.exit(77)

ANTIFREEZE = sys.argv[1]
TRIES = 40
TICK_NS = 10**9 // os.sysconf("SC_CLK_TCK")
failures = []
checked = 0


def look(*args):
    out = subprocess.run([ANTIFREEZE, "watch", "--json", "--count", "1", *map(str, args)], check=True,
                         capture_output=True, text=True, timeout=60).stdout
    return json.loads(out)


def report(name, ok, detail=""):
    global checked
    checked += 1
    if not ok:
        failures.append(f"{name}: {detail}")
        print(f"NOT OK  {name}: {detail}")


# ---- live: processes ------------------------------------------------------------------------------------------------

CHILD = """
import os, sys, time
keep = bytearray(%d << 20)
files = [open(os.devnull) for _ in range(7)]
if len(sys.argv) < 2:
    for i in range(2):
        if os.fork() == 0:
            keep[0] = 1
            break
print("ready", flush=True)
time.sleep(600)
"""


def ticks(seconds):
    return round(seconds * os.sysconf("SC_CLK_TCK")) * TICK_NS


PROCESS = {  # metric: what psutil says of it
    "ppid": lambda p: p.ppid(),
    "threads_count": lambda p: p.num_threads(),
    "user_ns": lambda p: ticks(p.cpu_times().user),
    "system_ns": lambda p: ticks(p.cpu_times().system),
    "rss_bytes": lambda p: p.memory_info().rss,
    "vsize_bytes": lambda p: p.memory_info().vms,
    "rss_shared_bytes": lambda p: p.memory_info().shared,
    "pss_bytes": lambda p: p.memory_full_info().pss,
    "swap_bytes": lambda p: p.memory_full_info().swap,
    "read_bytes": lambda p: p.io_counters().read_bytes,
    "written_bytes": lambda p: p.io_counters().write_bytes,
    "read_calls_bytes": lambda p: p.io_counters().read_chars,
    "write_calls_bytes": lambda p: p.io_counters().write_chars,
    "fds_count": lambda p: p.num_fds(),
    "fds_limit_count": lambda p: p.rlimit(psutil.RLIMIT_NOFILE)[0],
    "switches_count": lambda p: p.num_ctx_switches().voluntary,
    "preemptions_count": lambda p: p.num_ctx_switches().involuntary,
    "nice": lambda p: p.nice(),
}


# While we look there is one process more that has libc mapped, and its pages are divided by one more.
SHARED = {"pss_bytes": 256 << 10}


def between(value, a, b, slack=0):
    return value is not None and min(a, b) - slack <= value <= max(a, b) + slack


def check_processes(root):
    tree = {p.pid: p for p in [psutil.Process(root)] + psutil.Process(root).children(recursive=True)}
    for _ in range(TRIES):
        before = {pid: {m: f(p) for m, f in PROCESS.items()} for pid, p in tree.items()}
        seen = {p["pid"]: p for p in look(root)["processes"]}
        after = {pid: {m: f(p) for m, f in PROCESS.items()} for pid, p in tree.items()}
        wrong = [(pid, m, before[pid][m], seen.get(pid, {}).get(m), after[pid][m]) for pid in tree for m in PROCESS
                 if not between(seen.get(pid, {}).get(m), before[pid][m], after[pid][m], SHARED.get(m, 0))]
        if not wrong:
            break
    report("the same processes as psutil", set(seen) == set(tree), f"{sorted(seen)} and {sorted(tree)}")
    for pid in tree:
        for m in PROCESS:
            bad = [w for w in wrong if w[:2] == (pid, m)]
            report(f"process {m}", not bad, f"psutil {bad[0][2]}, ours {bad[0][3]}, psutil {bad[0][4]}" if bad else "")
        report("process name", seen[pid]["name"] == tree[pid].name(), f"{seen[pid]['name']} and {tree[pid].name()}")


# ---- live: the machine ----------------------------------------------------------------------------------------------


def free_row(name):
    out = subprocess.run(["free", "-b", "-w"], check=True, capture_output=True, text=True,
                         env={"LC_ALL": "C", "PATH": os.environ["PATH"]}).stdout
    head, *rows = [line.split() for line in out.splitlines()]
    row = next(r for r in rows if r[0] == name)
    return dict(zip(head, map(int, row[1:])))


HOST = {  # our metric: (what others say, how far apart in bytes it may be since the machine moves)
    "mem_total_bytes": (lambda: psutil.virtual_memory().total, 0),
    "mem_available_bytes": (lambda: psutil.virtual_memory().available, 64 << 20),
    "mem_free_bytes": (lambda: psutil.virtual_memory().free, 64 << 20),
    "buffers_bytes": (lambda: psutil.virtual_memory().buffers, 1 << 20),
    "shmem_bytes": (lambda: psutil.virtual_memory().shared, 1 << 20),
    "swap_total_bytes": (lambda: psutil.swap_memory().total, 0),
    "swap_free_bytes": (lambda: psutil.swap_memory().free, 1 << 20),
    "shm_total_bytes": (lambda: psutil.disk_usage("/dev/shm").total, 0),
    "shm_used_bytes": (lambda: psutil.disk_usage("/dev/shm").used, 1 << 20),
}


def report_near(name, metric, theirs, slack):
    """The machine moves while both look: other tests take and give back memory."""
    for _ in range(TRIES):
        a, ours, b = theirs(), look()["host"][metric], theirs()
        if between(ours, a, b, slack):
            break
    report(name, between(ours, a, b, slack), f"{a}, ours {ours}, {b}")


def check_host():
    for metric, (theirs, slack) in HOST.items():
        report_near(f"host {metric} and psutil", metric, theirs, slack)
    for metric, field in (("swap_in_bytes", "sin"), ("swap_out_bytes", "sout")):
        a, ours, b = getattr(psutil.swap_memory(), field), look()["vm"][metric], getattr(psutil.swap_memory(), field)
        report(f"vm {metric} and psutil", a <= ours <= b, f"{a}, ours {ours}, {b}")
    for metric, row, field in (("mem_total_bytes", "Mem:", "total"), ("swap_total_bytes", "Swap:", "total"),
                               ("shmem_bytes", "Mem:", "shared"), ("mem_available_bytes", "Mem:", "available")):
        slack = 0 if field == "total" else 64 << 20
        report_near(f"host {metric} and free", metric, lambda row=row, field=field: free_row(row)[field], slack)


def check_counters():
    """Counters of the machine can only have grown: psutil before <= ours <= psutil after."""
    a = (psutil.cpu_times(), psutil.disk_io_counters(perdisk=True), psutil.net_io_counters(pernic=True))
    ours = look()
    b = (psutil.cpu_times(), psutil.disk_io_counters(perdisk=True), psutil.net_io_counters(pernic=True))
    cpu = ours["cpu"]
    # /proc/stat's idle time is known to go back a little on some kernels: two ticks a core are allowed.
    slack = 2 * TICK_NS * os.cpu_count()
    for metric, f in (("user_ns", lambda t: ticks(t.user) + ticks(t.nice)), ("system_ns", lambda t: ticks(t.system)),
                      ("idle_ns", lambda t: ticks(t.idle)), ("iowait_ns", lambda t: ticks(t.iowait))):
        report(f"cpu {metric} and psutil", f(a[0]) - slack <= cpu[metric] <= f(b[0]) + slack,
               f"{f(a[0])}, ours {cpu[metric]}, {f(b[0])}")
    report("cpu cores_count", cpu["cores_count"] == psutil.cpu_count(), f"{cpu['cores_count']}")
    for disk in ours["disks"]:
        if disk["name"] in a[1]:
            for metric, field in (("read_bytes", "read_bytes"), ("written_bytes", "write_bytes"),
                                  ("reads_count", "read_count"), ("writes_count", "write_count")):
                x, y = (getattr(s[1][disk["name"]], field) for s in (a, b))
                report(f"disk {metric} and psutil", x <= disk[metric] <= y, f"{x}, ours {disk[metric]}, {y}")
    for nic in ours["interfaces"]:
        for metric, field in (("received_bytes", "bytes_recv"), ("sent_bytes", "bytes_sent")):
            x, y = (getattr(s[2][nic["name"]], field) for s in (a, b))
            report(f"interface {metric} and psutil", x <= nic[metric] <= y, f"{x}, ours {nic[metric]}, {y}")


# ---- fixtures and the kernel's files --------------------------------------------------------------------------------


def read(*path):
    try:
        with open(os.path.join(*path), errors="replace") as f:
            return f.read()
    except OSError:
        return None


def table(text):
    """{key: bytes or number} of "key: value kB" and "key value" lines."""
    got = {}
    for line in (text or "").splitlines():
        m = re.fullmatch(r"(\S+?):?\s+(\d+)( kB)?", line.rstrip())
        if m:
            got[m[1]] = int(m[2]) * (1024 if m[3] else 1)
    return got


MEMINFO = {
    "mem_total_bytes": "MemTotal", "mem_free_bytes": "MemFree", "mem_available_bytes": "MemAvailable",
    "buffers_bytes": "Buffers", "cached_bytes": "Cached", "swap_total_bytes": "SwapTotal", "swap_free_bytes": "SwapFree",
    "dirty_bytes": "Dirty", "writeback_bytes": "Writeback", "anon_bytes": "AnonPages", "shmem_bytes": "Shmem",
    "slab_reclaimable_bytes": "SReclaimable", "slab_unreclaimable_bytes": "SUnreclaim", "committed_bytes": "Committed_AS",
    "commit_limit_bytes": "CommitLimit", "huge_pages_total_count": "HugePages_Total", "page_tables_bytes": "PageTables",
}
VMSTAT = {"major_faults_count": "pgmajfault", "oom_kills_count": "oom_kill", "scan_direct_count": "pgscan_direct"}
CGROUP2 = {"anon_bytes": "anon", "file_bytes": "file", "shmem_bytes": "shmem", "inactive_file_bytes": "inactive_file",
           "slab_reclaimable_bytes": "slab_reclaimable", "major_faults_count": "pgmajfault"}
CGROUP1 = {"anon_bytes": "total_rss", "file_bytes": "total_cache", "shmem_bytes": "total_shmem",
           "inactive_file_bytes": "total_inactive_file", "major_faults_count": "total_pgmajfault"}


def same(name, ours, kernel):
    report(name, ours == kernel, f"ours {ours}, the kernel's file {kernel}")


def check_cgroup(name, root, seen, pid):
    lines = [line.split(":", 2) for line in (read(root, "proc", str(pid), "cgroup") or "").splitlines()]
    v2 = os.path.exists(os.path.join(root, "cgroup/cgroup.controllers"))
    path = next((p for _, c, p in lines if (c == "" if v2 else "memory" in c.split(","))), None)
    if path is None:
        return
    where = os.path.join(root, "cgroup", "" if v2 else "memory", path.lstrip("/"))
    stat = table(read(where, "memory.stat"))
    own = next((c for c in seen["cgroups"] if c["level_count"] == 0), None)
    report(f"{name}: the job's cgroup is seen", own is not None)
    if own is None:
        return
    same(f"{name}: cgroup version", own["version"], 2 if v2 else 1)
    for metric, key in (CGROUP2 if v2 else CGROUP1).items():
        same(f"{name}: cgroup {metric}", own[metric], stat.get(key))
    current = read(where, "memory.current" if v2 else "memory.usage_in_bytes")
    same(f"{name}: cgroup current_bytes", own["current_bytes"], int(current) if current else None)
    limit = (read(where, "memory.max") or "").strip()
    if v2 and limit.isdigit():
        same(f"{name}: cgroup max_bytes", own["max_bytes"], int(limit))


def check_fixture(root):
    name = os.path.basename(root.rstrip("/"))
    about = table(read(root, "machine"))
    job = int((read(root, "job") or "0").strip())
    seen = look("--root", root, *([job] if job else []))
    meminfo, vmstat = table(read(root, "proc/meminfo")), table(read(root, "proc/vmstat"))
    for metric, key in MEMINFO.items():
        same(f"{name}: {metric}", seen["host"][metric], meminfo.get(key))
    for metric, key in VMSTAT.items():
        same(f"{name}: {metric}", seen["vm"][metric], vmstat.get(key))
    stalls = [v for k, v in vmstat.items() if k.startswith("allocstall")]
    same(f"{name}: alloc_stalls_count", seen["vm"]["alloc_stalls_count"], sum(stalls) if stalls else None)
    same(f"{name}: swap_in_bytes", seen["vm"]["swap_in_bytes"], vmstat["pswpin"] * about["page_bytes"])
    for resource in ("cpu", "memory", "io"):
        m = re.search(r"^some .*total=(\d+)", read(root, "proc/pressure", resource) or "", re.M)
        same(f"{name}: psi {resource}", (seen.get("psi") or {}).get(f"{resource}_some_ns"), int(m[1]) * 1000 if m else None)
    for p in seen["processes"]:
        statm = (read(root, "proc", str(p["pid"]), "statm") or "").split()
        if not statm or p["state"] == "Z":
            continue
        same(f"{name}: rss of a process", p["rss_bytes"], int(statm[1]) * about["page_bytes"])
        rollup, io = (table(read(root, "proc", str(p["pid"]), f)) for f in ("smaps_rollup", "io"))
        if rollup:
            same(f"{name}: pss of a process", p["pss_bytes"], rollup.get("Pss"))
            same(f"{name}: private dirty of a process", p["private_dirty_bytes"], rollup.get("Private_Dirty"))
        same(f"{name}: read_bytes of a process", p["read_bytes"], io.get("read_bytes"))
    if job:
        check_cgroup(name, root, seen, job)


# ---- all of it ------------------------------------------------------------------------------------------------------


def main():
    with subprocess.Popen([sys.executable, "-c", CHILD % 32], stdout=subprocess.PIPE, text=True) as child:
        for _ in range(3):
            child.stdout.readline()
        time.sleep(.2)  # let the last of them fall asleep: its figures then stand still
        check_processes(child.pid)
        for pid in [p.pid for p in psutil.Process(child.pid).children()] + [child.pid]:
            os.kill(pid, 9)
    check_host()
    check_counters()
    for root in sys.argv[2:]:
        check_fixture(root)
    print(f"truth: {checked} comparisons, {len(failures)} wrong")
    sys.exit(1 if failures else 0)


main()
