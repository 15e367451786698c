"""The same, with the number of values."""
import ctypes
import random

extension = ctypes.CDLL("./scale.so")
extension.scale.argtypes = (ctypes.c_void_p, ctypes.c_size_t, ctypes.c_float)
weights = [0.] * 20
samples = (ctypes.c_float * 16_000_000)()  # 64 MB
numbers = random.Random(0)

for step in range(60_000):
    x = [numbers.random() for _ in weights]
    error = sum(w * v for w, v in zip(weights, x)) - sum(x[:3])
    weights = [w - .02 * error * v for w, v in zip(weights, x)]
    if step % 10_000 == 0:
        print(f"step {step}: loss {error * error:.5f}", flush=True)
extension.scale(samples, len(samples), .5)
