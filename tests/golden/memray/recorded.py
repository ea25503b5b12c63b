"""What the .bin files beside this were recorded of."""
import mmap
import threading


def tree(depth):
    if depth == 0:
        return [bytearray(3000)]
    return tree(depth - 1) + tree(depth - 1)


def worker(keep):
    keep.append(bytearray(1 << 20))
    for i in range(10):
        text = bytearray(5000 + i)
        del text


def main():
    keep = []
    a = bytearray(4 << 20)
    rows = []
    for _ in range(20):
        rows.append(tree(2))
    pages = mmap.mmap(-1, 1 << 16)
    thread = threading.Thread(target=worker, args=(keep,), name="wörker")
    thread.start()
    thread.join()
    pages.close()
    del a
    b = bytearray(2 << 20)
    return rows, keep, b


kept = main()
