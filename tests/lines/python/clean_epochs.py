"""Every epoch builds much and lets go of it; what is in cycles goes with the collector."""
import gc
import time


class Graph:
    def __init__(self, size):
        self.nodes = [{"id": n, "edges": [n * 7 % size, n * 3 % size]} for n in range(size)]
        self.me = self


for epoch in range(22):
    graph = Graph(60_000)
    best = max(node["edges"][0] for node in graph.nodes)
    print(f"epoch {epoch}: {best}", flush=True)
    time.sleep(.5)
    del graph
    gc.collect()
