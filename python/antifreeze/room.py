"""How much memory may still be taken, and how much a number of samples will take.

The guard writes the first into a page that the probe reads. The second is measured: how far the memory of this process rose
above what it was while so many samples went through. TensorFlow's allocator of large blocks says it itself; else the kernel knows
the highest mark (VmHWM), which is set back before.
"""
from . import probe

ALL = (1 << 64) - 1  # room(): nothing is refused
SPARE = 1.1  # times what was measured: memory is not quite linear in the samples
SPARE_BYTES = 24 << 20  # and this: what lies around between two looks



def _left():
    return probe.function("antifreeze_room", "c_uint64")


def room():
    """Bytes to the line."""
    left = _left()
    return left() if left else ALL


def trim():
    """What was freed, and the C library keeps for the next time, goes back. It takes milliseconds: not for each step."""
    trims = probe.function("malloc_trim", "c_int", "c_size_t")  # of the C library, if it is the GNU one
    if trims and _left():
        trims(0)


class armed:
    """with armed(): threads of a framework, which have no Python in them, can be refused memory, too."""

    @staticmethod
    def by(count):
        arm = probe.function("antifreeze_arm", None, "c_int")
        if arm:
            arm(count)

    def __enter__(self):
        self.by(1)

    def __exit__(self, *_):
        self.by(-1)


def peak_begin():
    """What this process has now, and its highest mark set back to it. None: not to be known."""
    try:
        with open("/proc/self/clear_refs", "w") as file:
            file.write("5")
        return peak()
    except OSError:
        return None


def peak():
    with open("/proc/self/status", "rb") as file:
        text = file.read()
    return int(text.partition(b"VmHWM:")[2].split(None, 1)[0]) << 10


class Forecast:
    """Bytes by the number of samples: those measured, and by the line through two of them what others will take."""

    MEASURED = 3  # times that a size is measured: then it is known, and a step is left alone

    def __init__(self, meter=None):
        """meter: of a framework's allocator that keeps what it has. reset() sets its highest mark back; now() and highest() give
        bytes in use."""
        self.known = {}  # samples to bytes
        self.times = {}
        self.metered = {}  # the same by the meter alone, of those that went through as a step
        self.meter = meter
        self.most = 0  # the highest mark of all times, by the meter: so much the allocator has

    def is_known(self):
        return bool(self.known)

    def begin(self, samples):
        return self.start() if self.times.get(samples, 0) < self.MEASURED else None

    def start(self):
        if self.meter:
            self.most = max(self.most, self.meter.highest())
            self.meter.reset()
        return (peak_begin(), self.meter.now() if self.meter else 0)

    def taken(self, used):
        """The highest that it was since start(), above what it was then."""
        try:
            by_kernel = peak() - used[0] if used[0] is not None else 0
            if not self.meter:
                return by_kernel
            self.most = max(self.most, self.meter.highest())
            return max(by_kernel, self.meter.highest() - used[1])
        except Exception:
            return 0

    def end(self, used, samples):
        if used:
            self.times[samples] = self.times.get(samples, 0) + 1
            self.learn(samples, self.taken(used))
            if self.meter:
                self.metered[samples] = max(self.metered.get(samples, 0), self.meter.highest() - used[1])

    def growth(self, samples):
        """By how much the process will grow: less what the allocator has kept from before."""
        kept = max(0, self.most - self.meter.now()) if self.meter else 0
        return max(0, self.metered.get(samples, self.need(samples) or 0) - kept)

    def learn(self, samples, taken):
        self.known[samples] = max(self.known.get(samples, 0), taken)

    def need(self, samples):
        """None: nothing is known. What went well as a step is what it is; the rest is a guess, with something to spare."""
        if samples in self.times:
            return self.known[samples]
        if samples in self.known:
            return int(self.known[samples] * SPARE) + SPARE_BYTES
        if not self.known:
            return None
        sizes = sorted(self.known)
        high = next((size for size in sizes if size > samples), sizes[-1])
        low = max((size for size in sizes if size < high), default=None)
        if low is None:
            return int(self.known[high] * samples / high * SPARE) + SPARE_BYTES
        slope = max(0.0, (self.known[high] - self.known[low]) / (high - low))
        return int((self.known[high] + slope * (samples - high)) * SPARE) + SPARE_BYTES

    def fitting(self, samples, free):
        """At most so many, by halves; one at least: that can only be tried."""
        while samples > 1 and self.growth(samples) > free:
            samples = (samples + 1) // 2
        return samples
