"""A loader with workers that make each sample when it is asked for."""
import time

import torch
from torch.utils.data import DataLoader, Dataset


class Images(Dataset):
    def __len__(self):
        return 3000

    def __getitem__(self, index):
        return torch.full((3, 64, 64), float(index % 255)), index % 10


def main():
    model = torch.nn.Conv2d(3, 4, 5)
    optimizer = torch.optim.SGD(model.parameters(), lr=.001)
    for epoch in range(2):
        for step, (images, _) in enumerate(DataLoader(Images(), batch_size=16, num_workers=2, shuffle=True)):
            optimizer.zero_grad()
            model(images).mean().backward()
            optimizer.step()
            if step % 20 == 0:
                print(f"epoch {epoch}, step {step}", flush=True)
            time.sleep(.02)


if __name__ == "__main__":
    main()
