"""antifreeze.micro(): a batch in parts that fit, for a loop of one's own, with the same gradients as the whole.

    for x, y in loader:
        optimizer.zero_grad()
        for m in antifreeze.micro((x, y)):
            m.backward(loss_fn(model(m.x), m.y))
        optimizer.step()

As long as a batch fits, m is the whole of it, and nothing is changed. When memory runs out in backward, the loop comes round again
with smaller parts; when it does in the model, the part goes through the model in pieces (split/torch_loop.py), and the next batches
come in parts. The loss is to be a mean over the samples, as most are; micro(batch, reduction="sum") where it is a sum.
For the log take the loss from the loop, which has it of the whole batch once, however often it came round:

        parts = antifreeze.micro((x, y))
        for m in parts: ...
        print(parts.loss)

It works without Antifreeze, too, and needs nothing but torch.
"""
import sys

from ..see import oom
from . import cut, sizing, torch_loop, torch_step, undo


class micro(torch_step.Job):
    def __init__(self, batch, reduction="mean"):
        if reduction not in ("mean", "sum"):
            raise ValueError(f"a loss is a 'mean' or a 'sum' over the samples, not {reduction!r}")
        self.batch, self.reduction = batch, reduction
        self.loss = None  # of the whole batch, once the loop is over, without its graph
        self.run = None

    def ways(self):
        return ("samples",) if self.reduction == "mean" else ("sum",)

    def __iter__(self):
        if "torch" not in sys.modules:
            raise RuntimeError("antifreeze.micro() is for PyTorch")
        torch_loop.install()
        self.run = Loop(self)
        before, torch_loop.here.loop = getattr(torch_loop.here, "loop", None), self.run
        try:
            yield from self.run.go()
        finally:
            torch_loop.here.loop = before
            self.run.leave()
            self.run = None


class Loop(torch_step.Attempt):
    """As of the others, but the pass is the program's: it is made between two turns of this generator. What a pass may change is
    known once a model is called in it."""

    def __init__(self, job):
        self.job, self.splitter, self.known, self.window = job, sizing.splitter, None, None
        self.kept = self.why_uncut = None
        self.room_before = self.room_after = None
        self.is_telling = True
        self.windows = {}
        self.trouble = None  # the error of this turn
        try:
            self.n = cut.count(job.batch)
        except cut.Uncut as why:
            self.n, self.why_uncut = 1, str(why)

    def entered(self, known):
        """A model is called, in this turn of the loop."""
        if known not in self.windows:
            self.windows[known] = undo.Window(known)
        if self.window is None:
            self.known, self.window = known, self.windows[known]

    def windows_open(self):
        return list(self.windows.values())

    def refuse(self, why):
        self.why_uncut = why
        if self.known is not None:
            super().refuse(why)

    def leave(self):
        """The loop was left in its midst, or is over: what it has added up stays."""
        for window in self.windows.values():
            window.close()
        self.windows = {}

    def go(self):
        while True:
            sizes = [self.n] if self.why_uncut or self.known and self.known.refused else self.splitter.parts(self.n)
            self.windows, self.trouble = {}, None
            self.window = None
            values, weights = [], []
            try:
                for piece in self.whole() if len(sizes) == 1 else self.pieces(sizes):
                    yield from self.turn(piece, len(sizes) > 1)
                    if self.trouble:
                        break
                    if not piece.is_trial and piece.value is not None:
                        values.append(piece.value)
                        weights.append(piece.weight)
            except Exception as stop:  # of ours: the program's own errors do not come through here
                if not isinstance(stop, (torch_step.Refused, torch_step.Again)):
                    stop = torch_step.Refused(f"done in parts it fails ({type(stop).__name__})")
                self.trouble = torch_step.forget(stop)
            if not self.trouble:
                self.end(sizes, values, weights)
                return
            self.again()

    def turn(self, piece, is_cut):
        part = Part(self, piece, cut.part(self.job.batch, self.n, piece.start, piece.stop) if is_cut else self.job.batch)
        if not piece.is_dry:
            yield part
            return
        torch = sys.modules["torch"]
        before = torch.is_grad_enabled()
        torch.set_grad_enabled(False)
        try:
            yield part
        finally:
            torch.set_grad_enabled(before)

    def way(self):
        return self.known and self.known.weighing or self.job.ways()[0]

    def whole(self):
        yield torch_step.Piece(0, self.n, 1, True, True)

    def pieces(self, sizes):
        for piece in super().pieces(sizes):
            yield piece
            if self.known is None:
                raise torch_step.Refused("no model was called in the loop")

    def weigher(self, way):
        return (lambda start, stop: (stop - start) / self.n) if way == "samples" else lambda start, stop: 1

    def end(self, sizes, values, weights):
        for window in self.windows.values():
            window.close()
        self.windows = {}
        if values:
            self.job.loss = sum(value * weight for value, weight in zip(values, weights))
        self.splitter.fits(max(sizes), self.room_before, self.room_after)

    def again(self):
        torch_step.release()
        for window in reversed(self.windows_open()):  # random numbers are those at the first one's beginning
            window.undo()
        self.windows = {}
        if isinstance(self.trouble, torch_step.Again):
            return
        if isinstance(self.trouble, torch_step.Refused):
            self.refuse(str(self.trouble))
            if self.kept:
                raise self.kept
            return
        self.kept = self.trouble

    def failed(self, error, piece):
        """Memory ran out on the way back. Whether the loop comes round again."""
        size = piece.stop - piece.start
        self.window = next(iter(self.windows.values()), None)
        if self.window is None:
            return False
        if not oom.is_oom(error):
            is_ours = size < self.n and not any(window.lost for window in self.windows_open())
            if is_ours:  # it may well be because of us
                self.refuse(f"done in parts it fails ({type(error).__name__})")
            return is_ours
        oom.caught(error, batch=self.n, micro=size)
        why = self.why_not(error) or torch_step.distributed(self.known.module())
        if not why and not self.splitter.failed(size) and not torch_step.lighten.lighten(self.known.module()):
            why = "one sample alone does not fit. Less precision (--amp), an optimizer of 8 bits, or more devices would help"
        if why:
            self.refuse(why)
        return not why


class Part:
    """Some samples of a batch, or all. `batch` is made as the one that was given; `x` and `y` are its first and second."""

    def __init__(self, loop, piece, batch):
        self._loop, self._piece, self.batch = loop, piece, batch
        self.weight = piece.weight

    def __len__(self):
        return self._piece.stop - self._piece.start

    def __iter__(self):
        return iter(self.batch)

    def __getitem__(self, key):
        return self.batch[key]

    @property
    def x(self):
        return self._field(0)

    @property
    def y(self):
        return self._field(1)

    def _field(self, at):
        batch = self.batch
        if hasattr(batch, "keys"):
            return batch[list(batch)[at]]
        return batch[at] if isinstance(batch, (tuple, list)) else (batch if at == 0 else None)

    def backward(self, loss, **kwargs):
        """loss.backward(), with the share of the whole batch that these samples have."""
        loop, piece = self._loop, self._piece
        piece.value = loss.detach().clone()
        if piece.is_dry:
            return
        loop.look()
        if piece.weight != 1:
            loss = loss * piece.weight
        try:
            loss.backward(**kwargs)
            return
        except Exception as error:
            if not torch_step.safely(loop.failed, error, piece):
                raise
            loop.trouble = torch_step.forget(error)
