"""What a forward and backward pass may write, so that a pass which failed half-way can be as if it had never been: gradients,
buffers of the layers (BatchNorm's means), metrics (torchmetrics) and figures that layers keep of themselves, the random numbers'
states. Parameters are never written in it; if they were (an optimizer inside of backward), there is no way back, and `lost` says so.

Opening a window must cost next to nothing, since nearly all of them close without trouble. So only what may be written is kept:
gradients by their version number, buffers and figures that were seen to change, and Python's and NumPy's random numbers (16 and
50 us) only where a pass was seen to draw from them.
"""
import random
import sys
import weakref

SMALL_BUFFER = 1 << 16  # elements: what is larger and changes in a pass is not kept, and a pass that failed is not undone then
LEARN = 3  # passes that are looked at whole before less is kept
LEARN_AGAIN = 64  # every so many passes buffers and random numbers are looked at whole again
LISTED_ANEW = 256  # passes for which a list of a model's parts is believed, if nothing was added to any model meanwhile

_known = weakref.WeakKeyDictionary()
_added = 0  # parameters, buffers and layers that were given to a model, any model


class Known:
    """What is known of a model (a torch module)."""

    def __init__(self, module):
        self.passes = 0  # that were opened
        self.has_weights = None  # whether there is anything to train, once looked at
        self.draws = {"random": False, "numpy": False}
        self.module = weakref.ref(module)
        self.parameters, self.metrics = [], []
        self.written = None  # buffers that passes write, once learned: (layer's buffers, name)
        self.figures = set()  # numbers and lists that passes were seen to change: (layer, name), held weakly as the model itself
        self.listed = None  # what _added was then

    def buffers(self):
        module = self.module()
        return [] if module is None else [(layer._buffers, name) for layer in module.modules() for name in layer._buffers]

    def refresh(self):
        if self.passes % LISTED_ANEW and self.listed == _added:
            return
        self.listed, module = _added, self.module()
        self.parameters = [] if module is None else list(module.parameters())
        self.metrics = [] if module is None else [layer for layer in module.modules() if is_metric(layer)]
        self.written = None


def known(module):
    found = _known.get(module)
    if found is None:
        found = _known[module] = Known(module)
    return found


def see_changes(module):
    """torch.nn.modules.module: lists of what a model has are made anew when one was given more."""
    def added(*_):
        global _added
        _added += 1

    module.register_module_parameter_registration_hook(added)
    module.register_module_module_registration_hook(added)
    module.register_module_buffer_registration_hook(added)


def is_metric(layer):
    """torchmetrics, which need not be there"""
    return "_defaults" in layer.__dict__ and "_update_count" in layer.__dict__


def plain_figures(module):
    """Numbers and lists that layers keep as attributes."""
    return [(weakref.ref(layer), name) for layer in (module.modules() if module is not None else ()) if not is_metric(layer)
            for name, value in layer.__dict__.items() if type(value) in (int, float, bool, list) and name != "training"]


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


class Figure:
    """A number or a list that a layer keeps."""

    def __init__(self, of, name):
        self.of, self.name, self.value = of, name, of().__dict__.get(name)
        self.length = len(self.value) if type(self.value) is list else None

    def __str__(self):
        return f"{type(self.of()).__name__}.{self.name}"

    def has_moved(self):
        now = self.of().__dict__.get(self.name)
        if self.length is not None:
            return now is not self.value or len(now) != self.length
        return now is not self.value and (type(now) is not type(self.value) or now != self.value)

    def back(self):
        self.of().__dict__[self.name] = self.value
        if self.length is not None:
            del self.value[self.length:]


class Metric:
    """A metric of torchmetrics: it adds to its states in place."""

    def __init__(self, layer):
        self.layer = layer
        self.kept = self.copied(layer.__dict__)

    def copied(self, of):
        states = {name: of[name] for name in self.layer._defaults}
        return {**of, **{name: list(state) if isinstance(state, list) else state.detach().clone() for name, state in states.items()}}

    def has_moved(self):
        return self.layer._update_count != self.kept["_update_count"]

    def back(self):
        self.layer.__dict__.update(self.copied(self.kept))


