#!/usr/bin/env python3
"""What the agent tells of a PyTorch program's memory: the ledger, phases, gradients that were zeroed, running out of memory, and
loaders that are held back under --policy adapt.

usage: test_agent_torch.py KEEPER PROBE AGENT_FOLDER

The guard is a socket of the test's own that writes down what it hears. ONLY=word in the environment plays the tests with that word.
"""
import os
import re
import socket
import sys
import tempfile
import threading
import unittest

from agent_harness import Harness
from frameworks import InTurn, skip_without

QUIET = {"CUDA_VISIBLE_DEVICES": "", "OMP_NUM_THREADS": "1"}
HARNESS = PYTHON = None
UNTOLD = (1 << 64) - 1
FLOAT = 4

TORCH = """
import sys, torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset
torch.manual_seed(1); torch.set_num_threads(1)
x, y = torch.randn(4096, 256), torch.randn(4096, 1)
def agent(name): return sys.modules["_antifreeze." + name]
def net(): return nn.Sequential(nn.Linear(256, 1024), nn.Tanh(), nn.BatchNorm1d(1024), nn.Linear(1024, 1))
def loss_of(model, a, b): return ((model(a) - b) ** 2).mean()
"""


class Guard:
    """Hears what the program says; answers only `hello`."""

    def __init__(self):
        self.folder = tempfile.TemporaryDirectory(prefix="afz-")
        self.path = self.folder.name + "/control"
        self.lines = []
        self.listener = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self.listener.bind(self.path)
        self.listener.listen(16)
        threading.Thread(target=self.serve, daemon=True).start()

    def serve(self):
        while True:
            try:
                client, _ = self.listener.accept()
            except OSError:
                return
            threading.Thread(target=self.hear, args=(client,), daemon=True).start()

    def hear(self, client):
        while True:
            try:
                line = client.recv(2048)
                if not line:
                    return
                self.lines.append(line.decode())
                if line.startswith(b"hello"):
                    client.send(b"welcome 1 test")
            except (BrokenPipeError, ConnectionResetError):  # it went without hearing all; what it said is still to be had
                continue

    def events(self, kind):
        """What was said of that kind: a dictionary of its keys each."""
        return [dict(word.split("=", 1) for word in line.split(": ")[0].split()[2:]) for line in self.lines
                if line.startswith(f"event {kind}")]

    def close(self):
        self.listener.close()
        self.folder.cleanup()


