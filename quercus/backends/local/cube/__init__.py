"""Many queries over one stream, computed from each other where that is cheaper (E-Cube): actions over held results."""

from quercus.backends.local.cube.execute import run_cube
from quercus.backends.local.cube.result import CubeResult

__all__ = ["CubeResult", "run_cube"]
