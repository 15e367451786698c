#!/usr/bin/env python3
"""What the agent knows of memory, without a framework: which errors mean that it ran out, what is told of one, when it looks,
what it makes of zeroed gradients, how far a loader may work ahead, History, and the trackers.

usage: test_agent_memory.py AGENT_FOLDER
"""
import importlib
import os
import subprocess
import sys
import tempfile
import textwrap
import types
import unittest

KIB, MIB, GIB = 1 << 10, 1 << 20, 1 << 30


def error_of(module, name, bases=(Exception,), **more):
    return type(name, bases, {"__module__": module, **more})


TORCH_OOM = error_of("torch", "OutOfMemoryError", (RuntimeError,))
ACCELERATOR = error_of("torch", "AcceleratorError", (RuntimeError,))
TF_EXHAUSTED = error_of("tensorflow.python.framework.errors_impl", "ResourceExhaustedError")
TF_INTERNAL = error_of("tensorflow.python.framework.errors_impl", "InternalError")
XLA = error_of("jaxlib.xla_extension", "XlaRuntimeError", (RuntimeError,))
NUMPY = error_of("numpy._core._exceptions", "_ArrayMemoryError", (MemoryError,))

# The error, where memory ran out, what was asked for
ERRORS = [
    (TORCH_OOM("CUDA out of memory. Tried to allocate 2.50 GiB. GPU 0 has a total capacity of"), "gpu", int(2.5 * GIB)),
    (TORCH_OOM("Allocation on device "), "gpu", None),
    (RuntimeError("CUDA error: out of memory\nCUDA kernel errors might be asynchronously reported"), "gpu", None),
    (RuntimeError("CUDA error: CUBLAS_STATUS_ALLOC_FAILED when calling `cublasCreate(handle)`"), "gpu", None),
    (RuntimeError("cuDNN error: CUDNN_STATUS_ALLOC_FAILED"), "gpu", None),
    (RuntimeError("Unable to find a valid cuDNN algorithm to run convolution"), "gpu", None),
    (RuntimeError("[enforce fail at alloc_cpu.cpp:121] err == 0. DefaultCPUAllocator: can't allocate memory: you tried to allocate "
                  "4000000000 bytes. Error code 12 (Cannot allocate memory)"), "host", 4000000000),
    (RuntimeError("std::bad_alloc"), "host", None),
    (OSError(12, "Cannot allocate memory"), "host", None),
    (MemoryError(), "host", None),
    (NUMPY("Unable to allocate 7.45 GiB for an array with shape (1000000000,) and data type float64"), "host", int(7.45 * GIB)),
    (TF_EXHAUSTED("{{function_node __wrapped__}} OOM when allocating tensor with shape[8192,8192] and type float on "
                  "/job:localhost/replica:0/task:0/device:GPU:0 by allocator GPU_0_bfc"), "gpu", None),
    (TF_EXHAUSTED("OOM when allocating tensor with shape[8] on /job:localhost/replica:0/task:0/device:CPU:0 by allocator cpu"), "host", None),
    (TF_INTERNAL("Failed copying input tensor from CPU:0 to GPU:0 in order to run _EagerConst: Dst tensor is not initialized."), "gpu", None),
    (XLA("RESOURCE_EXHAUSTED: Out of memory while trying to allocate 68719476736 bytes on device cuda:0."), "gpu", None),
    (RuntimeError("shape mismatch: the tensor of a user who writes of memory"), None, None),
    (ValueError("CUDA out of memory"), None, None),
    (RuntimeError(), None, None),
    (KeyboardInterrupt(), None, None),
    (error_of("mine", "Silent", (RuntimeError,), __str__=lambda self: 1 / 0)(), None, None),
    (OSError(28, "No space left on device"), None, None),
]
STICKY = [
    (RuntimeError("CUDA error: device-side assert triggered"), True),
    (ACCELERATOR("CUDA error: an illegal memory access was encountered"), True),
    (TORCH_OOM("CUDA out of memory."), False),
    (RuntimeError("CUDA error: out of memory"), False),
    (MemoryError(), False),
]


