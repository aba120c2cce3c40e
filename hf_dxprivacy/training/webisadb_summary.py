"""What the reader of WebIsADB has counted."""

from dataclasses import asdict, dataclass, field


@dataclass(frozen=True)
class Tally:
    """What was read of WebIsADB.

    Attributes:
        rows: Rows read, blank lines left out.
        nul_bytes: NUL bytes, which are taken out before anything else.
        undecodable: Rows with bytes that are not UTF-8, in whose place U+FFFD is read.
        incomplete: Rows left out since they end before the last field that is needed, or since a
            quote is not closed.
        bad_frequency: Rows left out since their frequency is not a number of at least 0.
        broken_modifications: Rows whose modifications are not within the brackets of a JSON list.
            They are kept: the frequency that counts stands in a field of its own.
        outside_vocabulary: Rows left out since the instance or the class is not in the vocabulary.
        seconds: Time that reading took; two tallies that differ in nothing else are equal.
    """

    rows: int = 0
    nul_bytes: int = 0
    undecodable: int = 0
    incomplete: int = 0
    bad_frequency: int = 0
    broken_modifications: int = 0
    outside_vocabulary: int = 0
    seconds: float = field(default=0.0, compare=False)

    def __add__(self, other: "Tally") -> "Tally":
        mine, theirs = asdict(self), asdict(other)
        return Tally(**{name: mine[name] + theirs[name] for name in mine})


@dataclass(frozen=True)
class WebIsADBSummary(Tally):
    """What was read of WebIsADB, and what each filter has removed, in the order of the filters.

    Attributes:
        pairs: Pairs of an instance and a class that are both in the vocabulary.
        infrequent: Pairs removed since they occur less than `min_frequency` times.
        reflexive: Pairs removed since a word stands with itself.
        stop_words: Pairs removed since one of the words is a stop word.
        offensive: Pairs removed since one of the words is offensive.
        few_links: Pairs removed since one of the words has less than `min_links` of them.
        disconnected: Pairs removed since no chain of pairs joins them to the largest part.
        relations: Pairs that are left.
    """

    pairs: int = 0
    infrequent: int = 0
    reflexive: int = 0
    stop_words: int = 0
    offensive: int = 0
    few_links: int = 0
    disconnected: int = 0
    relations: int = 0

    def __str__(self) -> str:
        counts = asdict(self)
        seconds = counts.pop("seconds")
        lines = [f"{name.replace('_', ' '):<21}{count:>15,}" for name, count in counts.items()]
        return "\n".join([*lines, f"rows per second      {self.rows / seconds:>15,.0f}"])
