"""Programs that are saved, ended and gone on with, for test_agent_saving.py: each prints END and its result."""
# A model, and a loop over shuffled data that depends on every random number. HOG: seconds until all memory is taken.
HEAD = """
    import os, sys, threading, time
    def take_memory():
        time.sleep(float(os.environ["HOG"]))
        kept = []
        while True:
            kept.append(bytearray(os.urandom(1 << 20)) * 16)
            time.sleep(.002)
    if "HOG" in os.environ:
        threading.Thread(target=take_memory, daemon=True).start()
    """
PLAIN = HEAD + """
    import random
    import antifreeze
    class Data:
        def __iter__(self):
            order = list(range(60))
            random.shuffle(order)
            return iter(order)
    random.seed(7)
    model = {"weights": [0.0] * 20000, "steps": 0}
    saved = antifreeze.autosave(model, path="state.pt", every=.02)
    with open("training.part", "w") as file:
        file.write(str(os.getpid()))
    os.rename("training.part", "training")
    for epoch in range(USE):
        for item in antifreeze.steps(Data()):
            for _ in range(20):
                model["weights"][random.randrange(20000)] += random.random() * item
            model["steps"] += 1
            time.sleep(.004)
    print("END", model["steps"], sum(model["weights"]))
    """
TORCH = HEAD + """
    import torch
    import antifreeze
    torch.manual_seed(7)
    model = torch.nn.Sequential(torch.nn.Linear(16, 200), torch.nn.Dropout(.5), torch.nn.Linear(200, 1))
    optimizer = torch.optim.Adam(model.parameters(), 1e-2)
    schedule = torch.optim.lr_scheduler.StepLR(optimizer, 7)
    data = torch.utils.data.TensorDataset(torch.randn(240, 16), torch.randn(240, 1))
    loader = torch.utils.data.DataLoader(data, batch_size=4, shuffle=True)
    saved = antifreeze.autosave(model, optimizer, schedule, path="state.pt", every=.02)
    with open("training.part", "w") as file:
        file.write(str(os.getpid()))
    os.rename("training.part", "training")
    for epoch in range(USE):
        for x, y in antifreeze.steps(loader):
            optimizer.zero_grad()
            torch.nn.functional.mse_loss(model(x), y).backward()
            optimizer.step()
            schedule.step()
            time.sleep(.004)
    print("END", schedule.last_epoch, sum(p.double().sum().item() for p in model.parameters()))
    """
# Without antifreeze.steps(): counted by the optimizer, and the place is the program's own.
COUNTED = TORCH.replace("for epoch in range(USE):\n        for x, y in antifreeze.steps(loader):",
                        "for n in saved.steps(240):\n        for x, y in [data[4 * n % 240:4 * n % 240 + 4]]:") \
               .replace("torch.nn.Dropout(.5)", "torch.nn.Identity()")
TRANSFORMERS = """
    import os, time, torch
    from transformers import Trainer, TrainerCallback, TrainingArguments
    class Net(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.a, self.drop, self.b = torch.nn.Linear(8, 8), torch.nn.Dropout(.1), torch.nn.Linear(8, 1)
        def forward(self, x=None, labels=None):
            y = self.b(self.drop(self.a(x))).squeeze(-1)
            return {"loss": ((y - labels) ** 2).mean(), "logits": y}
    class Stop(TrainerCallback):
        def on_step_end(self, args, state, control, **kwargs):
            time.sleep(.02)
            if state.global_step == int(os.environ.get("STOP_AT", "0")): os._exit(9)
    torch.manual_seed(0)
    data = [{"x": torch.randn(8), "labels": torch.randn(())} for _ in range(64)]
    args = TrainingArguments(output_dir="out", per_device_train_batch_size=4, num_train_epochs=3, report_to=[], logging_steps=1,
                             save_strategy="no", disable_tqdm=True, use_cpu=True)
    trainer = Trainer(Net(), args, train_dataset=data, callbacks=[Stop()])
    trainer.train()
    losses = [row["loss"] for row in trainer.state.log_history if "loss" in row]
    os.write(1, f"END {trainer.state.global_step} {losses}\\n".encode())
    """
LIGHTNING = """
    import os, time, torch
    import lightning
    class Net(lightning.LightningModule):
        def __init__(self):
            super().__init__()
            self.a, self.b = torch.nn.Linear(8, 8), torch.nn.Linear(8, 1)
        def training_step(self, batch, index):
            self.last = ((self.b(self.a(batch[0])).squeeze(-1) - batch[1]) ** 2).mean()
            return self.last
        def configure_optimizers(self):
            return torch.optim.Adam(self.parameters(), 1e-2)
        def on_train_batch_end(self, *_):
            time.sleep(.02)
            if self.global_step == int(os.environ.get("STOP_AT", "0")): os._exit(9)
    torch.manual_seed(0)
    data = torch.utils.data.TensorDataset(torch.randn(64, 8), torch.randn(64))
    net = Net()
    trainer = lightning.Trainer(max_epochs=3, accelerator="cpu", logger=False, enable_checkpointing=False,
                                enable_progress_bar=False, enable_model_summary=False)
    trainer.fit(net, torch.utils.data.DataLoader(data, batch_size=4))
    print("END", trainer.global_step, net.last.item())
    """
KERAS = """
    import os, time, numpy
    import keras
    class Stop(keras.callbacks.Callback):
        def on_train_batch_end(self, batch, logs=None):
            time.sleep(.02)
            if int(self.model.optimizer.iterations.numpy()) == int(os.environ.get("STOP_AT", "0")): os._exit(9)
    keras.utils.set_random_seed(0)
    model = keras.Sequential([keras.Input((8,)), keras.layers.Dense(8), keras.layers.Dense(1)])
    model.compile("adam", "mse")
    told = model.fit(numpy.random.randn(64, 8), numpy.random.randn(64), batch_size=4, epochs=3, shuffle=False, verbose=0,
                     callbacks=[Stop()])
    print("END", int(model.optimizer.iterations.numpy()), told.history["loss"][-2:])
    """

