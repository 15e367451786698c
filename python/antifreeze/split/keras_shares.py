"""What Keras' backends have in common for keras_step: how gradients and losses of parts add up to those of the batch, which
metrics may be told of parts, and what moves in a training pass without being trained.
"""
import sys


class Sums:
    """Of the parts so far. Shares are what the loss of each was divided by."""

    def __init__(self):
        self.gradients, self.loss, self.losses, self.share = None, 0., None, 0.
        self.is_weighted = False  # one part alone is left as it is, to the last bit
        self.outputs, self.masks = [], []  # of the parts, where the metrics are to have them in one


class Rules:
    def __init__(self, model, own, kind):
        """own: Keras' class of models for the backend. kind: of the backend's tensors."""
        self.model, self.own, self.kind = model, own, kind
        self.tree = sys.modules["keras.src.tree"]
        self.common, self.ops = sys.modules["keras.src.backend"], sys.modules["keras.src.ops"]
        self.trainer = sys.modules["keras.src.trainers.trainer"].Trainer
        self.unpack = sys.modules["keras.src.trainers.data_adapters.data_adapter_utils"].unpack_x_y_sample_weight
        self.never = None  # why this model is never split, whatever the user allows
        self.rule = "mean"  # how the loss of a batch comes from those of its samples
        self.is_by_count = True  # it is divided by their number, and nothing else

    def why_not_own(self, maker):
        """Why this model is not for us from the start. maker: the method that makes the function."""
        kind, own = type(self.model), self.own
        if kind.train_step is not own.train_step or "train_step" in vars(self.model):
            return "the model has a train_step of its own"
        if original(getattr(kind, maker)) is not original(getattr(own, maker)):
            return "the model makes its training function by itself"
        if self.model.optimizer is None:
            return "the model has no optimizer"
        return None

    def is_of_one_size(self):
        return any(tensor.shape[0] is not None for tensor in getattr(self.model, "inputs", None) or [])

    def count(self, batch):
        """Samples of a batch, which is its structure and its tensors."""
        first = next((leaf for leaf in batch[1] if leaf is not None), None)
        return int(first.shape[0] or 0) if first is not None and len(first.shape) else 0

    def can_slice(self, batch):
        n = self.count(batch)
        return all(isinstance(leaf, self.kind) and len(leaf.shape) and leaf.shape[0] == n for leaf in batch[1] if leaf is not None)

    def piece(self, batch, at, size):
        leaves = [None if leaf is None else leaf[at:at + size] for leaf in batch[1]]
        return self.tree.pack_sequence_as(batch[0], leaves), leaves

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
            self.rule, self.is_by_count = "sum", False
            if sums != rules:
                self.never = "its losses are partly sums and partly means"
            elif model.losses:
                self.never = "its loss is a sum, to which losses of layers are added"
            return number
        mask = next((mask for mask in masks if mask is not None), None)
        is_by_weight = weight is not None and "mean_with_sample_weight" in rules
        if mask is None and not is_by_weight:
            return number
        self.is_by_count = False
        if len(masks) > 1 or len(rules) > 1:
            self.never = "it has several losses, each of which is divided by another number"
            return number
        return self.summed(weight if is_by_weight else None, mask)

    def summed(self, weight, mask):
        ops = self.ops
        weight, mask = (None if part is None else ops.cast(part, "float32") for part in (weight, mask))
        if weight is None or mask is None:
            return ops.sum(mask if weight is None else weight)
        while len(weight.shape) < len(mask.shape):
            weight = ops.expand_dims(weight, -1)
        return ops.sum(mask * weight)

    # ---- what parts add up to ----

    def add(self, sums, batch, at, size, done, is_trial=False):
        loss, gradients, outputs, masks, share, losses = done
        share = 1. if self.rule == "sum" else float(share)
        if sums.gradients is None:
            sums.gradients, sums.loss, sums.losses = list(gradients), loss, list(losses)
        else:
            if not sums.is_weighted:
                self.weigh(sums, sums.share)
            for i, gradient in enumerate(gradients):
                sums.gradients[i] = self.added(sums.gradients[i], self.times(gradient, share))
                gradients[i] = None
            sums.loss = sums.loss + loss * share
            sums.losses = [a + b * share for a, b in zip(sums.losses, losses)]
        sums.share += share
        if not is_trial:
            self.note(sums, batch, at, size, outputs, masks)

    def weigh(self, sums, share):
        sums.is_weighted = True
        sums.gradients = [self.times(gradient, share) for gradient in sums.gradients]
        sums.loss = sums.loss * share
        sums.losses = [loss * share for loss in sums.losses]

    def times(self, gradient, share):
        return None if gradient is None else gradient * share

    def added(self, a, b):
        return b if a is None else a if b is None else a + b

    def settle(self, sums):
        """Of the batch, from those of its parts."""
        if sums.is_weighted and self.rule != "sum" and sums.share:
            self.weigh(sums, 1. / sums.share)
        sums.is_weighted = False

    def distance(self, one, other):
        """Of two gradients, in lengths of the first."""
        for sums in (one, other):
            self.settle(sums)
        square = apart = 0.
        for a, b in zip(one.gradients, other.gradients):
            if (a is None) != (b is None):
                return float("inf")
            if a is not None:
                a, b = (self.ops.cast(self.dense(gradient), "float32") for gradient in (a, b))
                square += float(self.ops.sum(a * a))
                apart += float(self.ops.sum((a - b) ** 2))
        loss = abs(float(one.loss) - float(other.loss)) / (abs(float(one.loss)) or 1.)
        return max(loss, (apart / square) ** .5 if square else float(apart > 0))

    def dense(self, gradient):
        return gradient

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
