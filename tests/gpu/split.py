#!/usr/bin/env python3
"""On a machine with a GPU: a batch that needs more than three times the VRAM budget goes through in parts, with the same losses as
without a budget; with the budget and without us the program dies.

usage: tests/gpu/split.py [NAME ...]

Without a name all are played: torch (a plain loop, unchanged), micro (the same with antifreeze.micro()), transformers (the Trainer),
lightning, light (one sample alone does not fit), amp. Needs torch with CUDA, and transformers, accelerate and lightning for theirs, but neither the probe nor the guard.
Each run is a process of its own. Says what it checks; exit 1: one failed.
"""
import json
import os
import subprocess
import sys
import tempfile

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
GIB = 1 << 30
TIMES = 3.2  # what the whole batch needs, over the budget
ROUNDING = 2e-4  # of a loss, in float32 over some steps of Adam
PATIENCE_S = 400

BEFORE = f"""
import os, sys, json, time, types, warnings, logging
warnings.simplefilter("ignore")
sys.path.append({ROOT + "/python"!r})
door = sys.modules["_antifreeze"] = types.ModuleType("_antifreeze"); door.__path__ = [{ROOT + "/python/antifreeze"!r}]
from _antifreeze import clock, talk, watch
events = []
if os.environ["MODE"] != "free":
    clock.connect = lambda: True
    talk.event = lambda kind, sentence="", **keys: (events.append((kind, sentence, keys)), print(kind, sentence, keys, file=sys.stderr))
    watch.start()
import torch
from torch import nn
""" + """
torch.manual_seed(1)
losses, began = [], time.perf_counter()
def say(loss): losses.append(float(loss))
def end(**more):
    from _antifreeze.split import sizing
    json.dump({"losses": losses, "peak": torch.cuda.max_memory_allocated(), "seconds": time.perf_counter() - began, "events": events,
               "splits": sizing.splitter.splits, "most": min([one.most for one in sizing._others if one.most], default=None), **more}, open(os.environ["RESULT"], "w"))
class Net(nn.Module):
    def __init__(self, width=512, layers=6):
        super().__init__()
        self.blocks = nn.ModuleList(nn.TransformerEncoderLayer(width, 8, 2048, dropout=0., batch_first=True, norm_first=True) for _ in range(layers))
        self.out = nn.Linear(width, 16)
    def forward(self, x):
        for block in self.blocks: x = block(x)
        return self.out(x.mean(1))
STEPS, BATCH = 8, 384
def rows(n):
    g = torch.Generator().manual_seed(n); return torch.randn(BATCH, 128, 512, generator=g), torch.randint(0, 16, (BATCH,), generator=g)
"""
LOOP = BEFORE + """
model = Net().cuda(); opt = torch.optim.Adam(model.parameters(), lr=1e-4); loss_fn = nn.CrossEntropyLoss()
schedule = torch.optim.lr_scheduler.StepLR(opt, 3)
for n in range(STEPS):
    a, b = (t.cuda() for t in rows(n)); opt.zero_grad()
    {body}
    opt.step(); schedule.step(); say(loss)
end(lr=schedule.get_last_lr())
"""
TRAINER = BEFORE + """
import transformers; transformers.logging.set_verbosity_error()
from transformers import LlamaConfig, LlamaForCausalLM, Trainer, TrainerCallback, TrainingArguments
config = LlamaConfig(vocab_size=32000, hidden_size=512, num_hidden_layers=6, num_attention_heads=8, num_key_value_heads=8,
                     intermediate_size=1024, max_position_embeddings=256)
def row(n):
    g = torch.Generator().manual_seed(n); ids = torch.randint(0, 32000, (192,), generator=g); labels = ids.clone(); labels[:n % 150] = -100
    return {"input_ids": ids, "labels": labels}
class Say(TrainerCallback):
    def on_log(self, args, state, control, logs=None, **_):
        if "loss" in logs: say(logs["loss"]); say(logs["grad_norm"])
trainer = Trainer(LlamaForCausalLM(config), train_dataset=[row(n) for n in range(64 * 6)], callbacks=[Say()], args=TrainingArguments(
    os.environ["RESULT"] + ".out", num_train_epochs=1, per_device_train_batch_size=64, report_to=[], save_strategy="no", logging_steps=1, disable_tqdm=True,
    learning_rate=1e-4, seed=3))
trainer.train()
end(step=trainer.state.global_step, bf16=trainer.args.bf16)
"""
LIGHTNING = BEFORE + """
import lightning
for name in "lightning.pytorch", "lightning.fabric": logging.getLogger(name).setLevel(logging.ERROR)
calls = []
class Module(lightning.LightningModule):
    def __init__(self): super().__init__(); self.net = Net()
    def training_step(self, batch, _):
        loss = nn.functional.cross_entropy(self.net(batch[0]), batch[1]); self.log("loss", loss, on_step=True); return loss
    def on_after_backward(self): calls.append("after")
    def on_train_batch_end(self, outputs, batch, _): say(outputs["loss"]); calls.append("end")
    def configure_optimizers(self): return torch.optim.Adam(self.parameters(), lr=1e-4)
trainer = lightning.Trainer(max_epochs=1, accelerator="gpu", devices=1, logger=False, enable_checkpointing=False,
                            enable_progress_bar=False, enable_model_summary=False, gradient_clip_val=1.)
trainer.fit(Module(), torch.utils.data.DataLoader(range(STEPS), batch_size=None, collate_fn=rows))
end(step=trainer.global_step, calls=calls, precision=str(trainer.precision))
"""
PROGRAMS = {
    "torch": LOOP.replace("{body}", "loss = loss_fn(model(a), b); loss.backward()"),
    "micro": LOOP.replace("{body}", "import antifreeze; parts = antifreeze.micro((a, b))\n    "
                                    "for m in parts: m.backward(loss_fn(model(m.x), m.y))\n    loss = parts.loss"),
    "transformers": TRAINER,
    "lightning": LIGHTNING,
}
failed = []


