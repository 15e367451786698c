#!/usr/bin/env python3
"""On a machine with a GPU: a Keras model whose batch needs more memory than there is goes through in parts, with the same losses.

usage: tests/gpu/keras.py [tensorflow|torch ...]

Without a name each backend that is installed and sees a GPU is played. Needs neither the probe nor the guard. The memory is made
short by the framework's own means (a memory limit, a fraction). Says what it checks; exit 1: one failed.
"""
import importlib.util
import json
import math
import os
import subprocess
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
LIMIT = 3 << 30  # bytes of the GPU; the batch needs three times as much
ROUNDING = 2e-3  # of a loss: convolutions of a GPU are not even the same twice

PROGRAM = f"""
import os, sys, json, types
sys.path.append({ROOT + "/python"!r})
mode, backend, limit = sys.argv[1], os.environ["KERAS_BACKEND"], {LIMIT}
events = []
if mode == "adapt":
    os.environ["ANTIFREEZE_POLICY"] = "adapt"
    door = sys.modules["_antifreeze"] = types.ModuleType("_antifreeze"); door.__path__ = [{ROOT + "/python/antifreeze"!r}]
    from _antifreeze import clock, talk, watch
    clock.connect = lambda: True
    talk.event = lambda kind, sentence="", **keys: events.append((kind, sentence, keys))
    watch.start()
""" + """
if backend == "tensorflow":
    import tensorflow as tf
    gpu = tf.config.list_physical_devices("GPU")
    if not gpu: sys.exit(77)
    tf.config.experimental.enable_op_determinism()
    if mode != "free": tf.config.set_logical_device_configuration(gpu[0], [tf.config.LogicalDeviceConfiguration(memory_limit=limit >> 20)])
else:
    import torch
    if not torch.cuda.is_available(): sys.exit(77)
    if mode != "free": torch.cuda.set_per_process_memory_fraction(limit / torch.cuda.mem_get_info()[1])
import numpy as np, keras
keras.utils.set_random_seed(1)
L, rng = keras.layers, np.random.default_rng(1)
x, y = rng.random((1536, 96, 96, 3), "float32"), rng.integers(0, 10, 1536)
model = keras.Sequential([keras.Input((96, 96, 3)), L.Conv2D(64, 3, padding="same", activation="relu"), L.Conv2D(64, 3, padding="same", activation="relu"),
                          L.MaxPooling2D(), L.Conv2D(64, 3, padding="same", activation="relu"), L.GlobalAveragePooling2D(), L.Dense(10)])
model.compile("adam", keras.losses.SparseCategoricalCrossentropy(from_logits=True), metrics=["accuracy"], jit_compile=False)
losses = model.fit(x, y, batch_size=1024, epochs=3, verbose=0).history["loss"]
if backend == "tensorflow": peak = tf.config.experimental.get_memory_info("GPU:0")["peak"]
else: peak = torch.cuda.max_memory_allocated()
splitter = sys.modules["_antifreeze.split.sizing"].splitter if mode == "adapt" else None
print(json.dumps({"losses": losses, "peak": peak, "steps": int(model.optimizer.iterations.numpy()), "events": events,
                  "most": splitter and splitter.most, "splits": splitter and splitter.splits}))
"""


def played(backend, mode):
    env = {**os.environ, "KERAS_BACKEND": backend, "TF_CPP_MIN_LOG_LEVEL": "3"}
    r = subprocess.run([sys.executable, "-c", PROGRAM, mode], env=env, capture_output=True, text=True, timeout=900, check=False)
    row = next((json.loads(line) for line in r.stdout.splitlines() if line.startswith('{"losses"')), None)
    return r.returncode, row, r.stderr[-2000:]


def is_good(backend):
    status, free, said = played(backend, "free")
    if status == 77:
        print(f"{backend}: it sees no GPU here")
        return True
    if free is None:
        print(f"{backend}: does not run at all: {said}")
        return False
    dead, alone, _ = played(backend, "limited")
    status, row, said = played(backend, "adapt")
    print(f"{backend}: the batch takes {free['peak'] / 2**30:.1f} GiB; with {LIMIT / 2**30:.0f} it ends with status {dead} without us")
    if row is None:
        print(f"{backend}: under adapt it died, too ({status}): {said}")
        return False
    print(f"{backend}: under adapt {row['most']} at once, {row['splits']} steps in parts, {row['peak'] / 2**30:.1f} GiB; losses "
          f"{row['losses']}, whole {free['losses']}")
    for event in row["events"]:
        print("   ", event)
    same = all(math.isclose(a, b, rel_tol=ROUNDING) for a, b in zip(row["losses"], free["losses"]))
    checks = {"it needs more than there is": free["peak"] > 2.5 * LIMIT, "it dies without us": alone is None, "the same losses": same,
              "as many steps": row["steps"] == free["steps"], "in parts": row["splits"] == row["steps"]}
    for what, held in checks.items():
        print(f"    {'ok  ' if held else 'FAIL'} {what}")
    return all(checks.values())


if __name__ == "__main__":
    names = sys.argv[1:] or ["tensorflow", "torch"]
    present = [name for name in names if importlib.util.find_spec(name) and importlib.util.find_spec("keras")]
    for name in set(names) - set(present):
        print(f"{name}: it or Keras is not installed")
    sys.exit(not all([is_good(name) for name in present]))
