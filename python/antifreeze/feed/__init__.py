"""Data for a training loop, within a budget in bytes."""