# An attempt is a child that is forked, for importing takes longer than training. All files are written slowly and straight into
# their place, and the child is killed in the midst of one: argv[2] times, then it may end. What it tells the guard is kept here: the
# last of it is what the guard would give to the next attempt.
MID_SAVE = """
    import io, os, random, shutil, signal, sys, time, traceback, types, torch
    chance, told, written, save = random.Random(int(sys.argv[1])), [""], None, torch.save
    def slow(path, data):
        with open(path, "wb", buffering=0) as file:
            for part in range(4):
                file.write(data[part * len(data) // 4:(part + 1) * len(data) // 4])
                if written is not None:
                    os.write(written, b"w")
                    time.sleep(.003)
    def in_bytes(thing, write=torch.save):
        buffer = io.BytesIO()
        write(thing, buffer)
        return buffer.getvalue()
    torch.save = lambda thing, file, **more: slow(file, in_bytes(thing)) if isinstance(file, str) else save(thing, file, **more)
    def attempt(number, kill_at):
        global written
        (writes, written), (tells, tell) = os.pipe(), os.pipe()
        pid = os.fork()
        if pid == 0:
            os.environ.update(ANTIFREEZE_ATTEMPT=str(number), ANTIFREEZE_RESUME=told[-1])
            if "_antifreeze.talk" in sys.modules:
                sys.modules["_antifreeze.talk"].saved = lambda path="": os.write(tell, path.encode() + b"\\n")
                sys.modules["_antifreeze.talk"].event = lambda kind, *_, **keys: kind == "resume" and print("RESUMED", keys["step"], flush=True)
            try:
                torch.manual_seed(0)
                train()
                os._exit(0)
            except BaseException:
                traceback.print_exc()
                os._exit(1)
        os.close(tell)
        os.close(written)
        for _ in range(kill_at):
            os.read(writes, 1)
        if kill_at:
            time.sleep(chance.uniform(0, .004))
            os.kill(pid, signal.SIGKILL)
        while os.read(writes, 4096):  # it is not to wait for us
            pass
        os.close(writes)
        with os.fdopen(tells) as file:
            told.extend(file.read().splitlines())
        return os.waitpid(pid, 0)[1]
    PROGRAM
    statuses = []
    while statuses.count(9) < int(sys.argv[2]) and not set(statuses) - {0, 9}:
        statuses.append(attempt(len(statuses) + 1, chance.randrange(1, MOST)))
        if statuses[-1] == 0:  # it came to its end: once more from the start
            shutil.rmtree("out")
            told.append("")
    print("KILLED", statuses.count(9), "FAILED", len(set(statuses) - {0, 9}), flush=True)
    sys.exit(attempt(99, 0) != 0)
    """
MID_TRANSFORMERS = """
    import transformers.trainer_callback
    from transformers import Trainer, TrainingArguments
    import safetensors.torch
    safetensors.torch.save_file = lambda tensors, path, metadata=None: slow(path, safetensors.torch.save(tensors, metadata))
    def save_to_json(self, path):
        json(self, path + ".whole")
        with open(path + ".whole", "rb") as file: data = file.read()
        os.remove(path + ".whole")
        slow(path, data)
    json = transformers.trainer_callback.TrainerState.save_to_json
    transformers.trainer_callback.TrainerState.save_to_json = save_to_json
    class Net(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.a, self.b = torch.nn.Linear(8, 8), torch.nn.Linear(8, 1)
        def forward(self, x=None, labels=None):
            y = self.b(self.a(x)).squeeze(-1)
            return {"loss": ((y - labels) ** 2).mean(), "logits": y}
    def train():
        data = [{"x": torch.randn(8), "labels": torch.randn(())} for _ in range(64)]
        args = TrainingArguments(output_dir="out", per_device_train_batch_size=4, num_train_epochs=3, report_to=[], save_strategy="steps",
                                 save_steps=2, save_total_limit=2, disable_tqdm=True, use_cpu=True)
        trainer = Trainer(Net(), args, train_dataset=data)
        trainer.train()
        print("END", trainer.state.global_step, sum(p.double().sum().item() for p in trainer.model.parameters()), flush=True)
    """
MID_LIGHTNING = """
    import lightning, warnings
    from lightning.fabric.plugins.io import torch_io
    from lightning.pytorch.callbacks import ModelCheckpoint
    warnings.simplefilter("ignore")
    torch_io._atomic_save = lambda checkpoint, path: slow(path, in_bytes(checkpoint, save))  # as a move to another file system is
    class Net(lightning.LightningModule):
        def __init__(self):
            super().__init__()
            self.a = torch.nn.Linear(8, 1)
        def training_step(self, batch, index):
            return ((self.a(batch[0]).squeeze(-1) - batch[1]) ** 2).mean()
        def configure_optimizers(self):
            return torch.optim.Adam(self.parameters(), 1e-2)
    def train():
        data = torch.utils.data.TensorDataset(torch.randn(64, 8), torch.randn(64))
        net = Net()
        saver = ModelCheckpoint("out", filename="{step}", every_n_train_steps=2, save_top_k=-1, save_last=True, enable_version_counter=False)
        trainer = lightning.Trainer(max_epochs=3, accelerator="cpu", logger=False, callbacks=[saver], enable_progress_bar=False,
                                    enable_model_summary=False)
        trainer.fit(net, torch.utils.data.DataLoader(data, batch_size=4))
        print("END", trainer.global_step, sum(p.double().sum().item() for p in net.parameters()), flush=True)
    """
