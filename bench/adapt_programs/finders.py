"""The CNN of torch_cnn.py, so many samples of it, in the ways that there are to find out what fits:

    plain       a plain loop; antifreeze run --policy adapt splits the call of the model
    micro       the same with antifreeze.micro()
    accelerate  the loop inside accelerate's find_executable_batch_size
    lightning   a Lightning module; antifreeze run --policy adapt splits its step
    power, binsearch   the same after Lightning's Tuner.scale_batch_size, with what it is by default

At the end it tells the loss over all samples, and how many steps were made with how large a batch. ROOM in the environment: bytes
by which its address space may grow from the beginning of the training on.
"""
import argparse
import importlib
import logging
import os
import resource
import tempfile
import warnings

import torch
from torch.nn import functional as F
from torch.utils.data import DataLoader

import notes
from torch_cnn import Net, digits

DEVICE = torch.device("cuda" if torch.cuda.is_available() else "cpu")
RATE = 1e-3


def begin():
    notes.begin()
    if os.environ.get("ROOM"):
        limit = notes.memory()["mapped"] + int(os.environ["ROOM"])
        resource.setrlimit(resource.RLIMIT_AS, (limit, limit))


def loop(args, data, batch_size):
    """One pass through the data, as in torch_cnn.py."""
    torch.manual_seed(1)
    notes.write("attempt", batch=batch_size)
    model = Net(args.width).to(DEVICE)
    optimizer = torch.optim.Adam(model.parameters(), lr=RATE)
    for x, y in DataLoader(data, batch_size=batch_size):
        x, y = x.to(DEVICE), y.to(DEVICE)
        optimizer.zero_grad()
        if args.how == "micro":
            import antifreeze
            parts = antifreeze.micro((x, y))
            for m in parts:
                m.backward(F.nll_loss(model(m.x), m.y))
            loss = parts.loss
        else:
            loss = F.nll_loss(model(x), y)
            loss.backward()
        optimizer.step()
        notes.loss(float(loss.detach() if hasattr(loss, "detach") else loss))
    return model


def by_loop(args, data):
    return loop(args, data, args.batch)


def by_accelerate(args, data):
    from accelerate.utils import find_executable_batch_size

    @find_executable_batch_size(starting_batch_size=args.batch)
    def train(batch_size):
        return loop(args, data, batch_size)
    return train()


def by_lightning(args, data):
    import lightning
    from lightning.pytorch.tuner import Tuner

    class Module(lightning.LightningModule):
        def __init__(self, batch_size):
            super().__init__()
            self.batch_size = batch_size
            torch.manual_seed(1)
            self.net = Net(args.width)

        def training_step(self, batch, _):
            return F.nll_loss(self.net(batch[0]), batch[1])

        def train_dataloader(self):
            return DataLoader(data, batch_size=self.batch_size)

        def configure_optimizers(self):
            return torch.optim.Adam(self.parameters(), lr=RATE)

        def on_train_batch_end(self, outputs, *_):
            notes.loss(outputs["loss"])

    # The finder's first trial is made with the loader that the module begins with: from one that is too large binsearch ends at 1.
    module = Module(args.batch if args.how == "lightning" else 2)
    with tempfile.TemporaryDirectory() as folder:
        trainer = lightning.Trainer(max_epochs=1, accelerator="auto", devices=1, logger=False, enable_checkpointing=False,
                                    enable_progress_bar=False, enable_model_summary=False, default_root_dir=folder)
        if args.how != "lightning":
            Tuner(trainer).scale_batch_size(module, mode=args.how)
        notes.write("attempt", batch=module.batch_size)
        trainer.fit(module)
    return module.net.to(DEVICE)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--how", choices=("plain", "micro", "accelerate", "lightning", "power", "binsearch"), required=True)
    parser.add_argument("--batch", type=int, default=2048)
    parser.add_argument("--samples", type=int, default=16384)
    parser.add_argument("--width", type=int, default=16)
    args = parser.parse_args()
    warnings.simplefilter("ignore")
    logging.disable(logging.WARNING)
    data = digits(args.samples)
    kind = {"plain": by_loop, "micro": by_loop, "accelerate": by_accelerate}.get(args.how, by_lightning)
    for name in {by_accelerate: ["accelerate.utils"], by_lightning: ["lightning.pytorch.tuner"]}.get(kind, ()):
        importlib.import_module(name)  # before memory is looked at
    torch.optim.Adam(Net(1).parameters())  # which imports more
    begin()
    model = kind(args, data)
    notes.end()
    total = 0.
    with torch.no_grad():
        for x, y in DataLoader(data, batch_size=256):
            total += float(F.nll_loss(model(x.to(DEVICE)), y.to(DEVICE), reduction="sum"))
    notes.write("final", loss=total / args.samples)


if __name__ == "__main__":
    main()
