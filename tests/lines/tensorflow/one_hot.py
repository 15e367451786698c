"""The next letter of every place in a text, as a row of zeros with a one."""
import time

import numpy as np
from tensorflow import keras

LETTERS, CONTEXT = 256, 8


def prepare(text):
    inputs = np.lib.stride_tricks.sliding_window_view(text, CONTEXT)[:-1]
    targets = keras.utils.to_categorical(text[CONTEXT:], num_classes=LETTERS)  # the line
    return inputs, targets


keras.utils.set_random_seed(0)
text = np.random.randint(0, LETTERS, 255_000).astype("uint8")
inputs, targets = prepare(text)
model = keras.Sequential([
    keras.layers.Input((CONTEXT,)), keras.layers.Embedding(LETTERS, 8), keras.layers.Flatten(), keras.layers.Dense(LETTERS, activation="softmax")])
model.compile("sgd", "categorical_crossentropy")
for step in range(600):
    batch = slice(step * 64, step * 64 + 64)
    loss = model.train_on_batch(inputs[batch], targets[batch])
    if step % 25 == 0:
        print(f"step {step}: {float(np.ravel(loss)[0]):.4f}", flush=True)
    time.sleep(.02)
