"""Keras on PyTorch, for keras_step. Its training step is run as it is written, so a part is the step's own first half on some of
the samples: forward, loss, backward. Memory that is not there is an error here like any other, on the host and on a GPU.
"""
import functools
import sys

from ..see import oom
from . import keras_shares as shares

FEW = 2  # samples to build a model with: one alone may be squeezed away


class Backend(shares.Rules):
    def __init__(self, model):
        self.torch = sys.modules["torch"]
        super().__init__(model, sys.modules["keras.src.backend.torch.trainer"].TorchTrainer, self.torch.Tensor)

    def why_not(self):
        """A model may look as if made for one size of batch: Keras builds it with the first one. The proof will tell."""
        why = self.why_not_own("make_train_function")
        if why is None and self.model.jit_compile:
            why = "the step is compiled (jit_compile)"
        return why

    def meter(self):
        return None

    def is_host(self):
        """Whether what will not fit has to be foreseen: here an error comes in time."""
        return False

    # ---- the batch ----

    def take(self, data):
        data = data[0]
        yield data, [None if leaf is None else self.common.convert_to_tensor(leaf) for leaf in self.tree.flatten(data)]

    def given(self, batch):
        return [batch[0]]

    def tell_size(self, batch):
        """see/torch_memory.py does."""

    def part(self, batch, at, size):
        return self.unpack(batch[0] if size == self.count(batch) else self.piece(batch, at, size)[0])

    # ---- gradients ----

    def gradients(self, batch, at, size, n):
        model = self.model
        x, y, weight = self.part(batch, at, size)
        done = False
        try:
            with shares.Collected(model) as losses:
                outputs = model(x, training=True) if model._call_has_training_arg else model(x)
                model.zero_grad()
                loss = model._compute_loss(x=x, y=y, y_pred=outputs, sample_weight=weight, training=True)
            scaled = model.optimizer.scale_loss(loss)
            if model.trainable_weights:
                scaled.backward()
            gradients = [variable.value.grad for variable in model.trainable_weights]
            done = True
        finally:
            if not done or size < n:
                # What is added up is ours from here on; what was half done goes.
                gradients = gradients if done else None
                for variable in model.trainable_weights:
                    variable.value.grad = None
        masks = [self.common.get_keras_mask(output) for output in self.tree.flatten(outputs)]
        share = self.share(size, weight, masks)
        return loss.detach(), gradients, outputs, masks, share, [value.detach() for value in losses]

    def note(self, sums, batch, at, size, outputs, _):
        """A whole batch keeps its graph until the metrics have seen it, as Keras has it."""
        is_whole = size == self.count(batch)
        if is_whole or self.must_gather():
            sums.outputs.append(outputs if is_whole else self.tree.map_structure(self.unmasked, outputs))
        elif self.model._compile_metrics is not None:
            _, y, weight = self.part(batch, at, size)
            self.model._compile_metrics.update_state(y, outputs, weight)

    def unmasked(self, output):
        mask, output = self.common.get_keras_mask(output), output.detach()
        if mask is not None:
            self.common.set_keras_mask(output, mask)
        return output

    # ---- the end of a step ----

    def finish(self, sums, batch, n, count):
        self.settle(sums)
        model = self.model
        model._loss_tracker.update_state(sums.loss, sample_weight=n)
        for metric, value in zip(shares.Collected.of(model), sums.losses):
            metric.update_state(value, sample_weight=n)
        if model.trainable_weights:
            with self.torch.no_grad():
                model.optimizer.apply(sums.gradients, model.trainable_weights[:])
        sums.gradients = None
        if not sums.outputs:
            return model.get_metrics_result()
        x, y, weight = self.unpack(batch[0])
        return model.compute_metrics(x, y, self.joined(sums.outputs), sample_weight=weight)

    def joined(self, outputs):
        if len(outputs) == 1:
            return outputs[0]

        def join(*parts):
            masks = [self.common.get_keras_mask(part) for part in parts]
            whole = self.torch.cat(parts)
            if masks[0] is not None:
                self.common.set_keras_mask(whole, self.torch.cat(masks))
            return whole

        return self.tree.map_structure(join, *outputs)

    # ---- what moves by itself ----

    def keep(self):
        """With torch's own draws: a layer of torch has no generator of Keras'."""
        if not self.model.built:
            return []
        return draws(self.torch) + [(name, variable, variable.value.detach().clone()) for name, variable in self.moving()]

    def put_back(self, kept):
        for _, variable, value in kept:
            if hasattr(variable, "assign"):
                variable.assign(value)
            else:
                variable(value)

    def moved(self, kept):
        names = {name for name, variable, value in kept if name and bool((variable.value.detach() != value).any())}
        if kept and bool((self.torch.get_rng_state() != kept[0][2]).any()) or self.has_drawn_on_gpu(kept):
            kinds = {type(layer).__name__ for layer in self.model._flatten_layers()}
            names |= {kind for kind in kinds if "Dropout" in kind or "Noise" in kind or "Random" in kind} or {"random numbers"}
        return sorted(names)

    def has_drawn_on_gpu(self, kept):
        if len(kept) < 2 or kept[1][1] is not self.torch.cuda.set_rng_state_all:
            return False
        return any(bool((a != b).any()) for a, b in zip(kept[1][2], self.torch.cuda.get_rng_state_all()))


def draws(torch):
    """How torch's own random numbers go on: (None, what sets them, to what)."""
    states = [(None, torch.set_rng_state, torch.get_rng_state())]
    if torch.cuda.is_initialized():
        states.append((None, torch.cuda.set_rng_state_all, torch.cuda.get_rng_state_all()))
    return states


def building(inner):
    """fit() builds what is not built yet by its first batch. Where a layer cannot do with shapes alone, all of it goes through; if
    that does not fit, some samples do as well. What was built before that stays, so weights are drawn as ever."""
    @functools.wraps(inner)
    def _symbolic_build(self, iterator=None, data_batch=None):
        torch, batch = sys.modules["torch"], data_batch
        kept, unbuilt = draws(torch), begun(self)

        def taken():
            nonlocal batch, kept
            for step in iterator:
                batch, kept = step[2][0], draws(torch)
                yield step

        try:
            return inner(self, iterator=taken() if iterator is not None else None, data_batch=data_batch)
        except Exception as error:
            if batch is None or not oom.caught(error) and not oom.caught(error.__context__):
                raise
            error.__traceback__ = error.__context__ = None  # their frames have tensors
        for _, put_back, value in kept:
            put_back(value)
        for one, layers in unbuilt:
            one._layers, one._functional = layers, None
        few = sys.modules["keras.src.tree"].map_structure(lambda leaf: None if leaf is None else leaf[:FEW], batch)
        return inner(self, data_batch=few)

    return _symbolic_build


def begun(model):
    """Of each Sequential that will be built its layers: one that fails at it has taken down the batch's size already."""
    return [(one, list(one._layers)) for one in model._flatten_layers() if hasattr(one, "_functional") and not one.built]
