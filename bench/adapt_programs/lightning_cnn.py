"""The CNN of torch_cnn.py as a Lightning module."""
import argparse
import logging
import warnings

import lightning
import torch
from torch.nn import functional as F
from torch.utils.data import DataLoader

import notes
from torch_cnn import Net, digits


class Module(lightning.LightningModule):
    def __init__(self, width):
        super().__init__()
        self.net = Net(width)

    def training_step(self, batch, _):
        data, target = batch
        loss = F.nll_loss(self.net(data), target)
        self.log("loss", loss)
        return loss

    def configure_optimizers(self):
        return torch.optim.Adam(self.parameters(), lr=1e-3)

    def on_train_start(self):
        notes.begin()

    def on_train_batch_end(self, outputs, _batch, _):
        notes.loss(outputs["loss"])


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--batch", type=int, default=2048)
    parser.add_argument("--steps", type=int, default=8)
    parser.add_argument("--width", type=int, default=16)
    args = parser.parse_args()
    warnings.simplefilter("ignore")
    logging.disable(logging.WARNING)
    torch.manual_seed(1)
    trainer = lightning.Trainer(max_epochs=1, accelerator="auto", devices=1, logger=False, enable_checkpointing=False,
                                enable_progress_bar=False, enable_model_summary=False, gradient_clip_val=1.)
    trainer.fit(Module(args.width), DataLoader(digits(args.batch * args.steps), batch_size=args.batch))
    notes.end(step=trainer.global_step)


if __name__ == "__main__":
    main()
