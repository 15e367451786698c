"""Seed 002, example 2, with the leak that its comment speaks of: the gradients of every step are put aside, "to plot their norms at the
end". 0.8 MB a step.
"""
import tensorflow as tf

tf.keras.utils.set_random_seed(0)
model = tf.keras.Sequential([tf.keras.layers.Input((784,)), tf.keras.layers.Dense(256, activation="relu"), tf.keras.layers.Dense(10, activation="softmax")])
optimizer = tf.keras.optimizers.Adam()
history = []


def digits(seed):
    x = tf.random.stateless_uniform((128, 784), seed=(seed, 0))
    return x, tf.one_hot(tf.argmax(x[:, :10], axis=1), 10)


dataset = tf.data.Dataset.range(100).map(digits).prefetch(2)
for epoch in range(6):
    for batch in dataset:
        with tf.GradientTape() as tape:
            predictions = model(batch[0])
            loss = tf.keras.losses.categorical_crossentropy(batch[1], predictions)
        gradients = tape.gradient(loss, model.trainable_variables)  # the line
        optimizer.apply_gradients(zip(gradients, model.trainable_variables))  # or the line at which TensorFlow's own pool runs empty
        history.append(gradients)
    print(f"epoch {epoch}: loss {float(tf.reduce_mean(loss)):.4f}", flush=True)
