"""What a forward and backward pass may write, so that a pass which failed half-way can be as if it had never been: gradients,
buffers of the layers (BatchNorm's means), the random numbers' states. Parameters are never written in it; if they were (an
optimizer inside of backward), there is no way back, and `lost` says so.

Opening a window must cost next to nothing, since nearly all of them close without trouble. So only what may be written is kept:
gradients by their version number, buffers that were seen to change, and Python's and NumPy's random numbers (16 and 50 us)
only where a pass was seen to draw from them.
"""
import random
import sys
import weakref

SMALL_BUFFER = 1 << 16  # elements: what is larger and changes in a pass is not kept, and a pass that failed is not undone then
LEARN = 3  # passes that are looked at whole before less is kept
LEARN_AGAIN = 64  # every so many passes it is looked at whole again
HELD_APART = 8  # passes for which earlier gradients of the same step are held apart: until memory has shown to be enough
LISTED_ANEW = 256  # passes for which a list of a model's parameters is believed

_known = weakref.WeakKeyDictionary()


class Known:
    """What is known of a model (a torch module)."""

    def __init__(self, module):
        self.passes = 0  # that were opened
        self.calm = 0  # since the last trouble
        self.weighing = None  # how parts are weighed, once found (split/torch_step.py)
        self.is_proven = self.is_call_proven = False
        self.proofs = 0  # that went well
        self.rehearsed = 0  # samples of the largest part that was there and back, in calls of a plain loop
        self.has_weights = None  # whether there is anything to train, once looked at
        self.refused = None  # why its batches are not split
        self.draws = {"random": False, "numpy": False}
        self.module = weakref.ref(module)
        self.parameters = []
        self.written = None  # buffers that passes write, once learned: (layer's buffers, name)

    def buffers(self):
        module = self.module()
        return [] if module is None else [(layer._buffers, name) for layer in module.modules() for name in layer._buffers]

    def refresh(self):
        module = self.module()
        self.parameters = [] if module is None else list(module.parameters())
        self.written = None


def known(module):
    found = _known.get(module)
    if found is None:
        found = _known[module] = Known(module)
    return found


def numbers(which):
    """The states of all random numbers that a pass may draw."""
    torch = sys.modules["torch"]
    states = {"torch": torch.default_generator.get_state()}
    if torch.cuda.is_initialized():
        states["cuda"] = torch.cuda.get_rng_state()
    if which["random"]:
        states["random"] = random.getstate()
    if which["numpy"] and "numpy.random" in sys.modules:
        states["numpy"] = sys.modules["numpy.random"].get_state()
    return states


def set_numbers(states):
    torch = sys.modules["torch"]
    torch.default_generator.set_state(states["torch"])
    if "cuda" in states:
        torch.cuda.set_rng_state(states["cuda"])
    if "random" in states:
        random.setstate(states["random"])
    if "numpy" in states:
        sys.modules["numpy.random"].set_state(states["numpy"])


def is_same(one, other):
    if hasattr(one, "shape"):
        return one.shape == other.shape and bool((one == other).all())
    if isinstance(one, tuple):
        return len(one) == len(other) and all(map(is_same, one, other))
    return one == other


