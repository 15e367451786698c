#!/usr/bin/env python3
"""On a machine with a GPU: antifreeze.Loader(device="cuda") gives what the same loader gives on the host, in the same order, however
late the GPU copies; its memory is pinned, copies run beside the program's work, leases end when copies do, and CUDA is not brought up
by it before the first batch.

usage: tests/gpu/loader.py LIBRARY [NAME ...]

LIBRARY: libantifreeze-loader.so. NAME: only those checks whose name begins so. Needs torch with CUDA and NumPy. Each check is a process
of its own. Says what it checks, with figures; exit 1: one failed.
"""
import os
import sys
import tempfile

from checks import run_all

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))

BEFORE = f"""
import sys; sys.path.insert(0, {ROOT + "/python"!r})
""" + """
import gc, os, time, warnings
import numpy, torch
import antifreeze
FOLDER = sys.argv[1]
X, Y = FOLDER + "/x.npy", FOLDER + "/y.npy"
SAMPLES, WIDTH, BATCH = 20011, 4096, 256
MIB = 1 << 20
if not os.path.exists(Y):
    numpy.save(X, numpy.arange(SAMPLES, dtype=numpy.float32)[:, None] + numpy.arange(WIDTH, dtype=numpy.float32))
    numpy.save(Y, numpy.arange(SAMPLES))
def loader(**more): return antifreeze.Loader(X, labels=Y, **{"batch": BATCH, "budget": "64M", "seed": 5, "device": "cuda", **more})
def labels(data): return [int(i) for _, y in data for i in y.tolist()]
def is_right(x, y): return bool((x[:, 0] == y).all() and (x[:, -1] == y + WIDTH - 1).all())
def sender(made): return made._feed._sender
"""

