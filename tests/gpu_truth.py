#!/usr/bin/env python3
"""Truth on a machine with an NVIDIA GPU: `antifreeze watch --json` against nvidia-smi, beside a program that holds memory.

    gpu_truth.py ANTIFREEZE

Needs nvidia-smi and PyTorch; says so and exits 77 where they are missing. nvidia-smi shows whole MiB, watts and per cent,
so ours are rounded in the same way, and must lie between what it showed before and after.
"""
import json
import shutil
import subprocess
import sys

ANTIFREEZE = sys.argv[1]
TRIES = 10

HOLDER = """
import sys, torch
x = torch.empty(3 << 30, dtype=torch.uint8, device="cuda")
a = torch.randn(4096, 4096, device="cuda")
print("ready", flush=True)
if sys.argv[1] == "busy":
    while True:
        a = (a @ a).clamp(-1, 1)
        torch.cuda.synchronize()
sys.stdin.read()
"""

MIB = 1 << 20
GPU = {  # nvidia-smi's field: (our metric, ours in its unit, slack in its unit)
    "memory.total": ("mem_total_bytes", lambda v: v // MIB, 0),
    "memory.used": ("mem_used_bytes", lambda v: v // MIB, 1),
    "memory.free": ("mem_free_bytes", lambda v: v // MIB, 1),
    "utilization.gpu": ("util_permyriad", lambda v: v / 100, 2),
    "temperature.gpu": ("temp_millicelsius", lambda v: v / 1000, 1),
    "power.draw": ("power_milliwatts", lambda v: v / 1000, 30),
    "enforced.power.limit": ("power_limit_milliwatts", lambda v: v / 1000, 0.01),
    "clocks.max.sm": ("clock_max_hz", lambda v: v / 1e6, 0),
    "clocks.mem": ("mem_clock_hz", lambda v: v / 1e6, 0),
    "pcie.link.gen.current": ("pcie_generation", lambda v: v, 0),
    "pcie.link.width.current": ("pcie_width_count", lambda v: v, 0),
}


def smi(kind, fields):
    out = subprocess.run(["nvidia-smi", f"--query-{kind}={','.join(fields)}", "--format=csv,noheader,nounits"],
                         check=True, capture_output=True, text=True).stdout
    return [[cell.strip() for cell in line.split(",")] for line in out.splitlines() if line.strip()]


def look(pid):
    out = subprocess.run([ANTIFREEZE, "watch", "--json", "-n", "1", str(pid)], check=True, capture_output=True, text=True)
    return json.loads(out.stdout)


def compare(pid):
    """[(field, before, ours, after)] of what does not agree."""
    fields = list(GPU)
    before = [list(map(float, row)) for row in smi("gpu", fields)]
    seen = look(pid)
    after = [list(map(float, row)) for row in smi("gpu", fields)]
    wrong = []
    for i, (a, b) in enumerate(zip(before, after)):
        gpu = next(g for g in seen["gpus"] if g["gpu"] == i)
        for k, field in enumerate(fields):
            metric, convert, slack = GPU[field]
            ours = None if gpu[metric] is None else convert(gpu[metric])
            if ours is None or not min(a[k], b[k]) - slack <= ours <= max(a[k], b[k]) + slack:
                wrong.append((f"gpu {i} {field}", a[k], ours, b[k]))
    for row in smi("compute-apps", ["pid", "used_memory"]):
        ours = [p for p in seen["gpu_processes"] if p["pid"] == int(row[0])]
        if not ours or abs(ours[0]["mem_bytes"] / MIB - float(row[1])) > 1:
            wrong.append((f"memory of process {row[0]}", float(row[1]), ours and ours[0]["mem_bytes"] / MIB, None))
        elif int(row[0]) == pid and ours[0]["in_job_flag"] != 1:
            wrong.append(("the job's own process", 1, ours[0]["in_job_flag"], 1))
    return wrong, seen


def main():
    if not shutil.which("nvidia-smi") or subprocess.run([sys.executable, "-c", "import torch"], capture_output=True).returncode:
        print("skipped: needs nvidia-smi and PyTorch")
        sys.exit(77)
    failed = 0
    for mode in ("idle", "busy"):
        with subprocess.Popen([sys.executable, "-c", HOLDER, mode], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as holder:
            holder.stdout.readline()
            for _ in range(TRIES):
                wrong, seen = compare(holder.pid)
                if not wrong:
                    break
            for name, a, ours, b in wrong:
                print(f"NOT OK  {mode}: {name}: nvidia-smi {a}, ours {ours}, nvidia-smi {b}")
            print(f"{mode}: {len(GPU)} figures of {len(seen['gpus'])} GPU(s) compared, {len(wrong)} wrong; "
                  f"limit now: {seen['limit']['text']}")
            failed += len(wrong)
            holder.kill()
    sys.exit(1 if failed else 0)


main()
