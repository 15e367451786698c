"""Functions on batches, as programs give them to antifreeze.Loader: for tests, whose workers import them from here."""
import os
import random
import signal
import time

import numpy


def plain(x, y):
    return x.astype("float16"), y


def drawn(x, y):
    return x + numpy.float32(numpy.random.rand()), y, numpy.array([random.random() for _ in y])


def in_place(x, y):
    x *= 2
    return x, y


def named(x, y):
    return {"picture": x[:, :3], "label": y, "count": len(y)}


def one(x, y):
    return x.sum(1)


def turned(x, y):
    return numpy.asarray(x)[:, ::-1].astype(">f4"), numpy.broadcast_to(numpy.asarray(y)[:1], len(y))


def kinds(x, y):
    return numpy.zeros(len(y)) + (type(x).__module__ == "torch")


def tensors(x, y):
    import torch
    return torch.rand(len(y), 2) + x[:, :2], y


def slow(x, y):
    time.sleep(.02)
    return x, y


def at(y, *which):
    return any(int(i) in which for i in y)


def raises(x, y):
    if at(y, 500):
        raise ValueError("no 500")
    return x, y


def raises_at_once(x, y):
    raise ValueError("never")


def exits(x, y):
    if at(y, 500):
        os._exit(3)
    return x, y


def crashes(x, y):
    if at(y, 500):
        os.kill(os.getpid(), signal.SIGSEGV)
    return x, y


def is_killed(x, y):
    if at(y, 500):
        os.kill(os.getpid(), signal.SIGKILL)
    return x, y


def sleeps(x, y):
    if at(y, 500):
        time.sleep(1000)
    return x, y


def grows(x, y):
    return (x.astype("float64") if at(y, 500) else x), y


def widens(x, y):
    return (numpy.concatenate([x, x], 1) if at(y, 500) else x), y


def doubles(x, y):
    return (numpy.concatenate([x, x]) if at(y, 500) else x), y


def leaves(x, y):
    return (x,) if at(y, 500) else (x, y)


def listed(x, y):
    return [row * 2 for row in x] * 2


def texts(x, y):
    return [object() for _ in y]


def wide(x, y):
    return numpy.repeat(x, 1000, 1)


class Scaled:
    def __init__(self, by):
        self.by = by

    def __call__(self, x, y):
        return x * self.by, y


class Unloadable:
    def __call__(self, x, y):
        return x, y

    def __reduce__(self):
        return fail, ()


def fail():
    raise RuntimeError("not in a worker")
