from .parse import parse


class Reader:
    def __init__(self):
        self.pages = {}

    def page(self, number):
        if number not in self.pages:
            text = "\n".join(f"{number},{row},{row * number % 977}" for row in range(60))
            self.pages[number] = parse(text)
        return self.pages[number]
