"""Figures of a server in the text format of Prometheus."""

from __future__ import annotations

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Iterable

BOUNDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)
Labels = tuple[tuple[str, str], ...]


class Metrics:
    """Counts of requests and the seconds that they took, of one thread.

    Examples
    --------
    >>> metrics = Metrics()
    >>> metrics.count("predict", 200, 0.002)
    >>> metrics.text([]).splitlines()[2]
    'kesler_requests_total{endpoint="predict",status="200"} 1'
    """

    def __init__(self) -> None:
        self._requests: dict[tuple[str, int], int] = defaultdict(int)
        self._times: dict[str, list[int]] = defaultdict(lambda: [0] * (len(BOUNDS) + 1))
        self._seconds: dict[str, float] = defaultdict(float)

    def count(self, endpoint: str, status: int, seconds: float) -> None:
        """Count a request to an endpoint, its status and how long it took."""
        self._requests[endpoint, status] += 1
        self._times[endpoint][bisect_left(BOUNDS, seconds)] += 1
        self._seconds[endpoint] += seconds

    def text(self, gauges: Iterable[tuple[str, str, Labels, float]]) -> str:
        """Return all figures.

        Parameters
        ----------
        gauges : iterable of (name, help, labels, value)
            Figures of the models, those of one name one after another.
        """
        lines = [
            "# HELP kesler_requests_total Requests answered.",
            "# TYPE kesler_requests_total counter",
        ]
        lines += [
            _line("kesler_requests_total", (("endpoint", name), ("status", str(status))), n)
            for (name, status), n in sorted(self._requests.items())
        ]
        lines += [
            "# HELP kesler_request_seconds Time of requests.",
            "# TYPE kesler_request_seconds histogram",
        ]
        for name in sorted(self._times):
            lines += self._histogram(name)
        last = ""
        for name, words, labels, value in gauges:
            if name != last:
                lines += [f"# HELP {name} {words}", f"# TYPE {name} gauge"]
            lines.append(_line(name, labels, value))
            last = name
        return "\n".join(lines) + "\n"

    def _histogram(self, endpoint: str) -> list[str]:
        name, own, total = "kesler_request_seconds", ("endpoint", endpoint), 0
        lines = []
        for bound, n in zip((*map(str, BOUNDS), "+Inf"), self._times[endpoint], strict=True):
            total += n
            lines.append(_line(f"{name}_bucket", (own, ("le", bound)), total))
        lines.append(_line(f"{name}_sum", (own,), self._seconds[endpoint]))
        return [*lines, _line(f"{name}_count", (own,), total)]


def _line(name: str, labels: Labels, value: float) -> str:
    inside = ",".join(f'{key}="{_escaped(text)}"' for key, text in labels)
    return f"{name}{{{inside}}} {value}" if inside else f"{name} {value}"


def _escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
