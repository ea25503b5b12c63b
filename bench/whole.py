"""A program as a whole process: whole.py NAME LOOPS PYPERFORMANCE_FOLDER."""

import os
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

import suite

work = suite.load(sys.argv[1], sys.argv[3])
work(int(sys.argv[2]))
