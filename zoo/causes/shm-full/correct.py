"""The same, with batches that fit: one ahead for each worker, of 64 pictures."""
import torch
from torch.utils.data import DataLoader, Dataset


class Pictures(Dataset):
    def __len__(self):
        return 256 * 12

    def __getitem__(self, number):
        picture = torch.rand(3, 96, 96, generator=torch.Generator().manual_seed(number))
        return picture * (1 - .4 * (number % 2)), number % 2


if __name__ == "__main__":
    model = torch.nn.Sequential(torch.nn.AvgPool2d(8), torch.nn.Flatten(), torch.nn.Linear(432, 2))
    optimizer = torch.optim.Adam(model.parameters())
    for x, y in DataLoader(Pictures(), batch_size=64, num_workers=2, prefetch_factor=1):
        loss = torch.nn.functional.cross_entropy(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        print(f"loss {loss.item():.4f}", flush=True)