class Torch(unittest.TestCase):
    def play(self, text, fails=False, **env):
        guard = Guard()
        self.addCleanup(guard.close)
        r = HARNESS.play(PYTHON, TORCH + text, env={**QUIET, "ANTIFREEZE_SOCKET": guard.path, **env})
        self.assertEqual(r.status, 256 if fails else 0, r.said)
        r.told = max(r.books, key=lambda book: book["steps"])["told"]
        r.guard = guard
        return r

    def test_ledger(self):
        r = self.play("""
model = net(); opt = torch.optim.Adam(model.parameters())
for a, b in DataLoader(TensorDataset(x, y), batch_size=512):
    opt.zero_grad(); loss_of(model, a, b).backward(); opt.step()
""")
        weights = (256 * 1024 + 1024 + 2 * 1024 + 1024 + 1) * FLOAT
        told = r.told
        self.assertEqual((told["parameters_bytes"], told["gradients_bytes"]), (weights, weights))
        self.assertEqual(told["optimizer_bytes"], 2 * weights + 6 * FLOAT, "two moments of each, and each one's count of steps")
        self.assertEqual(told["buffers_bytes"], 2 * 1024 * FLOAT + 8)
        self.assertEqual((told["batch_count"], told["batch_bytes"]), (512, 512 * (256 + 1) * FLOAT))
        activations = 2 * 512 * 1024 * FLOAT  # of Tanh and of BatchNorm
        self.assertAlmostEqual(told["activations_bytes"] / activations, 1, delta=.3)
        self.assertEqual(told["phase"], 2)
        self.assertEqual([name for name in told if name.startswith("gpu_")], [], "there is none: nothing is claimed of it")

    def test_frozen_and_tied(self):
        r = self.play("""
class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.frozen = nn.Linear(1000, 100).requires_grad_(False); self.head = nn.Linear(100, 100, bias=False)
        self.tied = nn.Linear(100, 100, bias=False); self.tied.weight = self.head.weight
    def forward(self, a): return self.tied(self.head(self.frozen(a)))
model = Model(); opt = torch.optim.SGD([p for p in model.parameters() if p.requires_grad], lr=.1)
for n in range(3):
    opt.zero_grad(); model(torch.randn(8, 1000)).sum().backward(); opt.step()
""")
        self.assertEqual(r.told["parameters_bytes"], (1000 * 100 + 100 + 100 * 100) * FLOAT)
        self.assertEqual(r.told["gradients_bytes"], 100 * 100 * FLOAT)
        self.assertEqual(r.told["optimizer_bytes"], 0)

    def test_phases(self):
        """Each way to evaluate that people have, and saving."""
        r = self.play("""
import io
seen = []
inner = agent("tell").tell
def tell(name, value):
    if name == "phase": seen.append(value)
    inner(name, value)
agent("tell").tell = tell
model = net(); opt = torch.optim.SGD(model.parameters(), lr=.01)
data = DataLoader(TensorDataset(x[:64], y[:64]), batch_size=32)
def train(mode=True):
    model.train(mode)
    for a, b in data: opt.zero_grad(); loss_of(model, a, b).backward(); opt.step()
train()
with torch.no_grad():
    for a, b in data: model(a)
train()
model.eval()
for a, b in data:
    with torch.no_grad(): model(a)
torch.save(model.state_dict(), io.BytesIO())
train()
train(False); train(False)  # a frozen BatchNorm: trained in eval()
print(seen)
""")
        self.assertEqual(r.said.strip(), str([2, 3, 2, 3, 4, 3, 2, 3, 2]))

    ACCUMULATION = """
model = net(); opt = torch.optim.SGD(model.parameters(), lr=.01)
for n, (a, b) in enumerate(DataLoader(TensorDataset(x, y), batch_size=256)):
    %s
    loss_of(model, a, b).backward()
    if n %% 4 == 3: opt.step(); opt.zero_grad()
"""

    def test_zeroed(self):
        for text, lost in [("opt.zero_grad()", 12), ("model.zero_grad()", 12), ("opt.zero_grad(set_to_none=False)", 12), ("pass", None)]:
            with self.subTest(text):
                self.assertEqual(self.play(self.ACCUMULATION % text).told.get("zeroed_count"), lost)

    def test_two_passes(self):
        """Gradients that moved the weights were used, though they are zeroed: SAM, which many write with .data."""
        text = """
model = net(); opt = torch.optim.SGD(model.parameters(), lr=.01)
for n, (a, b) in enumerate(DataLoader(TensorDataset(x, y), batch_size=256)):
    loss_of(model, a, b).backward()
    if n %% 2: opt.step()
    else:
        with torch.no_grad():
            for p in model.parameters(): p%s.add_(p.grad, alpha=.05)
    opt.zero_grad()
"""
        for data in "", ".data":
            self.assertIsNone(self.play(text % data).told.get("zeroed_count"))

    def test_held(self):
        """A graph that is kept after training."""
        text = """
agent("see.torch_memory").forget_time()
model = net(); opt = torch.optim.SGD(model.parameters(), lr=.01); kept = []
data = DataLoader(TensorDataset(x, y), batch_size=512)
for a, b in data:
    out = model(a); %s
    opt.zero_grad(); ((out - b) ** 2).mean().backward(); opt.step()
with torch.no_grad():
    for a, b in data: model(a)
"""
        self.assertEqual(self.play(text % "kept.append(out)").told["held_bytes"] // FLOAT, 4096)
        self.assertLessEqual(self.play(text % "pass").told["held_bytes"] // FLOAT, 512 + 1)

    def test_out_of_memory(self):
        """One that ends the program: the same words as without us, and the guard hears where."""
        text = """
model = net(); opt = torch.optim.SGD(model.parameters(), lr=.01)
def train(a, b): opt.zero_grad(); loss_of(model, a, b).backward(); opt.step()
def huge(): return torch.empty(1 << 58)
for a, b in DataLoader(TensorDataset(x, y), batch_size=512): train(a, b)
huge()
"""
        r = self.play(text, fails=True)
        alone = HARNESS.alone(PYTHON, TORCH + text, env=QUIET)

        def words(said):
            return re.sub(r"/\S*job.py", "job.py", said)
        self.assertEqual(words(r.said), words(alone.said))
        event, = r.guard.events("oom")
        self.assertEqual((event["device"], event["step"], event["batch"], event["asked_bytes"], event["swallowed"]),
                         ("host", "8", "512", str(1 << 60), "0"))
        self.assertRegex(event["at"], r"job.py:\d+:huge$")
        self.assertEqual(r.told["ooms_count"], 1)

    def test_loader_held_back(self):
        """Under adapt a loader works ahead only as far as there is room, and gives the same."""
        text = """
import os
class Rows(torch.utils.data.Dataset):
    def __len__(self): return 200
    def __getitem__(self, i): return torch.rand(1000) + i
agent("see.inputs").room_bytes = lambda: %s
most = 0
for epoch in range(2):
    loader = DataLoader(Rows(), batch_size=10, shuffle=True, num_workers=2, prefetch_factor=4, persistent_workers=False)
    it = iter(loader)
    n = 0
    for batch in it:
        most = max(most, it._tasks_outstanding); n += 1
        print(float(batch.sum()).hex())
    assert n == 20
print("most", most, file=open(os.environ["SIDE"], "w"))
"""
        outcomes = []
        for policy, room, most, ahead in [("protect", 0, 8, 8), ("adapt", 3 * 4 * 40000, 3, 3), ("adapt", 0, 2, 1), ("adapt", None, 8, 8)]:
            with tempfile.NamedTemporaryFile(prefix="afz-") as side:
                r = self.play(text % room, ANTIFREEZE_POLICY=policy, SIDE=side.name)
                outcomes.append(r.said)
                with open(side.name, encoding="utf-8") as file:
                    self.assertLessEqual(int(file.read().split()[1]), most, (policy, room))
            told = [book["told"]["loader_bytes"] for book in r.books if "loader_bytes" in book["told"]]
            self.assertEqual(told[:1], [ahead * 40000], (policy, room))
        self.assertEqual(len(set(outcomes)), 1, "the same batches in the same order")

    def test_history(self):
        """What History keeps has no graph."""
        r = self.play("""
import antifreeze, gc
from _antifreeze.history import History
losses = History(16)
model = net(); opt = torch.optim.SGD(model.parameters(), lr=.01)
for a, b in DataLoader(TensorDataset(x, y), batch_size=32):
    opt.zero_grad(); loss = loss_of(model, a, b); loss.backward(); opt.step(); losses.append(loss)
last = float(loss.detach()); del loss
print(len(losses) <= 16, losses.count, losses[-1] == last,
      sum(type(one) is torch.Tensor and one.grad_fn is not None for one in gc.get_objects()))
""")
        self.assertEqual(r.said.split(), ["True", "128", "True", "0"])


if __name__ == "__main__":
    if len(sys.argv) != 4:
        sys.exit(__doc__)
    PYTHON = skip_without("torch")
    HARNESS = Harness(*sys.argv[1:4])
    unittest.main(argv=sys.argv[:1] + (["-k", os.environ["ONLY"]] if os.environ.get("ONLY") else []), verbosity=2, testLoader=InTurn())
