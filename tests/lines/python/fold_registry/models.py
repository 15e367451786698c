from registry import register


@register
class Linear:
    def __init__(self, inputs, outputs):
        self.weights = [[.01 * (row + 1) * (column + 1) for column in range(inputs)] for row in range(outputs)]  # the line

    def fit(self, sample, target, rate=.001):
        for row in self.weights[:4]:
            error = sum(w * x for w, x in zip(row, sample)) - target
            for column, x in enumerate(sample):
                row[column] -= rate * error * x
        return error
