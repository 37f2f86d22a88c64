"""Running count, extremes, mean and spread of values that are seen piece by piece."""

import math
from dataclasses import dataclass

Number = int | float


@dataclass(slots=True)
class Moments:
    """What is known of the values seen so far.

    Attributes:
        count: Finite values seen.
        low, high: Their extremes, None before the first one; exact for whole numbers.
        mean: Their mean.
        squares: Sum of their squared distances from the mean.
        nan_count, inf_count: Values seen that are no numbers, or infinite; a complex one may be both.
    """

    count: int = 0
    low: Number | None = None
    high: Number | None = None
    mean: float = 0.0
    squares: float = 0.0
    nan_count: int = 0
    inf_count: int = 0

    def merge(self, other: "Moments", times: int = 1) -> None:
        """Take in what another one saw, each of its values `times` times.

        The update of mean and squares is that of Chan, Golub and LeVeque, "Updating Formulae and a
        Pairwise Algorithm for Computing Sample Variances" (1979).
        """
        self.nan_count += other.nan_count * times
        self.inf_count += other.inf_count * times
        if other.low is None or other.high is None:
            return
        added = other.count * times
        total = self.count + added
        distance = other.mean - self.mean
        self.mean += distance * (added / total)
        self.squares += other.squares * times + distance * distance * (self.count * (added / total))
        self.count = total
        self.low = other.low if self.low is None else min(self.low, other.low)
        self.high = other.high if self.high is None else max(self.high, other.high)

    def stretched(self, scale: float, zero: float) -> "Moments":
        """The moments of `(value - zero) * scale`."""
        ends = [(end - zero) * scale for end in (self.low, self.high) if end is not None]
        return Moments(
            self.count,
            min(ends, default=None),
            max(ends, default=None),
            (self.mean - zero) * scale if ends else 0.0,
            self.squares * scale * scale,
            self.nan_count,
            self.inf_count,
        )

    def std(self) -> float | None:
        """Sample standard deviation, as `Tensor.std()` has it; None for fewer than two values."""
        return _finite(math.sqrt(self.squares / (self.count - 1))) if self.count > 1 else None

    def norm(self) -> float | None:
        """Euclidean norm; None where a value is not finite."""
        if self.nan_count or self.inf_count:
            return None
        return _finite(math.sqrt(self.squares + self.count * self.mean * self.mean))

    def finite_mean(self) -> float | None:
        """The mean; None without values, or where their sum is beyond a float."""
        return _finite(self.mean) if self.count else None


def constant(value: Number, count: int) -> Moments:
    """The moments of `count` equal values."""
    return Moments(count, value, value, float(value)) if count else Moments()


def _finite(value: float) -> float | None:
    return value if math.isfinite(value) else None
