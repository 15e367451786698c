"""Checkpoints: when the guard asks for one, and where a restarted run goes on."""
