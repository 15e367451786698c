"""psutil_tree.py WHAT PID ROUNDS: the same facts as bench-senses, by psutil; microseconds of processor time a round.

fast   stat, statm and io of every process: cpu_times, memory_info, io_counters, num_threads, ppid, status
find   the same, and the tree is found anew each time (children(recursive=True)), as a monitor must
host   virtual_memory and swap_memory
"""
import sys
import time

import psutil

what, pid, rounds = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
root = psutil.Process(pid)
tree = [root] + root.children(recursive=True)


def read(processes):
    for p in processes:
        with p.oneshot():
            p.cpu_times(), p.memory_info(), p.io_counters(), p.num_threads(), p.ppid(), p.status()


def fast():
    read(tree)


def find():
    read([root] + root.children(recursive=True))


def host():
    psutil.virtual_memory(), psutil.swap_memory()


run = {"fast": fast, "find": find, "host": host}[what]
run()
for _ in range(rounds):
    start = time.process_time_ns()
    run()
    print((time.process_time_ns() - start) / 1000)
