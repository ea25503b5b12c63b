"""The example that ships with Fathom: planets on their orbits, with a decorator, a generator, a
recursion and a thread, so that every part of a profile has something to show."""

import functools
import math
import threading


def logged(function):
    """A wrapper as many programs have: it stands between every caller and callee."""

    @functools.wraps(function)
    def wrapper(*args):
        return function(*args)

    return wrapper


class Body:
    def __init__(self, x, y, vx, vy, mass):
        self.x, self.y, self.vx, self.vy, self.mass = x, y, vx, vy, mass

    def distance(self, other):
        return math.hypot(self.x - other.x, self.y - other.y)

    def move(self, dt):
        self.x += self.vx * dt
        self.y += self.vy * dt


def pairs(bodies):
    for i, a in enumerate(bodies):
        for b in bodies[i + 1:]:
            yield a, b


@logged
def accelerate(bodies, dt):
    for a, b in pairs(bodies):
        pull = dt / max(a.distance(b), 0.01) ** 3
        dx, dy = a.x - b.x, a.y - b.y
        a.vx -= dx * b.mass * pull
        a.vy -= dy * b.mass * pull
        b.vx += dx * a.mass * pull
        b.vy += dy * a.mass * pull


def energy(bodies):
    if not bodies:
        return 0.0
    first = bodies[0]
    return 0.5 * first.mass * (first.vx**2 + first.vy**2) + energy(bodies[1:])


def simulate(steps):
    bodies = [Body(i, 0.3 * i, 0.1, -0.2 * i, 1.0 / (i + 1)) for i in range(8)]
    for _ in range(steps):
        accelerate(bodies, 0.01)
        for body in bodies:
            body.move(0.01)
    return energy(bodies)


def main():
    helper = threading.Thread(target=simulate, args=(300,), name="second system")
    helper.start()
    print(f"energy after 1000 steps: {simulate(1000):.6f}")
    helper.join()


if __name__ == "__main__":
    main()
