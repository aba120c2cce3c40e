"""What an attack was run on, as every figure of it says."""

from dataclasses import dataclass

from hf_dxprivacy.results import ORIGINAL, Interval, Result


@dataclass(frozen=True)
class Subject:
    """The texts that are attacked; goes into the results and changes nothing else.

    Attributes:
        dataset: Their name.
        mechanism: What privatized them, "none" for originals.
        epsilon: At which ε; None for originals.
    """

    dataset: str = "texts"
    mechanism: str = ORIGINAL
    epsilon: float | None = None

    def result(self, task: str, metric: str, found: Interval, repeats: int = 1) -> Result:
        """Return a figure about these texts; see `Result`."""
        return Result(
            task,
            self.dataset,
            self.mechanism,
            self.epsilon,
            metric,
            found.value,
            found.low,
            found.high,
            repeats,
        )
