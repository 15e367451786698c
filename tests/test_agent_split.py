#!/usr/bin/env python3
"""Batches that do not fit, in real frameworks: the run goes on in parts, and nothing else about it changes.

usage: test_agent_split.py KEEPER PROBE AGENT_FOLDER FRAMEWORK

FRAMEWORK: a key of PROGRAMS. Each program runs out of memory when more than LIMIT samples go through at once: it raises the error
itself that torch would raise, so that the test needs no memory and is exact. Played are: alone without a limit, with the
agent without a limit (the same to the last bit), and with the agent and a limit (the same but for rounding).
Lines that it prints: `loss X` is compared as a number, `work N ...` (samples of each pass, failed ones negative) is counted, the rest
must be equal. ONLY=word in the environment plays those with that word in their names.
"""
import os
import re
import socket
import sys
import tempfile
import threading
import unittest

from agent_harness import Harness
from frameworks import skip_without
from test_frameworks import QUIET, spoken

NEEDS = {"torch": ["torch"], "transformers": ["torch", "transformers", "accelerate"], "lightning": ["torch", "lightning"]}
BATCH = 24
ROUNDING = 2e-5  # of a loss: what adding up in another order may come to over some dozens of steps
HARNESS = PYTHON = PACKAGE = FRAMEWORK = None

HEAD = """
import os, sys, time, torch, warnings
from torch import nn
from torch.utils.data import DataLoader, TensorDataset
warnings.simplefilter("ignore")
torch.manual_seed(1); torch.set_num_threads(1)
LIMIT, WHERE = int(os.environ["LIMIT"]), os.environ.get("WHERE", "forward")
x, y = torch.randn(100, 8), torch.randn(100, 1)
work = []
def say(loss): print("loss", repr(float(loss))); time.sleep(float(os.environ.get("SLEEP", "0")))
def full(*_): raise RuntimeError("[enforce fail at alloc_cpu.cpp:124] err == 0. DefaultCPUAllocator: can't allocate memory: "
                                 "you tried to allocate 99999999 bytes. Error code 12 (Cannot allocate memory)")
def heavy(out, n):
    if not torch.is_grad_enabled(): return out
    work.append(n if n <= LIMIT else -n)
    if n > LIMIT:
        if WHERE == "forward": full()
        out.register_hook(full)
    return out
def end(*things):
    print("work", *work); print(*things)
class Net(nn.Module):
    def __init__(self, middle=nn.Identity(), wide=8):
        super().__init__(); self.a, self.middle, self.b = nn.Linear(wide, 16), middle, nn.Linear(16, 1)
    def forward(self, x): return self.b(heavy(torch.tanh(self.middle(self.a(x))), len(x)))
"""
LOOP = """
model = {net}; opt = torch.optim.Adam(model.parameters(), lr=.01); loss_fn = nn.MSELoss()
schedule = torch.optim.lr_scheduler.StepLR(opt, 3)
for epoch in range(2):
    for a, b in DataLoader(TensorDataset(x, y), batch_size=24, shuffle=True):
        opt.zero_grad({zero})
        {body}
        opt.step(); schedule.step(); say(loss)
end(schedule.get_last_lr())
"""
PLAIN = "loss = loss_fn(model(a), b); loss.backward()"
MICRO = """parts = antifreeze.micro((a, b))
        for m in parts: m.backward(loss_fn(model(m.x), m.y))
        loss = parts.loss"""

FORWARD = "def forward(self, x): "


def loop(body=PLAIN, net="Net()", zero=""):
    return HEAD + ("import antifreeze\n" if "antifreeze" in body else "") + LOOP.format(body=body, net=net, zero=zero)


