"""Seed 002, example 2: a loop of one's own with a GradientTape, "missing explicit tensor deletion".

As written nothing accumulates: predictions, loss and gradients are bound anew in every step, and what they named before is freed. A
`del` would change nothing. Memory stays flat.
"""
import tensorflow as tf

tf.keras.utils.set_random_seed(0)
model = tf.keras.Sequential([tf.keras.layers.Input((784,)), tf.keras.layers.Dense(256, activation="relu"), tf.keras.layers.Dense(10, activation="softmax")])
optimizer = tf.keras.optimizers.Adam()


def digits(seed):
    x = tf.random.stateless_uniform((128, 784), seed=(seed, 0))
    return x, tf.one_hot(tf.argmax(x[:, :10], axis=1), 10)


dataset = tf.data.Dataset.range(100).map(digits).prefetch(2)
for epoch in range(6):
    for batch in dataset:
        with tf.GradientTape() as tape:
            predictions = model(batch[0])
            loss = tf.keras.losses.categorical_crossentropy(batch[1], predictions)
        gradients = tape.gradient(loss, model.trainable_variables)
        optimizer.apply_gradients(zip(gradients, model.trainable_variables))
    print(f"epoch {epoch}: loss {float(tf.reduce_mean(loss)):.4f}", flush=True)