class Window:
    """Open it before a pass. Then close(), or look at `lost` and undo()."""

    def __init__(self, of, is_fresh=False, has_backward=True, is_apart=False, is_whole=False, done=()):
        """is_fresh: the pass itself begins by zeroing all gradients. has_backward: gradients are written in it. is_apart: those of
        earlier batches of the same step are held apart from this one's, which takes room for them once more. is_whole: all is
        looked at, and not only what is known to change. done: ids of the weights whose gradients have this batch in them already."""
        self.of = of
        of.refresh()
        self.is_whole = is_whole or of.passes < LEARN or of.passes % LEARN_AGAIN == 0
        has_figures = is_whole or of.passes < LEARN
        of.passes += 1
        self.numbers = numbers({"random": True, "numpy": True} if self.is_whole else of.draws)
        self.buffers, self.large = self.keep_buffers(is_whole)
        figures = plain_figures(of.module()) if has_figures else of.figures
        self.figures = [Figure(*one) for one in figures if one[0]() is not None]
        self.metrics = [Metric(one) for one in of.metrics]
        self.versions = [p._version for p in of.parameters]
        self.is_fresh, self.apart, self.grads, self.done, self.backs = is_fresh, None, None, set(done), 1
        if has_backward and not is_fresh:
            self.grads = [p.grad for p in of.parameters]
            self.grad_versions = [None if g is None else g._version for g in self.grads]
            if is_apart or done:
                self.apart = self.grads
                for p in of.parameters:
                    p.grad = None

    def keep_buffers(self, is_whole):
        kept, large = [], []
        for buffers, name in self.of.buffers() if is_whole or self.of.written is None else self.of.written:
            buffer = buffers.get(name)
            if buffer is None:
                continue
            is_small = buffer.numel() <= SMALL_BUFFER or "running_" in name
            (kept if is_small else large).append((buffers, name, buffer, buffer._version, buffer.detach().clone() if is_small else None))
        return kept, large

    def put_back(self):
        """The gradients that were held apart, with nothing of this pass."""
        if self.apart is not None:
            for p, g in zip(self.of.parameters, self.apart):
                p.grad = g
            self.apart = None

    def close(self):
        """The pass went well."""
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
                    if p.grad is not None and id(p) not in self.done:  # as autograd adds: into what was there
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
        self.of.figures |= {(one.of, one.name) for one in self.figures if one.has_moved()}

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
        for figure in self.figures:
            if figure.length is None and figure.has_moved():
                found["counts"] = f"it counts as it goes ({figure}), and parts would be more than one"
        return found

    def kept_lists(self):
        """What adds up over parts, but not if a part is computed twice: the name of a list or a metric that has moved, or None."""
        for one in self.figures:
            if one.length is not None and one.has_moved():
                return str(one)
        return next((type(one.layer).__name__ for one in self.metrics if one.has_moved()), None)

    def written_over(self):
        """The weights among whose gradients of earlier batches something of this pass is. Autograd adds a weight's gradient in one
        act, at the end of all that comes to it: so where it was added to once, all of this batch is in it. None: not to be known."""
        found = set()
        if self.grads is None or self.apart is not None:
            return found
        for p, g, version in zip(self.of.parameters, self.grads, self.grad_versions):
            if g is not None and (p.grad is not g or g._version != version):
                if p.grad is not g or g._version != version + 1 or self.backs > 1:
                    return None
                found.add(id(p))
        return found

    @property
    def lost(self):
        """Why what was written cannot be undone; None: it can."""
        if any(p._version != version for p, version in zip(self.of.parameters, self.versions)):
            return "weights were written before memory ran out"
        if any(buffers.get(name) is not buffer or buffer._version != version for buffers, name, buffer, version, _ in self.large):
            return "a large buffer of the model was written before memory ran out"
        if self.written_over() is None:
            return "gradients of earlier batches of the same step were written over"
        return None

    def undo(self):
        """All is as it was, but for the gradients of those weights whose ids it returns: they have the batch in them already."""
        done = self.done | (self.written_over() or set())
        if self.apart is not None:
            self.put_back()
        elif self.grads is not None:
            for p, g in zip(self.of.parameters, self.grads):
                p.grad = g
        elif self.is_fresh:
            for p in self.of.parameters:
                p.grad = None
        self.rewind()
        return done

    def rewind(self):
        """All but the gradients."""
        torch = sys.modules["torch"]
        with torch.no_grad():
            for buffers, name, buffer, version, kept in self.buffers:
                if buffer._version != version:
                    buffer.copy_(kept)
                if buffers.get(name) is not buffer:
                    buffers[name] = buffer
        for one in (*self.figures, *self.metrics):
            if one.has_moved():
                one.back()
        set_numbers(self.numbers)