class Case(unittest.TestCase):
    def setUp(self):
        """A new agent, with what it tells and says kept here."""
        for name in [name for name in sys.modules if name.startswith("_antifreeze")]:
            del sys.modules[name]
        door = sys.modules["_antifreeze"] = types.ModuleType("_antifreeze")
        door.__path__ = [PACKAGE]
        self.told, self.events = {}, []
        self.tell, self.oom, self.talk = self.part("tell"), self.part("see.oom"), self.part("talk")
        names = []
        self.probe = self.part("probe")._found
        self.probe["antifreeze_told"] = lambda name: names.append(name.decode()) or len(names) - 1
        self.probe["antifreeze_tell"] = lambda which, value: self.told.__setitem__(names[which], value)
        self.talk.event = lambda kind, sentence="", **keys: self.events.append((kind, keys))

    @staticmethod
    def part(name):
        return importlib.import_module("_antifreeze." + name)


class Tell(Case):
    def test_values(self):
        for given, kept in (0, 0), (7, 7), (-3, 0), (1 << 70, (1 << 64) - 2), ((1 << 64) - 1, (1 << 64) - 2), (True, 1):
            self.tell.tell("batch_count", given)
            self.assertEqual(self.told["batch_count"], kept, given)

    def test_unknown_name(self):
        asked = []
        self.probe["antifreeze_told"] = lambda name: asked.append(name) or -1
        for _ in range(3):
            self.tell.tell("of_tomorrow", 1)
        self.assertEqual((self.told, asked), ({}, [b"of_tomorrow"]))

    def test_without_probe(self):
        self.probe.clear()
        self.tell.tell("batch_count", 1)
        self.assertEqual((self.part("see.inputs").room_bytes(), self.told), (None, {}))


