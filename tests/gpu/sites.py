#!/usr/bin/env python3
"""On a machine with a GPU and torch: the lines that hold its memory are named when it runs out, whether that is in the first steps or
much later, and what that costs.

usage: tests/gpu/sites.py

ANTIFREEZE in the environment is the program; else the one in build. Says what it checks; exit 1: one failed, 77: no GPU.
"""
import json
import os
import subprocess
import sys
import tempfile
import textwrap

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
PROGRAM = os.environ.get("ANTIFREEZE", ROOT + "/build/antifreeze")
BUDGET = "4G"
START = """
    import sys, time, torch
    data = torch.randn(1 << 28, device="cuda")                                # line 3: 1 GiB that stays
    net = torch.nn.Sequential(*[torch.nn.Linear(1024, 1024) for _ in range(8)]).cuda()
    opt = torch.optim.SGD(net.parameters(), 1e-3)
    def learn(n):
        opt.zero_grad()
        loss = net(data[:n * 1024].view(n, 1024)).square().mean()             # line 8: activations
        loss.backward()
        opt.step()
    kept = []
    def keep(mib):
        kept.append(torch.empty(mib << 18, device="cuda"))                    # line 13: what is kept
    """
# Name: the program behind that, and lines that must be named, with at least so many GiB
JOBS = {
    "a batch that is too large, at once": ("learn(1 << 18)", {8: 1, 3: .9}),
    "what is kept from step to step, much later": ("""
    for n in range(100000):
        learn(1024)
        keep(8)
        time.sleep(.01)
    """, {13: .5, 3: .9}),  # not all of it: one looks a part of the time
    "a program that catches it, and goes on": ("""
    for n in range(30): learn(1024)
    try:
        learn(1 << 18)
    except torch.OutOfMemoryError:
        print("caught")
    time.sleep(.2)
    for n in range(30): learn(1024); time.sleep(.02)
    """, {8: 1, 3: .9}),
}
# A step of many small tensors, which is the dearest: with our agent and a look at all, without a look, and alone.
COST = """
    import os, sys, time, torch
    torch.ones(1, device="cuda")
    x = torch.ones(64, device="cuda")
    def step():
        for _ in range(200): x + 1
        torch.cuda.synchronize()
    sites = sys.modules.get("_antifreeze.see.cuda_sites")
    def measure(on):
        if sites: sites.switch(on)
        for _ in range(50): step()
        began = time.perf_counter()
        for _ in range(500): step()
        return (time.perf_counter() - began) / 500 * 1e6
    print(*[f"{min(measure(on) for _ in range(3)):.1f}" for on in (False, True)], sites is not None)
    """


def play(folder, name, body, *options):
    path = os.path.join(folder, name.split(",")[0].replace(" ", "_") + ".py")
    with open(path, "w", encoding="utf-8") as file:
        file.write(textwrap.dedent(body).lstrip("\n") if body is COST else textwrap.dedent(body))
    env = {**os.environ, "XDG_STATE_HOME": folder}
    r = subprocess.run([PROGRAM, "run", "-q", "--policy", "protect", *options, "--", sys.executable, path], env=env, capture_output=True, text=True,
                       check=False, timeout=300)
    said = subprocess.run([PROGRAM, "why", "--json"], env=env, capture_output=True, text=True, check=False).stdout
    return r, json.loads(said)["verdicts"], path


def gib(evidence, path, line):
    """What that line is said to have held."""
    for text in evidence:
        words = text.split()
        if words[0] == f"{os.path.basename(path)}:{line}" and "held" in words:
            size = words[words.index("held") + 1]
            return float(size[:-1]) * {"G": 1, "M": 1 / 1024}[size[-1]]
    return 0


def main():
    if subprocess.run([sys.executable, "-c", "import torch, sys; sys.exit(not torch.cuda.is_available())"], check=False).returncode:
        print("there is no GPU here, or no torch")
        sys.exit(77)
    failed = 0
    with tempfile.TemporaryDirectory(prefix="afz-") as folder:
        for name, (body, lines) in JOBS.items():
            r, verdicts, path = play(folder, name, START + body, "--gpu-budget", BUDGET)
            first = next((v for v in verdicts if v["id"] in ("gpu-oom", "leak:gpu", "model-too-large")), {"id": "no verdict"})
            evidence = [text for v in verdicts for text in v["evidence"]]
            found = {line: gib(evidence, path, line) for line in lines}
            good = any(v["id"] == "gpu-oom" for v in verdicts) and all(found[line] >= least for line, least in lines.items())
            failed += not good
            print(f"{'ok    ' if good else 'NOT OK'}  {name}: {first['id']}: {found}")
            if not good:
                print(textwrap.indent("\n".join([json.dumps(verdicts, indent=1), r.stderr[-2000:]]), "        "))
        r, _, _ = play(folder, "cost", COST)
        off, on, is_there = r.stdout.split()
        each = (float(on) - float(off)) / 200
        good = is_there == "True" and each < 5
        failed += not good
        print(f"{'ok    ' if good else 'NOT OK'}  what it costs: 200 tensors in {off} us, with their lines in {on} us: {each:.2f} us each (2 are reckoned)")
    sys.exit(failed > 0)


main()
