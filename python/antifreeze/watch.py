"""Sees frameworks being imported, and lets the agent at them once they are there.

A finder that finds nothing: Python asks it first whenever something is imported for the first time, and it looks whether one
of the modules below has become complete since. Nothing is wrapped for that, no loader and no module, so an import that fails
fails as without us. Each of those modules is in the middle of a large package: much is imported after it, so nothing is late.

The one thing that it does find is `antifreeze` itself, where the program has no other of that name.
"""
import sys

# Package: its modules, who takes care of each, and by which function (called with the module, once).
ROWS = {
    "torch": (
        ("torch.optim.optimizer", "see.on_torch", "optimizers"),
        ("torch.utils.data.dataloader", "see.on_torch", "loaders"),
        ("torch.nn.modules.module", "see.on_torch", "modules"),
        ("torch.nn.modules.module", "split.torch_loop", "modules"),
        ("torch.nn.parallel.distributed", "split.ranks", "models"),
        ("torch.autograd", "see.on_torch", "autograd"),
        ("torch.cuda", "see.on_torch", "cuda"),
        ("torch.serialization", "see.on_torch", "serialization"),
    ),
    "torch.utils.tensorboard": (("torch.utils.tensorboard.writer", "see.trackers", "tensorboard"),),
    "tensorboardX": (("tensorboardX.writer", "see.trackers", "tensorboard"),),
    "wandb": (("wandb.sdk.wandb_run", "see.trackers", "wandb"),),
    "mlflow": (("mlflow.tracking.fluent", "see.trackers", "mlflow"),),
    "keras": (
        ("keras.src.callbacks", "see.on_keras", "callbacks"),
        ("keras.src.optimizers.base_optimizer", "see.on_keras", "optimizers"),
        ("keras.src.dtype_policies.dtype_policy", "see.on_keras", "policies"),
        ("keras.src.saving.saving_lib", "see.on_keras", "saving"),
        ("keras.src.backend.tensorflow.trainer", "see.on_keras", "trainer"),
        ("keras.src.backend.torch.trainer", "see.on_keras", "trainer"),
        ("keras.src.backend.jax.trainer", "see.on_keras", "trainer"),
        ("keras.src.callbacks", "save.on_keras", "callbacks"),
        ("keras.src.trainers.epoch_iterator", "save.on_keras", "iterators"),
    ),
    "tensorflow": (
        ("tensorflow.python.eager.polymorphic_function.polymorphic_function", "see.on_tensorflow", "functions"),
        ("tensorflow.python.data.ops.iterator_ops", "see.on_tensorflow", "iterators"),
        ("tensorflow.python.eager.polymorphic_function.tracing_compilation", "see.on_tensorflow", "tracing"),
        ("tensorflow.python.ops.resource_variable_ops", "see.on_tensorflow", "variables"),
        ("tensorflow.python.framework.errors_impl", "see.on_tensorflow", "errors"),
    ),
    "dask": (("dask.base", "see.on_dask", "computing"),),
    "transformers": (
        ("transformers.trainer", "save.on_transformers", "trainer"),
        ("transformers.trainer_callback", "split.on_transformers", "callbacks"),
        ("transformers.training_args", "split.on_transformers", "arguments"),
    ),
    "lightning": (
        ("lightning.pytorch.trainer.trainer", "save.on_lightning", "trainer"),
        ("lightning.pytorch.loops.optimization.automatic", "split.on_lightning", "closures"),
        ("lightning.pytorch.trainer.connectors.accelerator_connector", "split.on_lightning", "connectors"),
    ),
    "pytorch_lightning": (
        ("pytorch_lightning.trainer.trainer", "save.on_lightning", "trainer"),
        ("pytorch_lightning.loops.optimization.automatic", "split.on_lightning", "closures"),
        ("pytorch_lightning.trainer.connectors.accelerator_connector", "split.on_lightning", "connectors"),
    ),
}


class Watch:
    def __init__(self):
        self.due = []

    def find_spec(self, name, path=None, target=None):
        if self.due:
            self.look()
        if name in ROWS:
            self.due += [row for row in ROWS[name] if row not in self.due]
        elif name == "antifreeze":
            return self.find_ours(name)
        return None

    def look(self):
        for row in self.due[:]:
            module = sys.modules.get(row[0])
            if module is not None and is_complete(module) and row in self.due:
                self.due.remove(row)
                wake(module, *row[1:])

    def find_ours(self, name):
        for finder in sys.meta_path:
            found = finder is not self and hasattr(finder, "find_spec") and finder.find_spec(name, None)
            if found:
                return found
        from _frozen_importlib_external import spec_from_file_location
        package = sys.modules["_antifreeze"].__path__
        return spec_from_file_location(name, package[0] + "/__init__.py", submodule_search_locations=list(package))


def is_complete(module):
    return not getattr(getattr(module, "__spec__", None), "_initializing", False)


def wake(module, adapter, function):
    """What goes wrong here is not the program's business."""
    try:
        from . import clock, talk
        if clock.connect() or talk.is_held():
            name = f"{__package__}.{adapter}"
            __import__(name)
            getattr(sys.modules[name], function)(module)
    except Exception:
        pass


def start():
    """Also in a program that has imported them already (antifreeze.guard())."""
    if any(isinstance(finder, Watch) for finder in sys.meta_path):
        return
    import atexit
    atexit.register(ended)
    watch = Watch()
    sys.meta_path.insert(0, watch)
    for name in ROWS:
        if name in sys.modules:
            watch.due += ROWS[name]
    watch.look()


def ended():
    """Programs without a framework fail, too. For all that end otherwise nothing is loaded."""
    if isinstance(getattr(sys, "last_value", None), Exception):
        try:
            from . import talk
            from .see import oom
            oom.ended()
            talk.farewell()
        except Exception:
            pass
