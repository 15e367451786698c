"""Programs for test_agent_split.py: which go on when memory runs out, which do not, and which tell themselves what they saw.

Most run out of memory when more than LIMIT samples go through at once: they raise the error that torch would raise, so that the test
needs no memory and is exact. `PACKAGE` is put in by the test: where the package `antifreeze` lies.
"""

HEAD = """
import os, sys, time, torch, warnings
from torch import nn
from torch.utils.data import DataLoader, TensorDataset
warnings.simplefilter("ignore")
torch.manual_seed(1); torch.set_num_threads(1)
LIMIT, WHERE = int(os.environ["LIMIT"]), os.environ.get("WHERE", "forward")
x, y = torch.randn(100, 8), torch.randn(100, 1)
work = []
def say(loss): print("loss", repr(float(loss))); time.sleep(float(os.environ.get("SLEEP", "0")))
def full(*_): raise RuntimeError("[enforce fail at alloc_cpu.cpp:124] err == 0. DefaultCPUAllocator: can't allocate memory: "
                                 "you tried to allocate 99999999 bytes. Error code 12 (Cannot allocate memory)")
def heavy(out, n):
    if not torch.is_grad_enabled(): return out
    work.append(n if n <= LIMIT else -n)
    if n > LIMIT:
        if WHERE == "forward": full()
        out.register_hook(full)
    return out
def end(*things):
    print("work", *work); print(*things)
class Net(nn.Module):
    def __init__(self, middle=nn.Identity(), wide=8):
        super().__init__(); self.a, self.middle, self.b = nn.Linear(wide, 16), middle, nn.Linear(16, 1)
    def forward(self, x): return self.b(heavy(torch.tanh(self.middle(self.a(x))), len(x)))
"""
LOOP = """
model = {net}; opt = torch.optim.Adam(model.parameters(), lr=.01); loss_fn = nn.MSELoss()
schedule = torch.optim.lr_scheduler.StepLR(opt, 3)
for epoch in range(2):
    for a, b in DataLoader(TensorDataset(x, y), batch_size=24, shuffle=True):
        opt.zero_grad({zero})
        {body}
        opt.step(); schedule.step(); say(loss)
end(schedule.get_last_lr())
"""
PLAIN = "loss = loss_fn(model(a), b); loss.backward()"
MICRO = """parts = antifreeze.micro((a, b))
        for m in parts: m.backward(loss_fn(model(m.x), m.y))
        loss = parts.loss"""

FORWARD = "def forward(self, x): "


def loop(body=PLAIN, net="Net()", zero=""):
    return HEAD + ("import antifreeze\n" if "antifreeze" in body else "") + LOOP.format(body=body, net=net, zero=zero)


