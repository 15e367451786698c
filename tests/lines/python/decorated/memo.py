"""Our own decorators."""
import functools


def memoize(function):
    known = {}

    @functools.wraps(function)
    def wrapper(*args):
        if args not in known:
            known[args] = function(*args)
        return known[args]

    return wrapper


def counted(function):
    @functools.wraps(function)
    def wrapper(*args):
        wrapper.calls += 1
        return function(*args)

    wrapper.calls = 0
    return wrapper
