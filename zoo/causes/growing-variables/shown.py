"""Growing tf.Variables: the average of the weights is a new variable in every step, and the model keeps them all. 0.6 MB a step."""
import tensorflow as tf


class Averaged(tf.Module):
    def __init__(self):
        super().__init__()
        self.weights = tf.Variable(tf.random.normal((400, 400), stddev=.02))
        self.averages = [tf.Variable(self.weights, trainable=False)]

    def average(self):
        self.averages.append(tf.Variable(.99 * self.averages[-1] + .01 * self.weights, trainable=False))  # the line


tf.keras.utils.set_random_seed(0)
model = Averaged()
optimizer = tf.keras.optimizers.SGD(10.)
for step in range(1500):
    x = tf.random.normal((64, 400))
    with tf.GradientTape() as tape:
        loss = tf.reduce_mean(tf.square(tf.matmul(x, model.weights) - x))
    optimizer.apply_gradients([(tape.gradient(loss, model.weights), model.weights)])
    model.average()
    if step % 50 == 0:
        print(f"step {step}: loss {float(loss):.4f}, {len(model.averages)} variables", flush=True)
