#!/usr/bin/env python3
"""Keras under --policy adapt: batches that do not fit go through in parts, and everything else is as it was.

usage: test_agent_keras.py ANTIFREEZE KEEPER PROBE AGENT_FOLDER BACKEND

BACKEND: tensorflow or torch. The guard is a socket of the test's own that writes down what it hears, but for the last ones, in which
the real one holds a job whose batch is too large for its budget. ONLY=word in the environment plays the tests with that word.
"""
import contextlib
import json
import math
import os
import re
import subprocess
import sys
import tempfile
import unittest

import test_agent_torch
from agent_harness import Harness
from frameworks import in_turn, skip_without

NEEDS = {"tensorflow": ["tensorflow", "keras"], "torch": ["torch", "keras"]}
QUIET = {"TF_CPP_MIN_LOG_LEVEL": "3", "CUDA_VISIBLE_DEVICES": "", "OMP_NUM_THREADS": "1", "TF_ENABLE_ONEDNN_OPTS": "0",
         "TF_NUM_INTRAOP_THREADS": "1", "TF_NUM_INTEROP_THREADS": "1"}
ADAPT = {**QUIET, "ANTIFREEZE_POLICY": "adapt"}
ANTIFREEZE = HARNESS = PYTHON = BACKEND = None
WHOLE = {}  # what programs take without a limit
NEAR = 2e-5  # how far figures may be apart after some steps, of themselves: parts are added up in another order

KERAS = """
import os, sys, json
os.environ.get("KERAS_BACKEND") == "torch" and __import__("torch").set_num_threads(1)
import numpy as np, keras
L = keras.layers
def agent(name): return __import__("_antifreeze." + name, fromlist=[name])
def most(samples):
    \"\"\"Memory for no more than so many at once.\"\"\"
    if "_antifreeze" not in sys.modules or not os.environ.get("MOST"): return
    kind = agent("split.keras_tf" if keras.backend.backend() == "tensorflow" else "split.keras_torch").Backend
    inner = kind.gradients
    def gradients(self, batch, at, size, n):
        if size > samples: raise MemoryError("no room for %d samples" % size)
        return inner(self, batch, at, size, n)
    kind.gradients = gradients
most(int(os.environ.get("MOST") or 0))
rng = np.random.default_rng(1)
keras.utils.set_random_seed(1)  # a layer draws its own when it is made
images, labels, weights = rng.random((200, 12, 12, 3), "float32"), rng.integers(0, 10, 200), rng.random(200)
def entropy(**more): return keras.losses.SparseCategoricalCrossentropy(from_logits=True, **more)
calls = []
class Counting(keras.callbacks.Callback):
    def on_train_batch_begin(self, batch, logs=None): calls.append(("begin", batch))
    def on_train_batch_end(self, batch, logs=None): calls.append(("end", batch, sorted(logs)))
    def on_epoch_end(self, epoch, logs=None): calls.append(("epoch", epoch))
def play(name, model, x, y, **more):
    del calls[:]
    history = model.fit(x, y, batch_size=64, epochs=3, verbose=0, callbacks=[Counting()], **more).history
    print(json.dumps({"name": name, "calls": calls[:], "history": {key: [float(v).hex() for v in row] for key, row in history.items()},
                      "iterations": int(model.optimizer.iterations.numpy()),
                      "weights": float(sum(abs(keras.ops.convert_to_numpy(w)).sum() for w in model.trainable_variables)).hex()}))
    keras.utils.set_random_seed(1)
def model(*layers, shape=(12, 12, 3), optimizer="adam", loss=None, **more):
    made = keras.Sequential([keras.Input(shape), *layers])
    made.compile(optimizer, loss or entropy(), **more)
    return made
def convolution(): return L.Conv2D(6, 3, activation="relu", kernel_regularizer="l2"), L.MaxPooling2D(), L.Flatten(), L.Dense(10)
"""
MODELS = KERAS + """
play("cnn", model(*convolution(), metrics=["accuracy"]), images, labels, validation_data=(images, labels))
mlp = keras.Sequential([L.Flatten(), L.Dense(32, "tanh"), L.Dense(10)])
mlp.compile(keras.optimizers.SGD(.05, momentum=.9, clipnorm=1.), entropy(), metrics=["accuracy"])
play("mlp", mlp, images, labels)
play("sample_weight", model(*convolution(), weighted_metrics=["accuracy"]), images, labels, sample_weight=weights)
play("class_weight", model(*convolution()), images, labels, class_weight={i: .5 + i / 10 for i in range(10)})
play("by weight", model(*convolution(), loss=entropy(reduction="mean_with_sample_weight")), images, labels, sample_weight=weights)
play("sum", model(L.Flatten(), L.Dense(10), loss=entropy(reduction="sum"), optimizer=keras.optimizers.SGD(1e-4)), images, labels)
tokens, words = rng.integers(0, 30, (200, 9)), rng.integers(0, 10, (200, 9))
play("mask", model(L.Embedding(30, 6, mask_zero=True), L.LSTM(8, return_sequences=True), L.Dense(10), shape=(9,), metrics=["accuracy"]),
     tokens, words)
i = keras.Input((12, 12, 3)); h = L.Dense(16, "relu")(L.Flatten()(i))
two = keras.Model(i, [L.Dense(10, name="a")(h), L.Dense(1, name="b")(h)])
two.compile("adam", [entropy(), "mse"], loss_weights=[1., .5], metrics=[["accuracy"], ["mae"]])
play("two outputs", two, images, [labels, weights.reshape(-1, 1)])
def spread(y, z): return keras.ops.max(z) - keras.ops.min(z)
play("a metric of one's own", model(*convolution(), metrics=[spread]), images, labels)
play("accumulation", model(*convolution(), optimizer=keras.optimizers.Adam(gradient_accumulation_steps=2)), images, labels)
step = model(*convolution())
for n in range(4):
    print(json.dumps({"name": "train_on_batch %d" % n, "history": {"loss": [float(step.train_on_batch(images[:40], labels[:40])).hex()]}}))
"""


