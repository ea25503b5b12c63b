"""Objects: constructors, methods, properties, methods of base classes."""


class Point:
    def __init__(self, x, y):
        self.x = x
        self.y = y

    def moved(self, dx, dy):
        return type(self)(self.x + dx, self.y + dy)

    @property
    def norm(self):
        return self.x * self.x + self.y * self.y


class Named(Point):
    def moved(self, dx, dy):
        return super().moved(dx + 1, dy)


def work(loops):
    for _ in range(loops):
        point, other = Point(0, 0), Named(0, 0)
        for step in range(1000):
            point = point.moved(step, -step)
            other = other.moved(1, 1)
            point.norm + other.norm
