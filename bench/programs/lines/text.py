"""Text taken apart and put together: most of the work is done in C, between the lines."""

WORDS = "the quick brown fox jumps over the lazy dog and runs away from it all".split()


def title(word):
    first = word[0].upper()
    return first + word[1:]


def sentence(words):
    parts = []
    length = 0
    for word in words:
        if len(word) > 3:
            word = title(word)
        parts.append(word)
        length += len(word)
    text = " ".join(parts)
    text = text.replace("Fox", "Cat")
    return f"{text}, {length}, {text.count('e')}"


def work(loops):
    for _ in range(loops):
        out = ""
        for _ in range(20):
            out += sentence(WORDS)
            out += "\n"
        out.splitlines()