@contextlib.contextmanager
def cgroup(limit_bytes):
    """A function that puts the process that calls it into a cgroup (v1) of so much memory. None where there is none to be made."""
    with open("/proc/self/cgroup", encoding="utf-8") as file:
        own = re.search(r"^\d+:(?:\S*,)?memory(?:,\S*)?:(.*)$", file.read(), re.M)
    path = f"/sys/fs/cgroup/memory{own[1].rstrip('/') if own else ''}/antifreeze-test-{os.getpid()}"
    try:
        os.mkdir(path)
    except OSError:
        yield None
        return
    try:
        for name in ("memory.limit_in_bytes", "memory.memsw.limit_in_bytes"):
            if os.path.exists(f"{path}/{name}"):
                put(f"{path}/{name}", limit_bytes)
        yield lambda: put(path + "/cgroup.procs", os.getpid())
    finally:
        os.rmdir(path)


def put(path, value):
    with open(path, "w", encoding="ascii") as file:
        file.write(str(value))


def lines(ended):
    return {row["name"]: row for row in (json.loads(line) for line in ended.said.splitlines() if line.startswith('{"name"'))}


def is_near(a, b):
    return math.isclose(float.fromhex(a), float.fromhex(b), rel_tol=NEAR, abs_tol=1e-6)


