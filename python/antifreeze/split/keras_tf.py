"""Keras on TensorFlow, for keras_step: gradients of some samples, and what is done with them in the end.

Three functions take the place of one: the gradients (which write nothing but what keep() knows), the update, the metrics. Each is traced
for batches of any size, so parts of any size run in the same one.
"""
import sys

from .. import room
from ..tell import tell
from . import keras_shares as shares


class Meter:
    """The CPU allocator that TensorFlow has with oneDNN keeps what it once took, and counts. The other one does neither."""

    def __init__(self, tf):
        self.config = tf.config.experimental
        self.now()  # raises where there are no figures

    def now(self):
        return self.config.get_memory_info("CPU:0")["current"]

    def highest(self):
        return self.config.get_memory_info("CPU:0")["peak"]

    def reset(self):
        self.config.reset_memory_stats("CPU:0")


class Backend(shares.Rules):
    def __init__(self, model):
        self.tf = sys.modules["tensorflow"]
        super().__init__(model, sys.modules["keras.src.backend.tensorflow.trainer"].TensorFlowTrainer, self.tf.Tensor)
        self.functions = {}
        self.spec = None  # of the data set that batches come from

    def why_not(self):
        if self.model._distribute_strategy is not None or self.tf.distribute.has_strategy():
            return "the model is trained on several devices"
        if self.is_of_one_size():
            return "the model is made for one size of batch"
        return self.why_not_own("_make_function") or self.why_not_own("make_train_function")

    def meter(self):
        try:
            return Meter(self.tf)
        except Exception:
            return None

    def is_host(self):
        return not any("GPU" in variable.value.device for variable in self.model.trainable_variables[:1]) if self.model.built \
            else not self.tf.config.list_logical_devices("GPU")

    # ---- the batch ----

    def take(self, iterator):
        """The batches of one execution, each as (structure, its tensors)."""
        self.spec = getattr(iterator, "element_spec", None)
        for step in range(self.model.steps_per_execution):
            try:
                data = next(iterator)
            except (StopIteration, self.tf.errors.OutOfRangeError):
                if step:
                    return
                raise self.tf.errors.OutOfRangeError(None, None, "End of sequence") from None
            yield self.divided(data)

    def divided(self, data):
        optional = self.tf.experimental.Optional
        data = self.tree.map_structure(lambda item: None if isinstance(item, optional) else item, data)
        leaves = self.tree.flatten(data)
        for at, leaf in enumerate(leaves):
            if leaf is not None and not isinstance(leaf, (self.tf.SparseTensor, self.tf.RaggedTensor)):
                leaves[at] = self.tf.convert_to_tensor(leaf)
        return data, leaves

    def given(self, batch):
        """As Keras' own function takes it: from a data set like the one it came from, if it did."""
        try:
            if self.spec is not None:
                return iter(self.tf.data.Dataset.from_generator(lambda: iter([batch[0]]), output_signature=self.spec))
        except Exception:
            pass
        return iter([batch[0]])

    def tell_size(self, batch):
        tell("batch_bytes" if self.is_host() else "gpu_batch_bytes", self.size(batch))

    def size(self, batch):
        return sum(leaf.shape.num_elements() * leaf.dtype.size for leaf in batch[1] if leaf is not None)

    def part(self, batch, at, size):
        leaves = [leaf for leaf in batch[1] if leaf is not None]
        return leaves if size == self.count(batch) else [leaf[at:at + size] for leaf in leaves]

    # ---- functions ----

    def function(self, name, body, tensors):
        """`body` as a tf.function of a list of tensors, for any number of samples. Where something else than that has changed since the
        last time, for any of that, too."""
        if self.model.run_eagerly:
            return body
        tf = self.tf
        known, specs = self.functions.get(name, (None, None))
        if specs is None or len(specs) != len(tensors):
            specs = [tf.TensorSpec([None] + list(tensor.shape[1:]), tensor.dtype) for tensor in tensors]
            known = None
        elif not all(spec.is_compatible_with(tensor) for spec, tensor in zip(specs, tensors)):
            specs = [self.wider(spec, tensor) for spec, tensor in zip(specs, tensors)]
            known = None
        if known is None:
            # As Keras does it: what it calls is not to be converted by AutoGraph, or not less.
            known = tf.function(tf.autograph.experimental.do_not_convert(body), input_signature=[specs],
                                jit_compile=self.model.jit_compile)
            self.functions[name] = known, specs
        return known

    def wider(self, spec, tensor):
        if spec.dtype != tensor.dtype or spec.shape.rank != tensor.shape.rank:
            return self.tf.TensorSpec([None] + list(tensor.shape[1:]), tensor.dtype)
        return self.tf.TensorSpec([a if a == b else None for a, b in zip(spec.shape, tensor.shape)], spec.dtype)

    def form(self, batch):
        """Its structure alone: a function that is made for a batch must not keep it."""
        return self.tree.map_structure(lambda leaf: leaf is not None, batch[0])

    def packed(self, form, tensors):
        """x, y, sample_weight again."""
        left = iter(tensors)
        return self.unpack(self.tree.map_structure(lambda has: next(left) if has else None, form))

    # ---- gradients ----

    def gradients(self, batch, at, size, n):
        tensors, form = self.part(batch, at, size), self.form(batch)
        name = f"gradients {form}"

        def compute(tensors):
            return self.computed(*self.packed(form, tensors))

        known = self.functions.get(name)
        function = self.function(name, compute, tensors)
        if self.model.run_eagerly:
            return self.eagerly(function, tensors)
        if self.functions[name] is not known:
            # Making it may not be refused memory: TensorFlow does not look whether it got any then.
            function = self.traced(name, function, compute, tensors)
            return function(tensors)
        with room.armed():
            return function(tensors)

    def eagerly(self, compute, tensors):
        """A model with several losses makes what notes them when it is first run, and writes it then. Once more."""
        before = len(shares.Collected.of(self.model))
        done = compute(tensors)
        new = shares.Collected.of(self.model)[before:]
        for metric in new:
            metric.reset_state()
        return compute(tensors) if new else done

    def traced(self, name, function, compute, tensors):
        """The same when it is first traced."""
        losses = len(shares.Collected.of(self.model))
        function.get_concrete_function()
        if len(shares.Collected.of(self.model)) == losses:
            return function
        del self.functions[name]
        return self.function(name, compute, tensors)

    def computed(self, x, y, weight):
        tf, model = self.tf, self.model
        with shares.Collected(model) as losses, tf.GradientTape() as tape:
            outputs = model(x, training=True) if model._call_has_training_arg else model(x)
            loss = model._compute_loss(x=x, y=y, y_pred=outputs, sample_weight=weight, training=True)
            scaled = model.optimizer.scale_loss(loss)
        gradients = tape.gradient(scaled, model.trainable_weights)
        masks = [self.common.get_keras_mask(output) for output in self.tree.flatten(outputs)]
        number = tf.shape(next(leaf for leaf in self.tree.flatten(x) if leaf is not None))[0]
        share = self.share(number, weight, masks)
        return loss, gradients, outputs, masks, share, losses

    # ---- what parts add up to ----

    def note(self, sums, batch, at, size, outputs, masks):
        if self.must_gather() or size == self.count(batch):
            sums.outputs.append(outputs)
            sums.masks.append(masks)
        elif self.model._compile_metrics is not None:
            self.tally(batch, self.part(batch, at, size), outputs, masks)

    def times(self, gradient, share):
        if isinstance(gradient, self.tf.IndexedSlices):
            return self.tf.IndexedSlices(gradient.values * share, gradient.indices, gradient.dense_shape)
        return super().times(gradient, share)

    def added(self, a, b):
        if isinstance(a, self.tf.IndexedSlices) and isinstance(b, self.tf.IndexedSlices):
            values, indices = ([a.values, b.values], [a.indices, b.indices])
            return self.tf.IndexedSlices(self.tf.concat(values, 0), self.tf.concat(indices, 0), a.dense_shape)
        return super().added(a, b)

    def dense(self, gradient):
        return self.tf.convert_to_tensor(gradient)

    # ---- the end of a step ----

    def finish(self, sums, batch, n, count):
        self.settle(sums)
        self.update()(sums.gradients, sums.loss, sums.losses, self.tf.constant(n, "int32"))
        if sums.outputs:
            return self.whole_metrics(batch, sums)
        return self.results()()

    def update(self):
        """Nothing here may fail for want of memory: what is half applied cannot be repeated."""
        if "update" not in self.functions:
            model = self.model

            def update(gradients, loss, losses, n):
                model._loss_tracker.update_state(loss, sample_weight=n)
                for metric, value in zip(shares.Collected.of(model), losses):
                    metric.update_state(value, sample_weight=n if model.run_eagerly else None)  # as Keras has it
                if model.trainable_weights:
                    model.optimizer.apply_gradients(zip(gradients, model.trainable_weights))

            self.functions["update"] = self.made(update)
        return self.functions["update"]

    def results(self):
        if "results" not in self.functions:
            self.functions["results"] = self.made(self.model.get_metrics_result)
        return self.functions["results"]

    def made(self, body):
        if self.model.run_eagerly:
            return body
        return self.tf.function(self.tf.autograph.experimental.do_not_convert(body), reduce_retracing=True,
                                jit_compile=self.model.jit_compile)

    def with_outputs(self, name, batch, tensors, outputs, masks, body):
        """Calls body(x, y, outputs, weight), in which the outputs have the masks that they had."""
        flat = self.tree.flatten(outputs)
        have = [mask is not None for mask in masks]
        count, kinds, form = len(tensors), len(flat), self.form(batch)
        shape = self.tree.map_structure(lambda _: 0, outputs)

        def call(everything):
            x, y, weight = self.packed(form, everything[:count])
            made = [self.tf.identity(output) for output in everything[count:count + kinds]]
            rest = iter(everything[count + kinds:])
            for output, has in zip(made, have):
                if has:
                    self.common.set_keras_mask(output, next(rest))
            return body(x, y, self.tree.pack_sequence_as(shape, made), weight)

        everything = [*tensors, *flat, *(mask for mask in masks if mask is not None)]
        return self.function(f"{name} {form} {shape} {have}", call, everything)(everything)

    def tally(self, batch, tensors, outputs, masks):
        def body(_x, y, outputs, weight):
            self.model._compile_metrics.update_state(y, outputs, weight)

        self.with_outputs("tally", batch, tensors, outputs, masks, body)

    def whole_metrics(self, batch, sums):
        outputs, masks = sums.outputs[0], sums.masks[0]
        if len(sums.outputs) > 1:
            join = lambda *parts: None if parts[0] is None else self.tf.concat(parts, 0)  # noqa: E731
            outputs = self.tree.map_structure(join, *sums.outputs)
            masks = [join(*parts) for parts in zip(*sums.masks)]

        def body(x, y, outputs, weight):
            return self.model.compute_metrics(x, y, outputs, sample_weight=weight)

        tensors = [leaf for leaf in batch[1] if leaf is not None]
        return self.with_outputs("metrics", batch, tensors, outputs, masks, body)

    # ---- what moves by itself ----

    def keep(self):
        return [(name, variable, variable.numpy()) for name, variable in self.moving()] if self.model.built else []

    def put_back(self, kept):
        for _, variable, value in kept:
            variable.assign(value)

    def moved(self, kept):
        """Kinds of layers of which something has moved."""
        return sorted({name for name, variable, value in kept if name and (variable.numpy() != value).any()})