TRAINER = HEAD + """
import transformers; transformers.logging.set_verbosity_error()
from transformers import (BertConfig, BertForMaskedLM, BertForSequenceClassification, LlamaConfig, LlamaForCausalLM, Trainer,
                          TrainerCallback, TrainingArguments)
sizes = dict(vocab_size=64, hidden_size=16, num_hidden_layers=2, num_attention_heads=2, intermediate_size=16, max_position_embeddings=16)
still = dict(hidden_dropout_prob=0., attention_probs_dropout_prob=0.)
model = {model}
model.register_forward_pre_hook(lambda module, args, kwargs: [heavy(None, len(kwargs["input_ids"])), None][1], with_kwargs=True)
def row(n):
    ids = torch.randint(0, 64, (8,)); labels = ids.clone(); labels[:n % 7] = -100
    return {{"input_ids": ids, "labels": n % 2 if "Sequence" in type(model).__name__ else labels}}
calls = []
class Calls(TrainerCallback):
    def on_step_begin(self, *_, **__): calls.append("<")
    def on_substep_end(self, *_, **__): calls.append("-")
    def on_step_end(self, *_, **__): calls.append(">")
    def on_log(self, args, state, control, logs=None, **_):
        if "loss" in logs: say(logs["loss"]); say(logs["grad_norm"]); print(logs["learning_rate"])
trainer = Trainer(model, train_dataset=[row(n) for n in range(100)], callbacks=[Calls()], args=TrainingArguments(
    "out", num_train_epochs=2, per_device_train_batch_size=24, report_to=[], save_strategy="no", logging_steps=1, disable_tqdm=True,
    use_cpu=True, seed=3, learning_rate=1e-3{more}))
trainer.train()
end("".join(calls), trainer.state.global_step)
"""
BERT = "BertForSequenceClassification(BertConfig(**sizes, **still))"
LIGHTNING = HEAD + """
import lightning, logging
for name in "lightning.pytorch", "lightning.fabric": logging.getLogger(name).setLevel(logging.ERROR)
class Module(lightning.LightningModule):
    def __init__(self):
        super().__init__(); self.net = Net({middle})
    def training_step(self, batch, _):
        out = self.net(batch[0]); loss = {loss}
        self.log("loss", loss, on_step=True, on_epoch=True); self.log("seen", float(len(batch[0])), on_epoch=True, reduce_fx="sum")
        return {{"loss": loss, "out": out.detach()}}
    def configure_optimizers(self):
        opt = torch.optim.Adam(self.parameters(), lr=.01)
        return [opt], [{{"scheduler": torch.optim.lr_scheduler.StepLR(opt, 2), "interval": "step"}}]
calls = []
class Calls(lightning.Callback):
    def on_before_zero_grad(self, *_): calls.append("z")
    def on_before_backward(self, *_): calls.append("<")
    def on_after_backward(self, trainer, module): calls.append(">"); say(sum(p.grad.norm() for p in module.parameters()))
    def on_before_optimizer_step(self, *_): calls.append("o")
    def on_train_batch_end(self, trainer, module, outputs, batch, _):
        calls.append(" "); say(outputs["loss"]); say(trainer.callback_metrics["loss_step"])
        print(tuple(outputs["out"].shape), trainer.optimizers[0].param_groups[0]["lr"])
    def on_train_epoch_end(self, trainer, module): say(trainer.callback_metrics["loss_epoch"]); print(float(trainer.callback_metrics["seen"]))
trainer = lightning.Trainer(max_epochs=2, accelerator="cpu", logger=False, enable_checkpointing=False, enable_progress_bar=False,
                            enable_model_summary=False, gradient_clip_val=1., callbacks=[Calls()]{more})
trainer.fit(Module(), DataLoader(TensorDataset(x, y), batch_size=24))
end("".join(calls), trainer.global_step)
"""
MEAN, TOTAL = "((out - batch[1]) ** 2).mean()", "((out - batch[1]) ** 2).sum()"
PAIRS = "nn.functional.cross_entropy(out @ batch[1].T, torch.arange(len(out)))"


def fit(middle="", loss=MEAN, more=""):
    return LIGHTNING.format(middle=middle, loss=loss, more=more)


