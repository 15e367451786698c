"""A store of features in memory: a dict for every user, of whom a hundred are asked for at a time."""
import random
import time


def features(user):
    return {"name": f"user-{user}", "clicks": user * 7.5, "country": f"country-{user % 200}", "score": user / 3}  # the line


class Store:
    def __init__(self, users):
        self.by_user = {user: features(user) for user in range(users)}

    def ask(self, users):
        return [self.by_user[user]["score"] + self.by_user[user]["clicks"] for user in users]


store = Store(400_000)
rng = random.Random(2)
mean = 0.0
for step in range(560):
    answers = store.ask(rng.sample(range(400_000), 100))
    mean += .01 * (sum(answers) / 100 - mean)
    if step % 25 == 0:
        print(f"step {step}: {mean:.2f}", flush=True)
    time.sleep(.025)
