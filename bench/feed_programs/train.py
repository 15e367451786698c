"""A small training whose batches come from one of the loaders here. Run by bench/feed.py, with its options as JSON:

    train.py '{"how": "ours", "kind": "npy", "data": FOLDER, ...}'

It writes down what it saw, as lines of JSON, into the file that NOTES names: when it began, when the loader was warm, and at the end
how many samples and steps a second it had, how long each next() took, and how well mixed the batches were.

The step is softmax regression on 192 values of each sample, taken from all over it, so that all of a batch is looked at."""
import importlib
import json
import os
import sys
import time

import numpy

import order

FEATURES, CLASSES = 192, 1000
RATE = .02
DRAWN_MOST = 1 << 19  # numbers of samples that are kept for what the order is like

DEFAULTS = {"batch": 256, "budget": 512 << 20, "window": 0, "workers": 0, "warm_s": 3., "seconds": 10., "epochs": 0, "pace_ms": 0., "file": None,
            "subset": None, "is_kept": True}


def note(what, **more):
    with open(os.environ["NOTES"], "a", encoding="utf-8") as file:
        file.write(json.dumps({"what": what, "at": time.monotonic(), **more}) + "\n")


class Model:
    def __init__(self):
        self.weights = numpy.zeros((FEATURES + 1, CLASSES), numpy.float32)
        self.classes = 10

    def scores(self, x):
        flat = x.reshape(len(x), -1)
        features = flat[:, ::flat.shape[1] // FEATURES][:, :FEATURES].astype(numpy.float32)
        features[:, 0] = 0  # where a sample's number is
        features -= 125.5
        features *= 1 / 9.5
        features = numpy.concatenate([features, numpy.ones((len(x), 1), numpy.float32)], 1)
        return features, features @ self.weights[:, :self.classes]

    def step(self, x, y):
        features, scores = self.scores(x)
        scores -= scores.max(1, keepdims=True)
        numpy.exp(scores, scores)
        scores /= scores.sum(1, keepdims=True)
        scores[numpy.arange(len(y)), y % self.classes] -= 1
        self.weights[:, :self.classes] -= RATE / len(y) * (features.T @ scores)

    def right(self, x, y):
        return int((self.scores(x)[1].argmax(1) == y % self.classes).sum())


def anonymous():
    """Bytes that no file backs."""
    with open("/proc/self/status", encoding="ascii") as file:
        return sum(int(line.split()[1]) << 10 for line in file if line.startswith(("RssAnon:", "RssShmem:")))


class Watch:
    """What is measured of a loop, from when it is warm."""

    def __init__(self, options):
        self.options = options
        self.samples = self.steps = 0
        self.began = self.warm = None
        self.nexts = []
        self.numbers, self.kept = [], 0

    def got(self, x, now, took):
        if self.began is None:
            self.began = now
            note("first")
        if self.warm is None and now - self.began >= self.options["warm_s"]:
            self.warm = now
            note("warm")
        elif self.warm is not None:
            self.samples, self.steps = self.samples + len(x), self.steps + 1
            if self.options["is_kept"]:
                self.nexts.append(took)
        if self.kept < DRAWN_MOST and self.options["is_kept"] and self.options["kind"] != "tar":
            self.numbers.append(order.numbers_of(x))
            self.kept += len(x)

    def is_over(self, now):
        return self.warm is not None and self.options["seconds"] and now - self.warm >= self.options["seconds"]

    def end(self, now):
        seconds = now - self.warm if self.warm else 0
        nexts = sorted(self.nexts)
        at = lambda part: nexts[min(len(nexts) - 1, int(part * len(nexts)))] if nexts else None
        note("end", samples=self.samples, steps=self.steps, seconds=seconds, next_median=at(.5), next_99=at(.99), next_most=at(1),
             **order.mixed(self.numbers, self.options["samples"]))


def go_through(options, model, watch):
    how = importlib.import_module("pictures" if options["kind"] == "tar" else "arrays")
    epochs = how.LOADERS[options["how"]]({**options, "note": note})
    epoch = 0
    while True:
        batches, before = iter(next(epochs)), time.monotonic()
        for x, y in batches:
            now = time.monotonic()
            watch.got(x, now, now - before)
            model.step(x, y)
            while options["pace_ms"] and time.monotonic() - now < options["pace_ms"] / 1e3:  # a heavier model
                model.scores(x)
            before = time.monotonic()
            if watch.is_over(before):
                return
        epoch += 1
        note("epoch", number=epoch, bytes=anonymous())
        if epoch == options["epochs"]:
            return


def main():
    options = {**DEFAULTS, **json.loads(sys.argv[1])}
    model, watch = Model(), Watch(options)
    note("begin")
    go_through(options, model, watch)
    watch.end(time.monotonic())
    if options.get("test"):  # how much of samples that were not trained with it gets right
        x = numpy.load(options["data"] + "/" + options["test"] + ".npy", mmap_mode="r")
        y = numpy.load(options["data"] + "/" + options["test"] + "-y.npy")
        note("accuracy", value=model.right(x[::4], y[::4]) / len(y[::4]))


if __name__ == "__main__":
    main()
    os._exit(0)  # some of the loaders' threads would be waited for
