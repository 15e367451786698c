"""What PyTorch's memory is for: parameters, gradients, the optimizer's state, buffers, activations; on the host and on GPUs.

To walk through a model takes as long as a small step. So it is done after the first steps, when the model is new, and then as
rarely as a thousandth of the time allows (Gate). Activations are what is alive when a backward pass begins and was not at the
end of the step before: of malloc on the host, of torch's own allocator on a GPU.

Models are seen as they are put together (a hook that torch has for that), for what an optimizer has not: frozen layers,
buffers. Nothing here keeps anything alive.
"""
import sys
from time import perf_counter_ns
from weakref import ref

from .. import clock, talk
from ..tell import tell
from . import oom

LEAST_NS = 250_000_000  # between two walks
SHARE = 1000  # at most one part in so many of the time goes into walks
SCAN_NS = 60_000_000  # what a look at all objects of a program takes
FULL_STEPS = 3  # in which one walks in any case: an optimizer makes its state in the first, and activations are seen in the next
FEW = 8
SOME = 1 << 16  # numbers of a weight that are looked at
DEEPEST = 4  # lists in lists of an optimizer's state or a batch

HOST, GPU = "", "gpu_"


class Gate:
    """Opens as often as the share allows, given what the last pass cost."""

    def __init__(self, least_ns=LEAST_NS, share=SHARE):
        self.least_ns, self.share, self.due_ns = least_ns, share, 0

    def close(self, began_ns, now_ns):
        self.due_ns = max(self.due_ns, now_ns + max(self.least_ns, (now_ns - began_ns) * self.share))


class Accumulation:
    """Finds gradients that were thrown away between two steps: the same optimizer or model zeroes for the second time before a
    step, there were gradients again, they came of another batch, and nobody has used them: no weight is another than before. An
    attack on the inputs (adversarial training) throws gradients away, too, but within one batch; with several optimizers each
    has its own turn (GANs); who climbs before the descent (SAM) has moved the weights by them; and a step that is left out since
    its gradients are no numbers (GradScaler) is right to be.

    It looks on from one step to the next, now and then, and takes the steps in between for the same."""

    def __init__(self):
        self.lost_count = 0  # micro-batches, in all
        self.rate = 0  # the same of one step, when it last looked
        self.place = None  # the program's line that threw the first of them away
        self.begin(0)
        self.is_open = False

    def begin(self, step):
        self.is_open = True
        self.step = step  # from which on it looks
        self.thrown = 0
        self.zeroed = {}  # who has zeroed, by id: when, and what the weight was then

    def on_zero(self, who, waited):
        """waited: what loaders have taken for batches up to now. That is more after each, and 0 where there is none."""
        before, weight = self.zeroed.get(id(who), (None, None))
        gradient, now = gradient_of(who)
        self.zeroed[id(who)] = (waited, now)
        is_another_batch = before is not None and (waited > before or not waited)
        if is_another_batch and gradient is not None and now == weight and gradient.any() and gradient.isfinite().all():
            self.thrown += 1
            self.place = self.place or oom.place(sys._getframe(1))

    def end(self, step, before):
        """The next step begins; the last that it had looked at before began with `before`. Returns whether more were found."""
        self.is_open = False
        self.rate = self.thrown
        self.lost_count += self.rate * max(1, step - before)
        return self.rate > 0


def gradient_of(who):
    """Of an optimizer or a model: the gradient of one of its first parameters, which may be zeros or None, and what that weight
    is now. Some of the first may be frozen."""
    groups = getattr(who, "param_groups", None)
    parameters = groups[0]["params"][:FEW] if groups else [one for one, _ in zip(who.parameters(), range(FEW))]
    one = next((one for one in parameters if one.grad is not None), None)
    if one is None:
        one = next((one for one in parameters if one.requires_grad), None)
    return (one.grad, weight_of(one)) if one is not None else (None, None)


