"""Lightning saves by its trainer's save_checkpoint() when the guard asks for it, and goes on from there (ckpt_path) after a
restart. What the program saves by itself in the same way is told, too.
"""
import functools
import os
import shutil
import sys

from .. import clock, talk
from . import saving

NAME = "antifreeze.ckpt"


def trainer(module):
    """lightning.pytorch.trainer.trainer, or the same of pytorch_lightning"""
    kind = module.Trainer
    package = module.__name__.rpartition(".trainer.trainer")[0]
    fit, save = kind.fit, kind.save_checkpoint

    @functools.wraps(fit)
    def fit_on(self, *args, **kwargs):
        try:
            kwargs = where_from(args, kwargs)
            if not any(getattr(callback, "is_antifreeze", False) for callback in self.callbacks):
                self.callbacks.append(make_callback(sys.modules[package + ".callbacks.callback"].Callback))
        except Exception:
            pass
        return fit(self, *args, **kwargs)

    @functools.wraps(save)
    def save_checkpoint(self, filepath, *args, **kwargs):
        result = save(self, filepath, *args, **kwargs)
        try:
            is_whole = not (args[0] if args else kwargs.get("weights_only"))
            if is_whole and saving.is_first() and not getattr(self, "_antifreeze_saves", False):
                told(filepath)
        except Exception:
            pass
        return result

    kind.fit, kind.save_checkpoint = fit_on, save_checkpoint


def where_from(args, kwargs):
    """ckpt_path is the fifth argument of fit()."""
    if len(args) < 5 and not kwargs.get("ckpt_path") and saving.is_restart():
        path = whole_one(saving.resume_path())
        if path:
            return {**kwargs, "ckpt_path": path}
    return kwargs


def whole_one(path):
    """This one; or, where a kill came while it was written over, the newest beside it that is whole. ""; there is none."""
    if not path or is_whole(path):
        return path
    folder = os.path.dirname(path)
    beside = [os.path.join(folder, name) for name in os.listdir(folder) if name.endswith(".ckpt")]
    return max(filter(is_whole, beside), key=os.path.getmtime, default="")


def is_whole(path):
    """torch writes a file's list of contents at its end; a folder's has a file of its own, which comes last."""
    import zipfile
    return os.path.exists(os.path.join(path, ".metadata")) if os.path.isdir(path) else zipfile.is_zipfile(path)


def told(filepath):
    path = os.path.abspath(os.fspath(filepath))
    if os.path.isfile(path):
        saving.made(path, clock.count)


def save_whole(trainer, path):
    """All ranks write together; rank 0 has the file, and puts it into its place."""
    trainer._antifreeze_saves = True
    try:
        if saving.is_first():
            os.makedirs(os.path.dirname(path), exist_ok=True)
        trainer.save_checkpoint(path + ".part", weights_only=False)
        if saving.is_first():
            saving.sync(path + ".part" + ("/" if os.path.isdir(path + ".part") else ""))
            if os.path.isdir(path):
                shutil.rmtree(path)
            os.replace(path + ".part", path)
            saving.sync(os.path.dirname(path))
    finally:
        trainer._antifreeze_saves = False


def go_on_in_data(trainer):
    """Lightning goes on with the right number of the batch, but begins the data anew, unless its loader can be restored. Those
    that are done are taken and not trained on."""
    try:
        loop = trainer.fit_loop
        done, fetcher = loop.epoch_loop.batch_progress.current.ready, loop._data_fetcher
        is_mid_epoch = loop.epoch_loop.restarting and done < trainer.num_training_batches
        if saving.resume_path() and is_mid_epoch and not any(hasattr(x, "state_dict") for x in loop._combined_loader.flattened):
            for _ in range(done):
                next(fetcher)
            fetcher.fetched -= done  # it will be added
        count_epoch(loop)
    except Exception:
        pass


def count_epoch(loop):
    """Saved at the last batch of an epoch: the next one begins, which Lightning takes for the one that was, and does not count.
    What is saved in it would be gone on from at its first batch."""
    epochs = loop.epoch_progress.total
    if saving.resume_path() and loop.restarted_mid_epoch and epochs.ready == epochs.processed:
        loop.reset_restart_stage()


def make_callback(base):
    class Antifreeze(base):
        is_antifreeze = True
        wanted, together = False, None

        def on_train_start(self, trainer, pl_module):
            try:
                self.together = saving.Together(trainer.world_size, trainer.num_nodes)
                if trainer.global_step:
                    saving.resumed(trainer.global_step, saving.resume_path() or "its checkpoint")
                    go_on_in_data(trainer)
                saving.means("framework", self.asked if self.together.is_possible else None)
            except Exception:
                pass

        def asked(self, _):
            self.wanted = True
            return talk.LATER

        def on_train_batch_end(self, trainer, pl_module, outputs, batch, batch_idx):
            if self.wanted:
                self.wanted = False
                try:
                    self.together.ask(trainer.global_step)
                except Exception as error:
                    talk.cannot(f"{type(error).__name__}: {error}")
            if not self.together or not self.together.is_due(trainer.global_step):
                return
            path = os.path.join(os.path.abspath(trainer.default_root_dir), saving.PLACE,
                                os.environ.get("ANTIFREEZE_RUN", "run"), NAME)
            try:
                save_whole(trainer, path)
                if saving.is_first():
                    saving.made(path, clock.count)
            except Exception as error:
                talk.cannot(f"{type(error).__name__}: {error}")

        def on_train_end(self, trainer, pl_module):
            saving.means("framework", None)
            if self.together:
                self.together.done()

    return Antifreeze()
