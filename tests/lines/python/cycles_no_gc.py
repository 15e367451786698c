"""The garbage collector was switched off for speed; what refers to itself is never freed."""
import gc
import time

gc.disable()


class Node:
    def __init__(self, parent=None):
        self.parent = parent
        self.children = []
        self.weights = [float(i) for i in range(2000)]  # the line
        if parent:
            parent.children.append(self)


def build():
    root = Node()
    for _ in range(3):
        Node(root)
    return sum(len(child.weights) for child in root.children)


for step in range(3000):
    build()
    if step % 25 == 0:
        print("step", step, flush=True)
    time.sleep(.018)
