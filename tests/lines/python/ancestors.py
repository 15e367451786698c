"""A genetic search in which everyone knows their parents, and so nobody is ever gone."""
import random
import time

import antifreeze

GENES = 4500


class Individual:
    def __init__(self, genes, parents=()):
        self.genes = genes
        self.parents = parents
        self.fitness = -sum(abs(gene - .5) for gene in genes[:200])


def cross(a, b):
    drift = random.gauss(0, .01)
    genes = [(x + y) / 2 + drift for x, y in zip(a.genes, b.genes)]  # the line
    return Individual(genes, (a, b))


random.seed(3)
population = [Individual([random.random() for _ in range(GENES)]) for _ in range(12)]
for generation in range(700):
    antifreeze.step()
    population.sort(key=lambda one: one.fitness, reverse=True)
    best = population[:5]
    population = best[:1] + [cross(*random.sample(best, 2)) for _ in range(7)]
    if generation % 20 == 0:
        print(f"generation {generation}: {population[0].fitness:.3f}", flush=True)
    time.sleep(.025)
