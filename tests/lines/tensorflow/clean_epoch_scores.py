"""All scores of an epoch are gathered for one number at its end, and then dropped."""
import time

import numpy as np
import tensorflow as tf

tf.keras.utils.set_random_seed(0)
model = tf.keras.Sequential([tf.keras.layers.Input((48,)), tf.keras.layers.Dense(1000)])
model.compile("sgd", "mse")
rng = np.random.default_rng(0)
history = []
for epoch in range(9):
    scores = np.empty((50 * 512, 1000), dtype=np.float32)
    for step in range(50):
        x = rng.standard_normal((512, 48), dtype=np.float32)
        loss = model.train_on_batch(x, x.sum(axis=1, keepdims=True))
        scores[step * 512:step * 512 + 512] = model(x)
        time.sleep(.02)
    history.append(float(scores.max()))
    print(f"epoch {epoch}: {float(np.ravel(loss)[0]):.4f}, best {history[-1]:.4f}", flush=True)
    del scores
