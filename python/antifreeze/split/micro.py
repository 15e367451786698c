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

What else a turn counts, it should leave where m.is_trial: then parts are compared, and the same samples come again. The one that is
compared comes before the others.

It works without Antifreeze, too, and needs nothing but torch.
"""
import sys

from ..see import oom
from . import cut, ranks, torch_loop, torch_step


class micro(torch_step.Job):
    is_seen = True

    def __init__(self, batch, reduction="mean"):
        if reduction not in ("mean", "sum"):
            raise ValueError(f"a loss is a 'mean' or a 'sum' over the samples, not {reduction!r}")
        self.batch, self.reduction = batch, reduction
        self.loss = None  # of the whole batch, once the loop is over, without its graph
        caller = sys._getframe(1)
        self.place = caller.f_code, caller.f_lineno

    def ways(self):
        return ("samples",) if self.reduction == "mean" else ("sum",)

    def __iter__(self):
        if "torch" not in sys.modules:
            raise RuntimeError("antifreeze.micro() is for PyTorch")
        torch_loop.install()
        loop = Loop(self)
        before, torch_loop.here.loop = getattr(torch_loop.here, "loop", None), loop
        try:
            yield from loop.go()
        finally:
            torch_loop.here.loop = before
            loop.leave()


class Loop(torch_step.Attempt):
    """As of the others, but the pass is the program's: it is made between two turns of this generator. What a pass may change is
    known once a model is called in it."""

    def __init__(self, job):
        super().__init__(job, torch_step.course(*job.place))
        self.windows = {}
        self.is_cut, self.is_shared = False, bool(torch_step.distributed(None))
        self.trouble = None  # the error of this turn

    def entered(self, known):
        """A model is called, in this turn of the loop."""
        if known not in self.windows:
            self.windows[known] = self.new_window(known, self.is_cut)

    def windows_open(self):
        return list(self.windows.values())

    def leave(self):
        """The loop was left in its midst, or is over: what it has added up stays."""
        for window in self.windows.values():
            window.close()
        self.windows = {}

    def go(self):
        while True:
            sizes = self.sizes()
            self.is_cut, self.windows, self.trouble, self.is_looked_at = len(sizes) > 1, {}, None, len(sizes) == 1
            self.proof = torch_step.proof.Proof(self) if self.is_cut and self.is_due(sizes) else None
            done = []
            try:
                for piece in self.pieces(sizes) if self.is_cut else [torch_step.Piece(0, self.n, 1)]:
                    piece.is_last |= not self.is_cut
                    yield from self.turn(piece)
                    if self.trouble:
                        break
                    if not self.windows and self.is_cut:
                        raise torch_step.Refused("no model was called in the loop")
                    if not piece.is_trial and piece.weight and piece.value is not None:
                        done.append(piece)
            except Exception as stop:  # of ours: the program's own errors do not come through here
                if not isinstance(stop, (torch_step.Refused, torch_step.Again)):
                    stop = torch_step.Refused(f"done in parts it fails ({type(stop).__name__})")
                self.trouble = stop
            if not self.trouble:
                self.leave()
                self.fits(sizes)
                if done:
                    self.job.loss = sum(piece.value * piece.weight for piece in done)
                return
            failure = torch_step.forget(self.trouble)
            self.clean(failure)
            self.windows = {}
            if isinstance(failure, torch_step.Refused):
                self.course.refuse(str(failure))
                if self.kept:
                    raise torch_step.bare(self.kept)

    def turn(self, piece):
        part = Part(self, piece, cut.part(self.job.batch, self.n, piece.start, piece.stop) if self.is_cut else self.job.batch)
        with sys.modules["torch"].no_grad() if piece.is_dry else ranks.apart(piece.is_trial or not piece.is_last):
            yield part

    def failed(self, error, piece):
        """On the way back. Whether the loop comes round again."""
        size = piece.stop - piece.start
        if not self.windows:
            return False
        if not oom.is_oom(error):
            is_ours = size < self.n and not any(window.lost for window in self.windows_open())
            if is_ours:  # it may well be because of us
                self.course.refuse(f"done in parts it fails ({type(error).__name__})")
            return is_ours
        models = [window.of.module() for window in self.windows_open()]
        shared = next(filter(None, map(torch_step.distributed, models)), None)
        if shared and any(map(ranks.meets_once, models)):
            oom.caught(error, batch=self.n, micro=size)
            return False  # all ranks have to begin anew
        if shared:
            self.course.refuse(shared)
        return self.ran_out(error, size)


class Part:
    """Some samples of a batch, or all. `batch` is made as the one that was given; `x` and `y` are its first and second."""

    def __init__(self, loop, piece, batch):
        self._loop, self._piece, self.batch = loop, piece, batch
        self.weight, self.is_trial = piece.weight, piece.is_trial
        self._times = 0

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
        """loss.backward(), with the share of the whole batch that these samples have. A turn may have several."""
        loop, piece = self._loop, self._piece
        if loop.trouble:  # the turn is over already, but for what is left of it
            return
        value = loss.detach().clone()
        piece.value = value if piece.value is None else piece.value + value
        if piece.is_dry:
            return
        for window in loop.windows_open():
            window.backs += self._times  # of this turn
        self._times = 1
        if piece.weight != 1:
            loss = loss * piece.weight
        try:
            loop.look()
            loss.backward(**kwargs)
            return
        except torch_step.Refused as why:
            loop.trouble = why
        except Exception as error:
            if not torch_step.safely(loop.failed, error, piece):
                raise
            loop.trouble = torch_step.forget(error)