TRAINER = HEAD + """
import transformers; transformers.logging.set_verbosity_error()
from transformers import (BertConfig, BertForMaskedLM, BertForSequenceClassification, LlamaConfig, LlamaForCausalLM, Trainer,
                          TrainerCallback, TrainingArguments)
sizes = dict(vocab_size=64, hidden_size=16, num_hidden_layers=2, num_attention_heads=2, intermediate_size=16, max_position_embeddings=16)
still = dict(hidden_dropout_prob=0., attention_probs_dropout_prob=0.)
model = {model}
model.register_forward_pre_hook(lambda module, args, kwargs: [heavy(None, len(kwargs["input_ids"])), None][1], with_kwargs=True)
def row(n):
    ids = torch.randint(0, 64, (8,)); labels = ids.clone(); labels[:n % 7] = -100
    return {{"input_ids": ids, "labels": n % 2 if "Sequence" in type(model).__name__ else labels}}
calls = []
class Calls(TrainerCallback):
    def on_step_begin(self, *_, **__): calls.append("<")
    def on_substep_end(self, *_, **__): calls.append("-")
    def on_step_end(self, *_, **__): calls.append(">")
    def on_log(self, args, state, control, logs=None, **_):
        if "loss" in logs: say(logs["loss"]); say(logs["grad_norm"]); print(logs["learning_rate"])
trainer = Trainer(model, train_dataset=[row(n) for n in range(100)], callbacks=[Calls()], args=TrainingArguments(
    "out", num_train_epochs=2, per_device_train_batch_size=24, report_to=[], save_strategy="no", logging_steps=1, disable_tqdm=True,
    use_cpu=True, seed=3, learning_rate=1e-3{more}))
trainer.train()
end("".join(calls), trainer.state.global_step)
"""
BERT = "BertForSequenceClassification(BertConfig(**sizes, **still))"
LIGHTNING = HEAD + """
import lightning, logging
for name in "lightning.pytorch", "lightning.fabric": logging.getLogger(name).setLevel(logging.ERROR)
class Module(lightning.LightningModule):
    def __init__(self):
        super().__init__(); self.net = Net({middle})
    def training_step(self, batch, _):
        out = self.net(batch[0]); loss = {loss}
        self.log("loss", loss, on_step=True, on_epoch=True); self.log("seen", float(len(batch[0])), on_epoch=True, reduce_fx="sum")
        return {{"loss": loss, "out": out.detach()}}
    def configure_optimizers(self):
        opt = torch.optim.Adam(self.parameters(), lr=.01)
        return [opt], [{{"scheduler": torch.optim.lr_scheduler.StepLR(opt, 2), "interval": "step"}}]
calls = []
class Calls(lightning.Callback):
    def on_before_zero_grad(self, *_): calls.append("z")
    def on_before_backward(self, *_): calls.append("<")
    def on_after_backward(self, trainer, module): calls.append(">"); say(sum(p.grad.norm() for p in module.parameters()))
    def on_before_optimizer_step(self, *_): calls.append("o")
    def on_train_batch_end(self, trainer, module, outputs, batch, _):
        calls.append(" "); say(outputs["loss"]); say(trainer.callback_metrics["loss_step"])
        print(tuple(outputs["out"].shape), trainer.optimizers[0].param_groups[0]["lr"])
    def on_train_epoch_end(self, trainer, module): say(trainer.callback_metrics["loss_epoch"]); print(float(trainer.callback_metrics["seen"]))
trainer = lightning.Trainer(max_epochs=2, accelerator="cpu", logger=False, enable_checkpointing=False, enable_progress_bar=False,
                            enable_model_summary=False, gradient_clip_val=1., callbacks=[Calls()]{more})
trainer.fit(Module(), DataLoader(TensorDataset(x, y), batch_size=24))
end("".join(calls), trainer.global_step)
"""
MEAN, TOTAL = "((out - batch[1]) ** 2).mean()", "((out - batch[1]) ** 2).sum()"
PAIRS = "nn.functional.cross_entropy(out @ batch[1].T, torch.arange(len(out)))"


def fit(middle="", loss=MEAN, more=""):
    return LIGHTNING.format(middle=middle, loss=loss, more=more)


