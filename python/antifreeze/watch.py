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
        ("torch.optim.optimizer", "on_torch", "optimizers"),
        ("torch.utils.data.dataloader", "on_torch", "loaders"),
        ("torch.nn.modules.module", "on_torch", "modules"),
        ("torch.nn.modules.module", "split_call", "modules"),
        ("torch.autograd", "on_torch", "autograd"),
        ("torch.cuda", "on_torch", "cuda"),
        ("torch.serialization", "on_torch", "serialization"),
    ),
    "torch.utils.tensorboard": (("torch.utils.tensorboard.writer", "trackers", "tensorboard"),),
    "tensorboardX": (("tensorboardX.writer", "trackers", "tensorboard"),),
    "wandb": (("wandb.sdk.wandb_run", "trackers", "wandb"),),
    "mlflow": (("mlflow.tracking.fluent", "trackers", "mlflow"),),
    "keras": (
        ("keras.src.callbacks", "on_keras", "callbacks"),
        ("keras.src.optimizers.base_optimizer", "on_keras", "optimizers"),
        ("keras.src.dtype_policies.dtype_policy", "on_keras", "policies"),
        ("keras.src.saving.saving_lib", "on_keras", "saving"),
        ("keras.src.backend.tensorflow.trainer", "on_keras", "trainer"),
        ("keras.src.backend.torch.trainer", "on_keras", "trainer"),
        ("keras.src.backend.jax.trainer", "on_keras", "trainer"),
        ("keras.src.callbacks", "save_keras", "callbacks"),
        ("keras.src.trainers.epoch_iterator", "save_keras", "iterators"),
    ),
    "tensorflow": (
        ("tensorflow.python.eager.polymorphic_function.polymorphic_function", "on_tensorflow", "functions"),
        ("tensorflow.python.data.ops.iterator_ops", "on_tensorflow", "iterators"),
        ("tensorflow.python.eager.polymorphic_function.tracing_compilation", "on_tensorflow", "tracing"),
        ("tensorflow.python.ops.resource_variable_ops", "on_tensorflow", "variables"),
        ("tensorflow.python.framework.errors_impl", "on_tensorflow", "errors"),
    ),
    "transformers": (
        ("transformers.trainer", "save_transformers", "trainer"),
        ("transformers.trainer_callback", "on_transformers", "callbacks"),
        ("transformers.training_args", "on_transformers", "arguments"),
    ),
    "lightning": (
        ("lightning.pytorch.trainer.trainer", "save_lightning", "trainer"),
        ("lightning.pytorch.loops.optimization.automatic", "on_lightning", "closures"),
        ("lightning.pytorch.trainer.connectors.accelerator_connector", "on_lightning", "connectors"),
    ),
    "pytorch_lightning": (
        ("pytorch_lightning.trainer.trainer", "save_lightning", "trainer"),
        ("pytorch_lightning.loops.optimization.automatic", "on_lightning", "closures"),
        ("pytorch_lightning.trainer.connectors.accelerator_connector", "on_lightning", "connectors"),
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
            getattr(getattr(__import__(__package__, fromlist=[adapter]), adapter), function)(module)
    except Exception:
        pass


def start():
    """Also in a program that has imported them already (antifreeze.guard())."""
    if any(isinstance(finder, Watch) for finder in sys.meta_path):
        return
    watch = Watch()
    sys.meta_path.insert(0, watch)
    for name in ROWS:
        if name in sys.modules:
            watch.due += ROWS[name]
    watch.look()
