"""Keras on PyTorch, for split_keras. Its training step is run as it is written, so a part is the step's own first half on some of
the samples: forward, loss, backward. Memory that is not there is an error here like any other, on the host and on a GPU.
"""
import sys

from . import keras_shares as shares


class Sums:
    """Of the parts so far, as in split_keras_tf."""

    def __init__(self):
        self.gradients, self.loss, self.losses, self.share = None, 0., None, 0.
        self.weighted = False
        self.outputs = []


class Backend(shares.Rules):
    def __init__(self, model):
        super().__init__(model)
        self.torch = sys.modules["torch"]

    def why_not(self):
        """A model may look as if made for one size of batch: Keras builds it with the first one. The proof will tell."""
        own = sys.modules["keras.src.backend.torch.trainer"].TorchTrainer
        why = self.why_not_own(own, "make_train_function")
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

    def count(self, batch):
        first = next((leaf for leaf in batch[1] if leaf is not None), None)
        return int(first.shape[0]) if first is not None and len(first.shape) else 0

    def tell_size(self, batch):
        """see/torch_memory.py does."""

    def can_slice(self, batch):
        n = self.count(batch)
        return all(leaf is None or len(leaf.shape) and leaf.shape[0] == n for leaf in batch[1])

    def part(self, batch, at, size):
        if size == self.count(batch):
            return self.unpack(batch[0])
        leaves = [None if leaf is None else leaf[at:at + size] for leaf in batch[1]]
        return self.unpack(self.tree.pack_sequence_as(batch[0], leaves))

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

    # ---- what parts add up to ----

    def sums(self):
        return Sums()

    def add(self, sums, batch, at, size, done, is_trial=False):
        loss, gradients, outputs, _, share, losses = done
        share = 1. if self.rule == "sum" else float(share)
        if sums.gradients is None:
            sums.first = share
            sums.gradients, sums.loss, sums.losses = list(gradients), loss, list(losses)
        else:
            if not sums.weighted:
                self.weigh(sums, sums.first)
            for i, gradient in enumerate(gradients):
                if gradient is not None:
                    gradient = gradient * share
                    sums.gradients[i] = gradient if sums.gradients[i] is None else sums.gradients[i] + gradient
                    gradients[i] = None
            sums.loss = sums.loss + loss * share
            sums.losses = [a + b * share for a, b in zip(sums.losses, losses)]
        sums.share += share
        if is_trial:
            return
        if self.must_gather() or size == self.count(batch):
            # A whole batch keeps its graph until the metrics have seen it, as Keras has it.
            sums.outputs.append(outputs if size == self.count(batch) else
                                self.tree.map_structure(lambda output: self.unmasked(output), outputs))
        elif self.model._compile_metrics is not None:
            _, y, weight = self.part(batch, at, size)
            self.model._compile_metrics.update_state(y, outputs, weight)

    def unmasked(self, output):
        mask, output = self.common.get_keras_mask(output), output.detach()
        if mask is not None:
            self.common.set_keras_mask(output, mask)
        return output

    def weigh(self, sums, share):
        sums.weighted = True
        sums.gradients = [None if gradient is None else gradient * share for gradient in sums.gradients]
        sums.loss = sums.loss * share
        sums.losses = [loss * share for loss in sums.losses]

    def settle(self, sums):
        if sums.weighted and self.rule != "sum" and sums.share:
            self.weigh(sums, 1. / sums.share)
        sums.weighted = False

    def distance(self, one, other):
        for sums in (one, other):
            self.settle(sums)
        square = apart = 0.
        for a, b in zip(one.gradients, other.gradients):
            if a is None or b is None:
                if a is not b:
                    return float("inf")
                continue
            square += float((a.float() ** 2).sum())
            apart += float(((a.float() - b.float()) ** 2).sum())
        loss = abs(float(one.loss) - float(other.loss)) / (abs(float(one.loss)) or 1.)
        return max(loss, (apart / square) ** .5 if square else float(apart > 0))

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
        states = [(None, self.torch.set_rng_state, self.torch.get_rng_state())]
        cuda = self.torch.cuda
        if cuda.is_available() and cuda.is_initialized():
            states.append((None, cuda.set_rng_state_all, cuda.get_rng_state_all()))
        return states + [(name, variable, variable.value.detach().clone()) for name, variable in self.moving()]

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
