"""Inadequate cooling, as a driver tells it: after 10 s the GPU stands at 92 degrees, its clock is held down to a third, and a training that
is well otherwise takes three times as long.
"""
import gpu
import training

HOT = ("gpu 0 temp 92", "gpu 0 clock 830", "gpu 0 throttle 96")  # 96: held down for heat, by software and by hardware
gpu.play(10, *HOT)
training.train(50)
