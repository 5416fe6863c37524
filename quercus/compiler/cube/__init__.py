"""E-Cube: many queries at once. Queries taken apart, how they refine each other, what each can be computed from.

A workload goes through these files in turn: `sequences` takes queries apart, `refine` compares them, `reuse` finds the
actions that lead from the results of one to those of another, `cost` says what these take, and `chase` chooses.
"""