class Keras(unittest.TestCase):
    def play(self, text, line_bytes=0, status=0, **env):
        guard = test_agent_torch.Guard()
        self.addCleanup(guard.close)
        inner, wrapper = HARNESS.keeper, None
        if line_bytes:
            folder = tempfile.TemporaryDirectory()
            self.addCleanup(folder.cleanup)
            wrapper = folder.name + "/keeper"
            with open(wrapper, "w", encoding="utf-8") as file:
                file.write(f"#!/bin/sh\nexec {inner} -l {line_bytes} \"$@\"\n")
            os.chmod(wrapper, 0o700)
            HARNESS.keeper = wrapper
        try:
            r = HARNESS.play(PYTHON, text, env={**ADAPT, "KERAS_BACKEND": BACKEND, "ANTIFREEZE_SOCKET": guard.path, **env})
        finally:
            HARNESS.keeper = inner
        self.assertEqual(r.status, status, r.said[-4000:])
        r.told = max(r.books, key=lambda book: book["steps"])["told"]
        r.guard = guard
        return r

    def alone(self, text):
        r = HARNESS.play(PYTHON, text, env={**QUIET, "KERAS_BACKEND": BACKEND}, agent=False)
        self.assertEqual(r.status, 0, r.said[-4000:])
        return r

    def test_losses(self):
        """To the last bit where nothing is split, and within rounding where it is; callbacks and counts are the same in any case."""
        alone, whole = lines(self.alone(MODELS)), lines(self.play(MODELS))
        self.assertEqual(whole, alone)
        self.assertGreater(len(alone), 10)
        split = self.play(MODELS, MOST="20")
        self.assertGreater(split.told["splits_count"], 50)
        self.assertEqual(split.told["ooms_count"], len(split.guard.events("oom")))
        self.assertEqual([line for line in split.guard.lines if line.startswith("event refuse")], [])
        parts = lines(split)
        self.assertEqual(list(parts), list(alone))
        for name, row in alone.items():
            with self.subTest(name):
                got = parts[name]
                self.assertEqual([got.get(key) for key in ("calls", "iterations")], [row.get(key) for key in ("calls", "iterations")])
                self.assertEqual(list(got["history"]), list(row["history"]))
                for key, values in row["history"].items():
                    for a, b in zip(got["history"][key], values):
                        # An accuracy may turn over at one sample in 200.
                        self.assertTrue(is_near(a, b) or "accuracy" in key and abs(float.fromhex(a) - float.fromhex(b)) < .006, (key, a, b))

    def test_a_part_that_fails_late(self):
        """What was through before it stays, and its own draws and statistics are as if it had not been."""
        r = self.play(KERAS + """
kind = agent("split.keras_tf" if keras.backend.backend() == "tensorflow" else "split.keras_torch").Backend
inner, seen = kind.gradients, []
def gradients(self, batch, at, size, n):
    seen.append((at, size))
    result = inner(self, batch, at, size, n)
    if at == 32 and size == 16: raise MemoryError()
    return result
kind.gradients = gradients
agent("split.sizing").splitter.most = 16
play("late", model(*convolution()), images[:64], labels[:64])
print(seen[3:])
""")
        alone = self.alone(KERAS + 'play("late", model(*convolution()), images[:64], labels[:64])\n')
        self.assertTrue(is_near(lines(r)["late"]["history"]["loss"][-1], lines(alone)["late"]["history"]["loss"][-1]))
        self.assertIn("(0, 16), (16, 16), (32, 16), (32, 8), (40, 8), (48, 8), (56, 8)", r.said)

    def test_built_by_a_batch_that_does_not_fit(self):
        """fit() builds a model by its first batch; where that does not fit some samples do, and the weights are the same."""
        if BACKEND != "torch":
            self.skipTest("TensorFlow builds it with the function")
        text = KERAS + """
class Heavy(L.Layer):
    def call(self, x):
        if x.shape[0] > 20 and os.environ.get("MOST"): raise MemoryError("no room")
        return x
made = keras.Sequential([Heavy(), L.Flatten(), L.Dense(32, "tanh"), L.Dense(10)])
made.compile("adam", entropy(), metrics=["accuracy"])
play("built", made, images, labels)
"""
        alone, r = lines(self.alone(text))["built"], self.play(text, MOST="20")
        self.assertEqual(lines(r)["built"]["calls"], alone["calls"])
        for a, b in zip(lines(r)["built"]["history"]["loss"], alone["history"]["loss"]):
            self.assertTrue(is_near(a, b), (a, b))

    def test_the_batch_is_let_go(self):
        """What is made for the first batch keeps nothing of it."""
        r = self.play(KERAS + """
import gc, weakref
kind = agent("split.keras_tf" if keras.backend.backend() == "tensorflow" else "split.keras_torch").Backend
inner, seen = kind.take, []
def take(self, iterator):
    for batch in inner(self, iterator):
        seen.extend(weakref.ref(leaf) for leaf in batch[1] if leaf is not None)
        yield batch
kind.take = take
def spread(y, z): return keras.ops.max(z) - keras.ops.min(z)
agent("split.sizing").splitter.most = 16
for metrics in (["accuracy"], [spread]):
    model(*convolution(), metrics=metrics).fit(images, labels, batch_size=64, epochs=1, verbose=0, sample_weight=weights)
gc.collect()
print("seen", len(seen), "alive", sum(one() is not None for one in seen))
""")
        self.assertIn("seen 24 alive 0", r.said)

    def test_files_are_whole(self):
        """A file that Keras writes over has its name when it is whole; until then the one before has it."""
        r = self.play(KERAS + """
from pathlib import Path
saving = agent("save.saving")
made, inner, seen = model(*convolution()), saving.sync, []
for name, save in (("it.weights.h5", made.save_weights), ("it.keras", made.save)):
    save(name)
    before = Path(name).read_bytes()
    made.fit(images, labels, verbose=0)
    def sync(path): raise KeyboardInterrupt()
    saving.sync = sync
    try: save(name)
    except KeyboardInterrupt: seen.append(Path(name).read_bytes() == before)
    saving.sync = inner
    seen.append(not [one for one in os.listdir(".") if "part" in one])
    save(name)
    seen.append(Path(name).read_bytes() != before)
made.load_weights("it.weights.h5"); keras.models.load_model("it.keras")
def all_of(): return [v.numpy().tolist() for v in made.variables + made.optimizer.variables]
other = model(L.Conv2D(6, 3, activation="relu"), L.Flatten(), L.Dense(7)); other.save_weights("latest.weights.h5")
Path("training_metadata.json").write_text('{"epoch": 2, "done": 1}')
before = all_of(); agent("save.on_keras").restore(made, "."); seen.append(all_of() == before)
print(seen)
""")
        self.assertIn(str([True] * 7), r.said)
        self.assertTrue(any("does not load" in line for line in r.guard.lines), "what does not load is as if it were not there")

    def test_inexact(self):
        """Named, and refused unless it is asked for."""
        text = KERAS + """
name = os.environ["LAYER"]
if name == "interplay":
    def loss(y, z): return keras.ops.mean(keras.ops.matmul(z, keras.ops.transpose(z)) ** 2, axis=-1)
    made = model(L.Flatten(), L.Dense(10), loss=loss)
else:
    layer = {"batchnorm": L.BatchNormalization, "dropout": lambda: L.Dropout(.5)}[name]()
    made = model(L.Conv2D(6, 3), layer, L.Flatten(), L.Dense(10))
play("it", made, images, labels)
print(agent("split.sizing").splitter.splits)
"""
        for layer, word in (("batchnorm", "BatchNormalization"), ("dropout", "Dropout"), ("interplay", "have to do with one another")):
            with self.subTest(layer):
                refused = self.play(text, MOST="20", LAYER=layer)
                said = [line for line in refused.guard.lines if line.startswith("event refuse")]
                self.assertEqual(len(said), 1, said)
                self.assertIn(word, said[0])
                self.assertEqual(refused.said.splitlines()[-1], "0")
                self.assertEqual(lines(refused), lines(self.alone(text.rpartition("print")[0].replace('os.environ["LAYER"]', repr(layer)))),
                                 "it goes on as if alone")
                allowed = self.play(text, MOST="20", LAYER=layer, ANTIFREEZE_INEXACT="1")
                self.assertNotEqual(allowed.said.splitlines()[-1], "0")
                self.assertTrue(any(line.startswith("event note") and word in line for line in allowed.guard.lines), allowed.guard.lines)

    def test_train_step_of_ones_own(self):
        r = self.play(KERAS + """
class Mine(keras.Model):
    def __init__(self): super().__init__(); self.inside = keras.Sequential([L.Flatten(), L.Dense(10)])
    def call(self, x): return self.inside(x)
    def train_step(self, data): return super().train_step(data)
made = Mine(); made.compile("adam", entropy()); play("mine", made, images, labels)
made = Mine(); made.compile("adam", entropy()); play("mine", made, images, labels)
fixed = keras.Sequential([keras.Input((12, 12, 3), batch_size=40), L.Flatten(), L.Dense(10)])
fixed.compile("adam", entropy()); fixed.fit(images, labels, batch_size=40, verbose=0)
""", MOST="20")
        said = [line for line in r.guard.lines if line.startswith("event refuse")]
        self.assertIn("train_step of its own", said[0])
        if BACKEND == "tensorflow":  # torch takes any size
            self.assertIn("one size of batch", said[2])
        self.assertEqual(len(said), 3 if BACKEND == "tensorflow" else 2, said)

    def test_not_even_one(self):
        """Then the error is the program's, as it came."""
        r = self.play(KERAS.replace("size > samples", "size > samples - 1") + """
agent("split.keras_step").PROVED_BY = 1
try: play("none", model(*convolution()), images, labels)
except MemoryError as error: print("caught", error)
""", MOST="1", ANTIFREEZE_INEXACT="1")
        self.assertIn("caught no room for 1 samples", r.said)
        self.assertTrue(any("not even one sample" in line for line in r.guard.lines), r.guard.lines)

    def test_phases_and_model(self):
        r = self.play(KERAS + """
seen = []
module = agent("tell")
inner = module.tell
def tell(name, value):
    if name == "phase" and seen[-1:] != [value]: seen.append(value)
    inner(name, value)
module.tell = tell
made = model(*convolution())
made.fit(images, labels, epochs=1, verbose=0, validation_data=(images, labels)); made.save_weights("it.weights.h5"); made.evaluate(images, labels, verbose=0)
made.load_weights("it.weights.h5"); made.predict(images, verbose=0)
print(seen)
""")
        self.assertIn("[2, 3, 2, 0, 4, 0, 3, 0, 1, 0, 3, 0]", r.said)
        if BACKEND == "tensorflow":
            weights = (6 * 27 + 6 + 150 * 10 + 10) * 4
            self.assertEqual(r.told["parameters_bytes"], weights)
            self.assertGreaterEqual(r.told["optimizer_bytes"], 2 * weights)

    def test_mixed_precision(self):
        """Where the processor computes in bfloat16, what is kept of a pass is half; elsewhere a word, and nothing else."""
        text = KERAS + """
def kept(key): return next(int(line.split()[1]) >> 10 for line in open("/proc/self/status") if line.startswith(key))
made = model(L.Conv2D(16, 3, padding="same", activation="relu"), L.MaxPooling2D(4), L.Flatten(), L.Dense(10, dtype="float32"), shape=(64, 64, 3))
before = kept("VmRSS")
loss = made.fit(rng.random((512, 64, 64, 3), "float32"), rng.integers(0, 10, 512), batch_size=512, epochs=2, verbose=0).history["loss"]
print(json.dumps({"name": "amp", "policy": keras.config.dtype_policy().name, "taken": kept("VmHWM") - before, "loss": loss}))
keras.config.set_dtype_policy("float32")
print("own", model(L.Dense(3), shape=(4,)).compute_dtype)
"""
        # An older processor, in the file that is read instead: before Keras is there, which is when it is asked.
        old = text.replace("import numpy as np, keras\n", """
open("cpuinfo", "w").write("flags : fpu sse2 avx2 avx512f\\n")
sys.meta_path.insert(0, type("Old", (), {"find_spec": staticmethod(lambda name, *_: old(name))})())
def old(name):
    if name == "keras.src.dtype_policies.dtype_policy":
        __import__("_antifreeze.split.amp", fromlist=["amp"]).cpu_flags.__defaults__ = ("cpuinfo",)
import numpy as np, keras
""", 1)
        onednn = {"TF_ENABLE_ONEDNN_OPTS": "1"}
        plain = self.play(text, **onednn)
        refused = self.play(old, ANTIFREEZE_AMP="1", **onednn)
        self.assertEqual(lines(refused)["amp"]["policy"], "float32")
        self.assertEqual(lines(refused)["amp"]["loss"], lines(plain)["amp"]["loss"])
        self.assertTrue(any(line.startswith("event refuse") and "--amp: this processor" in line for line in refused.guard.lines))
        with open("/proc/cpuinfo", encoding="ascii", errors="replace") as file:
            if not re.search(r"avx512_bf16|amx_bf16|\bbf16\b", file.read()):
                return
        r = self.play(text, ANTIFREEZE_AMP="1", **onednn)
        row, whole = lines(r)["amp"], lines(plain)["amp"]
        if any("and dies of it" in line for line in r.guard.lines):  # a virtual machine that promises too much
            self.assertEqual((row["policy"], row["loss"]), ("float32", whole["loss"]))
            return
        self.assertEqual((whole["policy"], row["policy"]), ("float32", "mixed_bfloat16"))
        self.assertIn("own float32", r.said)
        print(f"{BACKEND}: {whole['taken']} MB in float32, {row['taken']} MB in bfloat16", flush=True)
        self.assertLess(row["taken"], .75 * whole["taken"])
        self.assertLess(abs(row["loss"][-1] - whole["loss"][-1]), .05)
        notes = [line for line in r.guard.lines if line.startswith("event note") and "--amp" in line]
        a_sample = (64 * 64 * 16 + 16 * 16 * 16 * 2) * 2 / 1e6  # convolution, pooling, flat
        self.assertIn(f"takes {a_sample:.3g} MB a sample instead of {2 * a_sample:.3g}", notes[1])

    # ---- with memory that is really short ----

    def memory(self, kind):
        return KERAS + f"kind = {kind!r}\n" + """
if kind == "cnn":
    size = 1024
    x, y = rng.integers(0, 255, (1280, 96, 96, 3), "uint8"), rng.integers(0, 10, 1280)
    made = model(L.Rescaling(1 / 255), L.Conv2D(16, 3, padding="same", activation="relu"), L.MaxPooling2D(4), L.Conv2D(16, 3, activation="relu"),
                 L.MaxPooling2D(), L.Flatten(), L.Dense(32, "relu"), L.Dense(10), shape=(96, 96, 3), metrics=["accuracy"])
else:
    size = 32768
    x, y = rng.random((40960, 64), "float32"), rng.integers(0, 10, 40960)
    made = model(*[L.Dense(256, "gelu") for _ in range(10)], L.Dense(10), shape=(64,), metrics=["accuracy"])
history = made.fit(x, y, batch_size=size, epochs=2, verbose=0, validation_data=(x[:size], y[:size])).history
def kept(key): return next(int(line.split()[1]) >> 10 for line in open("/proc/self/status") if line.startswith(key))
print(json.dumps({"name": kind, "loss": [float(v).hex() for v in history["loss"] + history["val_loss"]],
                  "steps": int(made.optimizer.iterations.numpy()), "peak": kept("VmHWM") - kept("RssFile"), "file": kept("RssFile")}))
"""

    def whole(self, kind, onednn):
        """What it takes with all the memory that it wants, in MB, and its losses. Once."""
        key = kind, onednn
        if key not in WHOLE:
            WHOLE[key] = lines(HARNESS.play(PYTHON, self.memory(kind), env={**QUIET, "KERAS_BACKEND": BACKEND, "TF_ENABLE_ONEDNN_OPTS": onednn},
                                            agent=False))[kind]
        return WHOLE[key]

    def test_under_a_line(self):
        """A line far below what the batch takes, with and without oneDNN: both of TensorFlow's allocators."""
        for kind, onednn, part in (("cnn", "1", 3), ("mlp", "0", 2)):
            with self.subTest(kind, onednn=onednn):
                whole = self.whole(kind, onednn)
                line = whole["peak"] // part + whole["file"]  # all of a process counts here, files too
                r = self.play(self.memory(kind), line_bytes=line << 20, TF_ENABLE_ONEDNN_OPTS=onednn)
                parts = lines(r)[kind]
                print(f"{BACKEND} {kind} oneDNN={onednn}: {whole['peak']} MB whole, {parts['peak']} MB under a line of {line} MB, "
                      f"{r.told['micro_count']} samples at once", flush=True)
                self.assertEqual(parts["steps"], whole["steps"])
                self.assertTrue(all(map(is_near, parts["loss"], whole["loss"])), (parts, whole))
                self.assertGreater(r.told["splits_count"], 0)

    def test_the_guard(self):
        """A CNN that needs three times its budget. Under `protect` it dies, and in a cgroup without us, too; under `adapt` it comes to
        its end, with the same losses."""
        whole = self.whole("cnn", "1")
        budget = whole["peak"] // 3
        with tempfile.TemporaryDirectory() as folder:
            path, env = folder + "/job.py", {**HARNESS.environment(QUIET), "KERAS_BACKEND": BACKEND, "HOME": folder, "TF_ENABLE_ONEDNN_OPTS": "1"}
            with open(path, "w", encoding="utf-8") as file:
                file.write(self.memory("cnn"))

            def ended(*command, **more):
                return subprocess.run([*command, PYTHON, path], env=env, cwd=folder, text=True, timeout=900, capture_output=True,
                                      stdin=subprocess.DEVNULL, check=False, **more)

            for policy, status in (("protect", 75), ("adapt", 0)):
                r = ended(ANTIFREEZE, "run", "--run-dir", f"{folder}/{policy}", "--policy", policy, "--budget", f"{budget}M", "--")
                self.assertEqual(r.returncode, status, r.stderr)
            row = json.loads(next(line for line in r.stdout.splitlines() if line.startswith('{"name"')))
            print(f"{BACKEND}: {whole['peak']} MB whole, {row['peak']} MB of {budget} under adapt", flush=True)
            self.assertEqual(row["steps"], whole["steps"])
            self.assertTrue(all(map(is_near, row["loss"], whole["loss"])), (row, whole))
            with cgroup(budget << 20) as enter:
                if enter:
                    self.assertEqual(ended(preexec_fn=enter).returncode, -9, "killed by the kernel")