def check(what, is_true, *more):
    print("  ", "ok  " if is_true else "FAIL", what, *more, flush=True)
    if not is_true:
        failed.append(what)


def play(text, mode, budget=None, **more):
    """What it has left; None: it died."""
    with tempfile.TemporaryDirectory() as folder:
        env = {k: v for k, v in os.environ.items() if not k.startswith("ANTIFREEZE")}
        env.update(MODE=mode, RESULT=folder + "/result", HF_HUB_OFFLINE="1", TOKENIZERS_PARALLELISM="false", **more)
        if mode != "free":
            env["ANTIFREEZE_POLICY"] = "adapt" if mode == "held" else "protect"
        if budget:
            env["ANTIFREEZE_GPU_BUDGET"] = str(budget)
        with open(folder + "/job.py", "w", encoding="utf-8") as file:
            file.write(text)
        r = subprocess.run([sys.executable, folder + "/job.py"], env=env, cwd=folder, text=True, capture_output=True, timeout=PATIENCE_S,
                           check=False)
        ended = None
        if r.returncode == 0:
            with open(folder + "/result", encoding="utf-8") as file:
                ended = json.load(file)
        return ended, r.stdout + r.stderr


def hold(name, text):
    print(name, flush=True)
    free, said = play(text, "free")
    if not free:
        check("runs without a budget", False, said[-2000:])
        return
    budget = int(free["peak"] / TIMES)
    print(f"    the whole batch needs {free['peak'] / GIB:.2f} GiB, {free['seconds']:.1f} s; the budget is {budget / GIB:.2f} GiB")
    dead, said = play(text, "dies", budget)
    if name != "micro":  # which needs nobody
        check("dies of the budget without us", dead is None and "OutOfMemoryError" in said)
    held, said = play(text, "held", budget)
    check("finishes with us", held is not None, "" if held else said[-3000:])
    if not held:
        return
    far = max(abs(a / b - 1) for a, b in zip(held["losses"], free["losses"]))
    check("with the same losses", len(held["losses"]) == len(free["losses"]) and far <= ROUNDING, f"{far:.1e} apart, {len(held['losses'])}")
    check("within the budget", held["peak"] <= budget, f"{held['peak'] / GIB:.2f} GiB")
    same = [key for key in ("lr", "step", "calls") if key in free]
    check("steps, schedule and callbacks as before", all(held[key] == free[key] for key in same), *same)
    kinds = [kind for kind, _, _ in held["events"]]
    check("out of memory at most four times, and never again", kinds.count("oom") <= 4 and "refuse" not in kinds, *kinds)
    whole, _ = play(text, "held")
    check("the same to the last bit where there is room", whole is not None and whole["losses"] == free["losses"] or is_shaky(text, free))
    print(f"    {held['most']} samples at once, {held['splits']} steps in parts, {held['seconds']:.1f} s")
    for _, sentence, _ in held["events"]:
        print("    ", sentence) if sentence else None


def is_shaky(text, free):
    """Some kernels add up in another order each time: then two runs alone differ, too."""
    again, _ = play(text, "free")
    return again is not None and again["losses"] != free["losses"]


def light():
    """One sample takes 1.9 times the budget, as long as all of it is kept for the way back."""
    print("light", flush=True)
    text = PROGRAMS["torch"].replace("STEPS, BATCH = 8, 384", "STEPS, BATCH = 4, 2").replace("torch.randn(BATCH, 128, 512", "torch.randn(BATCH, 16384, 512")
    one = text.replace("STEPS, BATCH = 4, 2", "STEPS, BATCH = 1, 1")
    (free, said), (alone, _) = play(text, "free"), play(one, "free")
    if not free or not alone:
        check("runs without a budget", False, said[-2000:])
        return
    budget = int(alone["peak"] / 1.9)
    check("dies of the budget without us", play(text, "dies", budget)[0] is None)
    held, said = play(text, "held", budget)
    check("finishes with us", held is not None, "" if held else said[-3000:])
    if held:
        far = max(abs(a / b - 1) for a, b in zip(held["losses"], free["losses"]))
        check("with the same losses", far <= ROUNDING, f"{far:.1e} apart")
        check("within the budget", held["peak"] <= budget, f"{held['peak'] / GIB:.2f} of {budget / GIB:.2f} GiB")
        check("by computing blocks again", any("computed again" in sentence for _, sentence, _ in held["events"]))


def amp():
    print("amp", flush=True)
    for name, key, value in (("transformers", "bf16", True), ("lightning", "precision", "bf16-mixed")):
        free, _ = play(PROGRAMS[name], "free")
        half, said = play(PROGRAMS[name], "held", ANTIFREEZE_AMP="1")
        check(f"{name}: in bfloat16, and smaller", bool(free and half) and half[key] == value and half["peak"] < .8 * free["peak"],
              f"{half['peak'] / GIB:.2f} of {free['peak'] / GIB:.2f} GiB" if free and half else said[-2000:])


def main():
    others = {"light": light, "amp": amp}
    for name in sys.argv[1:] or [*PROGRAMS, *others]:
        others[name]() if name in others else hold(name, PROGRAMS[name])
    sys.exit(bool(failed))


if __name__ == "__main__":
    main()
