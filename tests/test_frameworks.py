#!/usr/bin/env python3
"""The step clock in real frameworks: the steps that a program makes are counted, and nothing else about it changes.

usage: test_frameworks.py KEEPER PROBE AGENT_FOLDER FRAMEWORK

FRAMEWORK: a key of NEEDS. Each program below is played with the agent and without: what it prints (losses in hexadecimal, so
that the last bit counts) must be the same. `# N steps` in it says how many are to be counted. ONLY=word in the environment plays those
with that word in their names.
"""
import os
import re
import sys
import unittest

from agent_harness import Harness
from frameworks import in_turn, skip_without

NEEDS = {
    "torch": ["torch"],
    "lightning": ["torch", "lightning"],
    "transformers": ["torch", "transformers", "accelerate"],
    "tensorflow": ["tensorflow", "keras"],
    "keras_torch": ["torch", "keras"],
}
QUIET = {"TF_CPP_MIN_LOG_LEVEL": "3", "CUDA_VISIBLE_DEVICES": "", "TOKENIZERS_PARALLELISM": "false", "HF_HUB_OFFLINE": "1",
         "TF_ENABLE_ONEDNN_OPTS": "0", "OMP_NUM_THREADS": "1"}
HARNESS = PYTHON = PACKAGE = FRAMEWORK = None

