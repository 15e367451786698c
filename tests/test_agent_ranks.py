#!/usr/bin/env python3
"""Several processes that train together: one voice, one step clock, and one decision for all when memory runs out in one of them.

usage: test_agent_ranks.py ANTIFREEZE [TEST...]

By gloo on the loopback. Programs run out of memory when more than LIMIT samples go through at once in the rank OOM_RANK: they
raise the error itself that torch would raise. Each prints, for each rank, the steps that were made and the sum of all weights.
"""
import collections
import json
import os
import re
import shutil
import socket
import subprocess
import sys
import tempfile
import textwrap
import unittest

from frameworks import InTurn, skip_without

ANTIFREEZE = PYTHON = None
PATIENCE = 400  # seconds for one run: three processes that import torch take 60 on a busy machine
NEAR = 1e-6  # of a sum of weights: what adding up in another order comes to

HEAD = """
    import os, sys, torch
    torch.set_num_threads(1)
    RANK, LIMIT = int(os.environ.get("RANK") or os.environ.get("LOCAL_RANK") or 0), int(os.environ.get("LIMIT", "1000"))
    def full():
        raise RuntimeError("[enforce fail at alloc_cpu.cpp:124] err == 0. DefaultCPUAllocator: can't allocate memory: "
                           "you tried to allocate 99999999 bytes. Error code 12 (Cannot allocate memory)")
    class Net(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.a, self.b = torch.nn.Linear(8, 16), torch.nn.Linear(16, 1)
            self.register_buffer("scale", torch.ones(1))  # which ranks send to each other before a pass
        def forward(self, x=None, labels=None):
            if len(x) > LIMIT and torch.is_grad_enabled() and os.environ.get("OOM_RANK") == str(RANK): full()
            y = self.b(torch.tanh(self.a(x * self.scale))).squeeze(-1)
            return y if labels is None else {"loss": ((y - labels) ** 2).mean(), "logits": y}
    def end(model, steps):
        # In one write: two ranks may be at it.
        os.write(1, f"\\nEND {RANK} {steps} {sum(p.double().sum().item() for p in model.parameters())!r} "
                    f"lean={os.environ.get('ANTIFREEZE_LEAN', '0')}\\n".encode())
    torch.manual_seed(3)
    x, y = torch.randn(96, 8), torch.randn(96)
    """
# 3 epochs of 4 steps; each rank has 12 samples of a batch. FAIL_AT: memory runs out there in rank 1, outside of the model, in the
# first attempt.
LOOP = HEAD + """
    import time
    import antifreeze
    import torch.distributed as dist
    from torch.utils.data import DataLoader, DistributedSampler, TensorDataset
    dist.init_process_group("gloo")
    net = Net()
    model = torch.nn.parallel.DistributedDataParallel(net)
    optimizer = torch.optim.Adam(model.parameters(), 1e-2)
    data = TensorDataset(x, y)
    loader = DataLoader(data, batch_size=12, sampler=DistributedSampler(data, shuffle=False))
    count = {"done": 0}
    saved = antifreeze.autosave(net, optimizer, count, path="state.pt", every=0)
    for epoch in saved.epochs(3):
        for a, b in antifreeze.steps(loader):
            if count["done"] == int(os.environ.get("FAIL_AT", "-1")) and os.environ["ANTIFREEZE_ATTEMPT"] == "1" and RANK == 1:
                full()
            optimizer.zero_grad()
            torch.nn.functional.mse_loss(model(a), b).backward()
            optimizer.step()
            count["done"] += 1
            time.sleep(.1)
    end(net, count["done"])
    dist.destroy_process_group()
    """
TRANSFORMERS = HEAD + """
    from transformers import Trainer, TrainingArguments
    net = Net()
    data = [{"x": a, "labels": b} for a, b in zip(x, y)]
    args = TrainingArguments(output_dir="out", per_device_train_batch_size=12, num_train_epochs=2, report_to=[], disable_tqdm=True,
                             save_strategy="steps", save_steps=3, logging_strategy="no", use_cpu=True,
                             gradient_accumulation_steps=int(os.environ.get("ACCUMULATE", "1")))
    trainer = Trainer(net, args, train_dataset=data)
    trainer.train()
    end(net, trainer.state.global_step)
    torch.distributed.destroy_process_group()  # gloo's threads may abort a process that ends with them
    """
