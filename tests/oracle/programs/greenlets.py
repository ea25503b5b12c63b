"""Greenlets: stacks that are exchanged behind the interpreter's back, 60 % and 40 %. Each begins with its
own function, not with the program's."""
# needs: greenlet

import oracle

import greenlet

going, now = oracle.going, oracle.now


def left_leaf(count):
    x = 0
    for i in range(count):
        x += i & 3
    return x


def left(stamps):
    for scale in scales:
        start = now()
        left_leaf(60 * scale)
        stamps.extend((start, now()))
        right_one.switch(stamps_right)


def right_leaf(count):
    x = 0
    for i in range(count):
        x += i & 3
    return x


def right(stamps):
    for scale in scales:
        start = now()
        right_leaf(40 * scale)
        stamps.extend((start, now()))
        if going()[0]:
            return
        left_one.switch()


scales = oracle.scales()
stamps_left, stamps_right = oracle.log(), oracle.log()
left_one, right_one = greenlet.greenlet(left), greenlet.greenlet(right)
oracle.ready([["left", "left_leaf"], ["right", "right_leaf"], ["<module>", "~"]],
             {"60/40": ["left_leaf", "right_leaf"]}, roots=["left", "right", "<module>"])
left_one.switch(stamps_left)
oracle.done((["left_leaf"], stamps_left), (["right_leaf"], stamps_right))