TORCH = """
import torch, random
from torch import nn
from torch.utils.data import DataLoader, TensorDataset
torch.manual_seed(1); torch.set_num_threads(1)
x, y = torch.randn(96, 8), torch.randn(96, 1)
def say(loss): print(float(loss.detach()).hex())
def net(): return nn.Sequential(nn.Linear(8, 16), nn.Tanh(), nn.Linear(16, 1))
def loss_of(model, i): return ((model(x[i:i + 8]) - y[i:i + 8]) ** 2).mean()
"""
PROGRAMS = {
    "torch": {
        "plain loop": TORCH + """
model = net(); opt = torch.optim.Adam(model.parameters())
for epoch in range(3):  # 36 steps
    for i in range(0, 96, 8):
        opt.zero_grad(); loss = loss_of(model, i); loss.backward(); opt.step(); say(loss)
""",
        "gradient accumulation": TORCH + """
model = net(); opt = torch.optim.SGD(model.parameters(), lr=.1, momentum=.9)
for n, i in enumerate(range(0, 96, 8)):  # 3 steps
    loss = loss_of(model, i); (loss / 4).backward(); say(loss)
    if n % 4 == 3:
        opt.step(); opt.zero_grad()
""",
        "GAN": TORCH + """
g, d = net(), net()
opt_g, opt_d = torch.optim.Adam(g.parameters()), torch.optim.RMSprop(d.parameters())
for n in range(20):  # 20 steps
    for model, opt in ((d, opt_d), (g, opt_g)):
        opt.zero_grad(); loss = loss_of(model, n); loss.backward(); opt.step(); say(loss)
""",
        "an optimizer a parameter": TORCH + """
model = net(); opts = [torch.optim.SGD([p], lr=.01) for p in model.parameters()]
for n in range(10):  # 10 steps
    loss = loss_of(model, n); loss.backward(); say(loss)
    for opt in opts:
        opt.step(); opt.zero_grad()
""",
        "a new optimizer for each step": TORCH + """
model = net()
for n in range(10):  # 10 steps
    opt = None
    opt = torch.optim.SGD(model.parameters(), lr=.01)
    loss = loss_of(model, n); loss.backward(); opt.step(); opt.zero_grad(); say(loss)
""",
        "GradScaler that skips": TORCH + """
model = net(); opt = torch.optim.SGD(model.parameters(), lr=.01)
scaler = torch.amp.GradScaler("cpu", init_scale=2., growth_interval=1000)
for n in range(12):  # 9 steps
    opt.zero_grad()
    loss = loss_of(model, n) * (float("inf") if n % 4 == 1 else 1)
    scaler.scale(loss).backward(); scaler.step(opt); scaler.update(); say(loss)
""",
        "LBFGS": TORCH + """
model = net(); opt = torch.optim.LBFGS(model.parameters(), max_iter=5)
def closure():
    opt.zero_grad(); loss = loss_of(model, 0); loss.backward(); return loss
for n in range(4):  # 4 steps
    say(opt.step(closure))
""",
        "DataLoader with workers": TORCH + """
model = net(); opt = torch.optim.AdamW(model.parameters())
for workers in (0, 2):
    for epoch in range(2):  # 48 steps
        for a, b in DataLoader(TensorDataset(x, y), batch_size=8, shuffle=True, num_workers=workers):
            opt.zero_grad(); loss = ((model(a) - b) ** 2).mean(); loss.backward(); opt.step(); say(loss)
""",
        "deep copies, pickles, schedules": TORCH + """
import copy, io
model = net(); opt = torch.optim.AdamW(model.parameters()); opt.step()
opt = copy.deepcopy(opt); opt.zero_grad()
file = io.BytesIO(); torch.save(opt, file); file.seek(0)
schedule = torch.optim.lr_scheduler.CosineAnnealingLR(opt, 10)
for n in range(9):  # 10 steps
    loss = loss_of(model, n); loss.backward(); opt.step(); schedule.step(); opt.zero_grad(); say(loss)
print(sorted(opt.state_dict()), type(torch.load(file, weights_only=False)).__name__)
""",
        "compiled": TORCH + """
class Mine(torch.optim.Optimizer):
    def __init__(self, params): super().__init__(params, {})
    def step(self):
        for p in self.param_groups[0]["params"]: p.data.add_(p.grad, alpha=-.01)
for kind, whole in (torch.optim.Adam, False), (Mine, True):  # 5 steps: what is compiled whole has nothing of ours in it
    model = net(); opt = kind(model.parameters())
    @torch.compile(backend="eager", fullgraph=whole)
    def update(): opt.step()
    for n in range(5):
        loss = loss_of(model, n); loss.backward(); update(); opt.zero_grad(); say(loss)
print(torch._dynamo.utils.counters["stats"])
""",
        "our own loop": TORCH + """
import antifreeze
model = net(); opt = torch.optim.SGD(model.parameters(), lr=.01)
rounds = antifreeze.steps(range(7))
print(len(rounds))
for n in rounds:  # 7 steps
    for i in (0, 8):
        loss = loss_of(model, i); loss.backward(); opt.step(); opt.zero_grad(); say(loss)
""",
        "processes": TORCH + """
import multiprocessing
def train(n):
    model = net(); opt = torch.optim.SGD(model.parameters(), lr=.01)
    for _ in range(n):
        kept = torch.randn(2000, 1000); loss = loss_of(model, 0); loss.backward(); opt.step()
if __name__ == "__main__":
    train(4)
    worker = multiprocessing.get_context("spawn").Process(target=train, args=(5,))
    worker.start(); worker.join()  # 9 steps
    print(worker.exitcode)
""",
        "processes that are forked": TORCH + """
import multiprocessing
model = net(); opt = torch.optim.SGD(model.parameters(), lr=.01)
def train(n):
    for _ in range(n): loss = loss_of(model, 0); loss.backward(); opt.step()
def child(n):
    train(2); kept = torch.randn(2000, 1000); train(n - 2)  # its book comes after its first steps
train(4)
worker = multiprocessing.get_context("fork").Process(target=child, args=(5,))
worker.start(); worker.join(); train(3)  # 12 steps
print(worker.exitcode)
""",
        "a data set that fails": TORCH + """
class Broken(torch.utils.data.Dataset):
    def __len__(self): return 4
    def __getitem__(self, i): raise ValueError("row %d" % i)
try:  # 0 steps
    next(iter(DataLoader(Broken())))
except ValueError as error:
    print(error)
""",
    },
    "lightning": {
        "automatic optimization": TORCH + """
import lightning, logging, warnings
warnings.simplefilter("ignore"); logging.getLogger("lightning.pytorch").setLevel(logging.ERROR)
class Module(lightning.LightningModule):
    def __init__(self):
        super().__init__(); self.net = net()
    def training_step(self, batch, _):
        loss = ((self.net(batch[0]) - batch[1]) ** 2).mean(); say(loss); return loss
    def validation_step(self, batch, _):
        say(((self.net(batch[0]) - batch[1]) ** 2).mean())
    def configure_optimizers(self):
        return torch.optim.Adam(self.parameters())
data = DataLoader(TensorDataset(x, y), batch_size=8)
trainer = lightning.Trainer(max_epochs=2, accumulate_grad_batches=3, accelerator="cpu", logger=False,  # 8 steps
                            enable_checkpointing=False, enable_progress_bar=False, enable_model_summary=False)
trainer.fit(Module(), data, data)
print(trainer.global_step)
""",
    },
    "transformers": {
        "Trainer": TORCH + """
import warnings; warnings.simplefilter("ignore")
from transformers import BertConfig, BertForSequenceClassification, Trainer, TrainingArguments
import transformers; transformers.logging.set_verbosity_error()
config = BertConfig(vocab_size=64, hidden_size=16, num_hidden_layers=1, num_attention_heads=2, intermediate_size=16,
                    max_position_embeddings=16)
rows = [{"input_ids": torch.randint(0, 64, (8,)), "labels": n % 2} for n in range(48)]
class Loud(Trainer):
    def compute_loss(self, *args, **kwargs):
        loss = super().compute_loss(*args, **kwargs); say(loss[0] if isinstance(loss, tuple) else loss); return loss
trainer = Loud(BertForSequenceClassification(config), train_dataset=rows, eval_dataset=rows[:8], args=TrainingArguments(
    "out", num_train_epochs=2, per_device_train_batch_size=4, gradient_accumulation_steps=2, report_to=[],  # 12 steps
    save_strategy="no", logging_strategy="no", disable_tqdm=True, use_cpu=True))
trainer.train(); trainer.evaluate()
print(trainer.state.global_step)
""",
    },
}
KERAS = """
import keras, numpy as np
keras.utils.set_random_seed(1)
x, y = np.random.rand(96, 8).astype("float32"), np.random.rand(96, 1).astype("float32")
def net(): return keras.Sequential([keras.Input((8,)), keras.layers.Dense(16, "tanh"), keras.layers.Dense(1)])
def say(value): print(float(value).hex())
def fit(model, *data, **more):
    history = model.fit(*data, verbose=0, **more)
    for value in history.history["loss"]: say(value)
"""
BOTH = {
    "fit": KERAS + """
model = net(); model.compile("adam", "mse")
fit(model, x, y, batch_size=8, epochs=3, validation_data=(x, y))  # 36 steps
model.evaluate(x, y, verbose=0); model.predict(x, verbose=0)
""",
    "fit from a generator": KERAS + """
class Rows(keras.utils.PyDataset):
    def __len__(self): return 5
    def __getitem__(self, i): return x[i * 8:i * 8 + 8], y[i * 8:i * 8 + 8]
def rows():
    for i in range(6): yield x[i * 8:i * 8 + 8], y[i * 8:i * 8 + 8]
model = net(); model.compile("adam", "mse")
fit(model, Rows(), epochs=2); fit(model, rows())  # 16 steps
""",
    "two models in turn": KERAS + """
models = [net(), net()]
for model in models: model.compile("adam", "mse")
for i in range(0, 48, 8):  # 6 steps
    for model in models: say(model.train_on_batch(x[i:i + 8], y[i:i + 8]))
""",
}
TF = KERAS + """
import tensorflow as tf
data = tf.data.Dataset.from_tensor_slices((x, y)).batch(8)
model, opt = net(), keras.optimizers.Adam()
def step(a, b):
    with tf.GradientTape() as tape:
        loss = tf.reduce_mean((model(a) - b) ** 2)
    grads = tape.gradient(loss, model.trainable_variables)
    opt.apply_gradients(zip(grads, model.trainable_variables))
    return loss
"""
PROGRAMS["tensorflow"] = {
    **BOTH,
    "several batches at once": KERAS + """
model = net(); model.compile("adam", "mse", steps_per_execution=4)
fit(model, x, y, batch_size=8, epochs=2)  # 24 steps
""",
    "GradientTape, eager": TF + """
for epoch in range(2):  # 24 steps
    for a, b in data: say(step(a, b))
""",
    "GradientTape in a tf.function": TF + """
step = tf.function(step)
for epoch in range(2):  # 24 steps
    for a, b in data: say(step(a, b))
""",
    "GradientTape in a tf.function of a function": TF + """
inner = tf.function(step)
@tf.function(reduce_retracing=True)
def outer(a, b): return inner(a, b) + 0.
@tf.function
def other(a): return a * 2
for a, b in data:  # 12 steps
    other(a); say(outer(a, b))
""",
    "a train_step of one's own": KERAS + """
import tensorflow as tf
class Model(keras.Model):
    def __init__(self):
        super().__init__(); self.net = net()
    def call(self, a): return self.net(a)
    def train_step(self, data):
        a, b = data
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean((self(a, training=True) - b) ** 2)
        self.optimizer.apply(tape.gradient(loss, self.trainable_variables), self.trainable_variables)
        return {"loss": loss}
model = Model(); model.compile("sgd")
fit(model, x, y, batch_size=8, epochs=2)  # 24 steps
""",
}
PROGRAMS["keras_torch"] = {
    **BOTH,
    "a torch loop with a Keras model": KERAS + """
import torch
model, opt = net(), keras.optimizers.SGD(.1)
for i in range(0, 96, 8):  # 12 steps
    loss = ((model(x[i:i + 8]) - torch.tensor(y[i:i + 8])) ** 2).mean()
    model.zero_grad(); loss.backward()
    weights = model.trainable_weights
    with torch.no_grad(): opt.apply([w.value.grad for w in weights], weights)
    say(loss.detach())
""",
}


