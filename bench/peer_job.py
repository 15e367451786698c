#!/usr/bin/env python3
"""A job of bench/peers.py: makes blocks of steps as it is told, and tells what each took.

usage: peer_job.py torch|tensorflow|numpy|json    (PEER_ORDERS and PEER_ANSWERS name two FIFOs)
"""
import json
import os
import sys
import time


def torch_step():
    """A small transformer, forward, backward and Adam."""
    import torch
    torch.manual_seed(1)
    torch.set_num_threads(1)
    layer = torch.nn.TransformerEncoderLayer(128, 4, 256, batch_first=True, dropout=0.0)
    model = torch.nn.Sequential(torch.nn.TransformerEncoder(layer, 2, enable_nested_tensor=False), torch.nn.Linear(128, 128))
    adam = torch.optim.Adam(model.parameters())
    x, y = torch.randn(64, 32, 128), torch.randn(64, 32, 128)

    def step():
        adam.zero_grad()
        torch.nn.functional.mse_loss(model(x), y).backward()
        adam.step()
    return step


def tensorflow_step():
    """A Keras perceptron by train_on_batch."""
    import keras
    import numpy
    keras.utils.set_random_seed(1)
    model = keras.Sequential([keras.Input((256,)), keras.layers.Dense(512, "relu"), keras.layers.Dense(512, "relu"),
                              keras.layers.Dense(10)])
    model.compile("adam", keras.losses.SparseCategoricalCrossentropy(from_logits=True))
    x, y = numpy.random.rand(512, 256).astype("f4"), numpy.random.randint(0, 10, 512)
    return lambda: model.train_on_batch(x, y)


def numpy_step():
    import numpy
    a = numpy.ones((256, 1024), dtype="f4")

    def step():
        b = (a * 2 + a).sum(axis=0)
        return numpy.maximum(a, 1) - b * 0
    return step


def json_step():
    text = json.dumps([{"id": i, "name": f"row {i}", "values": [i * 0.5] * 8} for i in range(300)])
    return lambda: json.loads(text)


JOBS = {"torch": torch_step, "tensorflow": tensorflow_step, "numpy": numpy_step, "json": json_step}


def main():
    step = JOBS[sys.argv[1]]()
    with open(os.environ["PEER_ORDERS"], encoding="ascii") as orders, \
            open(os.environ["PEER_ANSWERS"], "w", encoding="ascii", buffering=1) as answers:
        print(os.getpid(), file=answers)
        for order in orders:
            if order == "end\n":
                break
            wall, cpu = time.perf_counter_ns(), time.process_time_ns()
            for _ in range(int(order)):
                step()
            print(time.process_time_ns() - cpu, time.perf_counter_ns() - wall, file=answers)


if __name__ == "__main__":
    main()
