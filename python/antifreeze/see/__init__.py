"""Looks on, whatever the policy: steps and phases of each framework, what memory is for, what ran out of it."""
