"""antifreeze.History(n): for what people keep in lists.

    losses = antifreeze.History(1000)
    for ...:
        losses.append(loss)

A list of losses keeps each with the whole graph that it was computed by, and grows without an end. This one keeps numbers, and
at most n of them: when it is full, every second one goes, and from then on every second one comes in. So it always spans the
whole run, evenly; the newest is always there. It works the same with and without `antifreeze run`.
"""

MISSING = object()


class History:
    def __init__(self, n=1000, values=()):
        """n: how many are kept; at least 2."""
        if n < 2:
            raise ValueError(f"a History keeps at least 2 values, not {n}")
        self.most = int(n)
        self.count = 0  # values that were ever appended
        self.every = 1  # of those, one in so many is kept
        self._kept = []
        self._newest = MISSING  # as it was appended
        self._last = MISSING  # the newest as a number, where it is not among the kept
        self._sum, self._least, self._largest, self._numbers = 0.0, None, None, 0
        self.extend(values)

    def append(self, value):
        """A number, or a tensor or array of any framework: of one element the number, of more a copy on the host."""
        self._settle()
        self._newest = detached(value)
        self.count += 1

    def extend(self, values):
        for value in values:
            self.append(value)

    def _settle(self):
        """Makes the newest a number. It was not done at once: on a GPU it would have to be waited for, now it has long been
        computed."""
        if self._newest is MISSING:
            return
        value, self._newest = plain(self._newest), MISSING
        self._reckon(value)
        if len(self._kept) == self.most - 1 and self._is_due():
            del self._kept[1::2]
            self.every *= 2
        if self._is_due():
            self._kept.append(value)
            self._last = MISSING
        else:
            self._last = value

    def _is_due(self):
        return (self.count - 1) % self.every == 0

    def _reckon(self, value):
        if isinstance(value, (int, float)):
            self._sum += value
            self._numbers += 1
            self._least = value if self._least is None else min(self._least, value)
            self._largest = value if self._largest is None else max(self._largest, value)

    def _all(self):
        self._settle()
        return self._kept if self._last is MISSING else self._kept + [self._last]

    def __len__(self):
        return len(self._all())

    def __iter__(self):
        return iter(list(self._all()))

    def __getitem__(self, key):
        return self._all()[key]

    def __bool__(self):
        return self.count > 0

    def __repr__(self):
        return f"<History of {self.count} values, {len(self)} kept>"

    def steps(self):
        """Which of all values each of the kept is, from 0: the x axis of a plot."""
        values = self._all()
        places = [n * self.every for n in range(len(self._kept))]
        return places + [self.count - 1] * (len(values) - len(places))

    def mean(self):
        """Of all values that were ever appended, not only of the kept ones."""
        self._settle()
        return self._sum / self._numbers if self._numbers else float("nan")

    def min(self):
        self._settle()
        return self._least

    def max(self):
        self._settle()
        return self._largest


def detached(value):
    """Without the graph that it came from, and without what the program may still write into it."""
    if isinstance(value, (int, float, str, bytes, bool, type(None))):
        return value
    detach = getattr(value, "detach", None)
    if callable(detach):
        return detach().clone()
    return value.copy() if hasattr(value, "__array_interface__") and hasattr(value, "copy") else value


def plain(value):
    """A number where it is one; else a copy on the host."""
    if isinstance(value, (int, float, str, bytes, bool, type(None))):
        return value
    try:
        size = value.numel() if hasattr(value, "numel") else getattr(value, "size", None)
        if callable(size):
            size = size()
        if size is None and hasattr(value, "shape"):  # TensorFlow
            size = 1
            for length in value.shape:
                size *= int(length)
        if size == 1:
            return value.item() if hasattr(value, "item") else value.numpy().item()
        if hasattr(value, "cpu"):
            return value.cpu()
        if hasattr(value, "numpy"):
            return value.numpy()
    except Exception:  # what cannot be made plain is kept as it is
        pass
    return value
