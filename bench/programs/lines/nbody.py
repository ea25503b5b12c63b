"""Planets that pull at one another: floats, lists, loops within loops."""


def bodies():
    found = []
    for i in range(5):
        place = [1.7 * i + 0.3, 4.1 - i * i, 0.2 * i]
        speed = [0.1 * i, 0.02 - 0.01 * i, 0.003 * i]
        found.append((place, speed, 40.0 / (1 + i * i)))
    return found


def advance(pairs, found, dt):
    for (p1, v1, m1), (p2, v2, m2) in pairs:
        dx = p1[0] - p2[0]
        dy = p1[1] - p2[1]
        dz = p1[2] - p2[2]
        distance = dx * dx + dy * dy + dz * dz
        pull = dt * distance ** -1.5
        b1 = m1 * pull
        b2 = m2 * pull
        v1[0] -= dx * b2
        v1[1] -= dy * b2
        v1[2] -= dz * b2
        v2[0] += dx * b1
        v2[1] += dy * b1
        v2[2] += dz * b1
    for place, speed, _ in found:
        place[0] += dt * speed[0]
        place[1] += dt * speed[1]
        place[2] += dt * speed[2]


def work(loops):
    found = bodies()
    pairs = []
    for i in range(5):
        for j in range(i):
            pairs.append((found[i], found[j]))
    for _ in range(loops):
        for _ in range(10):
            advance(pairs, found, 0.001)