LIGHTNING = HEAD + """
    import lightning
    class Module(lightning.LightningModule):
        def __init__(self):
            super().__init__()
            self.net = Net()
        def training_step(self, batch, index): return self.net(*batch)["loss"]
        def configure_optimizers(self): return torch.optim.Adam(self.parameters(), 1e-2)
    module = Module()
    data = torch.utils.data.TensorDataset(x, y)
    trainer = lightning.Trainer(max_epochs=2, accelerator="cpu", devices=2, strategy="ddp", logger=False, enable_checkpointing=False,
                                enable_progress_bar=False, enable_model_summary=False)
    trainer.fit(module, torch.utils.data.DataLoader(data, batch_size=12))
    RANK = trainer.global_rank
    end(module.net, trainer.global_step)
    """
# A batch and how often it is accumulated come from the command line; memory runs out outside of the model, where nobody but a new
# start helps.
COUNTED = HEAD + """
    size, accumulate = map(int, sys.argv[1:])
    net = Net()
    optimizer = torch.optim.Adam(net.parameters(), 1e-2)
    for n in range(0, 96, size):
        a, b = x[n:n + size], y[n:n + size]
        if len(a) > LIMIT: full()
        (torch.nn.functional.mse_loss(net(a), b) / accumulate).backward()
        if (n // size + 1) % accumulate == 0:
            optimizer.step()
            optimizer.zero_grad()
    end(net, size * accumulate)
    """
# One rank ends for want of memory, and the other waits for it, as in a collective of NCCL. Nobody is there to end it.
HANGS = """
    import os, sys, time
    if sys.argv[1] == "8":
        if os.environ["RANK"] == "1": raise MemoryError()
        time.sleep(3000)
    os.write(1, f"\\nEND {os.environ['RANK']}\\n".encode())
    """


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


class Run:
    def __init__(self, folder, text, launch, options=(), **env):
        path = folder + "/job.py"
        with open(path, "w", encoding="utf-8") as file:
            file.write(textwrap.dedent(text))
        for name in "state.pt", "out":
            shutil.rmtree(folder + "/" + name, ignore_errors=True)
            if os.path.exists(folder + "/" + name):
                os.remove(folder + "/" + name)
        clean = {k: v for k, v in os.environ.items() if k not in ("LD_PRELOAD", "PYTHONPATH") and not k.startswith("ANTIFREEZE")}
        clean = {**clean, "OMP_NUM_THREADS": "1", "CUDA_VISIBLE_DEVICES": "", "XDG_RUNTIME_DIR": folder + "/run",
                 "XDG_STATE_HOME": folder + "/state", "MASTER_PORT": str(free_port()), "MASTER_ADDR": "127.0.0.1", **env}
        command = [ANTIFREEZE, "run", "--policy", "adapt", "--budget", "6G", "--json", *options, "--", *launch, path]
        r = subprocess.run(command, env=clean, cwd=folder, capture_output=True, text=True, stdin=subprocess.DEVNULL, timeout=PATIENCE,
                           check=False)
        self.status, self.said = r.returncode, r.stdout + r.stderr
        self.words = collections.Counter(re.findall(r'^\{"antifreeze":"([a-z-]+)"', r.stderr, re.M))
        self.ends = sorted((int(rank), int(steps), float(total), int(lean)) for rank, steps, total, lean in
                           re.findall(r"^END (\d) (\d+) (\S+) lean=(\d+)$", r.stdout, re.M))
        out = subprocess.run([ANTIFREEZE, "export", "--format", "jsonl"], env=clean, capture_output=True, text=True, check=True).stdout
        rows = [json.loads(line) for line in out.splitlines()]
        self.marks = [(row["name"], row["text"]) for row in rows if row.get("mark") == "agent"]
        self.steps = {}  # of each process
        for row in rows:
            steps = row.get("values", {}).get("step_count") if row.get("kind") == "inside" else None
            if steps:
                self.steps[row["id"]] = max(self.steps.get(row["id"], 0), steps)

    def told(self, kind):
        return [text for name, text in self.marks if name == kind]


def torchrun():
    return [PYTHON, "-m", "torch.distributed.run", "--nproc-per-node", "2", "--master-port", str(free_port())]