CHECKS = {
    "CUDA is the program's to bring up": """
def child_can():
    pid = os.fork()
    if pid == 0:
        try: torch.ones(1, device="cuda"); os._exit(0)
        except BaseException as error: print("  ", error, flush=True); os._exit(1)
    return os.waitpid(pid, 0)[1] == 0
made = loader()
len(made), made.state_dict(), iter(made), made.progress, repr(made)
check("a loader that nobody has gone through leaves CUDA down", not torch.cuda.is_initialized())
check("and a child that was forked can use it", child_can())
x, y = next(iter(made))
check("a batch is on the GPU", x.is_cuda and y.is_cuda and is_right(x, y), x.device)
pid = os.fork()
if pid == 0:
    try: next(iter(made)); os._exit(1)
    except antifreeze.LoaderError as error: os._exit(0 if "fork" in str(error) else 2)
    except BaseException: os._exit(3)
check("a child that was forked then is told why it gets none", os.waitpid(pid, 0)[1] == 0)
check("the parent goes on", sum(len(y) for _, y in made) == SAMPLES)
""",
    "what arrives": """
want = [labels(host) for host in [loader(device="cpu", as_="torch")] for _ in range(2)]
made = loader()
got = []
for _ in range(2):
    seen, rights = [], []
    for x, y in made:
        seen.append(y); rights.append((x[:, 0] == y).all() & (x[:, -1] == y + WIDTH - 1).all())
    check("all samples are right", bool(torch.stack(rights).all()))
    got.append(torch.cat(seen).tolist())
check("in the order of the host's", got == want)
sender(made).let_go(0)
check("no batch had to be copied on the host, and none is held", made.times().copies == made.times().held == 0, made.times())
data = torch.utils.data.DataLoader(loader(), batch_size=None)
check("under a DataLoader, too", labels(data) == want[0])
first = loader(); loop = iter(first); start = [int(i) for _ in range(20) for i in next(loop)[1].tolist()]
then = loader(); then.load_state_dict(first.state_dict())
check("and from a state on", start + labels(then) == want[0])
""",
    "however late the GPU copies": """
made = loader(budget=loader(device="cpu").floor_bytes)
rights, most = [], 0
for n, (x, y) in enumerate(made):
    with torch.cuda.stream(sender(made)._stream): torch.cuda._sleep(20_000_000)  # some 10 ms: the next copies wait behind it
    rights.append((x[:, 0] == y).all() & (x[:, -1] == y + WIDTH - 1).all())
    most = max(most, made.times().held)
check("at the smallest budget, each copy behind a long wait, all is right", bool(torch.stack(rights).all()))
check("leases are held until then, and no more than two", 1 <= most <= 2, most)
rights = []
for x, y in made:  # the program's own stream is late
    torch.cuda._sleep(20_000_000)
    rights.append((x[:, 0] == y).all() & (x[:, -1] == y + WIDTH - 1).all())
check("so it is where the program is late", bool(torch.stack(rights).all()))
other, rights = torch.cuda.Stream(), []
with torch.cuda.stream(other):
    for x, y in made:
        torch.cuda._sleep(2_000_000)
        rights.append((x[:, 0] == y).all() & (x[:, -1] == y + WIDTH - 1).all())
        del x, y  # while its stream has not come to them
torch.cuda.synchronize()
check("and on a stream of the program's own", bool(torch.stack(rights).all()))
""",
    "less, while it is pinned": """
made = loader()
rights = []
for n, (x, y) in enumerate(made):
    if n == 5: made.shrink(made.floor_bytes)
    if n == 40: made.shrink("64M")
    rights.append((x[:, 0] == y).all() & (x[:, -1] == y + WIDTH - 1).all())
check("what is given back and taken again is what the GPU reads", bool(torch.stack(rights).all()))
check("all of it came", made.progress.epoch == 1)
""",
    "pinned, and given back": """
import ctypes
cudart, calls = torch.cuda.cudart(), []
class Look:
    def __getattr__(self, name):
        inner = getattr(cudart, name)
        return lambda *args: calls.append((name, args, int(inner(*args)))) or calls[-1][2]
torch.cuda.cudart = Look
made = loader(); x, _ = next(iter(made))
name, (at, size, _), error = calls[0]
check("the memory of batches was registered", (name, error) == ("cudaHostRegister", 0), at, size)
inside = torch.from_numpy(numpy.frombuffer((ctypes.c_char * 4096).from_address(at), numpy.uint8).copy())
there = torch.frombuffer((ctypes.c_char * 4096).from_address(at), dtype=torch.uint8)
check("torch sees that it is pinned", there.is_pinned() and not inside.is_pinned())
del there
made.close()
check("and it is let go of when the loader is closed", calls[1:] == [("cudaHostUnregister", (at,), 0)], calls[1:])
check("what was given stays good", float(x[0, 1] - x[0, 0]) == 1)
for _ in range(20):
    made = loader(); next(iter(made)); del made
gc.collect()
names = [name for name, *_ in calls]
check("so it is of loaders that nobody closes", names.count("cudaHostRegister") == names.count("cudaHostUnregister") == 21, len(names))
check("without an error", all(error == 0 for *_, error in calls))
""",
    "beside the program's work": """
a = torch.randn(4096, 4096, device="cuda")
def work(n):
    b = a
    for _ in range(n): b = (a @ b) * 1e-3
    return b
def run(data, n, to=None):
    torch.cuda.synchronize(); began = time.perf_counter(); batches = 0
    for x, y in data:
        if to: x, y = x.to(to), y.to(to)
        if n: work(n); torch.cuda.synchronize()  # as who asks for the loss at each step
        batches += 1
    torch.cuda.synchronize()
    return (time.perf_counter() - began) / batches
big = {"budget": "1G", "shuffle": "none", "batch": 2048}  # 32 MiB each, all in memory after the first epoch
made, host = loader(**big), loader(**big, device="cpu", as_="torch")
for data in made, host: run(data, 1, None if data is made else "cuda")
alone = min(run(made, 0) for _ in range(3)); plain = min(run(host, 0, "cuda") for _ in range(3))
bare = min(run(host, 0) for _ in range(3))
print(f"   a batch of 32 MiB: {alone * 1e3:.2f} ms ({32 / 1024 / alone:.1f} GiB/s); by .to() from the host's {plain * 1e3:.2f} ms; "
      f"on the host alone {bare * 1e3:.2f} ms")
check("pinned is not slower than not pinned", alone <= plain * 1.1, f"{alone / plain:.2f}")
work(1); torch.cuda.synchronize(); began = time.perf_counter(); work(50); torch.cuda.synchronize()
n = max(1, int(2 * alone / ((time.perf_counter() - began) / 50)))
began = time.perf_counter()
for _ in range(10): work(n); torch.cuda.synchronize()
step = (time.perf_counter() - began) / 10
both = min(run(made, n) for _ in range(3)); after = min(run(host, n, "cuda") for _ in range(3))
print(f"   a step of {step * 1e3:.2f} ms: {both * 1e3:.2f} ms with its batch; by .to() {after * 1e3:.2f} ms")
check("a step hides most of the copy", both - step <= .5 * alone, f"{(both - step) / alone:.2f} of it shows")
""",
    "memory stays flat": """
made = loader()
peaks = []
for _ in range(6):
    torch.cuda.reset_peak_memory_stats()
    for x, y in made: pass
    peaks.append(torch.cuda.max_memory_reserved())
batch = BATCH * (WIDTH * 4 + 8)
check("from epoch to epoch", peaks[-1] == peaks[1], [peak // MIB for peak in peaks])
check("and is a few batches", peaks[-1] <= 8 * batch + 32 * MIB, peaks[-1] // MIB, batch // MIB)
""",
}


def main():
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    library, names = os.path.abspath(sys.argv[1]), sys.argv[2:]
    chosen = {name: text for name, text in CHECKS.items() if not names or name.startswith(tuple(names))}
    with tempfile.TemporaryDirectory() as folder:
        return run_all(chosen, BEFORE, folder, env=lambda _: {"ANTIFREEZE_LOADER": library})


if __name__ == "__main__":
    sys.exit(main())
