"""A training loop of our own that keeps all gradients."""
import tensorflow as tf

tf.random.set_seed(0)
model = tf.keras.Sequential([tf.keras.layers.Input((200,)), tf.keras.layers.Dense(600, activation="relu"), tf.keras.layers.Dense(10)])
optimizer = tf.keras.optimizers.SGD(.01)
gradient_history = []
for step in range(1500):
    x = tf.random.normal((8, 200))
    with tf.GradientTape() as tape:
        loss = tf.reduce_mean(tf.square(model(x)))
    gradients = tape.gradient(loss, model.trainable_variables)  # the line
    optimizer.apply_gradients(zip(gradients, model.trainable_variables))
    gradient_history.append(gradients)
    if step % 20 == 0:
        print(f"step {step}: {float(loss):.5f}", flush=True)
