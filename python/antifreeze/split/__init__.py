"""Changes how a step is made (--policy adapt): a batch in parts, activations computed twice, half precision."""