# Which go on when memory runs out, by name: the program, and what else is in its environment.
PROGRAMS = {
    "torch": {
        "a plain loop": (loop(), {}),
        "micro()": (loop(MICRO), {}),
        "micro(), on the way back": (loop(MICRO), {"WHERE": "backward"}),
        "micro(), gradients that are zeros": (loop(MICRO, zero="set_to_none=False"), {"WHERE": "backward"}),
        "micro(), a sum": (loop(MICRO.replace("(a, b))", "(a, b), reduction='sum')").replace("loss_fn(", "((lambda p, q: ((p - q) ** 2).sum()))(")), {}),
        "micro(), accumulated": (HEAD + "import antifreeze" + """
model = Net(); opt = torch.optim.SGD(model.parameters(), lr=.1)
for n, (a, b) in enumerate(DataLoader(TensorDataset(x, y), batch_size=24)):
    parts = antifreeze.micro({"x": a, "y": b})
    for m in parts: m.backward(((model(m["x"]) - m.y) ** 2).mean() / 2)
    say(parts.loss)
    if n % 2: opt.step(); opt.zero_grad()
end()
""", {"WHERE": "backward"}),
        "random numbers stay where they were": (loop("b = b + torch.rand(1) * .1\n        " + MICRO), {"WHERE": "backward"}),
        "a model of several outputs": (HEAD + """
class Two(nn.Module):
    def __init__(self): super().__init__(); self.one, self.two = Net(), Net()
    def forward(self, a, scale=1.): return {"one": self.one(a) * scale, "two": (self.two(a), None)}
model = Two(); opt = torch.optim.SGD(model.parameters(), lr=.1)
for a, b in DataLoader(TensorDataset(x, y), batch_size=24):
    out = model(a, scale=torch.tensor([[2.]])); loss = ((out["one"] - b) ** 2).mean() + out["two"][0].pow(2).mean()
    opt.zero_grad(); loss.backward(); opt.step(); say(loss)
end()
""", {}),
        "a loss over pairs, which the plain loop makes itself": (loop("loss = nn.functional.cross_entropy(model(a) @ b.T, torch.arange(len(a))); "
                                                                   "loss.backward()"), {}),
        "GAN": (HEAD + """
g, d = nn.Sequential(nn.Linear(4, 8)), Net()
opts = [torch.optim.SGD(m.parameters(), lr=.1) for m in (g, d)]
for a, b in DataLoader(TensorDataset(x, y), batch_size=24):
    for opt, sign in zip(opts, (1, -1)):
        opt.zero_grad(); loss = sign * d(g(a[:, :4])).mean() + d(a).mean() * (sign < 0); loss.backward(); opt.step(); say(loss)
end()
""", {}),
        "micro(), two models": (loop(MICRO.replace("model(m.x)", "model[1](model[0](m.x))"), "nn.ModuleList([nn.Linear(8, 8), Net()])"),
                                {"WHERE": "backward"}),
        "compiled": (loop(net='torch.compile(Net(), backend="eager")'), {}),
    },
    "transformers": {
        "Llama, sums by items": (TRAINER.format(model="LlamaForCausalLM(LlamaConfig(**sizes, num_key_value_heads=2))", more=""), {}),
        "Bert, means by samples": (TRAINER.format(model=BERT, more=""), {}),
        "Bert, means by items": (TRAINER.format(model="BertForMaskedLM(BertConfig(**sizes, **still))", more=""), {}),
        "accumulated": (TRAINER.format(model=BERT, more=", gradient_accumulation_steps=2"), {}),
        "smoothed labels": (TRAINER.format(model=BERT, more=", label_smoothing_factor=.1"), {}),
    },
    "lightning": {
        "automatic optimization": (fit(), {}),
        "on the way back": (fit(), {"WHERE": "backward"}),
        "accumulated": (fit(more=", accumulate_grad_batches=2"), {"WHERE": "backward"}),
        "several passes a step": (fit().replace("torch.optim.Adam(", "Twice(").replace("calls = []", """
class Twice(torch.optim.SGD):
    def step(self, closure): closure(); return super().step(closure)
calls = []"""), {}),
    },
}
# Which do not: the program, and a word of the reason.
REFUSED = {
    "torch": {
        "BatchNorm": (loop(net="Net(nn.BatchNorm1d(16))"), "BatchNorm"),
        "dropout": (loop(MICRO, net="Net(nn.Dropout(.2))"), "dropout"),
        "draws of its own": (loop("loss = loss_fn(model(a + torch.rand_like(a)), b); loss.backward()").replace(
            "heavy(torch.tanh(self.middle(self.a(x)))", "heavy(torch.tanh(torch.rand_like(self.a(x)) + self.a(x))"), "random"),
        "spectral norm": (loop(net="Net(torch.nn.utils.parametrizations.spectral_norm(nn.Linear(16, 16)))"), "spectral"),
        "samples that act on each other": (loop().replace("self.middle(self.a(x))", "self.a(x) - self.a(x).mean(0)"), "act on each other"),
        "pairs within micro()": (loop(MICRO.replace("loss_fn(model(m.x), m.y)", "nn.functional.cross_entropy(model(m.x) @ m.y.T, "
                                                                              "torch.arange(len(m)))"), ), "act on each other"),
        "an output that is no row a sample": (loop("loss = model(a) + 0 * b.sum(); loss.backward()").replace(
            "len(x)))", "len(x))).mean()"), "row a sample"),
        "hooks": (loop(net="Net()").replace("opt = ", "model.a.register_forward_hook(lambda *_: None); opt = "), "hooks"),
        "a loss beside the output": (loop().replace(FORWARD + "return", FORWARD + "self.kept = self.a(x); return"), "beside its output"),
        "figures of its own": (loop().replace(FORWARD + "return", FORWARD + "self.seen += 1; return").replace(
            "opt = ", "model.register_buffer('seen', torch.zeros(())); opt = "), "figures"),
        "BatchNorm, later": (loop("model.middle.train(len(work) > 12); " + PLAIN, "Net(nn.BatchNorm1d(16))"), "BatchNorm"),
        "BatchNorm, later, in micro()": (loop("model.middle.train(len(work) > 12); " + MICRO, "Net(nn.BatchNorm1d(16))"), "BatchNorm"),
    },
    "transformers": {
        "dropout": (TRAINER.format(model="BertForSequenceClassification(BertConfig(**sizes))", more=""), "dropout"),
    },
    "lightning": {
        "BatchNorm": (fit("nn.BatchNorm1d(16)"), "BatchNorm"),
        "pairs": (fit(loss=PAIRS), "act on each other"),
    },
}
# Which tell themselves, with `yes`, that they were not disturbed.
OWN = {
    "torch": {
        "traced": HEAD + """
import torch.fx
from _antifreeze import room
room._looked, room._room = True, lambda: 8 << 30  # there is a line, and it is looked at
class Inner(nn.Module):
    def __init__(self): super().__init__(); self.net = nn.Linear(8, 8); self.register_buffer("one", torch.ones(8))
    def forward(self, x): return self.net(x) + self.one
class Outer(nn.Module):
    def __init__(self): super().__init__(); self.inner = Inner()
    def forward(self, x): return self.inner(x)
torch.jit.trace(Inner(), x); torch.fx.symbolic_trace(Outer()); print("yes")
""",
        "a part that fails": HEAD + """
class Rows(Net):
    def forward(self, x, y=None):
        if y is not None and len(x) < 24: raise ValueError("a part")
        return super().forward(x)
model = Rows(); model(x[:24]); LIMIT = 100; model(x[:24], y[:24]); print("yes")
""",
        "a loss that is scaled too much": HEAD + """
sys.path.append(PACKAGE); import antifreeze
model = Net()
for scale in float("inf"), float("inf"), 1.:
    for m in antifreeze.micro((x[:24], y[:24])): m.backward(((model(m.x) - m.y) ** 2).mean() * scale)
print("yes" if 6 in work else "whole")
""",
        "labels that are all masked": HEAD + """
from _antifreeze.split import sizing, torch_step
labels = torch.randint(0, 3, (8, 5)); labels[4:] = -100; labels[0, 2:] = -100
model = nn.Linear(4, 3)
class Job(torch_step.Job):
    def loss(self, batch): return nn.functional.cross_entropy(model(batch["x"]).flatten(0, 1), batch["labels"].flatten())
    def part(self, piece, batch): loss = self.loss(batch); (loss * piece.weight).backward(); return loss.detach()
    def joined(self, values, weights): return sum(value * weight for value, weight in zip(values, weights))
job = Job(); job.model, job.batch = model, {"x": torch.randn(8, 5, 4), "labels": labels}
sizing.splitter.most = 4
print("yes" if abs(torch_step.run(job) - job.loss(job.batch)) < 1e-5 else "no number")
""",
    },
    "lightning": {
        "lazy layers, and batches that go": fit("nn.LazyLinear(16)", more=", limit_train_batches=4").replace("import lightning, logging", """
import lightning, logging, weakref
seen = []""").replace("out = self.net(batch[0])", "seen.append(weakref.ref(batch[0])); out = self.net(batch[0])").replace(
            "on_train_epoch_end(self, trainer, module): ", "on_train_epoch_end(self, trainer, module): "
            "print('yes' if sum(one() is not None for one in seen) < 3 else 'held'); "),
    },
}