class TensorFlow(unittest.TestCase):
    """Without Keras' fit()."""

    play = Keras.play

    def test_figures(self):
        r = self.play(KERAS + """
import tensorflow as tf
data = tf.data.Dataset.from_tensor_slices((images, labels)).shuffle(100).batch(16).cache().prefetch(tf.data.AUTOTUNE)
optimizer, kept = keras.optimizers.SGD(.1), []
weight = tf.Variable(tf.zeros((432, 10)))
for n, (x, y) in enumerate(data):
    @tf.function
    def step(x):
        with tf.GradientTape() as tape: loss = tf.reduce_sum(tf.matmul(tf.reshape(x, (-1, 432)), weight) ** 2)
        optimizer.apply_gradients([(tape.gradient(loss, weight), weight)])
    kept.append(step); step(x); kept.append(tf.Variable(1.))
""")
        self.assertEqual(r.steps, 13)
        self.assertEqual(r.told["retraces_count"], 12, "a function that is made anew for each of 13 steps")
        self.assertGreaterEqual(r.told["variables_count"], 14)

    def test_traced_anew(self):
        """What is made of it: a function in the loop is told as the leak that it is."""
        with tempfile.TemporaryDirectory() as folder:
            with open(folder + "/job.py", "w", encoding="utf-8") as file:
                file.write("""
import time, tensorflow as tf, keras
weight, optimizer, kept, began = tf.Variable(tf.zeros((432, 10))), keras.optimizers.SGD(.1), [], time.time()
while len(kept) < 60 or time.time() < began + 8:
    @tf.function
    def step(x):
        with tf.GradientTape() as tape: loss = tf.reduce_sum(tf.matmul(x, weight) ** 2)
        optimizer.apply_gradients([(tape.gradient(loss, weight), weight)])
    kept.append(step); step(tf.ones((16, 432)))
print("steps", len(kept))
""")
            env = {**HARNESS.environment(QUIET), "HOME": folder}
            r = subprocess.run([ANTIFREEZE, "run", "--run-dir", folder + "/run", "--", PYTHON, folder + "/job.py"], env=env, cwd=folder,
                               text=True, timeout=300, capture_output=True, stdin=subprocess.DEVNULL, check=False)
            self.assertEqual(r.returncode, 0, r.stderr)
            why = subprocess.run([ANTIFREEZE, "why", folder + "/run"], env=env, text=True, timeout=60, capture_output=True, check=False).stdout
            self.assertIn("verdict    leak:retrace", why)
            traced = re.search(r"\((\d+) times in (\d+) steps\)", " ".join(why.split()))
            self.assertLessEqual(abs(int(traced[1]) - int(traced[2])), 3, why)
            self.assertLessEqual(int(traced[2]), int(r.stdout.split()[-1]))

    def test_nothing_is_held(self):
        """Functions that are gone are gone for us, too: with their graphs, and the weights in them."""
        r = self.play(KERAS + """
import gc, tensorflow as tf
def graphs(): gc.collect(); gc.collect(); return sum(type(thing).__name__ == "ConcreteFunction" for thing in gc.get_objects())
def search():
    for _ in range(3):
        one = keras.Sequential([keras.Input((4,)), L.Dense(2)]); one.compile("adam", "mse")
        one.fit(np.zeros((8, 4)), np.zeros((8, 2)), verbose=0); keras.backend.clear_session()
        @tf.function
        def step(x): return x * 2
        step(tf.constant(1.))
search(); before = graphs(); search(); print("held", graphs() - before)
""")
        self.assertIn("held 0", r.said)

    def test_shuffle(self):
        r = self.play(KERAS + """
import tensorflow as tf
told = []
module = agent("see.tf_data")
module.tell = lambda name, value: told.append((name, value))
data = tf.data.Dataset.from_tensor_slices((images, labels))
one = 12 * 12 * 3 * 4 + 8
def read(data, expected):
    del told[:]
    it = iter(data); next(it)
    print(told == [("shuffle_bytes", expected)], told, expected)
read(data.shuffle(100).batch(16), 100 * one)
read(data.batch(16).shuffle(5), 5 * 16 * one)
read(data.shuffle(1000).batch(16), 200 * one)
read(data.cache().repeat().batch(16).map(lambda a, b: (a, b)).prefetch(2), 200 * one)
del told[:]; next(iter(data.batch(16))); next(iter(data.cache("file").batch(16))); print(not told, told)
""")
        self.assertEqual([line.split()[0] for line in r.said.splitlines() if line.startswith(("True", "False"))], ["True"] * 5, r.said)

    def test_ram_budget(self):
        r = self.play(KERAS + """
import tensorflow as tf
data = tf.data.Dataset.range(100).map(lambda a: a + 1, num_parallel_calls=tf.data.AUTOTUNE).prefetch(tf.data.AUTOTUNE)
it = iter(data); print([int(v) for v in it] == list(range(1, 101)), it._dataset.options().autotune.ram_budget)
options = tf.data.Options(); options.autotune.ram_budget = 5 << 20
print(iter(data.with_options(options))._dataset.options().autotune.ram_budget)
""", line_bytes=4 << 30)
        _, ours, own = r.said.split()[-3:]
        self.assertEqual(r.said.split()[-3], "True")
        self.assertTrue(64 << 20 <= int(ours) <= 512 << 20, ours)
        self.assertEqual(int(own), 5 << 20)

    def test_swallowed(self):
        r = self.play(KERAS + """
import tensorflow as tf
try: raise tf.errors.ResourceExhaustedError(None, None, "OOM when allocating tensor with shape[64,1024] and type float on CPU")
except tf.errors.ResourceExhaustedError: pass
model(*convolution()).fit(images, labels, verbose=0)
""")
        oom = r.guard.events("oom")
        self.assertEqual([(event["asked_bytes"], event["swallowed"]) for event in oom], [(str(64 * 1024 * 4), "1")])
        self.assertIn("job.py", oom[0]["at"])


def chosen():
    only = os.environ.get("ONLY", "")
    kinds = [Keras, TensorFlow] if BACKEND == "tensorflow" else [Keras]
    names = unittest.TestLoader().getTestCaseNames
    return unittest.TestSuite(in_turn(kind(name) for kind in kinds for name in names(kind) if only in name))


if __name__ == "__main__":
    if len(sys.argv) != 6 or sys.argv[5] not in NEEDS:
        sys.exit(__doc__)
    BACKEND = sys.argv[5]
    PYTHON = skip_without(*NEEDS[BACKEND])
    ANTIFREEZE, HARNESS = os.path.abspath(sys.argv[1]), Harness(*sys.argv[2:5])
    sys.exit(not unittest.TextTestRunner(verbosity=2).run(chosen()).wasSuccessful())
