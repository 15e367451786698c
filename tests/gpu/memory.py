#!/usr/bin/env python3
"""On a machine with a GPU: the agent's figures of CUDA are torch's own, running out of memory is seen also when it is swallowed,
the budget is a limit, and CUDA is not brought up by us.

usage: tests/gpu/memory.py

Takes no arguments; needs torch with CUDA, but neither the probe nor the guard: what would be told and said is kept here. Each check
is a process of its own. Says what it checks; exit 1: one failed.
"""
import os
import sys

from checks import run_all

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
GIB = 1 << 30

BEFORE = f"""
import sys, types
door = sys.modules["_antifreeze"] = types.ModuleType("_antifreeze"); door.__path__ = [{ROOT + "/python/antifreeze"!r}]
from _antifreeze import clock, talk, tell, watch
clock.connect = lambda: True
events = []
talk.event = lambda kind, sentence="", **keys: kind != "sites" and events.append((kind, keys))  # that one: sites.py
watch.start()
import torch
from torch import nn
from _antifreeze.see import oom, torch_memory as memory
told = tell.last
MIB, GIB = 1 << 20, 1 << 30
"""

# Whether a child that was forked can use CUDA: after the import, after an optimizer's step, after training on the CPU. torch itself
# asks the driver in a backward pass at the latest, and from then on no child can: with us it must be as without us.
FORK = """
import os, subprocess, sys, time
import torch.utils.data
def child_can():
    pid = os.fork()
    if pid == 0:
        try: torch.ones(1, device="cuda"); os._exit(0)
        except BaseException as error: print("  ", error, flush=True); os._exit(1)
    return os.waitpid(pid, 0)[1] == 0
def children():
    yield child_can()
    model = nn.Linear(8, 8); opt = torch.optim.SGD(model.parameters(), lr=.1)
    for p in model.parameters(): p.grad = torch.ones_like(p)
    for _ in range(5): opt.step(); time.sleep(.06)
    yield child_can()
    for _ in range(5): opt.zero_grad(); model(torch.randn(4, 8)).sum().backward(); opt.step()
    yield child_can()
"""
CHECKS = {
    "CUDA is the program's to bring up": FORK + f"FORK = {FORK!r}" + """
check("importing torch leaves CUDA down", not torch.cuda.is_initialized())
from _antifreeze.save import saving
saving.set_random_state(saving.random_state())
ours = list(children())
check("so does training on the CPU", not torch.cuda.is_initialized() and "gpu_allocated_bytes" not in told)
alone = subprocess.run([sys.executable, "-c", "import torch\\nfrom torch import nn\\n" + FORK + "print([*children()])"], check=False,
                       capture_output=True, text=True).stdout.splitlines()[-1]
check("a child that was forked can use it", ours[0], ours)
check("and later, whenever it could without us", str(ours) == alone, alone)
torch.ones(1, device="cuda")
check("the parent can use it", torch.cuda.is_initialized())
""",
    "figures": """
def mlp(): return nn.Sequential(nn.Linear(1024, 4096), nn.ReLU(), nn.BatchNorm1d(4096), nn.Linear(4096, 1024)).cuda()
model = mlp(); opt = torch.optim.Adam(model.parameters())
x = torch.randn(8192, 1024, device="cuda")
kept = {}
inner = memory.look_at_cuda
def look():
    result = inner(); kept.update(torch.cuda.memory_stats()); return result
memory.look_at_cuda = look
for _ in range(6):
    memory.gate.due_ns = 0; memory.is_due = True
    opt.zero_grad(); model(x).square().mean().backward(); opt.step()
for ours, theirs in [("gpu_allocated_bytes", "allocated_bytes.all.current"), ("gpu_allocated_peak_bytes", "allocated_bytes.all.peak"),
                     ("gpu_reserved_bytes", "reserved_bytes.all.current"), ("gpu_inactive_bytes", "inactive_split_bytes.all.current"),
                     ("gpu_retries_count", "num_alloc_retries")]:
    check(f"{ours} is torch's {theirs}", told.get(ours) == kept[theirs], told.get(ours), kept[theirs])
weights = sum(p.nbytes for p in model.parameters())
check("parameters", told["gpu_parameters_bytes"] == weights, told["gpu_parameters_bytes"], weights)
check("gradients", told["gpu_gradients_bytes"] == weights, told["gpu_gradients_bytes"])
state = sum(t.nbytes for s in opt.state.values() for t in s.values() if t.is_cuda)
check("the optimizer's state", told["gpu_optimizer_bytes"] == state, told["gpu_optimizer_bytes"], state)
check("buffers", told["gpu_buffers_bytes"] == sum(b.nbytes for b in model.buffers()), told["gpu_buffers_bytes"])
expected = 2 * 8192 * 4096 * 4 + 8192 * 1024 * 4  # ReLU, BatchNorm, the output
got = told.get("gpu_activations_bytes", 0)
check("activations, within 30 %", abs(got / expected - 1) < .3, got, expected)
pinned = torch.empty(64 * MIB, dtype=torch.uint8).pin_memory(); memory.look_at_cuda()
if hasattr(torch.cuda, "host_memory_stats"):
    check("pinned memory", told.get("pinned_bytes", 0) >= 64 * MIB, told.get("pinned_bytes"))
""",
    "out of memory, swallowed": """
model = nn.Linear(1024, 1024).cuda(); opt = torch.optim.SGD(model.parameters(), lr=.1)
def train(): opt.zero_grad(); model(torch.randn(64, 1024, device="cuda")).sum().backward(); opt.step()
def huge(): return torch.empty(1 << 42, dtype=torch.uint8, device="cuda")
for _ in range(3): train()
try: huge()
except RuntimeError: pass
check("noticed before anybody goes on", oom.count == 1 and told.get("ooms_count") == 1)
import time
time.sleep(.1); train(); time.sleep(.1); train()
keys = dict(events[-1][1]) if events else {}
print("  ", keys)
check("one event", len(events) == 1 and events[0][0] == "oom")
check("it says that it was swallowed, on the GPU", (keys.get("device"), keys.get("swallowed")) == ("gpu", 1))
check("what was asked for", keys.get("asked_bytes", 0) >= 1 << 42, keys.get("asked_bytes"))
check("what was allocated", 0 < keys.get("allocated_bytes", 0) <= keys.get("reserved_bytes", 0))
check("where", str(keys.get("at")).endswith(":huge"), keys.get("at"))
""",
    "out of memory in a backward pass, recovered by us": """
torch.cuda.set_per_process_memory_fraction(2 * GIB / torch.cuda.get_device_properties(0).total_memory)
class Wide(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x): return x.clone()
    @staticmethod
    def backward(ctx, g): torch.empty(8 * GIB, dtype=torch.uint8, device="cuda"); return g
x = torch.ones(8, device="cuda", requires_grad=True)
try: Wide.apply(x).sum().backward()
except RuntimeError as error: found = oom.caught(error, micro=4)
keys = events[-1][1]
print("  ", keys)
check("one event, not swallowed", found == "gpu" and len(events) == 1 and (keys["swallowed"], keys["micro"]) == (0, 4))
check("where", keys.get("at") is not None)
""",
    "the budget": """
import os
check("nothing is limited before CUDA is up", not torch.cuda.is_initialized())
torch.ones(1, device="cuda")
held = []
try:
    while len(held) < 64: held.append(torch.empty(256 * MIB, dtype=torch.uint8, device="cuda"))
except torch.OutOfMemoryError: pass
free, total = torch.cuda.mem_get_info()
budget = int(os.environ["ANTIFREEZE_GPU_BUDGET"])
reserved = torch.cuda.memory_reserved()
check("the allocator stays below it", reserved <= budget, reserved, budget)
check("and uses most of it", reserved >= budget * .6, reserved)
check("that is an event, too", oom.count == 1)
""",
    "no budget, no limit": """
torch.ones(1, device="cuda")
free, total = torch.cuda.mem_get_info()
if free > 12 * GIB:
    check("8 GiB are to be had", torch.empty(8 * GIB, dtype=torch.uint8, device="cuda").nbytes == 8 * GIB)
check("no event", not events and oom.count == 0)
""",
    "held after training": """
model = nn.Linear(1024, 1024).cuda(); opt = torch.optim.SGD(model.parameters(), lr=.1)
for _ in range(4): opt.zero_grad(); model(torch.randn(64, 1024, device="cuda")).sum().backward(); opt.step()
memory.on_left(); before = told["held_bytes"]
kept = torch.empty(512 * MIB, dtype=torch.uint8, device="cuda")
memory.on_left()
check("a tensor that stays is held", abs(told["held_bytes"] - before - 512 * MIB) < MIB, before, told["held_bytes"])
""",
    "History does not wait": """
import time
from _antifreeze.history import History
history = History(100)
a = torch.randn(8192, 8192, device="cuda"); (a @ a * 1e-4).sum().detach().clone(); torch.cuda.synchronize()  # code is loaded when it is first used
began = time.perf_counter(); b = a
for _ in range(20): b = (a @ b) * 1e-4
history.append(b.sum()); took = time.perf_counter() - began
torch.cuda.synchronize(); whole = time.perf_counter() - began
check("append() comes back before the GPU is done", took < whole / 2, f"{took * 1e3:.1f} of {whole * 1e3:.1f} ms")
check("and a number is kept", isinstance(history[-1], float))
""",
}


def env(name):
    return {"ANTIFREEZE_GPU_BUDGET": str(4 * GIB)} if name == "the budget" else {}


if __name__ == "__main__":
    sys.exit(run_all(CHECKS, BEFORE, env=env))
