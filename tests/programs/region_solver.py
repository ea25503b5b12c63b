"""Heat in a rod, step by step: an implicit finite-element solver with its phases named, as users of PyOP2 and PETSc name theirs.

    FATHOM_SUMMARY=1 python3 region_solver.py [ELEMENTS] [STEPS]
"""

import sys

import fathom
import numpy as np


@fathom.timed
def assemble(elements, dt):
    """Mass and stiffness of linear elements: the three diagonals of M + dt K."""
    h = 1.0 / elements
    diagonals = np.zeros((3, elements + 1))
    with fathom.region("quadrature"):
        mass = h / 6 * np.array([[2.0, 1.0], [1.0, 2.0]])
        stiffness = 1 / h * np.array([[1.0, -1.0], [-1.0, 1.0]])
        local = np.broadcast_to(mass + dt * stiffness, (elements, 2, 2))
    with fathom.region("scatter"):
        diagonals[1, :-1] += local[:, 0, 0]
        diagonals[1, 1:] += local[:, 1, 1]
        diagonals[0, :-1] += local[:, 0, 1]
        diagonals[2, 1:] += local[:, 1, 0]
    return diagonals


def multiply(diagonals, x):
    with fathom.region("multiply"):
        y = diagonals[1] * x
        y[:-1] += diagonals[0, :-1] * x[1:]
        y[1:] += diagonals[2, 1:] * x[:-1]
        return y


@fathom.region("solve")
def solve(diagonals, b, x, most=1000):
    """Conjugate gradients, with the diagonal as preconditioner."""
    enough = 1e-8 * np.sqrt(b @ b)
    r = b - multiply(diagonals, x)
    z = r / diagonals[1]
    p, rz = z, r @ z
    for _ in range(most):
        if np.sqrt(r @ r) <= enough:
            break
        with fathom.region("iteration"):
            q = multiply(diagonals, p)
            alpha = rz / (p @ q)
            x, r = x + alpha * p, r - alpha * q
            with fathom.region("precondition"):
                z = r / diagonals[1]
            rz, before = r @ z, rz
            p = z + rz / before * p
    return x


def main(elements=2000, steps=5):
    points = np.linspace(0.0, 1.0, elements + 1)
    u = np.cos(np.pi * points)
    for step in range(steps):
        with fathom.region("step", number=step):
            system = assemble(elements, dt=1e-4)
            mass = assemble(elements, dt=0.0)
            u = solve(system, multiply(mass, u), u)
    print(f"{u[0]:.6f}")  # near exp(-pi ** 2 * 1e-4 * steps)


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
