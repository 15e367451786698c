class Record:
    __slots__ = ("page", "row", "features", "touched")

    def __init__(self, page, row, value):
        self.page, self.row, self.touched = page, row, 0
        self.features = [value * 1.5 + i for i in range(60)]  # the line

    def touch(self):
        self.touched += 1
