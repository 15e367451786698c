"""Two simulators as processes of their own (spawn), which never forget."""
import multiprocessing
import random
import time


class Simulator:
    def __init__(self, seed):
        self.rng = random.Random(seed)
        self.trajectory = []

    def step(self):
        state = self.rng.randbytes(120_000)  # the line
        self.trajectory.append(state)
        return state[0]


def simulate(seed, steps):
    simulator = Simulator(seed)
    for step in range(steps):
        simulator.step()
        if step % 50 == 0:
            print(f"simulator {seed}: step {step}", flush=True)
        time.sleep(.015)


if __name__ == "__main__":
    context = multiprocessing.get_context("spawn")
    processes = [context.Process(target=simulate, args=(seed, 1800)) for seed in (1, 2)]
    for process in processes:
        process.start()
    for process in processes:
        process.join()
