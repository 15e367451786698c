"""A GAN whose generator keeps its graph for the second half of the step, and whose losses go into the history as they are."""
import time

import torch
from torch import nn

torch.manual_seed(0)
generator = nn.Sequential(nn.Linear(16, 64), nn.ReLU(), nn.Linear(64, 1024), nn.Tanh())
discriminator = nn.Sequential(nn.Linear(1024, 32), nn.LeakyReLU(.2), nn.Linear(32, 1))
optimizer_g = torch.optim.Adam(generator.parameters(), lr=2e-4)
optimizer_d = torch.optim.Adam(discriminator.parameters(), lr=2e-4)
adversarial = nn.BCEWithLogitsLoss()
history = {"g": [], "d": []}
valid, fake = torch.ones(160, 1), torch.zeros(160, 1)
for step in range(600):
    optimizer_g.zero_grad()
    images = generator(torch.randn(160, 16))  # the line
    g_loss = adversarial(discriminator(images), valid)
    g_loss.backward(retain_graph=True)
    optimizer_g.step()

    optimizer_d.zero_grad()
    d_loss = adversarial(discriminator(torch.rand(160, 1024)), valid) + adversarial(discriminator(images.detach()), fake)
    d_loss.backward()
    optimizer_d.step()

    history["g"].append(g_loss)
    history["d"].append(d_loss.item())
    if step % 20 == 0:
        print(f"step {step}: G {g_loss.item():.4f}, D {d_loss.item():.4f}", flush=True)
    time.sleep(.02)