class Guard:
    """The other end of the control socket: hears what is told."""

    def __init__(self, says=()):
        self.folder = tempfile.TemporaryDirectory()
        self.path = self.folder.name + "/guard"
        self.lines, self.says = [], says
        self.listener = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self.listener.bind(self.path)
        self.listener.listen(16)
        self.thread = threading.Thread(target=self.hear, daemon=True)
        self.thread.start()

    def hear(self):
        while True:
            try:
                client, _ = self.listener.accept()
            except OSError:
                return
            with client:
                while True:
                    try:
                        line = client.recv(2048).decode()
                    except OSError:
                        break
                    if not line:
                        break
                    self.lines.append(line)
                    if line.startswith("hello"):
                        self.answer(client)

    def answer(self, client):
        try:
            for said in ("welcome 1 run", *self.says):
                client.send(said.encode())
        except OSError:  # it has ended already
            pass

    def end(self):
        self.listener.shutdown(socket.SHUT_RDWR)
        self.listener.close()
        self.thread.join(10)
        self.folder.cleanup()
        return self.lines


def play(text, limit, agent=True, says=(), **env):
    guard = Guard(says)
    try:
        text = text.replace("import antifreeze\n", f"import sys; sys.path.append({PACKAGE!r}); import antifreeze\n")
        ended = HARNESS.play(PYTHON, text, agent=agent, env={
            **QUIET, "LIMIT": str(limit), "ANTIFREEZE_POLICY": "adapt", "ANTIFREEZE_SOCKET": guard.path, **env})
    finally:
        ended_lines = guard.end()
    ended.events = [line for line in ended_lines if line.startswith("event")]
    return ended


