"""/dev/shm exhaustion: workers hand their batches over in shared memory, of which a container has 64 MB. A batch of 256 pictures of 96 x 96
is 28 MB; two workers prepare two each while the loop holds one. The third has no room, and its worker dies of SIGBUS.
"""
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
    for x, y in DataLoader(Pictures(), batch_size=256, num_workers=2):
        loss = torch.nn.functional.cross_entropy(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        print(f"loss {loss.item():.4f}", flush=True)