class Case(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.mkdtemp(prefix="afz-")
        self.addCleanup(shutil.rmtree, self.folder, ignore_errors=True)
        os.makedirs(self.folder + "/run", mode=0o700)

    def run_in(self, text, launch, options=(), **env):
        return Run(self.folder, text, launch, options, **env)

    def check_same(self, r, whole, restarts, lean=0):
        """It ends as the other has, in both ranks."""
        self.assertEqual(r.status, 0, r.said)
        self.assertEqual(r.words["restart"], restarts, r.said)
        self.assertEqual([end[:2] for end in r.ends], [end[:2] for end in whole.ends], r.said)
        self.assertEqual([end[3] for end in r.ends], [lean, lean])
        for end, other in zip(r.ends, whole.ends):
            self.assertLess(abs(end[2] - other[2]), NEAR * max(1, abs(other[2])), r.said)


class Torchrun(Case):
    def test_loop(self):
        whole = self.run_in(LOOP, torchrun())
        self.assertEqual((whole.status, [end[:2] for end in whole.ends]), (0, [(0, 12), (1, 12)]), whole.said)
        self.assertEqual(whole.words["restart"], 0)
        with self.subTest("a clock for each rank"):
            self.assertEqual(sorted(whole.steps.values()), [12, 12])
        with self.subTest("memory ran out in rank 1: all begin anew, from what rank 0 has saved"):
            r = self.run_in(LOOP, torchrun(), FAIL_AT="6")
            self.check_same(r, whole, restarts=1, lean=1)
            self.assertEqual(len(r.told("oom")), 1, r.marks)
            self.assertEqual(len(r.told("resume")), 1, r.marks)
        with self.subTest("in the model it is gotten over, by the one rank alone"):
            r = self.run_in(LOOP, torchrun(), LIMIT="6", OOM_RANK="1")
            self.check_same(r, whole, restarts=0)


class Accelerate(Case):
    """Whose launcher starts several processes on CPUs only if it takes them for GPUs."""

    def test_trainer(self):
        launch = [PYTHON, "-m", "accelerate.commands.launch", "--multi_gpu", "--num_processes", "2", "--num_machines", "1",
                  "--mixed_precision", "no", "--dynamo_backend", "no", "--main_process_port"]
        whole = self.run_in(TRANSFORMERS, [*launch, str(free_port())])
        self.assertEqual((whole.status, [end[:2] for end in whole.ends]), (0, [(0, 8), (1, 8)]), whole.said)
        r = self.run_in(TRANSFORMERS, [*launch, str(free_port())], LIMIT="6", OOM_RANK="1")
        self.check_same(r, whole, restarts=1, lean=1)
        self.assertEqual(len(r.told("oom")), 1, r.marks)


class Lightning(Case):
    def test_ddp(self):
        whole = self.run_in(LIGHTNING, [PYTHON])
        self.assertEqual((whole.status, [end[:2] for end in whole.ends]), (0, [(0, 8), (1, 8)]), whole.said)
        r = self.run_in(LIGHTNING, [PYTHON], LIMIT="6", OOM_RANK="1")
        self.check_same(r, whole, restarts=1, lean=1)


class CommandLine(Case):
    """One process: {batch} and {accum} keep what a step learns from."""

    def test_same(self):
        launch = ["sh", "-c", '"$0" "$1" {batch} {accum}', PYTHON]
        whole = self.run_in(COUNTED, launch, ["--batch", "16"])
        self.assertEqual((whole.status, whole.words["restart"], whole.ends[0][:2]), (0, 0, (0, 16)), whole.said)
        r = self.run_in(COUNTED, launch, ["--batch", "16"], LIMIT="6")
        self.assertEqual((r.status, r.words["restart"], r.ends[0][:2]), (0, 2, (0, 16)), r.said)
        self.assertIn("with batch 8 and accumulation 2", r.said)
        self.assertIn("with batch 4 and accumulation 4", r.said)
        self.assertLess(abs(r.ends[0][2] - whole.ends[0][2]), NEAR * abs(whole.ends[0][2]))


class Waiting(Case):
    def test_ended(self):
        """The others wait for one that is gone: the whole job is ended, and begun again."""
        both = 'for RANK in 0 1; do export RANK; "$0" "$2" {batch} & done; wait'
        r = self.run_in(HANGS, ["sh", "-c", both, PYTHON, "job"], ["--batch", "8"], WORLD_SIZE="2")
        self.assertEqual(r.status, 0, r.said)
        self.assertEqual((r.words["kill"], r.words["restart"]), (1, 1), r.said)
        self.assertIn("with batch 4 and accumulation 2", r.said)
        self.assertEqual(sorted(re.findall(r"^END (\d)$", r.said, re.M)), ["0", "1"], r.said)


if __name__ == "__main__":
    ANTIFREEZE = os.path.abspath(sys.argv[1])
    PYTHON = skip_without("torch", "transformers", "accelerate", "lightning")
    unittest.main(argv=sys.argv[:1] + sys.argv[2:], testLoader=InTurn())
