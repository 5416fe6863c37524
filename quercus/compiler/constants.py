"""What each step of the engine costs, in nanoseconds on the machine that it was calibrated on.

`python -m benchmarks.calibrate` fits these to runs of the kernels and prints this table anew. The planner compares
costs with each other, so it is their proportions that matter.
"""

from __future__ import annotations

from attrs import frozen


@frozen
class Constants:
    # every plan
    route: float = 1.2  # an event of the stream: its type is looked at
    leaf: float = 8.0  # an event of a leaf: its time and position are fetched
    filter: float = 8.0  # a condition on one event
    segment: float = 59.0  # a key's part of the buffers is begun, for a stack
    grove: float = 300.0  # ... and for a tree
    test: float = 3.4  # a condition on a candidate
    emit: float = 0.43  # an event of a match is written
    sort: float = 29.0  # a match that does not come in order is put there
    check: float = 15.0  # a match that does, where that is not known beforehand
    # a stack along pointers
    point: float = 4.6  # an event of a chain: pointers to its neighbours
    follow: float = 5.6  # a candidate is reached by a pointer
    open: float = 0.87  # a candidate beside which a whole range goes out
    pair: float = 0.42  # a match of such a range
    # a stack by search
    enter: float = 19.0  # the range of a level is found
    look: float = 5.0  # a candidate of a range
    # candidates that are sifted
    sift: float = 29.0  # a comparison begins to sift a range
    block: float = 13.0  # 64 candidates are compared
    # joins
    advance: float = 1.6  # an event of a leaf goes by
    drive: float = 6.4  # a composite looks for partners
    take: float = 1.4  # a candidate that nothing but the window tests
    meet: float = 7.4  # a candidate that conditions test
    chase: float = 26.0  # a candidate that a hash leads to
    far: float = 30.0  # ... in an internal buffer that is larger than the caches
    build: float = 3.5  # a composite is written into an internal buffer
    bind: float = 4.5  # an event of a root's composite is found along its links
    order: float = 0.81  # a match of a tree is compared with another one, to put them in order
    hash: float = 9.3  # a composite is hashed, or looked for
    spill: float = 2.9  # a composite of an internal buffer that is larger than the caches
    # sets
    complete: float = 15.0  # the range of a set is found
    left: float = 0.86  # an element of a set before its neighbour is bound: FAEM's Algorithm 1
    right: float = 3.0  # an element of a set after its neighbour: FAEM's Algorithm 2
    try_: float = 7.3  # an element that conditions test
    trail: float = 13.0  # a set at the end of a chain goes out as a range
    finish: float = 12.0  # a match with sets goes out
    clique: float = 11.0  # a pair of elements of several sets
    # negations
    probe: float = 32.0  # one search for the next event
    # sub-queries
    view: float = 20.0  # a result is written into a view, or dropped from it
    hit: float = 50.0  # a view is asked
    record: float = 8.0  # a result of a view is looked at


CALIBRATED = Constants()
