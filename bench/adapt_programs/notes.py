"""What the programs here write down of themselves, line by line, so that one that is killed has left it, too: memory before the
training, the loss of each step, samples that went through the model, and the end. A program without NOTES in its environment
writes nothing."""
import json
import os
import sys
import time

_path = os.environ.get("NOTES")
_passed = {"kept": 0, "alone": 0, "at_once": 0}  # samples through the model for gradients, without, and the most at once for them


def write(what, **more):
    if _path:
        with open(_path, "a", encoding="utf-8") as file:
            file.write(json.dumps({"what": what, "at": time.monotonic(), "cpu": time.process_time(), **more}) + "\n")


def memory():
    """Bytes now and at most: of the process what no file backs, of the GPU what tensors take."""
    with open("/proc/self/status", encoding="ascii") as file:
        rows = dict(line.split(":", 1) for line in file)
    size = lambda name: int(rows[name].split()[0]) << 10
    torch = sys.modules.get("torch")
    gpu = torch is not None and torch.cuda.is_available()
    return {"now": size("RssAnon") + size("RssShmem"), "most": size("VmHWM") - size("RssFile"), "mapped": size("VmSize"),
            "gpu_now": torch.cuda.memory_allocated() if gpu else 0, "gpu_most": torch.cuda.max_memory_allocated() if gpu else 0,
            "gpu_reserved": torch.cuda.max_memory_reserved() if gpu else 0}


def begin():
    write("begin", pid=os.getpid(), **memory())


def loss(value):
    write("loss", value=float(value))


def passed(samples, for_gradients):
    """The model was called with so many."""
    _passed["kept" if for_gradients else "alone"] += samples
    if for_gradients:
        _passed["at_once"] = max(_passed["at_once"], samples)


def end(**more):
    write("end", **memory(), **_passed, **more)
