"""All models of this program, by name."""
MODELS = {}


def register(kind):
    """A decorator for classes: each object that is made is put on the list."""
    first = kind.__init__

    def init(self, *args, **options):
        first(self, *args, **options)
        MODELS[f"{kind.__name__}-{len(MODELS)}"] = self

    kind.__init__ = init
    return kind