class Errors(Case):
    def test_which(self):
        for error, where, asked in ERRORS:
            self.assertEqual(self.oom.is_oom(error), where, error.args)
            self.assertEqual(self.oom.asked_bytes(self.oom.text_of(error)), asked, error.args)

    def test_cause(self):
        try:
            try:
                raise MemoryError
            except MemoryError as error:
                raise KeyError("batch") from error
        except KeyError as error:
            self.assertEqual(self.oom.is_oom(error), "host")
        a, b = ValueError(), ValueError()
        a.__cause__, b.__cause__ = b, a
        self.assertIsNone(self.oom.is_oom(a), "a ring of causes")

    def test_sticky(self):
        for error, is_sticky in STICKY:
            self.assertEqual(self.oom.is_sticky(error), is_sticky, error.args)
        error = ACCELERATOR("words of tomorrow")
        error.error_code = 700
        self.assertTrue(self.oom.is_sticky(error))

    def test_told_once(self):
        self.oom.batch = 64
        self.oom.sources.append(lambda: {"allocated_bytes": 5})
        self.oom.sources.append(lambda: 1 / 0)
        try:
            self.fails()
        except MemoryError as error:
            for _ in range(3):
                self.assertEqual(self.oom.caught(error, micro=32), "host")
        (kind, keys), = self.events
        line = self.fails.__code__.co_firstlineno + 1
        self.assertEqual((kind, keys), ("oom", {"device": "host", "batch": 64, "micro": 32, "allocated_bytes": 5, "swallowed": 0,
                                                "at": f"{__file__}:{line}:fails"}))
        self.assertEqual(self.told["ooms_count"], 1)

    def fails(self):
        raise MemoryError

    def test_not_ours(self):
        self.assertIsNone(self.oom.caught(ValueError("x")))
        self.assertIsNone(self.oom.caught(None))
        self.assertEqual((self.events, self.told), ([], {}))

    def test_noticed_and_recovered(self):
        """What the allocator said and the error that came of it are one."""
        self.oom.noticed(device="gpu", asked_bytes=77)
        self.assertEqual(self.events, [])
        self.oom.caught(TORCH_OOM("CUDA out of memory. Tried to allocate 20.00 MiB."))
        (_, keys), = self.events
        self.assertEqual((keys["asked_bytes"], keys["swallowed"], self.told["ooms_count"]), (77, 0, 1))

    def test_swallowed(self):
        for n in range(2):
            self.oom.noticed(device="gpu", asked_bytes=n + 1)
        self.oom.told()
        self.oom.told()
        self.assertEqual([(keys["asked_bytes"], keys["swallowed"]) for _, keys in self.events], [(1, 1), (2, 1)])
        self.assertIsNone(self.oom.pending)

    @unittest.skipUnless(hasattr(sys, "monitoring"), "Python before 3.12 does not tell of what is raised")
    def test_raised(self):
        self.oom.watch()
        try:
            for _ in range(2):
                try:
                    self.outer()
                except MemoryError:
                    pass
                try:
                    {}["x"]
                except KeyError:
                    pass
            self.oom.told()
        finally:
            sys.monitoring.free_tool_id(4)
        line = self.fails.__code__.co_firstlineno + 1
        self.assertEqual([(keys["device"], keys["swallowed"], keys["at"].rpartition("/")[2]) for _, keys in self.events],
                         [("host", 1, f"test_agent_memory.py:{line}:fails")] * 2)

    def outer(self):
        self.fails()

    def test_end(self):
        sys.last_value, before = TORCH_OOM("CUDA out of memory."), getattr(sys, "last_value", None)
        try:
            self.oom.noticed(device="gpu")
            self.oom.ended()
        finally:
            sys.last_value = before
        self.assertEqual([keys["swallowed"] for _, keys in self.events], [0])

    def test_end_by_another_error(self):
        """One that nobody caught is told with its line; an interrupt is none, and an OOM was told."""
        told, before = [], getattr(sys, "last_value", None)
        self.oom.talk.event = lambda kind, sentence="", **keys: told.append((kind, sentence, keys))
        try:
            for fails in (lambda: undefined_name, lambda: sys.exit(3), lambda: (_ for _ in ()).throw(KeyboardInterrupt)):
                try:
                    fails()
                except BaseException as error:
                    sys.last_value = error
                self.oom.ended()
        finally:
            sys.last_value = before
        (kind, sentence, keys), = told
        self.assertEqual((kind, sentence), ("error", "NameError: name 'undefined_name' is not defined"))
        self.assertRegex(keys["at"], r"test_agent_memory.py:\d+:<lambda>$")

    def test_end_in_words(self):
        """The first line that says something, also of an error that lets nothing be set."""
        frozen = error_of("mine", "Frozen", __setattr__=lambda *_: 1 / 0)
        told, before = [], getattr(sys, "last_value", None)
        self.oom.talk.event = lambda kind, sentence="", **keys: told.append(sentence)
        try:
            for sys.last_value in RuntimeError("\n=====\ntrain.py FAILED\n"), frozen("a"), ValueError():
                self.oom.ended()
        finally:
            sys.last_value = before
        self.assertEqual(told, ["RuntimeError: train.py FAILED", "Frozen: a", "ValueError"])


