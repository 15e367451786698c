"""Two ranks, started with torch.multiprocessing; each keeps its outputs."""
import time

import torch
import torch.multiprocessing as mp


def run(rank, steps):
    torch.manual_seed(rank)
    torch.set_num_threads(1)
    model = torch.nn.Linear(100, 500)
    optimizer = torch.optim.SGD(model.parameters(), lr=.01)
    outputs = []
    for step in range(steps):
        out = model(torch.randn(100, 100))  # the line
        outputs.append(out.detach())
        optimizer.zero_grad()
        out.pow(2).mean().backward()
        optimizer.step()
        if step % 25 == 0:
            print(f"rank {rank}: step {step}", flush=True)
        time.sleep(.015)


if __name__ == "__main__":
    mp.spawn(run, args=(1500,), nprocs=2)
