"""A batch that is too large, in a loop of our own (seed 003, example 1, scaled)."""
import tensorflow as tf


class Net(tf.Module):
    def __init__(self):
        super().__init__()
        self.w1 = tf.Variable(tf.random.normal((20, 2500), stddev=.05))
        self.w2 = tf.Variable(tf.random.normal((2500, 10), stddev=.05))

    def __call__(self, x):
        hidden = tf.matmul(x, self.w1)  # the line
        hidden = tf.nn.relu(hidden)  # the line
        return tf.matmul(hidden, self.w2)


net = Net()
optimizer = tf.keras.optimizers.SGD(.01)
for step in range(16):
    x = tf.random.normal((24_000, 20))
    with tf.GradientTape() as tape:
        loss = tf.reduce_mean(tf.square(net(x)))
    gradients = tape.gradient(loss, net.trainable_variables)  # the line
    optimizer.apply_gradients(zip(gradients, net.trainable_variables))
    print(f"step {step}: {float(loss):.4f}", flush=True)
