#!/usr/bin/env python3
"""Mixed precision on request (--amp): really computed in it, by the framework's own setting, and said what it saves.

usage: test_agent_amp.py AGENT_FOLDER [TEST...]

Where the processor does not compute in bfloat16 it is made believe that it does, and slow.
"""
import os
import re
import shutil
import subprocess
import sys
import tempfile
import textwrap
import types
import unittest

from fake_guard import FakeGuard
from frameworks import InTurn, skip_without

AGENT = PYTHON = None
PATIENCE = 300  # seconds for one program: importing a framework on a busy machine alone takes 30

# A model that says in what it computes, and how many bytes are kept of a pass for the way back.
HEAD = """
    import os, sys, torch
    def flags(*there):
        amp = sys.modules.get("_antifreeze.split.amp")
        if amp: amp.cpu_flags = lambda: set(there)
    class Net(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.a, self.b = torch.nn.Linear(8, 64), torch.nn.Linear(64, 1)
            self.kept = 0
        def forward(self, x=None, labels=None):
            def keep(tensor):
                if not any(tensor.data_ptr() == p.data_ptr() for p in self.parameters()):
                    self.kept += tensor.numel() * tensor.element_size()
                return tensor
            with torch.autograd.graph.saved_tensors_hooks(keep, lambda tensor: tensor):
                h = self.a(x)
                self.dtype = h.dtype
                h = self.b(torch.relu(h)).squeeze(-1)
            return {"loss": ((h.float() - labels) ** 2).mean(), "logits": h}
        def tell(self):
            weights = {p.dtype for p in self.parameters()}
            print("SEEN", self.dtype, *weights, self.kept, flush=True)
    torch.manual_seed(0)
    """
TRANSFORMERS = HEAD + """
    from transformers import Trainer, TrainingArguments
    flags(*os.environ["FLAGS"].split())
    net = Net()
    data = [{"x": torch.randn(8), "labels": torch.randn(())} for _ in range(64)]
    args = TrainingArguments(output_dir="out", per_device_train_batch_size=32, num_train_epochs=1, report_to=[], save_strategy="no",
                             disable_tqdm=True, use_cpu=True, fp16="OWN" in os.environ and False, bf16="OWN" in os.environ)
    Trainer(net, args, train_dataset=data).train()
    net.tell()
    """
LIGHTNING = HEAD + """
    import lightning
    flags(*os.environ["FLAGS"].split())
    class Module(lightning.LightningModule):
        def __init__(self):
            super().__init__()
            self.net = Net()
        def training_step(self, batch, index): return self.net(*batch)["loss"]
        def configure_optimizers(self): return torch.optim.Adam(self.parameters(), 1e-2)
    module = Module()
    data = torch.utils.data.TensorDataset(torch.randn(64, 8), torch.randn(64))
    own = {"precision": "bf16-mixed"} if "OWN" in os.environ else {}
    lightning.Trainer(max_epochs=1, accelerator="cpu", logger=False, enable_checkpointing=False, enable_progress_bar=False,
                      enable_model_summary=False, **own).fit(module, torch.utils.data.DataLoader(data, batch_size=32))
    module.net.tell()
    """
LOOP = HEAD + """
    import contextlib
    flags(*os.environ["FLAGS"].split())
    net = Net()
    optimizer = torch.optim.Adam(net.parameters(), 1e-2)
    x, y = torch.randn(32, 8), torch.randn(32)
    for _ in range(2):
        optimizer.zero_grad()
        with torch.autocast("cpu", dtype=torch.bfloat16) if "OWN" in os.environ else contextlib.nullcontext():
            loss = net(x, y)["loss"]
        loss.backward()
        optimizer.step()
    net.tell()
    """


class Case(unittest.TestCase):
    def play(self, text, flags="avx512_bf16", **env):
        """What the model has seen, and the lines that the guard was told."""
        folder = tempfile.mkdtemp(prefix="afz-")
        self.addCleanup(shutil.rmtree, folder, ignore_errors=True)
        path = folder + "/job.py"
        with open(path, "w", encoding="utf-8") as file:
            file.write(textwrap.dedent(text))
        clean = {k: v for k, v in os.environ.items() if k not in ("LD_PRELOAD", "PYTHONPATH") and not k.startswith("ANTIFREEZE")}
        with FakeGuard(folder) as guard:
            r = subprocess.run([PYTHON, path], cwd=folder, capture_output=True, text=True, timeout=PATIENCE, check=False,
                               stdin=subprocess.DEVNULL,
                               env={**clean, **guard.env, "PYTHONPATH": AGENT, "ANTIFREEZE_POLICY": "adapt", "FLAGS": flags,
                                    "OMP_NUM_THREADS": "1", "CUDA_VISIBLE_DEVICES": "", **env})
            if any("dies of it" in line for line in guard.lines):
                self.skipTest("this processor promises bfloat16 and does not have it")
            seen = re.search(r"^SEEN (\S+) (\S+) (\d+)$", r.stdout, re.M)
            self.assertTrue(seen, r.stdout + r.stderr)
            guard.wait_for("event ", 2 if "ANTIFREEZE_AMP" in env and "OWN" not in env else 0)
            return seen[1], seen[2], int(seen[3]), [line for line in guard.lines if "--amp" in line]


