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
    test: float = 3.3  # a condition on a candidate
    emit: float = 0.35  # an event of a match is written
    sort: float = 24.0  # a match that does not come in order is put there
    check: float = 10.0  # a match that does, where that is not known beforehand
    # a stack along pointers
    point: float = 3.1  # an event of a chain: pointers to its neighbours
    follow: float = 6.5  # a candidate is reached by a pointer
    open: float = 0.78  # a candidate beside which a whole range goes out
    pair: float = 0.4  # a match of such a range
    # a stack by search
    enter: float = 21.0  # the range of a level is found
    look: float = 5.5  # a candidate of a range
    # candidates that are sifted
    sift: float = 39.0  # a comparison begins to sift a range
    block: float = 9.7  # 64 candidates are compared
    # joins
    advance: float = 1.6  # an event of a leaf goes by
    drive: float = 8.8  # a composite looks for partners
    take: float = 1.3  # a candidate that nothing but the window tests
    meet: float = 8.3  # a candidate that conditions test
    chase: float = 29.0  # a candidate that a hash leads to
    far: float = 16.0  # ... in an internal buffer that is larger than the caches
    build: float = 4.7  # a composite is written into an internal buffer
    bind: float = 5.2  # an event of a root's composite is found along its links
    order: float = 0.57  # a match of a tree is compared with another one, to put them in order
    hash: float = 8.0  # a composite is hashed, or looked for
    spill: float = 2.6  # a composite of an internal buffer that is larger than the caches
    # sets
    complete: float = 15.0  # the range of a set is found
    left: float = 0.86  # an element of a set before its neighbour is bound: FAEM's Algorithm 1
    right: float = 3.0  # an element of a set after its neighbour: FAEM's Algorithm 2
    try_: float = 7.3  # an element that conditions test
    trail: float = 12.0  # a set at the end of a chain goes out as a range
    finish: float = 11.0  # a match with sets goes out
    clique: float = 11.0  # a pair of elements of several sets
    # negations
    probe: float = 30.0  # one search for the next event
    # sub-queries
    view: float = 19.0  # a result is written into a view, or dropped from it
    hit: float = 36.0  # a view is asked
    record: float = 6.8  # a result of a view is looked at


CALIBRATED = Constants()