def spoken(ended):
    """Without the lines that have the time in them: torch's log, the Trainer's summary."""
    return [line for line in ended.said.splitlines() if not re.match(r"[WI]\d{4} \d\d:|.*_runtime'", line)]


class Frameworks(unittest.TestCase):
    env = QUIET

    def hold(self, name, text):
        """The program counts as it says, and runs as it does alone."""
        expected = int(re.search(r"# (\d+) steps", text)[1])
        installed = f"import sys; sys.path.append({PACKAGE!r}); import antifreeze"
        alone = HARNESS.play(PYTHON, text.replace("import antifreeze", installed), env=self.env, agent=False)
        self.assertEqual(alone.status, 0, alone.said)
        with_agent = HARNESS.play(PYTHON, text, env=self.env)
        self.assertEqual(spoken(with_agent), spoken(alone), name)
        self.assertEqual(with_agent.status, 0, name)
        counts = [book["steps"] for book in with_agent.books]
        self.assertEqual(with_agent.steps, expected, counts)
        if name == "processes that are forked":
            self.assertEqual(sorted(counts)[-2:], [5, 7], "each has its own book")
        return with_agent

    def test_steps(self):
        only = os.environ.get("ONLY", "")
        for name in in_turn(name for name in PROGRAMS[FRAMEWORK] if only in name):
            with self.subTest(name):
                self.hold(name, PROGRAMS[FRAMEWORK][name])