def work(ended):
    found = re.search(r"^work(.*)$", ended.said, re.M)
    return [int(n) for n in found[1].split()] if found else []


class Split(unittest.TestCase):
    maxDiff = None

    def same(self, limited, alone):
        """But for rounding, and for how often the model was called."""
        for one, other in zip(spoken(limited), spoken(alone)):
            if one.startswith("loss "):
                self.assertAlmostEqual(float(one[5:]) / float(other[5:]), 1, delta=ROUNDING, msg=f"{one} and {other}")
            elif not one.startswith("work"):
                self.assertEqual(one, other)
        self.assertEqual(len(spoken(limited)), len(spoken(alone)), limited.said)

    def hold(self, text, env):
        alone = play(text, 1000, agent=False, **env)
        self.assertEqual(alone.status, 0, alone.said)
        self.assertIn("loss ", alone.said)
        roomy = play(text, 1000, **env)
        self.assertEqual(spoken(roomy), spoken(alone), "bit by bit, when nothing is split")
        self.assertEqual(roomy.events, [])
        limited = play(text, 10, **env)
        self.assertEqual(limited.status, 0, limited.said)
        self.same(limited, alone)
        self.assertEqual(limited.steps, alone.steps or roomy.steps)
        self.once(limited, alone)

    def once(self, limited, alone):
        """One step is repeated, and not more than once; the others cost no more than they must."""
        failed = [-n for n in work(limited) if n < 0]
        self.assertEqual(failed, [24, 12], "found in two halvings, and remembered")
        kinds = [line.split()[1].rstrip(":") for line in limited.events]
        self.assertEqual(kinds.count("split"), 2, limited.events)
        self.assertNotIn("refuse", kinds)
        self.assertIn("note", kinds)
        done = sum(n for n in work(limited) if n > 0)
        twice = 2 if FRAMEWORK == "torch" else 1  # a plain loop's parts are computed again on the way back
        self.assertLessEqual(done, (sum(work(alone)) + BATCH) * twice)

    def test_goes_on(self):
        for name, (text, env) in PROGRAMS[FRAMEWORK].items():
            if os.environ.get("ONLY", "") in name:
                with self.subTest(name):
                    self.hold(text, env)

    def test_refuses(self):
        """The program ends of its own error, as it would without us, and the guard is told why; if asked for, it goes on."""
        for name, (text, reason) in REFUSED[FRAMEWORK].items():
            if os.environ.get("ONLY", "") not in name:
                continue
            with self.subTest(name):
                ended = play(text, 10)
                self.assertNotEqual(ended.status, 0)
                self.assertIn("can't allocate memory", ended.said)
                refusals = [line for line in ended.events if line.startswith("event refuse")]
                self.assertEqual(len(refusals), 1, ended.events)
                self.assertIn(reason, refusals[0])
                if name in ("BatchNorm", "dropout", "draws of its own", "spectral norm"):
                    asked = play(text, 10, ANTIFREEZE_INEXACT="1")
                    self.assertEqual(asked.status, 0, asked.said)
                    self.assertTrue(any("not exact" in line for line in asked.events), asked.events)

    def test_from_the_start(self):
        """As an earlier attempt has learned, or because the guard asks for less."""
        text = next(iter(PROGRAMS[FRAMEWORK].values()))[0]
        alone = play(text, 1000, agent=False)
        for env in ({"ANTIFREEZE_LEAN": "1"}, {"says": ["shrink"], "SLEEP": ".06"}):
            with self.subTest(str(env)):
                lean = play(text, 1000, **env)
                self.assertEqual(lean.status, 0, lean.said)
                self.same(lean, alone)
                self.assertIn(12, work(lean))

    def test_on_its_own(self):
        for name, text in OWN.get(FRAMEWORK, {}).items():
            if os.environ.get("ONLY", "") in name:
                with self.subTest(name):
                    ended = play(text.replace("PACKAGE", repr(PACKAGE)), 1000 if FRAMEWORK == "lightning" else 10)
                    self.assertEqual(ended.status, 0, ended.said)
                    self.assertIn("yes", ended.said)

    def test_other_errors_are_the_programs(self):
        text = next(iter(PROGRAMS[FRAMEWORK].values()))[0].replace("raise RuntimeError(\"[enforce fail", "raise ValueError(\"[mine")
        ended = play(text, 10)
        self.assertNotEqual(ended.status, 0)
        self.assertIn("ValueError: [mine", ended.said)
        self.assertEqual(ended.events, [])

    def test_not_unless_asked(self):
        """Other policies change nothing."""
        text = next(iter(PROGRAMS[FRAMEWORK].values()))[0]
        ended = play(text, 10, ANTIFREEZE_POLICY="protect")
        self.assertNotEqual(ended.status, 0)
        self.assertEqual(work(ended), [])
        self.assertFalse([line for line in ended.events if "split" in line])


if __name__ == "__main__":
    if len(sys.argv) != 5:
        sys.exit(__doc__)
    FRAMEWORK = sys.argv.pop()
    PYTHON = skip_without(*NEEDS[FRAMEWORK])
    HARNESS = Harness(*sys.argv[1:4])
    PACKAGE = HARNESS.agent.rsplit("/", 2)[0]
    unittest.main(argv=sys.argv[:1], verbosity=2)