# Which go on when memory runs out, by name: the program, and what else is in its environment.
PROGRAMS = {
    "torch": {
        "a plain loop": (loop(), {}),
        "a plain loop, on the way back": (loop().replace('if WHERE == "forward"', "if n > 20"), {}),
        "micro()": (loop(MICRO), {}),
        "micro(), on the way back": (loop(MICRO), {"WHERE": "backward"}),
        "micro(), gradients that are zeros": (loop(MICRO, zero="set_to_none=False"), {"WHERE": "backward"}),
        "micro(), a sum": (loop(MICRO.replace("(a, b))", "(a, b), reduction='sum')").replace("loss_fn(", "((lambda p, q: ((p - q) ** 2).sum()))(")), {}),
        "micro(), accumulated": (HEAD + "import antifreeze" + """
model = Net(); opt = torch.optim.SGD(model.parameters(), lr=.1)
for n, (a, b) in enumerate(DataLoader(TensorDataset(x, y), batch_size=24)):
    parts = antifreeze.micro({"x": a, "y": b})
    for m in parts: m.backward(((model(m["x"]) - m.y) ** 2).mean() / 2)
    say(parts.loss)
    if n % 2: opt.step(); opt.zero_grad()
end()
""", {"WHERE": "backward"}),
        "micro(), two ways back, and a scaler": (HEAD + "import antifreeze" + """
model = Net(); opt = torch.optim.SGD(model.parameters(), lr=.1); scaler = torch.amp.GradScaler("cpu", init_scale=64., growth_interval=2)
for n, (a, b) in enumerate(DataLoader(TensorDataset(x, y), batch_size=24)):
    parts = antifreeze.micro((a, b)); opt.zero_grad()
    for m in parts:
        out = model(m.x)
        m.backward(scaler.scale((out - m.y).pow(2).mean()), retain_graph=True)
        m.backward(scaler.scale(out.abs().mean() * (float("inf") if n == 3 else 1)))
    scaler.step(opt); scaler.update(); say(parts.loss / scaler.get_scale() if n != 3 else 1)
    print(scaler.get_scale(), scaler.state_dict()["_growth_tracker"])
end()
""", {"WHERE": "backward"}),
        "random numbers stay where they were": (loop("b = b + torch.rand(1) * .1\n        " + MICRO), {"WHERE": "backward"}),
        "a model of several outputs": (HEAD + """
class Two(nn.Module):
    def __init__(self): super().__init__(); self.one, self.two = Net(), Net()
    def forward(self, a, scale=1.): return {"one": self.one(a) * scale, "two": (self.two(a), None)}
model = Two(); opt = torch.optim.SGD(model.parameters(), lr=.1)
for a, b in DataLoader(TensorDataset(x, y), batch_size=24):
    out = model(a, scale=torch.tensor([[2.]])); loss = ((out["one"] - b) ** 2).mean() + out["two"][0].pow(2).mean()
    opt.zero_grad(); loss.backward(); opt.step(); say(loss)
end()
""", {}),
        "a loss over pairs, which the plain loop makes itself": (loop("loss = nn.functional.cross_entropy(model(a) @ b.T, torch.arange(len(a))); "
                                                                   "loss.backward()"), {}),
        "GAN": (HEAD + """
g, d = nn.Sequential(nn.Linear(4, 8)), Net()
opts = [torch.optim.SGD(m.parameters(), lr=.1) for m in (g, d)]
for a, b in DataLoader(TensorDataset(x, y), batch_size=24):
    for opt, sign in zip(opts, (1, -1)):
        opt.zero_grad(); loss = sign * d(g(a[:, :4])).mean() + d(a).mean() * (sign < 0); loss.backward(); opt.step(); say(loss)
end()
""", {}),
        "micro(), two models": (loop(MICRO.replace("model(m.x)", "model[1](model[0](m.x))"), "nn.ModuleList([nn.Linear(8, 8), Net()])"),
                                {"WHERE": "backward"}),
        "compiled": (loop(net='torch.compile(Net(), backend="eager")'), {}),
    },
    "transformers": {
        "Llama, sums by items": (TRAINER.format(model="LlamaForCausalLM(LlamaConfig(**sizes, num_key_value_heads=2))", more=""), {}),
        "Bert, means by samples": (TRAINER.format(model=BERT, more=""), {}),
        "Bert, means by items": (TRAINER.format(model="BertForMaskedLM(BertConfig(**sizes, **still))", more=""), {}),
        "accumulated": (TRAINER.format(model=BERT, more=", gradient_accumulation_steps=2"), {}),
        "smoothed labels": (TRAINER.format(model=BERT, more=", label_smoothing_factor=.1"), {}),
    },
    "lightning": {
        "automatic optimization": (fit(), {}),
        "on the way back": (fit(), {"WHERE": "backward"}),
        "accumulated": (fit(more=", accumulate_grad_batches=2"), {"WHERE": "backward"}),
        "several passes a step": (fit().replace("torch.optim.Adam(", "Twice(").replace("calls = []", """
class Twice(torch.optim.SGD):
    def step(self, closure): closure(); return super().step(closure)
calls = []"""), {}),
    },
}
# Which do not: the program, and a word of the reason.
REFUSED = {
    "torch": {
        "BatchNorm": (loop(net="Net(nn.BatchNorm1d(16))"), "BatchNorm"),
        "dropout": (loop(MICRO, net="Net(nn.Dropout(.2))"), "dropout"),
        "draws of its own": (loop("loss = loss_fn(model(a + torch.rand_like(a)), b); loss.backward()").replace(
            "heavy(torch.tanh(self.middle(self.a(x)))", "heavy(torch.tanh(torch.rand_like(self.a(x)) + self.a(x))"), "random"),
        "spectral norm": (loop(net="Net(torch.nn.utils.parametrizations.spectral_norm(nn.Linear(16, 16)))"), "spectral"),
        "samples that act on each other": (loop().replace("self.middle(self.a(x))", "self.a(x) - self.a(x).mean(0)"), "act on each other"),
        "pairs within micro()": (loop(MICRO.replace("loss_fn(model(m.x), m.y)", "nn.functional.cross_entropy(model(m.x) @ m.y.T, "
                                                                              "torch.arange(len(m)))"), ), "act on each other"),
        "an output that is no row a sample": (loop("loss = model(a) + 0 * b.sum(); loss.backward()").replace(
            "len(x)))", "len(x))).mean()"), "row a sample"),
        "hooks": (loop(net="Net()").replace("opt = ", "model.a.register_forward_hook(lambda *_: None); opt = "), "a hook would see"),
        "a loss beside the output": (loop().replace(FORWARD + "return", FORWARD + "self.kept = self.a(x); return"), "beside its output"),
        "a tensor from elsewhere": (loop().replace("len(x)))", "len(x))) * more").replace("opt = ", "more = nn.Parameter(torch.ones(1)); opt = "),
                                    "not one of its own"),
        "figures of its own": (loop().replace(FORWARD + "return", FORWARD + "self.seen += 1; return").replace(
            "opt = ", "model.register_buffer('seen', torch.zeros(())); opt = "), "figures"),
        "BatchNorm, later": (loop("model.middle.train(len(work) > 12); " + PLAIN, "Net(nn.BatchNorm1d(16))"), "BatchNorm"),
        "BatchNorm, later, in micro()": (loop("model.middle.train(len(work) > 12); " + MICRO, "Net(nn.BatchNorm1d(16))"), "BatchNorm"),
    },
    "transformers": {
        "dropout": (TRAINER.format(model="BertForSequenceClassification(BertConfig(**sizes))", more=""), "dropout"),
    },
    "lightning": {
        "BatchNorm": (fit("nn.BatchNorm1d(16)"), "BatchNorm"),
        "pairs": (fit(loss=PAIRS), "act on each other"),
    },
}
JUDGED = HEAD + """
sys.path.append(PACKAGE); import antifreeze
from _antifreeze import talk
from _antifreeze.split import sizing, torch_step
events, wrong = [], []
talk.event = lambda kind, sentence="", **keys: events.append((kind, sentence))
def refusal(): return next((sentence for kind, sentence in events if kind == "refuse"), "")
def check(name, is_true, *more):
    if not is_true: wrong.append((name, *more, refusal()))
    events.clear()
class Job(torch_step.Job):
    def __init__(self, model, *batch, loss=lambda out, b: ((out - b) ** 2).mean()): self.model, self.batch, self.loss = model, batch, loss
    def of(self, batch): return self.loss(self.model(batch[0]), batch[1])
    def whole(self): loss = self.of(self.batch); loss.backward(); return loss.detach()
    def part(self, piece, batch):
        with torch.set_grad_enabled(not piece.is_dry): loss = self.of(batch)
        if not piece.is_dry: self.attempt.look(); (loss * piece.weight).backward()
        return loss.detach()
    def joined(self, values, weights): return sum(value * weight for value, weight in zip(values, weights))
def gradients(model): return torch.cat([p.grad.flatten() for p in model.parameters()])
def near(a, b): return float((a - b).norm() / b.norm()) < 1e-5
def in_micro(model, a, b):
    for m in antifreeze.micro((a, b)): m.backward(((model(m.x) - m.y) ** 2).mean())
def in_job(model, a, b): torch_step.run(Job(model, a, b))
def net(kind=Net): torch.manual_seed(2); return kind()
"""
LASTING = JUDGED + """
# Gradients are accumulated, and memory runs out late, in the third batch of four, on the way back.
WHERE = "backward"
def accumulated(way, limit, shrinks=False):
    global LIMIT
    model, LIMIT = net(), 1000
    for n in range(20):
        if n % 4 == 0: model.zero_grad()
        if n == 18: LIMIT = limit; shrinks and torch_step.course(model).splitter.shrink()
        way(model, x[n:n + 24], y[n:n + 24])
    return gradients(model)
for way in in_job, in_micro: check(f"late, {way.__name__}", near(accumulated(way, 10), accumulated(way, 1000)) and not refusal())
check("shrunk in the midst", near(accumulated(in_job, 1000, True), accumulated(in_job, 1000)) and not refusal())

# A new head, just before memory runs out on the way back.
def headed(limit):
    global LIMIT
    model, LIMIT = net(), 1000
    in_micro(model, x[:24], y[:24]); model.zero_grad(); model.b = nn.Linear(16, 1); LIMIT = limit; in_micro(model, x[:24], y[:24])
    return gradients(model)
check("a new head", near(headed(10), headed(1000)) and not refusal())

# Shown once, but not for ever: rare classes weigh more from the ninth step on. And at once, where the first part has none of them.
LIMIT, labels, weights = 1000, torch.zeros(64).long(), torch.ones(2); labels[40:60:3] = 1
rare = lambda out, b: nn.functional.cross_entropy(out, b, weight=weights)
for first in 8, 0, 0:
    model = nn.Linear(8, 2); torch_step.course(model).splitter.most = 32
    for n in range(10):
        if n == first: weights[1] = 10.
        model.zero_grad(); torch_step.run(Job(model, x[:64], labels, loss=rare))
        if refusal(): break
    found = gradients(model); model.zero_grad(); rare(model(x[:64]), labels).backward()
    check(f"weights of classes from step {first}", n == (9 if first else 0) and "off" in refusal() and near(found, gradients(model)), n)
    weights[1] = 1.
    if not first: labels = labels.sort().values; labels[32:] = 1  # then with one class in each part

# Metrics and lists: passes that failed or were for trial do not count. Numbers: it is not known what they are for.
try: import torchmetrics
except ImportError: torchmetrics = None
class Counts(Net):
    def __init__(self):
        super().__init__(); self.kept = []; self.seen = torchmetrics.SumMetric() if torchmetrics else None
    def forward(self, x):
        self.kept.append(len(x)); self.seen and self.seen.update(float(len(x))); return super().forward(x)
class Counter(Net):
    calls = 0
    def forward(self, x): self.calls += 1; return super().forward(x)
for way in in_job, in_micro:
    model, LIMIT = net(Counts), 1000
    for n in range(6):
        LIMIT = 10 if n > 3 else 1000
        way(model, x[:24], y[:24])
    check(f"what is counted, {way.__name__}", sum(model.kept) == 6 * 24 and (not torchmetrics or model.seen.compute() == 6 * 24) and
          not refusal(), model.kept)
WHERE = "forward"
for kind, name in (Counts, "Counts.kept"), (Counter, "Counter.calls"):
    model, LIMIT = net(kind), 1000
    model(x[:24]); LIMIT = 10
    try: model(x[:24]); check(f"{name} in a plain loop", False)
    except RuntimeError: check(f"{name} in a plain loop", name in refusal())

# Hooks: torch's own and those of trackers are known to look only; others are named.
def mine(*_): pass
def theirs(*_): pass
theirs.__module__ = "wandb.integration.torch.wandb_torch"
from torch.nn.utils import prune, weight_norm
for name, give in {"weight_norm": lambda m: weight_norm(m.a), "prune": lambda m: prune.l1_unstructured(m.a, "weight", .3),
                   "clipped": lambda m: m.a.weight.register_hook(lambda gradient: gradient.clamp(-.01, .01)),
                   "tracker": lambda m: m.a.register_forward_hook(theirs), "mine of a": lambda m: m.a.register_forward_hook(mine)}.items():
    found = []
    for LIMIT in 1000, 10:
        model = net(); give(model)
        try: model(x[:24]).pow(2).mean().backward(); found.append(gradients(model))
        except RuntimeError: pass
    check(name, name in refusal() if name == "mine of a" else not refusal() and near(*found))

# Each model has its own size, and the guard asks all of them.
LIMIT = 10; large, small = net(), nn.Linear(8, 8); large(x[:24]).sum().backward(); large(x[:24]); small(x); LIMIT = 1000
most = lambda *models: [torch_step.course(model, "call").splitter.most for model in models]
check("by model", most(large, small) == [6, None], most(large, small))
sizing.shrink(); small(x); check("all are asked", most(large, small) == [3, 50], most(large, small))
print("yes" if not wrong else wrong)
"""

