"""A writer of our own, in the manner of TensorBoard's: what it is given waits until close()."""
import time

import torch
from torch import nn


class Writer:
    def __init__(self, path):
        self.path, self.events = path, []

    def add_scalar(self, tag, value, step):
        self.events.append((tag, step, float(value)))

    def add_image(self, tag, images, step):
        pixels = images.detach().clamp(0, 1).mul(255).to(torch.uint8)  # the line
        self.events.append((tag, step, pixels.numpy()))

    def close(self):
        print(f"{len(self.events)} events for {self.path}")


torch.manual_seed(0)
upscale = nn.Sequential(nn.Conv2d(3, 12, 3, padding=1), nn.PixelShuffle(2))
optimizer = torch.optim.Adam(upscale.parameters(), lr=1e-3)
writer = Writer("runs/upscale")
for step in range(460):
    sharp = torch.rand(4, 3, 256, 256)
    blurred = nn.functional.avg_pool2d(sharp, 2)
    output = upscale(blurred)
    loss = nn.functional.l1_loss(output, sharp)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    writer.add_scalar("loss", loss, step)
    writer.add_image("output", output, step)
    if step % 20 == 0:
        print(f"step {step}: {loss.item():.4f}", flush=True)
    time.sleep(.01)
writer.close()
