#!/usr/bin/env python3
"""Keras under --policy adapt: batches that do not fit go through in parts, and everything else is as it was.

usage: test_agent_keras.py ANTIFREEZE KEEPER PROBE AGENT_FOLDER BACKEND

BACKEND: tensorflow or torch. The guard is a socket of the test's own that writes down what it hears, but for the last ones, in which
the real one holds a job whose batch is too large for its budget. ONLY=word in the environment plays the tests with that word.
"""
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
from frameworks import skip_without

NEEDS = {"tensorflow": ["tensorflow", "keras"], "torch": ["torch", "keras"]}
QUIET = {"TF_CPP_MIN_LOG_LEVEL": "3", "CUDA_VISIBLE_DEVICES": "", "OMP_NUM_THREADS": "1", "TF_ENABLE_ONEDNN_OPTS": "0",
         "TF_NUM_INTRAOP_THREADS": "1", "TF_NUM_INTEROP_THREADS": "1"}
ADAPT = {**QUIET, "ANTIFREEZE_POLICY": "adapt"}
ANTIFREEZE = HARNESS = PYTHON = BACKEND = None
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


class Guard(test_agent_torch.Guard):
    """A program that ends at once has said what it had to say all the same."""

    def hear(self, client):
        while True:
            try:
                line = client.recv(2048)
                if not line:
                    return
                self.lines.append(line.decode())
                if line.startswith(b"hello"):
                    client.send(b"welcome 1 test")
            except (BrokenPipeError, ConnectionResetError):
                continue


def lines(ended):
    return {row["name"]: row for row in (json.loads(line) for line in ended.said.splitlines() if line.startswith('{"name"'))}


def is_near(a, b):
    return math.isclose(float.fromhex(a), float.fromhex(b), rel_tol=NEAR, abs_tol=1e-6)