# In a plain loop: how models are used, and what they do, each without a limit and with one.
USED = JUDGED + """
import gc, weakref
X = x[:24]
class Layer(nn.Module):
    def __init__(self): super().__init__(); self.a = nn.Linear(8, 8)
    def forward(self, x): return heavy(torch.tanh(self.a(x)), len(x))
class Aux(Layer):
    def forward(self, x, aux): out = super().forward(x); aux.append(out.mean()); return out
class Writes(Layer):
    def forward(self, x): x -= 1; return super().forward(x)
class Two(Layer):
    def __init__(self): super().__init__(); self.other = nn.Linear(8, 1)
    def forward(self, x): out = super().forward(x); return out, out.detach(), x
class Unused(Layer):
    def __init__(self):
        super().__init__(); self.other = nn.Linear(8, 1)
        for p in self.parameters(): p.register_hook(lambda gradient: gradient.clamp(-.01, .01))
class Cell(nn.Module):
    def __init__(self): super().__init__(); self.cell = nn.GRUCell(8, 8)
    def forward(self, x, h): return heavy(self.cell(x, h), len(x))
class Mean(Layer):
    def forward(self, x): out = super().forward(x); return out - out.mean()
class Task(Layer):
    factor = 1.
    def forward(self, x): return super().forward(x) * self.factor
def unrolled(m):
    h = torch.zeros(24, 8)
    for _ in range(4): h = m(X, h)
    return h
def penalty(m):
    rows = X.clone().requires_grad_(); out = m(rows)
    slope, = torch.autograd.grad(out.sum(), rows, create_graph=True); return out.pow(2).mean() + slope.pow(2).mean()
def switched(m): one = m(X); m.factor = 2.; return one + m(X)
def aux(m): found = []; return m(X, found).sum() + sum(found)
def other(m): return torch.func.functional_call(m, {"a.weight": torch.eye(8, requires_grad=True)}, (X,))
def parts(m): out, still, rows = m(X); still.numpy(); assert rows.requires_grad is False; return out
def played(kind, use, limit):
    global LIMIT
    LIMIT = limit; model = net(kind); use(model).pow(2).mean().backward()
    return torch.cat([torch.zeros(p.numel()) if p.grad is None else p.grad.flatten() for p in model.parameters()])
for name, kind, use, limit, says in (
        ("of its own output", Layer, lambda m: m(m(X)), 10, None), ("unrolled", Cell, unrolled, 10, None), ("penalty", Layer, penalty, 10, None),
        ("detached", Two, parts, 10, None), ("a hook of what is not used", Unused, lambda m: m(X), 10, None),
        ("one at a time", Layer, lambda m: m(X), 1, None), ("one at a time, which act on each other", Mean, lambda m: m(X), 1, "act on each other"),
        ("a list that it fills", Aux, aux, 10, "writes into"), ("its input", Writes, lambda m: m(X.clone()), 10, "writes into"),
        ("other weights", Layer, other, 10, "other weights"), ("a setting that is another by then", Task, switched, 10, None)):
    whole = played(kind, use, 1000)
    try: check(name, near(played(kind, use, limit), whole) and not says and not refusal() and name[:9] != "a setting")
    except RuntimeError as error: check(name, says and says in refusal() or name[:9] == "a setting" and "was changed in between" in str(error), error)

# Nothing of a batch stays, though its loss does; memory ran out in the first of them.
gc.disable(); LIMIT, model, losses, batches = 10, net(), [], []
for _ in range(4):
    batch = X.clone(); batches.append(weakref.ref(batch)); loss = model(batch).pow(2).mean(); loss.backward(); losses.append(loss)
del batch, loss
check("what stays", not any(one() is not None for one in batches))
gc.enable()
print("yes" if not wrong else wrong)
"""