def load(framework):
    if framework == "torch":
        Frameworks.test_waiting = waiting_torch
        Frameworks.test_cost = cost_torch
    if framework == "tensorflow":
        Frameworks.test_waiting = waiting_tensorflow
    if framework.startswith("keras_"):
        Frameworks.env = {**QUIET, "KERAS_BACKEND": framework.partition("_")[2]}


def waiting_torch(self):
    """Time in next() is waiting, whoever is called in it, and is counted once."""
    text = TORCH + """
import time, antifreeze
class Slow(torch.utils.data.Dataset):
    def __len__(self): return 20
    def __getitem__(self, i): time.sleep(.02); return x[i]
class Nested(Slow):
    def __getitem__(self, i): return next(iter(DataLoader(Slow())))
for data in Slow(), Nested():
    for a in DataLoader(data, batch_size=None): time.sleep(.01)
for a in antifreeze.steps(DataLoader(Slow(), batch_size=None)): pass
"""
    r = HARNESS.play(PYTHON, text, env=self.env)
    self.assertEqual(r.status, 0, r.said)
    self.assertGreater(r.wait_s, 3 * 20 * .02)
    self.assertLess(r.wait_s, 3 * 20 * .02 * 1.6, "a busy machine may be late, but not so much")


def waiting_tensorflow(self):
    text = TF + """
import time
def slow(a, b):
    def wait(a): time.sleep(.05); return a
    return tf.ensure_shape(tf.py_function(wait, [a], tf.float32), a.shape), b
for a, b in data.map(slow): step(a, b)
"""
    r = HARNESS.play(PYTHON, text, env=self.env)
    self.assertEqual((r.status, r.steps), (0, 12), r.said)
    self.assertGreater(r.wait_s, 2 * .05, "tf.data works ahead: not all of it is waited for")


def cost_torch(self):
    """What a step costs when it is all that is done (bench/agent_cost.py has it in its place): at most 0.5 % of a millisecond."""
    text = TORCH + """
import sys, time
clock = sys.modules["_antifreeze.clock"]
model = net(); opt = torch.optim.SGD(model.parameters(), lr=.01)
hook = next(iter(sys.modules["torch.optim.optimizer"]._global_optimizer_pre_hooks.values()))
class Rows:
    def __next__(self): return 1
clock.time_next(Rows)
rows, best = Rows(), 1e9
for _ in range(200):
    began = time.perf_counter_ns()
    for _ in range(100): next(rows); hook(opt, (), {})
    best = min(best, (time.perf_counter_ns() - began) / 100)
clock.tell()
assert clock.count == clock.words[0] == 20000
print(best)
"""
    r = HARNESS.play(PYTHON, text, env=self.env)
    self.assertEqual(r.status, 0, r.said)
    print(f"a step with a wait costs {float(r.said):.0f} ns", flush=True)
    self.assertLess(float(r.said), 2000)


if __name__ == "__main__":
    if len(sys.argv) != 5:
        sys.exit(__doc__)
    FRAMEWORK = sys.argv.pop()
    PYTHON = skip_without(*NEEDS[FRAMEWORK])
    HARNESS = Harness(*sys.argv[1:4])
    PACKAGE = HARNESS.agent.rsplit("/", 2)[0]
    load(FRAMEWORK)
    unittest.main(argv=sys.argv[:1], verbosity=2)
