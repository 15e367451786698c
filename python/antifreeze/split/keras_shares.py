"""What Keras' backends have in common for split_keras: how the loss of a batch comes from those of its parts, which metrics may be
told of parts, and what moves in a training pass without being trained.
"""
import sys


class Rules:
    def __init__(self, model):
        self.model = model
        self.tree = sys.modules["keras.src.tree"]
        self.common = sys.modules["keras.src.backend"]
        self.trainer = sys.modules["keras.src.trainers.trainer"].Trainer
        self.unpack = sys.modules["keras.src.trainers.data_adapters.data_adapter_utils"].unpack_x_y_sample_weight
        self.never = None  # why this model is never split, whatever the user allows
        self.rule = "mean"  # how the loss of a batch comes from those of its samples

    def why_not_own(self, own, maker):
        """Why this model is not for us from the start. own: Keras' class for the backend; maker: its method that makes the function."""
        kind = type(self.model)
        if kind.train_step is not own.train_step or "train_step" in vars(self.model):
            return "the model has a train_step of its own"
        if original(getattr(kind, maker)) is not original(getattr(own, maker)):
            return "the model makes its training function by itself"
        if self.model.optimizer is None:
            return "the model has no optimizer"
        return None

    def is_of_one_size(self):
        return any(tensor.shape[0] is not None for tensor in getattr(self.model, "inputs", None) or [])

    def why_never(self):
        return self.never

    def dtype(self):
        return self.model.compute_dtype

    def share(self, number, weight, masks):
        """What the loss of these samples was divided by: their number, as a rule. Σ share · loss / Σ share is that of the batch."""
        model, compiled = self.model, self.model._compile_loss
        if compiled is None or type(model).compute_loss is not self.trainer.compute_loss:
            return number
        rules = {getattr(loss.loss, "reduction", "mean") for loss in compiled._flat_losses or []}
        sums = rules & {"sum", "none", None}
        if sums:
            self.rule = "sum"
            if sums != rules:
                self.never = "its losses are partly sums and partly means"
            elif model.losses:
                self.never = "its loss is a sum, to which losses of layers are added"
            return number
        mask = next((mask for mask in masks if mask is not None), None)
        is_by_weight = weight is not None and "mean_with_sample_weight" in rules
        if mask is None and not is_by_weight:
            return number
        if len(masks) > 1 or len(rules) > 1:
            self.never = "it has several losses, each of which is divided by another number"
            return number
        return self.summed(weight if is_by_weight else None, mask)

    def summed(self, weight, mask):
        ops = sys.modules["keras.src.ops"]
        weight, mask = (None if part is None else ops.cast(part, "float32") for part in (weight, mask))
        if weight is None or mask is None:
            return ops.sum(mask if weight is None else weight)
        while len(weight.shape) < len(mask.shape):
            weight = ops.expand_dims(weight, -1)
        return ops.sum(mask * weight)

    def must_gather(self):
        """Whether metrics must see the outputs of the whole batch at once: those of the program's own may be anything."""
        model = self.model
        if type(model).compute_metrics is not self.trainer.compute_metrics:
            return True
        compiled = model._compile_metrics
        if compiled is None:
            return False
        metrics = [metric for metric in compiled.metrics if metric is not None]
        return not metrics or not all(is_kerass(metric) for metric in metrics)

    def moving(self):
        """Variables that a training pass may write, each with the kind of its layer. Not frozen ones: they are as large as any."""
        for layer in self.model._flatten_layers():
            for variable in layer._non_trainable_variables:
                yield type(layer).__name__, variable
            for generator in layer._seed_generators:
                yield type(layer).__name__, generator.state
            if layer is not self.model:
                for metric in layer._metrics:
                    for variable in metric.variables:
                        yield None, variable


class Collected:
    """with Collected(model) as losses: what a model with several outputs would note of each loss is put there instead. It is noted
    when the step is done, once."""

    def __init__(self, model):
        self.metrics, self.losses = self.of(model), []

    @staticmethod
    def of(model):
        return list(model._compile_loss.metrics) if model._compile_loss is not None else []

    def __enter__(self):
        for metric in self.metrics:
            object.__setattr__(metric, "update_state", lambda value, sample_weight=None: self.losses.append(value))
        return self.losses

    def __exit__(self, *_):
        for metric in self.metrics:
            object.__delattr__(metric, "update_state")


def original(function):
    """Without what we have put around it."""
    return getattr(function, "__wrapped__", function)


def is_kerass(metric):
    """Whether it is one of Keras' own, which may be told of samples in any portions."""
    function = getattr(metric, "_fn", None)
    return type(metric).__module__.startswith("keras.src.") and \
        (function is None or getattr(function, "__module__", "").startswith("keras.src."))