# Which tell themselves, with `yes`, that they were not disturbed.
OWN = {
    "torch": {
        "what lasts": LASTING,
        "how it is used": USED,
        "what is told of an error": """
import traceback
""" + HEAD + """
class Rows(Net):
    def forward(self, x): out = super().forward(x); return out - out.mean()
def program():
    Rows()(x[:24])
try: program()
except RuntimeError as error: names = [frame.name for frame in traceback.extract_tb(error.__traceback__)]
ours = [name for name in names if name == "__call__"]
print("yes" if names[1] == "program" and names[-1] == "full" and len(ours) == 1 and error.__context__ is None else names)
""".replace("RuntimeError as error:", "RuntimeError as caught: error = caught;"),
        "traced": HEAD + """
import torch.fx
from _antifreeze import room
room.room = lambda: 8 << 30  # there is a line, and it is looked at
class Inner(nn.Module):
    def __init__(self): super().__init__(); self.net = nn.Linear(8, 8); self.register_buffer("one", torch.ones(8))
    def forward(self, x): return self.net(x) + self.one
class Outer(nn.Module):
    def __init__(self): super().__init__(); self.inner = Inner()
    def forward(self, x): return self.inner(x)
torch.jit.trace(Inner(), x); torch.fx.symbolic_trace(Outer()); print("yes")
""",
        "a part that fails": HEAD + """
class Rows(Net):
    def forward(self, x, y=None):
        if y is not None and len(x) < 24: raise ValueError("a part")
        return super().forward(x)
model = Rows(); model(x[:24]); LIMIT = 100; model(x[:24], y[:24]); print("yes")
""",
        "a loss that is scaled too much": HEAD + """
sys.path.append(PACKAGE); import antifreeze
model = Net()
for scale in float("inf"), float("inf"), 1.:
    for m in antifreeze.micro((x[:24], y[:24])): m.backward(((model(m.x) - m.y) ** 2).mean() * scale)
print("yes" if 6 in work else "whole")
""",
        "labels that are all masked": HEAD + """
from _antifreeze.split import torch_step
labels = torch.randint(0, 3, (8, 5)); labels[4:] = -100; labels[0, 2:] = -100
model = nn.Linear(4, 3)
class Job(torch_step.Job):
    def loss(self, batch): return nn.functional.cross_entropy(model(batch["x"]).flatten(0, 1), batch["labels"].flatten())
    def part(self, piece, batch): loss = self.loss(batch); (loss * piece.weight).backward(); return loss.detach()
    def joined(self, values, weights): return sum(value * weight for value, weight in zip(values, weights))
job = Job(); job.model, job.batch = model, {"x": torch.randn(8, 5, 4), "labels": labels}
torch_step.course(model).splitter.most = 4
print("yes" if abs(torch_step.run(job) - job.loss(job.batch)) < 1e-5 else "no number")
""",
    },
    "lightning": {
        "rows of which no label counts, and metrics": HEAD + """
import lightning, logging, torchmetrics
for name in "lightning.pytorch", "lightning.fabric": logging.getLogger(name).setLevel(logging.ERROR)
from _antifreeze.split import torch_step
labels = torch.randint(0, 3, (48, 5)); labels[12:24] = -100; labels[3, 2:] = -100; ids = torch.randn(48, 5, 8); wrong = []
loss_of = lambda out, b: nn.functional.cross_entropy(out.flatten(0, 1), b.flatten())
class Module(lightning.LightningModule):
    def __init__(self): super().__init__(); self.net = nn.Linear(8, 3); self.seen = torchmetrics.SumMetric(); self.kept = []
    def training_step(self, batch, n):
        self.seen.update(len(batch[0])); self.kept.append(len(batch[0])); out = self.net(batch[0]); work.append(len(batch[0]))
        if len(batch[0]) > 10 and n < 2: full()
        loss = loss_of(out, batch[1]); self.log("loss", loss, on_step=True, on_epoch=True)
        self.log("rows", float(len(out)), on_step=False, on_epoch=True, reduce_fx="sum")
        return {"loss": loss, "out": out.detach()}
    def on_before_optimizer_step(self, _): self.whole = loss_of(self.net(self.batch[0]), self.batch[1])
    def on_train_batch_start(self, batch, _): self.batch = batch
    def on_train_batch_end(self, outputs, batch, n):
        for name, value in (("loss", outputs["loss"]), ("logged", self.trainer.callback_metrics["loss_step"])):
            if not abs(value - self.whole) < 1e-5: wrong.append((name, n, value, self.whole))
        if outputs["out"].shape != (24, 5, 3): wrong.append(outputs["out"].shape)
    def on_train_epoch_end(self):
        figures = self.seen.compute(), sum(self.kept), self.trainer.callback_metrics["rows"]
        if figures != (48, 48, 48): wrong.append(figures)
        if not torch.isfinite(self.trainer.callback_metrics["loss_epoch"]): wrong.append("loss of the epoch")
    def configure_optimizers(self): return torch.optim.SGD(self.parameters(), lr=.1)
lightning.Trainer(max_epochs=1, accelerator="cpu", logger=False, enable_checkpointing=False, enable_progress_bar=False,
    enable_model_summary=False).fit(Module(), DataLoader(TensorDataset(ids, labels), batch_size=24))
print("yes" if not wrong and 6 in work else (wrong, work))
""",
        "lazy layers, and batches that go": fit("nn.LazyLinear(16)", more=", limit_train_batches=4").replace("import lightning, logging", """
import lightning, logging, weakref
seen = []""").replace("out = self.net(batch[0])", "seen.append(weakref.ref(batch[0])); out = self.net(batch[0])").replace(
            "on_train_epoch_end(self, trainer, module): ", "on_train_epoch_end(self, trainer, module): "
            "print('yes' if sum(one() is not None for one in seen) < 3 else 'held'); "),
    },
}


