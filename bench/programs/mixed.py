"""A little of everything: closures, dictionaries, sorting by key, exceptions, text."""


class Store:
    def __init__(self):
        self.rows = {}

    def put(self, key, value):
        self.rows.setdefault(key, []).append(value)

    def get(self, key):
        try:
            return self.rows[key]
        except KeyError:
            raise LookupError(key) from None


def by_length(word):
    return len(word)


def scaled(factor):
    def scale(value):
        total = 0.0
        for i in range(8):
            total += value * factor / (i + 1)
        return total

    return scale


def work(loops):
    text = "the quick brown fox jumps over the lazy dog and runs away from it"
    for _ in range(loops):
        store = Store()
        for word in sorted(text.split(), key=by_length):
            store.put(word[0], word.upper())
        for key in "abcdefghijklmnop":
            try:
                ",".join(store.get(key))
            except LookupError:
                pass
        sum(map(scaled(3.0), range(20)))