class Looks(Case):
    def test_gate(self):
        gate = self.part("see.torch_memory").Gate(least_ns=100, share=1000)
        gate.close(0, 0)
        self.assertEqual(gate.due_ns, 100)
        gate.close(1000, 1007)
        self.assertEqual(gate.due_ns, 8007, "a thousand times what it cost")
        gate.close(1007, 1008)
        self.assertEqual(gate.due_ns, 8007, "a cheap pass does not forgive a dear one")

    # b: a batch comes; ^: backward; 0: zero_grad, 2: of the other optimizer; s: step, t: of the other optimizer, in
    # the same step of the clock; z: zero_grad that leaves zeros; u: weights are moved by them; i: they overflow
    ACCUMULATIONS = {
        "b0^s b0^s b0^s": 0,
        "b0^ b^ b^ s0": 0,
        "b0^ b0^ b0^ s": 2,
        "b0^ b0^ s b0^ b0^ s": 2,
        "b^0 b^0 b^0 b^s0 b^0 b^0 b^0 b^s0": 2 + 3,  # the very first is taken for one that had nothing to zero
        "0^ 0^ 0^ s": 2,  # no loader: all that was zeroed counts
        "bz^ bz^ bz^ s": 2,
        "b0^s0 b^s0 b^s0": 0,  # zeroed after the step
        "b0^s0 b0^s0 b0^s0": 0,  # and before
        "bz^sz bz^sz bz^sz": 0,
        "b0^0^0^ s": 0,  # an attack within one batch
        "b00^s b00^s": 0,
        "b b b0^ b^ s": 0,
        "b0^s 2^t b0^s 2^t": 0,  # GAN
        "b02^^st b02^^st": 0,
        "b^0^ts b^0^ts": 0,  # zeroes one while the other's gradients are there
        "b0^ b^ s b0^ b0^ s": 1,
        "b^u0 b^us0 b^u0 b^us0 b^u0 b^us0": 0,  # climbs by a batch, and descends by another (SAM)
        "b0^s b0^i b0^s b0^i b0^i b0^s": 0,  # steps that are left out (GradScaler)
    }

    def test_accumulation(self):
        memory = self.part("see.torch_memory")
        kind, memory.weight_of = memory.Accumulation, lambda one: one.weight

        class Gradient:
            def __init__(self, is_zero, are_numbers=True):
                self.any, self.all = lambda: not is_zero, lambda: are_numbers

            def isfinite(self):
                return self

        class Optimizer:
            def __init__(self):
                self.grad, self.weight, self.requires_grad = None, 0, True
                self.param_groups = [{"params": [self]}]
        for text, lost in self.ACCUMULATIONS.items():
            one, other = Optimizer(), Optimizer()
            a, step, waited = kind(), 0, 0
            a.begin(0)
            for act in text:
                if act == "b":
                    waited += 1
                elif act == "^":
                    one.grad = other.grad = Gradient(False)
                elif act in "02z":
                    who = other if act == "2" else one
                    a.on_zero(who, waited)
                    who.grad = Gradient(True) if act == "z" else None
                elif act == "i":
                    one.grad = Gradient(False, False)
                elif act == "u":
                    one.weight += 1
                elif act == "s":
                    a.end(step + 1, step)
                    step += 1
                    a.begin(step)
            self.assertEqual(a.lost_count, lost, text)
            self.assertEqual(a.place is not None, lost > 0, text)

    def test_whose_code(self):
        """Of a traceback's frames: Cython writes the path that a library was built from."""
        is_own = self.part("see.oom").is_own_path
        for path, own in [("/home/me/train.py", True), ("<stdin>", True), (os.__file__, False), ("numpy/random/_common.pyx", False),
                          ("/venv/lib/python3.11/site-packages/torch/nn/modules/module.py", False)]:
            self.assertEqual(is_own(path), own, path)

    def test_accumulation_between(self):
        """Steps that were not looked at are taken for like those that were."""
        a = self.part("see.torch_memory").Accumulation()
        a.begin(100)
        a.thrown = 3
        a.end(101, 41)
        self.assertEqual(a.lost_count, 3 * 60)

    def test_cap(self):
        """total, free, unified, budget: the cap"""
        cap = self.part("see.torch_memory").cap_bytes
        for total, free, unified, budget, most in [
                (80 * GIB, 80 * GIB - 500 * MIB, False, "", None),
                (80 * GIB, 80 * GIB - 500 * MIB, False, str(4 * GIB), 4 * GIB - 500 * MIB),
                (80 * GIB, 30 * GIB, False, str(4 * GIB), 4 * GIB),  # others use it, too: ours cannot be told apart
                (8 * GIB, 8 * GIB, False, str(9 * GIB), None),
                (8 * GIB, 8 * GIB, True, "", 7 * GIB),
                (8 * GIB, 8 * GIB, False, "lots", None),
                (80 * GIB, 80 * GIB - 500 * MIB, False, str(100 * MIB), 80 * GIB * .001),
        ]:
            os.environ["ANTIFREEZE_GPU_BUDGET"] = budget
            self.assertEqual(cap(total, free, unified), most, (total, free, unified, budget))
        del os.environ["ANTIFREEZE_GPU_BUDGET"]

    def test_cuda(self):
        """With a stand-in for torch: figures of all devices are summed, each device that is in use is capped once, and a
        failure of the allocator is noticed."""
        memory = self.part("see.torch_memory")
        fractions, observers = [], []

        def stats(device):
            one = (device + 1) * GIB
            return {"allocated_bytes": {"all": {"current": one, "peak": 2 * one}}, "reserved_bytes": {"all": {"current": 3 * one}},
                    "inactive_split_bytes": {"all": {"current": 5}}, "num_alloc_retries": 1}
        cuda = types.SimpleNamespace(
            is_initialized=lambda: True, device_count=lambda: 2, current_device=lambda: 0,
            memory=types.SimpleNamespace(memory_stats_as_nested_dict=stats), mem_get_info=lambda device: (79 * GIB + GIB // 2, 80 * GIB),
            get_device_properties=lambda device: types.SimpleNamespace(is_integrated=0),
            set_per_process_memory_fraction=lambda fraction, device: fractions.append((device, fraction)))
        memory.start(types.SimpleNamespace(cuda=cuda, _C=types.SimpleNamespace(
            _cuda_attach_out_of_memory_observer=observers.append)))
        os.environ["ANTIFREEZE_GPU_BUDGET"] = str(8 * GIB)
        try:
            memory.on_cuda()
            self.assertEqual(fractions, [(0, 7.5 / 80)], "the other may never be used: to ask of it would bring it up")
            self.assertEqual(memory.look_at_cuda(), 3 * GIB)
            memory.look_at_cuda()
        finally:
            del os.environ["ANTIFREEZE_GPU_BUDGET"]
        self.assertEqual(fractions, [(0, 7.5 / 80), (1, 7.5 / 80)])
        self.assertEqual((self.told["gpu_allocated_peak_bytes"], self.told["gpu_reserved_bytes"], self.told["gpu_retries_count"]),
                         (6 * GIB, 9 * GIB, 2))
        del self.told["gpu_allocated_bytes"]
        observers[0](0, 123, 80 * GIB, 0)
        self.assertNotIn("gpu_allocated_bytes", self.told, "in the midst of a step it says nothing of what stays")
        memory.on_turn()
        (_, keys), = self.events
        self.assertEqual((keys["device"], keys["asked_bytes"], keys["allocated_bytes"], keys["reserved_bytes"], keys["swallowed"]),
                         ("gpu", 123, 3 * GIB, 5 * GIB, 1), "what is free on the other device is no use to this one")

    def test_models(self):
        models = self.part("see.torch_memory").Models()

        class Module:
            pass
        whole, part, inner, other = Module(), Module(), Module(), Module()
        models.on_part(part, "a", inner)
        models.on_part(whole, "b", part)
        models.on_part(whole, "c", None)
        models.on_part(other, "d", inner)
        self.assertEqual(set(models.roots()), {whole, other})
        del whole
        self.assertEqual(models.roots(), [other], "what is no more is forgotten, and nothing is kept alive")


class Inputs(Case):
    def test_most_batches(self):
        most = self.part("see.inputs").most_batches
        for workers, prefetch, size, room, shm, expected in [
                (4, 2, 100 * MIB, None, None, 8),
                (4, 2, 100 * MIB, 64 * GIB, 32 * GIB, 8),
                (4, 2, 100 * MIB, 2 * GIB, None, 5),
                (4, 2, 100 * MIB, None, 1 * GIB, 5),
                (4, 2, 100 * MIB, 0, 0, 1),  # at least one: without any a loader ends
                (4, 2, 0, 0, 0, 8),
        ]:
            self.assertEqual(most(workers, prefetch, size, room, shm), expected)

    def test_samples(self):
        inputs = self.part("see.inputs")

        class Tensor:
            def __init__(self, *shape):
                self.shape, self.nbytes = shape, 4

        class Encoding:
            def __init__(self, **data):
                self.values = lambda: data.values()
        for batch, count, size in [
                (Tensor(8, 3), 8, 4), ([Tensor(8), Tensor(8)], 8, 8), ({"x": Tensor(5, 2), "n": 3}, 5, 4), ((), 0, 0), ("text", 0, 0), (None, 0, 0),
                (Encoding(ids=Tensor(7)), 7, 4), ([[Tensor(6)], {"y": [Tensor(6)]}], 6, 8), (Tensor(), 1, 4), (3, 0, 0)]:
            self.assertEqual((inputs.samples_of(batch), inputs.bytes_of(batch)), (count, size), batch)


class Asked(Case):
    def test_a_file_that_cannot_be_written(self):
        """Ranks agree by a file on when to save: if it cannot be written, the training does not end of it."""
        class Together:
            def ask(self, step):
                raise OSError(28, "No space left on device")

            def is_due(self, step):
                return False

        sys.modules["transformers.trainer_callback"] = types.SimpleNamespace(TrainerCallback=object)
        self.addCleanup(sys.modules.pop, "transformers.trainer_callback")
        at = types.SimpleNamespace(global_step=3)
        for callback, end in [(self.part("save.on_lightning").make_callback(object), lambda one: one.on_train_batch_end(at, 0, 0, 0, 0)),
                              (self.part("save.on_transformers").make_callback(), lambda one: one.on_step_end(0, at, 0))]:
            callback.together, callback.wanted = Together(), True
            end(callback)
            self.assertFalse(callback.wanted)


class Histories(Case):
    def test_bounds(self):
        History = self.part("history").History
        for most in 2, 3, 10, 1000:
            for total in 0, 1, 2, 9, 10, 11, 50, 1000, 5000:
                history = History(most, range(total))
                self.assertLessEqual(len(history), most)
                self.assertEqual(list(history), history.steps())
                self.assertEqual(bool(history), total > 0)
                if total:
                    self.assertEqual((history[0], history[-1], history.mean(), history.min(), history.max(), history.count),
                                     (0, total - 1, (total - 1) / 2, 0, total - 1, total))
                if total < most:
                    self.assertEqual(list(history), list(range(total)))
        self.assertRaises(ValueError, History, 1)

    def test_lets_go(self):
        """A tensor's graph does not outlive append(), and its number is not asked for before it is needed."""
        asked = []

        class Tensor:
            def __init__(self, value):
                self.value, self.graph = value, object()

            def detach(self):
                return Plain(self.value)

        class Plain:
            def __init__(self, value):
                self.value = value

            def clone(self):
                return self

            def numel(self):
                return 1

            def item(self):
                asked.append(self.value)
                return self.value
        history = self.part("history").History(4)
        history.append(Tensor(1.5))
        self.assertEqual(asked, [], "not at once: on a GPU it would have to be waited for")
        history.append(Tensor(2.5))
        self.assertEqual(asked, [1.5])
        self.assertEqual(list(history), [1.5, 2.5])


WANDB = {
    "wandb/__init__.py": "run = None\nfrom wandb.sdk.wandb_run import Run\nimport wandb.more\n"
                         "def init():\n    global run\n    run = Run()\n    return run",
    "wandb/sdk/__init__.py": "",
    "wandb/more.py": "",
    "wandb/sdk/wandb_run.py": "class Run:\n    def __init__(self): self.summary = {}\n"
                              "    def finish(self): print('finished', sorted(self.summary))",
}
MLFLOW = {
    "mlflow/__init__.py": "from mlflow.tracking.fluent import *\nimport mlflow.more",
    "mlflow/more.py": "",
    "mlflow/tracking/__init__.py": "",
    "mlflow/tracking/fluent.py": """
        stack = []
        class Run:
            def __enter__(self): return self
            def __exit__(self, *_): end_run()
        def start_run(): stack.append(Run()); return stack[-1]
        def active_run(): return stack[-1] if stack else None
        def log_metrics(all): print('metrics', sorted(all))
        def set_tag(key, value): print('tag', key)
        def end_run(): stack and stack.pop(); print('ended')
        """,
}
BOARD = {
    "tensorboardX/__init__.py": "from .writer import SummaryWriter\nimport tensorboardX.more",
    "tensorboardX/more.py": "",
    "tensorboardX/writer.py": """
        class SummaryWriter:
            all_writers = {}
            def add_scalar(self, name, value): print('scalar', name)
            def add_text(self, name, value): print('text', name)
            def flush(self): print('flushed')
            def close(self): print('closed')
        """,
}
NUMBERS = ["antifreeze/ooms_count", "antifreeze/ram_peak_bytes"]


class Trackers(unittest.TestCase):
    def play(self, files, text):
        with tempfile.TemporaryDirectory(prefix="afz-") as folder:
            for name, content in files.items():
                os.makedirs(os.path.dirname(os.path.join(folder, name)), exist_ok=True)
                with open(os.path.join(folder, name), "w", encoding="utf-8") as file:
                    file.write(textwrap.dedent(content))
            path = os.path.join(folder, "job.py")
            with open(path, "w", encoding="utf-8") as file:
                file.write("import sys, types\ndoor = sys.modules['_antifreeze'] = types.ModuleType('_antifreeze')\n"
                           f"door.__path__ = [{PACKAGE!r}]\nfrom _antifreeze import clock, watch\n"
                           "clock.connect = lambda: True\nwatch.start()\n" + textwrap.dedent(text))
            env = {k: v for k, v in os.environ.items() if not k.startswith("ANTIFREEZE")}
            r = subprocess.run([sys.executable, path], env=env, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=60,
                               check=False)
            self.assertEqual(r.returncode, 0, r.stdout)
            return r.stdout.splitlines()

    def test_wandb(self):
        self.assertEqual(self.play(WANDB, "import wandb\nwandb.init().finish()"), [f"finished {NUMBERS}"])
        text = "import wandb, atexit\nrun = wandb.init(); atexit._run_exitfuncs(); print(sorted(run.summary))"
        self.assertEqual(self.play(WANDB, text), [str(NUMBERS)], "one that the end of the program closes")
        self.assertEqual(self.play(WANDB, "import wandb"), [], "none is open")

    def test_mlflow(self):
        self.assertEqual(self.play(MLFLOW, "import mlflow\nwith mlflow.start_run(): pass"), [f"metrics {NUMBERS}", "ended"])
        self.assertEqual(self.play(MLFLOW, "import mlflow\nmlflow.start_run()"), [f"metrics {NUMBERS}"])
        self.assertEqual(self.play(MLFLOW, "import mlflow"), [])

    def test_tensorboard(self):
        scalars = [f"scalar {name}" for name in ("antifreeze/ram_peak_bytes", "antifreeze/ooms_count")]
        self.assertEqual(self.play(BOARD, "from tensorboardX import SummaryWriter\nw = SummaryWriter(); w.close()"),
                         scalars + ["flushed", "closed"])
        self.assertEqual(self.play(BOARD, "from tensorboardX import SummaryWriter\nw = SummaryWriter()"), scalars + ["flushed"])
        self.assertEqual(self.play(BOARD, "from tensorboardX import SummaryWriter"), [])

    def test_broken(self):
        """A tracker that fails is not the program's trouble."""
        broken = {**WANDB, "wandb/sdk/wandb_run.py": "class Run:\n    summary = None\n    def finish(self): print('finished')"}
        self.assertEqual(self.play(broken, "import wandb\nwandb.init().finish()"), ["finished"])


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    PACKAGE = os.path.dirname(os.path.abspath(sys.argv.pop()))
    sys.dont_write_bytecode = True
    unittest.main(verbosity=2)