# One sample alone does not fit. Memory is really refused here, by the kernel: LIMIT is in MiB above what there is before the first step.
LIGHT_HEAD = """
import os, resource, sys, torch, warnings
from torch import nn
from torch.utils.data import DataLoader, TensorDataset
import torch.utils.checkpoint
warnings.simplefilter("ignore")
torch.manual_seed(1); torch.set_num_threads(1)
def say(loss): print("loss", repr(float(loss)))
def tighten():
    nn.Linear(8, 8)(torch.randn(600, 8)).sum().backward(); limit = int(os.environ["LIMIT"])
    pages = int(open("/proc/self/statm").read().split()[0])
    if limit < 1000: resource.setrlimit(resource.RLIMIT_AS, ((limit << 20) + pages * resource.getpagesize(), resource.RLIM_INFINITY))
class Block(nn.Module):
    def __init__(self): super().__init__(); self.a, self.b = nn.Linear(64, 512), nn.Linear(512, 64)
    def forward(self, x): return x + self.b(torch.tanh(self.a(x)))
class Blocks(nn.Module):
    def __init__(self): super().__init__(); self.blocks = nn.ModuleList(Block() for _ in range(12)); self.out = nn.Linear(64, 1)
    def forward(self, x):
        for block in self.blocks: x = block(x)
        return self.out(x.mean(1))
class Row(nn.Module):
    def __init__(self): super().__init__(); self.all = nn.Sequential(*(Block() for _ in range(12))); self.out = nn.Linear(64, 1)
    def forward(self, x): return self.out(self.all(x).mean(1))
class Flat(nn.Module):
    def __init__(self): super().__init__(); self.a, self.b = nn.Linear(64, 512), nn.Linear(512, 1)
    def forward(self, x):
        for _ in range(24): h = torch.tanh(self.a(x)); x = x + h[..., :64]
        return self.b(h.mean(1))
x, y = torch.randn(4, 4096, 64), torch.randn(4, 1)
"""
LIGHT_LOOP = LIGHT_HEAD + """
model = {net}(); opt = torch.optim.SGD(model.parameters(), lr=.01); tighten()
for a, b in DataLoader(TensorDataset(x, y), batch_size={batch}):
    opt.zero_grad(); loss = ((model(a) - b) ** 2).mean(); loss.backward(); opt.step(); say(loss)
"""
LIGHT_TRAINER = LIGHT_HEAD + """
import transformers; transformers.logging.set_verbosity_error()
from transformers import BertConfig, BertForSequenceClassification, Trainer, TrainerCallback, TrainingArguments
model = BertForSequenceClassification(BertConfig(vocab_size=64, hidden_size=32, num_hidden_layers=8, num_attention_heads=2,
    intermediate_size=4096, max_position_embeddings=512, hidden_dropout_prob=0., attention_probs_dropout_prob=0.))
class Say(TrainerCallback):
    def on_train_begin(self, *_, **__): tighten()
    def on_log(self, args, state, control, logs=None, **_): say(logs["loss"]) if "loss" in logs else None
Trainer(model, train_dataset=[{"input_ids": torch.randint(0, 64, (512,)), "labels": n % 2} for n in range(4)], callbacks=[Say()],
    args=TrainingArguments("out", num_train_epochs=1, per_device_train_batch_size=2, report_to=[], save_strategy="no", logging_steps=1,
    disable_tqdm=True, use_cpu=True, seed=3, dataloader_pin_memory=False)).train()
"""
LIGHT_FIT = LIGHT_HEAD + """
import lightning, logging
for name in "lightning.pytorch", "lightning.fabric": logging.getLogger(name).setLevel(logging.ERROR)
class Module(lightning.LightningModule):
    def __init__(self): super().__init__(); self.net = {net}()
    def training_step(self, batch, _): return ((self.net(batch[0]) - batch[1]) ** 2).mean()
    def on_train_start(self): tighten()
    def on_train_batch_end(self, outputs, batch, _): say(outputs["loss"])
    def configure_optimizers(self): return torch.optim.SGD(self.parameters(), lr=.01)
lightning.Trainer(max_epochs=1, accelerator="cpu", logger=False, enable_checkpointing=False, enable_progress_bar=False,
                  enable_model_summary=False).fit(Module(), DataLoader(TensorDataset(x, y), batch_size=2))
"""
AT_ONCE = {"MALLOC_MMAP_THRESHOLD_": "1048576"}  # what is freed goes back: the kernel counts addresses, and not memory in use
# Which can keep less of it: the program, and the MiB that it gets.
LIGHT = {
    "torch": {
        "blocks in a list": (LIGHT_LOOP.format(net="Blocks", batch=2), 90),
        "a batch of one": (LIGHT_LOOP.format(net="Blocks", batch=1), 90),
        "a long Sequential": (LIGHT_LOOP.format(net="Row", batch=2), 90),
    },
    "transformers": {"the model's own": (LIGHT_TRAINER, 110)},
    "lightning": {"blocks in a list": (LIGHT_FIT.format(net="Blocks"), 90)},
}
TOO_LARGE = {"torch": (LIGHT_LOOP.format(net="Flat", batch=2), 90), "lightning": (LIGHT_FIT.format(net="Flat"), 90)}
