"""Pattern windows over a stream: which windows close, when, and with which tuples (Shen et al., Algorithm 1)."""

from quercus.backends.local.windows.closed import Closed
from quercus.backends.local.windows.live import WindowStream, WindowStreams
from quercus.backends.local.windows.plan import WindowPlan, plan_of
from quercus.backends.local.windows.run import closed_windows, several

__all__ = ["Closed", "WindowPlan", "WindowStream", "WindowStreams", "closed_windows", "plan_of", "several"]