class Keras(unittest.TestCase):
    def play(self, text, line_bytes=0, status=0, **env):
        guard = Guard()
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
module = agent("see.on_keras")
inner = module.tell
def tell(name, value):
    if name == "phase": seen.append(value)
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
        text = KERAS + """
print("policy", keras.config.dtype_policy().name)
keras.config.set_dtype_policy("float32")
print("own", model(L.Dense(3), shape=(4,)).compute_dtype)
"""
        r = self.play(text, ANTIFREEZE_AMP="1")
        with open("/proc/cpuinfo", encoding="ascii", errors="replace") as file:
            gains = re.search(r"avx512_bf16|amx_bf16|\bbf16\b", file.read()) is not None
        self.assertIn("policy mixed_bfloat16" if gains else "policy float32", r.said)
        self.assertIn("own float32", r.said)
        self.assertTrue(any(line.startswith("event note" if gains else "event refuse") and "--amp" in line for line in r.guard.lines))
        self.assertIn("policy float32", self.play(text).said)

    # ---- with memory that is really short ----

    def memory(self, kind):
        return KERAS + f"kind = {kind!r}\n" + """
if kind == "cnn":
    x, y = rng.random((576, 64, 64, 3), "float32"), rng.integers(0, 10, 576)
    made = model(L.Conv2D(32, 3, padding="same", activation="relu"), L.Conv2D(32, 3, padding="same", activation="relu"), L.MaxPooling2D(),
                 L.Conv2D(32, 3, padding="same", activation="relu"), L.GlobalAveragePooling2D(), L.Dense(10), shape=(64, 64, 3), metrics=["accuracy"])
    size = 384
else:
    x, y = rng.random((12288, 64), "float32"), rng.integers(0, 10, 12288)
    made = model(*[L.Dense(512, "gelu") for _ in range(10)], L.Dense(10), shape=(64,), metrics=["accuracy"])
    size = 8192
history = made.fit(x, y, batch_size=size, epochs=2, verbose=0).history["loss"]
def kept(key): return next(int(line.split()[1]) >> 10 for line in open("/proc/self/status") if line.startswith(key))
print(json.dumps({"name": kind, "loss": [float(v).hex() for v in history], "steps": int(made.optimizer.iterations.numpy()), "peak": kept("VmHWM")}))
"""

    def test_under_a_line(self):
        """A line far below what the batch takes, with and without oneDNN: both of TensorFlow's allocators."""
        for kind in ("cnn", "mlp"):
            for onednn in ("0", "1") if BACKEND == "tensorflow" else ("0",):
                with self.subTest(kind, onednn=onednn):
                    text = self.memory(kind)
                    whole = lines(HARNESS.play(PYTHON, text, env={**QUIET, "KERAS_BACKEND": BACKEND, "TF_ENABLE_ONEDNN_OPTS": onednn},
                                               agent=False))[kind]
                    r = self.play(text, line_bytes=800 << 20, TF_ENABLE_ONEDNN_OPTS=onednn)
                    parts = lines(r)[kind]
                    print(f"{BACKEND} {kind} oneDNN={onednn}: {whole['peak']} MB whole, {parts['peak']} MB under a line of 800 MB, "
                          f"{r.told['micro_count']} samples at once", flush=True)
                    self.assertEqual(parts["steps"], whole["steps"])
                    self.assertTrue(all(map(is_near, parts["loss"], whole["loss"])), (parts, whole))
                    self.assertGreater(whole["peak"], 1000)
                    self.assertGreater(r.told["splits_count"], 0)

    def test_the_guard(self):
        """Under `protect` the job dies; under `adapt` it comes to its end, with the same losses."""
        for kind in ("cnn", "mlp"):
            with self.subTest(kind), tempfile.TemporaryDirectory() as folder:
                text, path = self.memory(kind), folder + "/job.py"
                with open(path, "w", encoding="utf-8") as file:
                    file.write(text)
                whole = lines(HARNESS.play(PYTHON, text, env={**QUIET, "KERAS_BACKEND": BACKEND}, agent=False))[kind]
                ended = {}
                for policy in ("protect", "adapt"):
                    ended[policy] = subprocess.run(
                        [ANTIFREEZE, "run", "--run-dir", f"{folder}/{policy}", "--policy", policy, "--budget", "850M", "--", PYTHON, path],
                        env={**HARNESS.environment(QUIET), "KERAS_BACKEND": BACKEND, "HOME": folder}, cwd=folder, text=True, timeout=900,
                        capture_output=True, stdin=subprocess.DEVNULL, check=False)
                self.assertEqual(ended["protect"].returncode, 75, ended["protect"].stderr)
                self.assertEqual(ended["adapt"].returncode, 0, ended["adapt"].stderr)
                row = json.loads(next(line for line in ended["adapt"].stdout.splitlines() if line.startswith('{"name"')))
                print(f"{BACKEND} {kind}: {whole['peak']} MB whole, {row['peak']} MB of 850 under adapt", flush=True)
                self.assertEqual(row["steps"], whole["steps"])
                self.assertTrue(all(map(is_near, row["loss"], whole["loss"])), (row, whole))


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
        self.assertEqual(r.told["retraces_count"], 12, "a function that is made anew for each of 13 steps")
        self.assertGreaterEqual(r.told["variables_count"], 14)

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
    suite = unittest.TestSuite()
    for kind in kinds:
        suite.addTests(kind(name) for name in unittest.TestLoader().getTestCaseNames(kind) if only in name)
    return suite


if __name__ == "__main__":
    if len(sys.argv) != 6 or sys.argv[5] not in NEEDS:
        sys.exit(__doc__)
    BACKEND = sys.argv[5]
    PYTHON = skip_without(*NEEDS[BACKEND])
    ANTIFREEZE, HARNESS = os.path.abspath(sys.argv[1]), Harness(*sys.argv[2:5])
    sys.exit(not unittest.TextTestRunner(verbosity=2).run(chosen()).wasSuccessful())
