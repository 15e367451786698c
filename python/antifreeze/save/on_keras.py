"""Keras: fit() saves weights, optimizer and place when the guard asks for it, in the form of its own BackupAndRestore, and goes
on from there after a restart: at the epoch, and at the batch of it.

Each backup is a folder of its own, which gets its name when it is whole; the one before goes then. Keras' own callbacks
(ModelCheckpoint, BackupAndRestore) write over their files in place: where a run may be started again, these get their name when
they are whole, too.
"""
import functools
import json
import os
import shutil

from .. import clock, talk
from ..see.on_keras import quietly
from . import saving

WEIGHTS, PLACE = "latest.weights.h5", "training_metadata.json"

_skip = 0  # batches of the epoch that begins now


def callbacks(module):
    """keras.src.callbacks"""
    kind = module.CallbackList
    train_begin, epoch_begin = kind.on_train_begin, kind.on_epoch_begin
    batch_end, train_end = kind.on_train_batch_end, kind.on_train_end

    @functools.wraps(train_begin)
    def on_train_begin(self, logs=None):
        train_begin(self, logs)  # a BackupAndRestore of the program's own comes first; then what is newer
        quietly(begin, self)

    @functools.wraps(epoch_begin)
    def on_epoch_begin(self, epoch, logs=None):
        self._antifreeze_epoch = epoch
        return epoch_begin(self, epoch, logs)

    @functools.wraps(batch_end)
    def on_train_batch_end(self, batch, logs=None):
        result = batch_end(self, batch, logs)
        if getattr(self, "_antifreeze_asked", False):
            self._antifreeze_asked = False
            save(self, batch)
        return result

    @functools.wraps(train_end)
    def on_train_end(self, logs=None):
        quietly(saving.means, "framework", None)
        return train_end(self, logs)

    kind.on_train_begin, kind.on_epoch_begin = on_train_begin, on_epoch_begin
    kind.on_train_batch_end, kind.on_train_end = on_train_batch_end, on_train_end


def iterators(module):
    """keras.src.trainers.epoch_iterator: batches that were done before the restart are taken and not trained on."""
    kind = module.EpochIterator
    inner = kind._enumerate_iterator

    @functools.wraps(inner)
    def _enumerate_iterator(self):
        global _skip
        skip, _skip = _skip, 0
        if not skip:
            yield from inner(self)
            return
        for begin_step, end_step, iterator in inner(self):
            if begin_step < skip:
                for _ in range(end_step - begin_step + 1):
                    next(iterator, None)  # the last execution of several steps may have fewer
            else:
                yield begin_step, end_step, iterator

    kind._enumerate_iterator = _enumerate_iterator


def begin(callbacks):
    def asked(_):
        callbacks._antifreeze_asked = True
        return talk.LATER

    # Of several fits in one program, it is the first that goes on: the others come again.
    if saving.is_restart() and not begin.was_here:
        begin.was_here = True
        restore(callbacks.model, saving.resume_path())
    saving.means("framework", asked)


begin.was_here = False


def save(callbacks, batch):
    try:
        if not saving.is_first():
            return
        epoch = getattr(callbacks, "_antifreeze_epoch", 0)
        place = saving.place(f"keras-{epoch}-{batch + 1}")
        part = saving.place("keras.part")
        shutil.rmtree(part, ignore_errors=True)
        os.makedirs(part)
        callbacks.model.save_weights(os.path.join(part, WEIGHTS), overwrite=True)
        with open(os.path.join(part, PLACE), "w", encoding="utf-8") as file:
            json.dump({"epoch": epoch, "batch": batch, "done": batch + 1}, file)
        saving.sync(part + "/")
        shutil.rmtree(place, ignore_errors=True)
        os.rename(part, place)
        saving.sync(os.path.dirname(place))
        saving.made(place, clock.count)
        for name in os.listdir(os.path.dirname(place)):
            if name.startswith("keras-") and name != os.path.basename(place):
                shutil.rmtree(os.path.join(os.path.dirname(place), name), ignore_errors=True)
    except Exception as error:
        talk.cannot(f"{type(error).__name__}: {error}")


def restore(model, path):
    global _skip
    where = saving.read_json(os.path.join(path, PLACE)) if path else {}
    if "epoch" not in where:
        return
    if model.optimizer is not None and not model.optimizer.built:
        model.optimizer.build(model.trainable_variables)
    variables = [*model.variables, *(model.optimizer.variables if model.optimizer is not None else ())]
    kept = [variable.numpy() for variable in variables]
    try:
        model.load_weights(os.path.join(path, WEIGHTS))
    except Exception as error:  # half of it may be loaded
        for variable, value in zip(variables, kept):
            variable.assign(value)
        talk.event("note", f"begins from the start: what was saved in {path} does not load ({type(error).__name__})")
        return
    model._initial_epoch = where["epoch"]
    _skip = where.get("done", 0)
    talk.event("resume", f"goes on in epoch {where['epoch'] + 1} after batch {_skip}, from {path}",
               step=int(model.optimizer.iterations.numpy()) if hasattr(model.optimizer.iterations, "numpy") else 0)


def whole(inner):
    """Around keras.src.saving.saving_lib.save_model and save_weights_only."""
    @functools.wraps(inner)
    def save_whole(model, filepath, *args, **kwargs):
        path = file_of(filepath)
        if path is None or any(args) or kwargs.get("max_shard_size") is not None or not kwargs.get("zipped", True):
            return inner(model, filepath, *args, **kwargs)
        part = os.path.join(os.path.dirname(path), ".part-" + os.path.basename(path))
        try:
            result = inner(model, part, *args, **kwargs)
            if os.path.exists(path):
                shutil.copymode(path, part)
            saving.sync(part)
            os.replace(part, path)
            saving.sync(os.path.dirname(path))
        except BaseException:
            saving.remove(part)
            raise
        return result

    return save_whole


def file_of(filepath):
    """Where it is one file in a folder of this machine; None: not to be told."""
    try:
        path = os.path.realpath(os.fspath(filepath))
        folder = os.path.dirname(path)
        is_file = os.path.isfile(path) or not os.path.lexists(path) and os.path.isdir(folder)
        is_open = os.access(folder, os.R_OK | os.W_OK | os.X_OK)  # to be read, too: its list of names is brought to the disk
        return path if is_file and is_open and path.endswith((".weights.h5", ".keras")) else None
    except (TypeError, ValueError, OSError):
        return None