class Frameworks(Case):
    def check(self, text):
        before = self.play(text)
        self.assertEqual(before[:2], ("torch.float32", "torch.float32"))
        self.assertEqual(before[3], [])
        now = self.play(text, ANTIFREEZE_AMP="1")
        self.assertEqual(now[:2], ("torch.bfloat16", "torch.float32"))
        self.assertLess(now[2], .75 * before[2])  # beside copies of the weights, which are kept for the way back, too
        self.assertEqual(len(now[3]), 1, now[3])
        for word in "event note: ", "bfloat16", "kept of a pass", "weights and optimizer as before":
            self.assertIn(word, now[3][0])
        old = self.play(text, flags="avx2", ANTIFREEZE_AMP="1")
        self.assertEqual(old[:3], before[:3])
        self.assertIn("event refuse: --amp: this processor does not compute in bfloat16", old[3][0])
        own = self.play(text, flags="avx2", ANTIFREEZE_AMP="1", OWN="1")
        self.assertEqual((own[0], own[3]), ("torch.bfloat16", []))

    def test_transformers(self):
        self.check(TRANSFORMERS)

    def test_lightning(self):
        self.check(LIGHTNING)

    def test_loop(self):
        """It is not ours to change: it is said what to write."""
        seen, _, kept, said = self.play(LOOP, ANTIFREEZE_AMP="1")
        self.assertEqual(seen, "torch.float32")
        self.assertEqual(len(said), 1, said)
        self.assertIn('event note: --amp', said[0])
        self.assertIn('with torch.autocast("cpu", dtype=torch.bfloat16):', said[0])
        seen, _, less, said = self.play(LOOP, ANTIFREEZE_AMP="1", OWN="1")
        self.assertEqual((seen, said), ("torch.bfloat16", []))
        self.assertLess(less, kept)
        self.assertIn("event refuse: --amp: this processor", self.play(LOOP, flags="", ANTIFREEZE_AMP="1")[3][0])


class Hardware(unittest.TestCase):
    """Which has it, by what it says of itself."""

    def setUp(self):
        sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(AGENT))))
        from antifreeze.split import amp
        sys.path.pop(0)
        self.amp, self.said = amp, []
        amp._told.clear()
        amp.say = lambda kind, sentence, result=False: self.said.append((kind, sentence)) or result

    def is_worth(self, capability):
        cuda = types.SimpleNamespace(is_available=lambda: capability is not None, get_device_capability=lambda: capability)
        sys.modules["torch"] = types.SimpleNamespace(cuda=cuda)
        self.addCleanup(sys.modules.pop, "torch", None)
        return self.amp.is_worth()

    def test_generations(self):
        """Kepler to Turing compute in float16 alone, if at all, which needs losses scaled: nobody is given that unasked."""
        for capability, gains in ((3, 7), False), ((7, 0), False), ((7, 5), False), ((8, 0), True), ((8, 9), True), ((9, 0), True), \
                ((12, 0), True):
            self.said.clear()
            self.assertEqual(self.is_worth(capability), gains, capability)
            (kind, sentence), = self.said
            self.assertEqual(kind, "note" if gains else "refuse")
            self.assertIn("bfloat16" if gains else "Ampere is the first", sentence)

    def test_processors(self):
        for flags, gains in ("avx2 avx512f", False), ("avx512_bf16", True), ("amx_tile amx_bf16", True), ("asimd bf16", True):
            self.amp.cpu_flags = lambda flags=flags: set(flags.split())
            self.assertEqual(self.is_worth(None), gains, flags)

    def test_flags(self):
        from importlib import reload
        reload(self.amp)
        with tempfile.NamedTemporaryFile("w", suffix="cpuinfo") as file:
            file.write("processor\t: 0\nmodel name\t: Some\nflags\t\t: fpu avx512_bf16 sse\n")
            file.flush()
            self.assertEqual(self.amp.cpu_flags(file.name), {"fpu", "avx512_bf16", "sse"})
        self.assertEqual(self.amp.cpu_flags("/nowhere"), set())


if __name__ == "__main__":
    AGENT = os.path.abspath(sys.argv[1])
    PYTHON = skip_without("torch", "transformers", "accelerate", "lightning")
    unittest.main(argv=sys.argv[:1] + sys.argv[2:], testLoader=InTurn())
