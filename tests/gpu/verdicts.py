#!/usr/bin/env python3
"""On a machine with a GPU and torch: what is said of runs that run out of its memory, that catch the error, that keep what they need
no more, and of one that is fine; and what its memory was for.

usage: tests/gpu/verdicts.py

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
START = """
    import time, torch
    from torch.utils.data import DataLoader, TensorDataset
    net = torch.nn.Sequential(torch.nn.Linear(1024, 4096), torch.nn.ReLU(), torch.nn.Linear(4096, 4096), torch.nn.ReLU(),
                              torch.nn.Linear(4096, 10)).cuda()
    opt = torch.optim.AdamW(net.parameters())
    data = TensorDataset(torch.randn(2048, 1024), torch.randint(0, 10, (2048,)))
    def learn(x, y):
        opt.zero_grad()
        loss = torch.nn.functional.cross_entropy(net(x.cuda()), y.cuda())
        loss.backward()
        opt.step()
        return loss
    def go(seconds):
        end = time.time() + seconds
        while time.time() < end:
            for x, y in DataLoader(data, batch_size=256):
                learn(x, y)
"""
# Name: the program behind that, and what must be the first verdict: (id, level), ids that may be
JOBS = {
    "too large": ("go(5)\n    x = torch.randn(400000, 1024)\n    learn(x, torch.zeros(400000, dtype=torch.long))", ("gpu-oom", "batch-too-large"), "act"),
    "caught": ("""for i in range(8):
        go(2)
        try:
            learn(torch.randn(400000, 1024), torch.zeros(400000, dtype=torch.long))
        except torch.OutOfMemoryError:
            opt.zero_grad()
    go(3)""", ("gpu-oom",), "warn"),
    "kept": ("""kept = []
    while True:
        for x, y in DataLoader(data, batch_size=256):
            learn(x, y)
            kept.append(net(x.cuda()))
            time.sleep(.05)""", ("leak:gpu", "leak:retained-graph"), "act"),
    "searched": ("""n = 1 << 20
    while True:
        try:
            learn(torch.randn(n, 1024), torch.zeros(n, dtype=torch.long))
            break
        except torch.OutOfMemoryError:
            n //= 2
    go(10)""", ("clean",), "ok"),
    "fine": ("go(25)", ("clean",), "ok"),
}


def play(folder, name, body):
    path = os.path.join(folder, name.replace(" ", "_") + ".py")
    with open(path, "w", encoding="utf-8") as file:
        file.write(textwrap.dedent(START + "    " + body + "\n"))
    env = {**os.environ, "XDG_STATE_HOME": folder}
    subprocess.run([PROGRAM, "run", "--gpu-budget", "3G", "--", sys.executable, path], env=env, capture_output=True, check=False, timeout=300)
    said = subprocess.run([PROGRAM, "why", "--json"], env=env, capture_output=True, text=True, check=False).stdout
    words = subprocess.run([PROGRAM, "why"], env=env, capture_output=True, text=True, check=False).stdout
    return json.loads(said)["verdicts"], words


def main():
    if subprocess.run([sys.executable, "-c", "import torch, sys; sys.exit(not torch.cuda.is_available())"], check=False).returncode:
        print("there is no GPU here, or no torch")
        sys.exit(77)
    failed = 0
    with tempfile.TemporaryDirectory(prefix="afz-") as folder:
        for name, (body, ids, level) in JOBS.items():
            verdicts, words = play(folder, name, body)
            first = verdicts[0]
            good = first["id"] in ids and first["level"] == level
            good &= level != "ok" or all(v["level"] in ("ok", "unknown") for v in verdicts)
            good &= "of GPU memory at " in words and "parameters" in words
            failed += not good
            print(f"{'ok    ' if good else 'NOT OK'}  {name}: {first['id']} ({first['level']}): {first['summary']}")
            if not good:
                print(textwrap.indent(words, "        "))
    sys.exit(failed > 0)


main()
