"""The Hugging Face Trainer saves in its own way and place (output_dir/checkpoint-N) when the guard asks for it, and goes on from
there after a restart. It writes straight into the folder; one that is whole has trainer_state.json, which comes last.
"""
import functools
import os
import sys

from .. import clock, talk
from . import saving

LAST = "trainer_state.json"
OURS = "antifreeze.json"  # says which run has made it: the checkpoints of another run are not ours to go on from


def trainer(module):
    """transformers.trainer"""
    kind = module.Trainer
    inner, save = kind.train, kind._save_checkpoint

    @functools.wraps(save)
    def _save_checkpoint(self, *args, **kwargs):
        if saving.is_first():  # a folder that is there already is not whole while it is written over
            saving.remove(os.path.join(str(self.args.output_dir), f"checkpoint-{self.state.global_step}", LAST))
        return save(self, *args, **kwargs)

    @functools.wraps(inner)
    def train(self, *args, **kwargs):
        try:
            args, kwargs = with_checkpoint(self.args.output_dir, args, kwargs)
            if not any(getattr(callback, "is_antifreeze", False) for callback in self.callback_handler.callbacks):
                self.add_callback(make_callback())
        except Exception:
            pass
        return inner(self, *args, **kwargs)

    kind.train, kind._save_checkpoint = train, _save_checkpoint


def with_checkpoint(folder, args, kwargs):
    """The arguments of train(), of which resume_from_checkpoint is the first."""
    wish = args[0] if args else kwargs.get("resume_from_checkpoint")
    path = where_from(folder, wish)
    if path is wish:
        return args, kwargs
    return ((path, *args[1:]), kwargs) if args else (args, {**kwargs, "resume_from_checkpoint": path})


def where_from(folder, wish):
    """What to say for resume_from_checkpoint. A program that says a path gets it; one that says True does not get a folder
    that a kill has left half-written."""
    if wish is True:
        return newest(folder) or wish
    if wish or not saving.is_restart():
        return wish
    path = saving.resume_path()
    if not is_whole(path):
        path = newest(folder, os.environ.get("ANTIFREEZE_RUN"))
    later = newest(folder)  # one that was whole when it was killed, and not told yet
    if path and later and all(of(later) > of(path) for of in (step_of, written_ns)):
        path = later
    return path or wish


def newest(folder, run=None):
    """The last whole checkpoint in a folder; with `run`: that this run has made."""
    found = []
    for name in os.listdir(folder) if os.path.isdir(folder) else ():
        path = os.path.join(folder, name)
        if name.startswith("checkpoint-") and step_of(path) and is_whole(path):
            if run is None or saving.read_json(os.path.join(path, OURS)).get("run") == run:
                found.append((step_of(path), path))
    return max(found)[1] if found else None


def step_of(path):
    step = path.rpartition("-")[2]
    return int(step) if step.isdigit() else 0


def written_ns(path):
    return os.stat(os.path.join(path, LAST)).st_mtime_ns


def is_whole(path):
    return bool(path) and "global_step" in saving.read_json(os.path.join(path, LAST))


def mark(path):
    """It is this run's. One that was asked for is brought to the disk: who asks is about to end the job."""
    import json
    with open(os.path.join(path, OURS), "w", encoding="utf-8") as file:
        json.dump({"run": os.environ.get("ANTIFREEZE_RUN", "")}, file)
    if talk.is_asked():
        saving.sync(path + "/")


def make_callback():
    base = sys.modules["transformers.trainer_callback"].TrainerCallback

    class Antifreeze(base):
        is_antifreeze = True
        wanted, together = False, None

        def on_train_begin(self, args, state, control, **kwargs):
            try:
                self.together = saving.Together(args.world_size)
                if state.global_step:
                    saving.resumed(state.global_step, saving.resume_path() or "its checkpoint")
                saving.means("framework", self.asked if self.together.is_possible else None)
            except Exception:
                pass

        def asked(self, _):
            self.wanted = True
            return talk.LATER

        def on_step_end(self, args, state, control, **kwargs):
            if self.wanted:
                self.wanted = False
                try:
                    self.together.ask(state.global_step)
                except Exception as error:
                    talk.cannot(f"{type(error).__name__}: {error}")
            if self.together and self.together.is_due(state.global_step):
                control.should_save = True
            return control

        def on_save(self, args, state, control, **kwargs):
            try:
                path = os.path.join(args.output_dir, f"checkpoint-{state.global_step}")
                if saving.is_first() and is_whole(path):
                    mark(path)
                    saving.made(path, clock.count)
            except Exception as error:
                talk.cannot(error)

        def on_train_end(self, args, state, control, **kwargs):
            saving.means("framework", None)
            if self.together:
                self.together.done()

    return Antifreeze()