def weight_of(parameter):
    """What is another when it was changed. Its version is, by torch's rules; but many write to .data, which leaves it alone."""
    flat = parameter.detach().reshape(-1)
    return id(parameter), parameter._version, float(flat[::1 + len(flat) // SOME].sum())


class Models:
    """The modules that are part of no other."""

    def __init__(self):
        self.parents, self.children = {}, {}

    def on_part(self, module, _name, part):
        """A module becomes part of another."""
        self.parents[id(module)] = ref(module)
        if part is not None:
            self.children[id(part)] = ref(part)

    def roots(self):
        for known in self.parents, self.children:
            for key in [key for key, weak in list(known.items()) if weak() is None]:
                del known[key]
        return [module for module in (weak() for key, weak in list(self.parents.items()) if key not in self.children)
                if module is not None]


class Tally:
    """Bytes by kind and place. Views of one memory, and tensors that are two things at once (tied weights), count once."""

    def __init__(self):
        self.bytes, self.seen = {}, set()

    def add(self, kind, tensor):
        try:
            storage = tensor.untyped_storage()
            key, size = storage.data_ptr(), storage.nbytes()
        except Exception:  # one that has no memory of its own: sparse, fake, of a functional transform
            return
        device = tensor.device.type
        if device == "meta" or not size or key in self.seen:
            return
        self.seen.add(key)
        place = HOST if device == "cpu" else GPU
        self.bytes[place, kind] = self.bytes.get((place, kind), 0) + size

    def get(self, place, kind):
        return self.bytes.get((place, kind), 0)


models = Models()
accumulation = Accumulation()
gate = Gate()
is_due = True  # a walk is to be made at the next step
walks = 0  # that were made
optimizers = {}  # id to weak reference
is_gpu = False  # the model that is trained lies on one
await_zero = []  # functions: from now on, True, or no more, False, accumulation.on_zero() is to be called
await_backward = None  # a function: look_at_activations() is to be called when the next backward pass begins
_torch = None
_before = None  # at the last walk: (heap, gpu allocated, gradients by place)
_watched = 0  # the step up to which it is known what was zeroed
_told_place = False
_capped = set()  # devices
_spent_ns = 0  # on looks at all objects
_began_ns = perf_counter_ns()


def start(torch):
    global _torch
    if _torch is None:
        _torch = torch
        oom.sources.append(moment)
        clock.turns.append(on_turn)
        import atexit
        atexit.register(on_end)


def on_turn():
    """Some of the clock's steps. An error that was noticed and came to nobody's hands was swallowed: the program goes on."""
    global is_due
    if oom.pending is not None:
        oom.told()
    is_due = is_due or perf_counter_ns() >= gate.due_ns


def on_step(optimizer=None, has_closure=False):
    """A walk is due, and an optimizer is about to make its step: gradients are there, and the state that steps before have left.
    None: one that is not torch's, whose state is not known. The step after it closes the look at what is zeroed."""
    global is_due
    began = perf_counter_ns()
    try:
        if accumulation.is_open:
            watch_zeroing(False)
        if walks < FULL_STEPS or began >= gate.due_ns:
            walk(optimizer)
            if optimizer is not None and not has_closure:  # what a closure zeroes inside of step() is the optimizer's affair
                watch_zeroing(True)
    except Exception:
        pass
    gate.close(began, perf_counter_ns())
    is_due = accumulation.is_open or walks < FULL_STEPS
    if is_due:
        clock.due_ns = 0


def on_end():
    """The steps since the last look at what is zeroed were like those before."""
    if accumulation.rate and clock.count > _watched:
        accumulation.lost_count += accumulation.rate * (clock.count - _watched)
        tell("zeroed_count", accumulation.lost_count)


def tell_lost():
    """How many, and once where."""
    global _told_place
    tell("zeroed_count", accumulation.lost_count)
    if accumulation.place and not _told_place:
        _told_place = True
        talk.event("note", zeroed_at=accumulation.place)


def watch_zeroing(begins):
    global _watched
    if begins:
        accumulation.begin(clock.count)
    elif clock.count <= accumulation.step:  # another optimizer of the same step
        return
    else:
        if accumulation.end(clock.count, _watched):
            tell_lost()
        _watched = clock.count
    for let in await_zero:
        let(begins)


def walk(optimizer):
    """Tells of all that stays from step to step."""
    global walks, _before
    walks += 1
    known = optimizers.get(id(optimizer))
    if optimizer is not None and (known is None or known() is not optimizer):
        optimizers[id(optimizer)] = ref(optimizer)
    tally = tell_models(("parameters", "gradients", "buffers") + (("optimizer",) if optimizers and walks > 1 else ()))
    allocated = look_at_cuda()
    if await_backward and walks > 1:  # between the first and the second step an optimizer makes its state
        _before = (heap_bytes(), allocated, {place: tally.get(place, "gradients") for place in (HOST, GPU)})
        await_backward()


def tell_models(kinds):
    global is_gpu
    tally = tally_of_models()
    is_gpu = tally.get(GPU, "parameters") > 0
    for place in (HOST, GPU) if is_gpu else (HOST,):
        for kind in kinds:
            tell(f"{place}{kind}_bytes", tally.get(place, kind))
    return tally


def tally_of_models():
    tally = Tally()
    for key, weak in list(optimizers.items()):
        known = weak()
        if known is None:
            del optimizers[key]
            continue
        for group in known.param_groups:
            for parameter in group["params"]:
                add_parameter(tally, parameter)
        add_nested(tally, "optimizer", list(known.state.values()))
    for root in models.roots():
        for parameter in root.parameters():
            add_parameter(tally, parameter)
        for buffer in root.buffers():
            tally.add("buffers", buffer)
    return tally


def add_parameter(tally, parameter):
    tally.add("parameters", parameter)
    if parameter.grad is not None:
        tally.add("gradients", parameter.grad)


def add_nested(tally, kind, value, depth=0):
    if isinstance(value, _torch.Tensor):
        tally.add(kind, value)
    elif depth < DEEPEST:
        if isinstance(value, dict):
            value = list(value.values())
        if isinstance(value, (list, tuple)):
            for one in value:
                add_nested(tally, kind, one, depth + 1)


def look_at_activations():
    """A backward pass begins: what is alive that was not at the step before is activations. Gradients that were let go of since
    (zero_grad) have made room: it is added."""
    global _before
    (heap, allocated, gradients), _before = _before, None
    began = perf_counter_ns()
    try:
        gone = gradients_gone(gradients)
        now = heap_bytes()
        if heap is not None and now is not None and not is_gpu:
            tell("activations_bytes", max(0, now - heap + gone[HOST]))
        if is_gpu and allocated is not None:
            tell("gpu_activations_bytes", max(0, look_at_cuda() - allocated + gone[GPU]))
    except Exception:
        pass
    gate.close(began, perf_counter_ns())


def gradients_gone(before):
    """Of the gradients that were there, those that no longer are, by place."""
    if not any(before.values()):
        return before
    tally = Tally()
    for weak in list(optimizers.values()):
        for group in getattr(weak(), "param_groups", ()):
            for parameter in group["params"]:
                if parameter.grad is not None:
                    tally.add("gradients", parameter.grad)
    return {place: max(0, size - tally.get(place, "gradients")) for place, size in before.items()}


def heap_bytes():
    """What the program has of malloc; None: it cannot be told (an older C library, another malloc)."""
    info = _mallinfo() if _mallinfo else None
    return info.uordblks + info.hblkhd if info and info.arena else None


def find_mallinfo():
    try:
        import ctypes
        words = ("arena", "ordblks", "smblks", "hblks", "hblkhd", "usmblks", "fsmblks", "uordblks", "fordblks", "keepcost")
        kind = type("mallinfo2", (ctypes.Structure,), {"_fields_": [(word, ctypes.c_size_t) for word in words]})
        function = ctypes.PyDLL(None).mallinfo2
        function.argtypes, function.restype = (), kind
        return function
    except Exception:
        return None


_mallinfo = find_mallinfo()


def cuda_stats():
    """The allocator's own figures, of all devices; {}: CUDA is not in use, and is not brought up by asking."""
    total = {}
    cuda = getattr(_torch, "cuda", None)
    if cuda is None or not cuda.is_initialized():
        return total
    for device in range(cuda.device_count()):
        stats = cuda.memory.memory_stats_as_nested_dict(device)
        if not stats:
            continue
        row = {
            "gpu_allocated_bytes": stats["allocated_bytes"]["all"]["current"],
            "gpu_allocated_peak_bytes": stats["allocated_bytes"]["all"]["peak"],
            "gpu_reserved_bytes": stats["reserved_bytes"]["all"]["current"],
            "gpu_inactive_bytes": stats["inactive_split_bytes"]["all"]["current"],
            "gpu_retries_count": stats["num_alloc_retries"],
        }
        for name, value in row.items():
            total[name] = total.get(name, 0) + value
        if row["gpu_reserved_bytes"] and device not in _capped:
            cap(device)
    return total


def look_at_cuda():
    """Tells the figures of CUDA; returns what is allocated, or None."""
    stats = cuda_stats()
    for name, value in stats.items():
        tell(name, value)
    if stats and hasattr(_torch.cuda, "host_memory_stats"):
        pinned = _torch.cuda.host_memory_stats().get("allocated_bytes.current")
        if pinned is not None:
            tell("pinned_bytes", pinned)
    return stats.get("gpu_allocated_bytes")


def moment():
    """For an error: what the allocator has."""
    stats = cuda_stats()
    keys = {"allocated_bytes": stats["gpu_allocated_bytes"], "reserved_bytes": stats["gpu_reserved_bytes"]} if stats else {}
    if not clock.count:
        keys["trains"] = int(has_optimizer())
    return keys


def has_optimizer():
    """Whether it means to train, though it has made no step yet. By the objects' own types: to ask some for their class wakes them."""
    import gc
    kind = getattr(getattr(_torch, "optim", None), "Optimizer", None)
    return kind is not None and any(issubclass(one, kind) for one in set(map(type, gc.get_objects())))


def on_left():
    """Training was left, for an evaluation or for good: what is still alive that is neither the model's nor the optimizer's.
    On a GPU that is all else; on the host what hangs on a graph. Data sets and results without one are meant to stay."""
    global _spent_ns
    began = perf_counter_ns()
    is_allowed = (began - _began_ns) // SHARE - _spent_ns >= SCAN_NS
    try:
        held = 0
        tally = tally_of_models()
        allocated = cuda_stats().get("gpu_allocated_bytes")
        if allocated is not None:
            held += max(0, allocated - sum(size for (place, _), size in tally.bytes.items() if place == GPU))
        if is_allowed:
            held += graph_bytes(tally)
        if allocated is not None or is_allowed:
            tell("held_bytes", held)
    except Exception:
        pass
    _spent_ns += perf_counter_ns() - began


def graph_bytes(tally):
    """Of all tensors on the host that hang on a graph."""
    import gc
    before = tally.get(HOST, "held")
    tensor = _torch.Tensor
    kinds = {}
    for one in gc.get_objects():
        kind = type(one)
        if kind not in kinds:
            kinds[kind] = issubclass(kind, tensor)
        if kinds[kind] and one.grad_fn is not None and one.device.type == "cpu":
            tally.add("held", one)
    return tally.get(HOST, "held") - before


def forget_time():
    """For a notebook between two cells: a look now holds up nobody."""
    global _spent_ns
    _spent_ns = -SCAN_NS


def root_of(optimizer):
    """The model that it trains, or None."""
    for group in optimizer.param_groups:
        for first in group["params"]:
            for root in models.roots():
                if any(parameter is first for parameter in root.parameters()):
                    return root
            return None
    return None


def on_cuda():
    """CUDA has just come up, by the program's own doing. Failures of its allocator are to be told to us before they are raised,
    and the budget becomes its limit."""
    try:
        _torch._C._cuda_attach_out_of_memory_observer(on_out_of_memory)
    except Exception:
        pass
    try:
        cap(_torch.cuda.current_device())
    except Exception:
        pass
    try:
        from . import cuda_sites
        cuda_sites.start(_torch)
    except Exception:
        pass


def held_for(device):
    """What was held, as far as it could have been given out there: what is free on another device is no use."""
    stats = _torch.cuda.memory.memory_stats_as_nested_dict(device)
    if not stats:
        return {}
    free = stats["reserved_bytes"]["all"]["current"] - stats["allocated_bytes"]["all"]["current"]
    return {"reserved_bytes": cuda_stats()["gpu_allocated_bytes"] + free}


def on_out_of_memory(device, asked, _total, _free):
    try:
        oom.noticed(device="gpu", asked_bytes=asked, **held_for(device))
        for name, value in cuda_stats().items():
            if name != "gpu_allocated_bytes":  # a step that is not finished says nothing of what stays
                tell(name, value)
        if not walks:  # it may not come to a first step
            tell_models(("parameters", "gradients", "buffers"))
    except Exception:
        pass


def cap(device):
    """torch's allocator asks CUDA for no more than the budget; what CUDA needs for itself comes off it. Without a budget only
    where a GPU takes from the machine's own memory: there an eighth is left to it."""
    _capped.add(device)
    properties = _torch.cuda.get_device_properties(device)
    free, total = _torch.cuda.mem_get_info(device)
    most = cap_bytes(total, free, bool(getattr(properties, "is_integrated", False)))
    if most is not None:
        _torch.cuda.set_per_process_memory_fraction(most / total, device)


CONTEXT_BYTES = 1 << 30  # more than CUDA itself takes of any device: what is used beyond is another program's
SMALLEST = 0.001  # of the device: torch takes no fraction of 0


def cap_bytes(total, free, is_unified):
    import os
    try:
        budget = int(os.environ.get("ANTIFREEZE_GPU_BUDGET", "0"))
    except ValueError:
        budget = 0
    if budget <= 0 and is_unified:
        budget = total - total // 8
    if budget <= 0 or budget >= total:
        return None
    used = total - free  # by CUDA for this process, if no other is there
    own = used if 0 <= used <= CONTEXT_BYTES else 0
    return max(budget - own, total * SMALLEST)