class Window:
    """Open it before a pass. Then close(), or look at `lost` and undo()."""

    def __init__(self, of, is_fresh=False, has_backward=True):
        """is_fresh: the pass itself begins by zeroing all gradients. has_backward: gradients are written in it."""
        self.of = of
        if of.passes % LISTED_ANEW == 0:
            of.refresh()
        self.is_whole = of.passes < LEARN or of.passes % LEARN_AGAIN == 0
        of.passes += 1
        self.numbers = numbers({"random": True, "numpy": True} if self.is_whole else of.draws)
        self.buffers, self.large = self.keep_buffers()
        self.versions = [p._version for p in of.parameters]
        self.is_fresh, self.apart, self.grads = is_fresh, None, None
        if has_backward and not is_fresh:
            self.grads = [p.grad for p in of.parameters]
            self.grad_versions = [None if g is None else g._version for g in self.grads]
            self.hold_apart()

    def keep_buffers(self):
        kept, large = [], []
        for buffers, name in self.of.written if self.of.written is not None else self.of.buffers():
            buffer = buffers.get(name)
            if buffer is None:
                continue
            is_small = buffer.numel() <= SMALL_BUFFER or "running_" in name
            (kept if is_small else large).append((buffers, name, buffer, buffer._version, buffer.detach().clone() if is_small else None))
        return kept, large

    def hold_apart(self):
        """Gradients of earlier passes of the same step: autograd would add to them in place. Held apart they take room once more."""
        if self.of.calm < HELD_APART and any(g is not None for g in self.grads) and \
                all(g is None or not g.is_sparse for g in self.grads) and \
                not any(getattr(p, "_post_accumulate_grad_hooks", None) for p in self.of.parameters):
            self.apart = self.grads
            for p in self.of.parameters:
                p.grad = None

    def put_back(self):
        """The gradients that were held apart, with nothing of this pass."""
        if self.apart is not None:
            for p, g in zip(self.of.parameters, self.apart):
                p.grad = g
            self.apart = None

    def close(self):
        """The pass went well."""
        self.of.calm += 1
        self.merge()
        if self.is_whole:
            try:
                self.learn()
            except Exception:  # as little as before is known, then
                pass

    def merge(self):
        """Adds up what was held apart, for whoever looks at the gradients next. From then on they cannot be undone."""
        if self.apart is not None:
            torch = sys.modules["torch"]
            with torch.no_grad():
                for p, g in zip(self.of.parameters, self.apart):
                    if g is None:
                        continue
                    if p.grad is not None:  # as autograd adds: into what was there
                        g.add_(p.grad)
                    p.grad = g
            self.apart = None

    def learn(self):
        after = numbers({"random": True, "numpy": True})
        for which in ("random", "numpy"):
            if which in self.numbers and not is_same(self.numbers[which], after[which]):
                self.of.draws[which] = True
        changed = [(buffers, name) for buffers, name, buffer, version, _ in self.buffers + self.large
                   if buffers.get(name) is not buffer or buffer._version != version]
        self.of.written = changed

    def moved(self):
        """What has gone on since it was opened, and would go on further with each part: a word to a sentence."""
        found = {}
        now = numbers({"random": "random" in self.numbers, "numpy": "numpy" in self.numbers})
        if any(key in now and not is_same(state, now[key]) for key, state in self.numbers.items()):
            found["dropout"] = "random numbers are drawn in it (dropout), others for parts than for the whole"
        for buffers, name, buffer, version, kept in self.buffers + self.large:
            now = buffers.get(name)
            if (now is not buffer or buffer._version != version) and (now is None or kept is None or not is_same(kept, now)):
                found["buffers"] = f"it keeps figures of what goes through at once ({name}), others for parts than for the whole"
        return found

    @property
    def lost(self):
        """Why what was written cannot be undone; None: it can."""
        if any(p._version != version for p, version in zip(self.of.parameters, self.versions)):
            return "weights were written before memory ran out"
        if any(buffers.get(name) is not buffer or buffer._version != version for buffers, name, buffer, version, _ in self.large):
            return "a large buffer of the model was written before memory ran out"
        if self.grads is not None and self.apart is None and any(
                g is not None and (p.grad is not g or g._version != version)
                for p, g, version in zip(self.of.parameters, self.grads, self.grad_versions)):
            return "gradients of earlier batches of the same step were written over"
        return None

    def undo(self):
        self.of.calm = 0
        torch = sys.modules["torch"]
        if self.apart is not None:
            self.put_back()
        elif self.grads is not None:
            for p, g in zip(self.of.parameters, self.grads):
                p.grad = g
        elif self.is_fresh:
            for p in self.of.parameters:
                p.grad = None
        self.rewind(torch)

    def rewind(self, torch=None):
        """All but the gradients."""
        torch = torch or sys.modules["torch"]
        with torch.no_grad():
            for buffers, name, buffer, version, kept in self.buffers:
                if buffer._version != version:
                    buffer.copy_(kept)
                if buffers.get(name) is not buffer:
                    buffers[name] = buffer
        set_numbers(self.numbers)
