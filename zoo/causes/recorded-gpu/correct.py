"""A GPU that is cooled and whole: 64 degrees, and nothing held down."""
import gpu
import training

gpu.show()
training.train(45)
