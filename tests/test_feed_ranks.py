#!/usr/bin/env python3
"""Whose part of the data is whose: antifreeze.Loader shares them out among ranks, once, whoever stands between it and the loop.

usage: test_feed_ranks.py PYTHON_FOLDER LIBRARY [TEST...]

LIBRARY: libantifreeze-loader.so. Needs NumPy and torch; what needs accelerate or Lightning is skipped where that is not there.
"""
import os
import socket
import sys
import types
import unittest
from unittest import mock

import feed_case
from feed_case import BATCH, SAMPLES, Case, needs

feed_case.begin(__doc__)
import torch

FOLDER = feed_case.FOLDER


class Sharing(Case):
    def test_ranks_by_environment(self):
        said = [self.program("""
            loader = antifreeze.Loader(X, labels=Y, batch=32, budget="1M", seed=5, as_="numpy")
            print(loader.rank, loader.ranks, *(i for _, y in loader for i in y))
            """, env={"RANK": str(rank), "WORLD_SIZE": "2"}.items()).split() for rank in range(2)]
        self.assertEqual([words[:2] for words in said], [["0", "2"], ["1", "2"]])
        self.assertEqual(sorted(int(word) for words in said for word in words[2:]), list(range(SAMPLES)))

    def test_slurm(self):
        """Of srun's tasks each has its part; a batch script, which is told of them, too, has all; and torchrun's word is nearer."""
        task = {"SLURM_PROCID": "1", "SLURM_NTASKS": "3", "SLURM_STEP_ID": "0"}
        script = {"SLURM_PROCID": "0", "SLURM_NTASKS": "3"}
        for words, share in ((task, (1, 3)), ({**task, "SLURM_PROCID": "0"}, (0, 3)), (script, (0, 1)),
                             ({**task, "RANK": "0", "WORLD_SIZE": "2"}, (0, 2)), ({**task, "SLURM_NTASKS": "1"}, (0, 1)),
                             ({**task, "SLURM_STEP_NUM_TASKS": "2"}, (1, 2)), ({**task, "SLURM_NTASKS": "many"}, (0, 1))):
            with self.subTest(str(words)), mock.patch.dict(os.environ, words):
                loader = self.loader()
                self.assertEqual((loader.rank, loader.ranks), share)
                self.assertEqual("rank" in repr(loader), share[1] > 1)

    def test_jax(self):
        """Once its processes have met; and it is not made to look for devices by that."""
        client = types.SimpleNamespace(client=object(), process_id=2, num_processes=4)
        for state, share in ((client, (2, 4)), (types.SimpleNamespace(client=None, process_id=0, num_processes=None), (0, 1))):
            with mock.patch.dict(sys.modules, {"jax._src.distributed": types.SimpleNamespace(global_state=state)}):
                loader = self.loader()
                self.assertEqual((loader.rank, loader.ranks), share)

    @needs("jax")
    def test_jax_itself(self):
        said = self.program("""
            import jax
            jax.distributed.initialize("127.0.0.1:" + sys.argv[1], num_processes=1, process_id=0)
            from _antifreeze.feed import ranks
            print(ranks.of_jax())
            """, str(free_port())).strip()
        self.assertEqual(said, "(0, 1)")

    def test_ranks_that_meet_later(self):
        """A loader that was made before torch.distributed knew of ranks (Lightning's ddp) takes its share when it is gone through."""
        loader = self.loader()
        loop = iter(loader)
        start = [int(i) for _ in range(10) for i in next(loop)[1]]
        distributed, ranks = torch.distributed, [(0, 2), (1, 2)]
        whole = self.labels(self.loader())
        state = loader.state_dict()
        parts = []
        try:
            for rank, of in ranks:
                distributed.is_initialized = lambda: True
                distributed.get_rank, distributed.get_world_size = lambda rank=rank: rank, lambda of=of: of
                loader.load_state_dict(state)
                left = -(-(SAMPLES - 320) // BATCH)
                self.assertEqual((len(loader), loader.rank, loader.ranks), (-(-SAMPLES // (2 * BATCH)), rank, of))
                parts.append(self.labels(loader))
                self.assertLessEqual(len(parts[-1]), left * BATCH // 2 + BATCH)
        finally:
            for name in "is_initialized", "get_rank", "get_world_size":
                setattr(distributed, name, getattr(distributed.distributed_c10d, name))
        self.assertEqual(sorted(start + parts[0] + parts[1]), sorted(whole))

    @needs("accelerate")
    def test_accelerate(self):
        """Two processes: what accelerate hands out from rank 0 is not shared out before; bare, each takes its share."""
        said = self.program("""
            import torch
            from accelerate import Accelerator
            from torch.utils.data import DataLoader
            accelerator = Accelerator(cpu=True)
            rank = accelerator.process_index
            def new(**more): return antifreeze.Loader(X, labels=Y, batch=32, budget="1M", seed=5, subset=(0, 4992), **more)
            bare, inner = accelerator.prepare(new()), new()
            dispatched = accelerator.prepare(DataLoader(inner, batch_size=None))
            words = []
            for name, data, loader in ("bare", bare, bare), ("dispatched", dispatched, inner), ("again", dispatched, inner):
                seen = []
                for _, y in data:
                    seen += [str(int(i)) for i in y]
                    len(loader), loader.progress, loader.state_dict()  # who looks changes nothing
                words.append(f"{name}:{rank}:{len(data)}:" + ",".join(seen))
            try:
                iter(accelerator.prepare(DataLoader(new(rank=rank, ranks=2), batch_size=None))).__next__()
            except RuntimeError as error:
                words.append(f"told:{rank}:{error}")
            with open(sys.argv[1] + f"/said.{rank}", "w") as file: file.write("\\n".join(words))
            torch.distributed.destroy_process_group()  # gloo's threads may abort a process that ends with them
            """, FOLDER, launcher=("-m", "torch.distributed.run", "--standalone", "--nproc-per-node=2"),
            env={"OMP_NUM_THREADS": "1"}.items())
        lines = []
        for rank in range(2):
            with open(f"{FOLDER}/said.{rank}", encoding="utf-8") as file:
                lines += [line.split(":", 3) for line in file.read().splitlines()]
        for name in "bare", "dispatched", "again":
            parts = [line for line in lines if line[0] == name]
            self.assertEqual([int(line[2]) for line in parts], [4992 // 64] * 2, name)
            self.assertEqual(sorted(int(i) for line in parts for i in line[3].split(",")), list(range(4992)), name)
        self.assertTrue(all("twice" in ":".join(line) for line in lines if line[0] == "told"), said)
        self.assertEqual(sum(line[0] == "told" for line in lines), 2)

    @needs("accelerate")
    def test_shards(self):
        from accelerate.data_loader import IterableDatasetShard
        with self.assertRaisesRegex(RuntimeError, "every n-th"):
            next(iter(IterableDatasetShard(self.loader(as_="torch"), batch_size=1, num_processes=2, process_index=0)))

    @needs("lightning")
    def test_lightning(self):
        """No sampler is put in, its look at the loader costs no epoch, and its checkpoint has the place."""
        self.program("""
            import logging, warnings; warnings.simplefilter("ignore"); logging.getLogger("lightning.pytorch").setLevel(logging.ERROR)
            import lightning, torch
            from torch.utils.data import DataLoader
            class Model(lightning.LightningModule):
                def __init__(self): super().__init__(); self.layer = torch.nn.Linear(64, 1); self.seen = []; self.epochs = []
                def training_step(self, batch, _): self.seen += batch[1].tolist(); return self.layer(batch[0] * 1e-3).square().mean()
                def on_train_epoch_end(self): self.epochs.append(self.seen); self.seen = []
                def configure_optimizers(self): return torch.optim.SGD(self.parameters(), lr=1e-3)
            def new(): return antifreeze.Loader(X, labels=Y, batch=32, budget="1M", seed=5)
            plain = new()
            want = [[int(i) for _, y in plain for i in y] for _ in range(2)]
            for data in new(), DataLoader(new(), batch_size=None):
                model = Model()
                trainer = lightning.Trainer(max_epochs=2, accelerator="cpu", devices=1, logger=False, enable_checkpointing=False,
                                            enable_progress_bar=False, enable_model_summary=False, num_sanity_val_steps=0)
                trainer.fit(model, data)
                assert model.epochs == want, [len(epoch) for epoch in model.epochs]
                connector = trainer._data_connector
                connector.trainer._accelerator_connector.use_distributed_sampler = True
                assert not isinstance(data, DataLoader) or not connector._requires_distributed_sampler(data)
            """)


def free_port():
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return one.getsockname()[1]


if __name__ == "__main__":
    unittest.main()
