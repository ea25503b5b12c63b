import threading
def rows(size):
    data = bytearray(size)
    cache = []
    for i in range(100):
        cache += parse(i)
    return data, cache
def parse(i):
    text = bytearray(1000)
    return [text, bytearray(2000)]
def main():
    a = rows(4 << 20)
    b = rows(8 << 20)
    return a, b
t = threading.Thread(target=lambda: bytearray(1 << 20), name="wörker")
t.start(); t.join()
kept = main()
