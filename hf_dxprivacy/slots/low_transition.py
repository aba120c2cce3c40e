"""Selection of words with a low transition probability under released n-grams."""

import hashlib
import logging
from collections.abc import Iterable
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from types import NoneType
from typing import Any, ClassVar, Literal, Protocol

import numpy as np

from hf_dxprivacy.errors import (
    ArtifactError,
    InvalidTypeError,
    InvalidValueError,
    require_at_least,
    require_between,
    require_one_of,
)
from hf_dxprivacy.guarantee import CorpusGuarantee, Disclosure
from hf_dxprivacy.hub import HubOptions, Publishable, atomic_write, cards, resolve, tensors
from hf_dxprivacy.hub.artifact import LIBRARY_NAME, read_record, require_fields
from hf_dxprivacy.hub.writing import write_record
from hf_dxprivacy.randomness import process_generator
from hf_dxprivacy.slots.ngram_release import ReleaseConfig, release
from hf_dxprivacy.slots.ngram_tree import (
    END,
    FIRST_WORD,
    START,
    UNKNOWN,
    Grams,
    Symbols,
    encode,
    fold,
    read_symbols,
)
from hf_dxprivacy.spaces import EmbeddingSpace
from hf_dxprivacy.text.selector import Mask, Rows, Selector, Words

logger = logging.getLogger(__name__)

Mode = Literal["transition", "coverage"]
MODES = ("transition", "coverage")


class _Budget(Protocol):
    """What `fit` needs of a `PrivacyBudget`, which is of a room above this one."""

    def charge_record(self, purpose: str, epsilon: float) -> None: ...


# The most frequent word of English is about every twentieth.
_WORDS_PER_FREQUENT = 20

# A larger share of slots among so many symbols is reported.
_NOTED_SHARE, _LOOKED_AT = 0.9, 1_000_000

# Node of a gram that was not released.
_NONE = -1

# The settings, which are written last and hold the digest of the n-grams, and these.
SETTINGS = "selector.json"
GRAMS = "grams.jsonl"
FILES = (SETTINGS, GRAMS)

_KIND = "low-transition"
_FIELDS: dict[str, Any] = {
    **dict.fromkeys(("selector", "mode", "grams_sha256"), str),
    **dict.fromkeys(("n_max", "l_max", "min_count", "alphabet_size"), int),
    "epsilon": (float, int, NoneType),
    "threshold": (float, int),
}

# Rounding of sums of a few shares.
_ROUNDING = 1e-9


@dataclass(frozen=True, eq=False, repr=False)
class LowTransitionSelector(Selector, Publishable):
    """Finds slots with n-grams that were released from a corpus by ε_g-differential privacy.

    A carrier phrase is what many records share: "play … on …". Its n-grams are frequent, so they
    are released, and lead from word to word with high probability. A word that they do not lead to
    is a slot. A word that is not in the public alphabet, or whose count was not released, always
    is. Make one with `fit` or `from_pretrained`. Of the corpus it keeps the released n-grams alone.

    Attributes:
        grams: The released n-grams and their noisy counts.
        config: ε_g, n_max, l_max and min_count, which they were released with.
        alphabet_size: Number of public words that were counted.
        threshold: τ; a word with a lower transition probability is a slot.
        mode: "transition" for that; "coverage" for words that no released n-gram covers.
    """

    published_files: ClassVar[tuple[str, ...]] = (*FILES, cards.README)

    grams: Grams
    config: ReleaseConfig
    alphabet_size: int
    threshold: float = field(default=0.01, kw_only=True)
    mode: Mode = field(default="transition", kw_only=True)

    def __post_init__(self) -> None:
        require_between(0, 1, "it is a probability", threshold=self.threshold)
        require_one_of(MODES, mode=self.mode)
        require_at_least(1, alphabet_size=self.alphabet_size)

    @classmethod
    def fit(
        cls,
        texts: Any,
        *,
        epsilon: float | None,
        alphabet: EmbeddingSpace | Iterable[str],
        n_max: int = 3,
        l_max: int = 12,
        min_count: int = 20,
        threshold: float = 0.01,
        mode: Mode = "transition",
        text_column: str = "text",
        budget: _Budget | None = None,
    ) -> "LowTransitionSelector":
        """Release the n-grams of a corpus and select with them.

        Everything but the texts has to be chosen without looking at them. The noise grows with
        ``l_max * n_max / epsilon``, and the threshold with the logarithm of the alphabet.

        Args:
            texts: Texts or token lists, one a record, read once; or a `Dataset` or
                `IterableDataset`.
            epsilon: ε_g > 0 for one record, added or removed. Always your decision. None counts
                exactly: for a public corpus only.
            alphabet: The words that may be released, which have to be public: a space, or its most
                frequent words, as in ``space.words[:5000]``.
            n_max: Length of the longest n-grams, at least 2.
            l_max: What is kept of a record: its start and the first ``l_max - 1`` words.
            min_count: N-grams with a smaller count are not released; the noise often asks more.
            threshold: τ, for mode "transition".
            mode: "transition" or "coverage".
            text_column: The column of a dataset.
            budget: A `PrivacyBudget` of words that is charged 2·ε_g before anything is released, as
                of one record with another word. Give it the privatizer of the same texts too.

        Raises:
            BudgetExceededError: If the budget does not suffice. Nothing is released then.
            InvalidValueError: If an argument is out of range, or nothing is released: the corpus is
                too small for ε_g. (Noise alone prevents that in three of a hundred such cases.)
            InvalidTypeError: If an argument, or a row, is of the wrong type.
        """
        require_at_least(2, "a single word tells no transition", n_max=n_max)
        config = ReleaseConfig(epsilon, n_max, l_max, min_count).plain()
        words = fold(alphabet.words if isinstance(alphabet, EmbeddingSpace) else alphabet)
        symbols = read_symbols(texts, words, l_max, text_column)
        if budget is not None:
            if config.epsilon is None:
                raise InvalidValueError(
                    "epsilon=None counts exactly, and no budget covers that; pass epsilon=, or "
                    "leave budget= out if the corpus is public"
                )
            budget.charge_record("n-grams, at any distance", config.epsilon)
        grams = release(symbols, words, config, process_generator())
        if not grams.words or len(grams.levels) < 2:
            raise InvalidValueError(_too_small(config, len(words)))
        selector = cls(grams, config, len(words), threshold=threshold, mode=mode)
        codes = np.full(FIRST_WORD + len(words), UNKNOWN, dtype=np.int32)
        codes[:FIRST_WORD] = np.arange(FIRST_WORD)
        codes[FIRST_WORD:] = encode(words, grams.codes)
        selector._warn_of_slots(codes[symbols[:_LOOKED_AT]])
        return selector

    def _warn_of_slots(self, symbols: Symbols) -> None:
        """Warn if nearly all words of the corpus are slots; the figure is for its owner only."""
        words = (symbols >= FIRST_WORD) | (symbols == UNKNOWN)
        share = float(self._slots(symbols)[words].mean())
        if share > _NOTED_SHARE:
            logger.warning(
                "only %d n-grams were released, and about %.0f %% of the words of these texts are "
                "slots (a private figure, no part of the release); for a carrier phrase give more "
                "texts, a larger epsilon or a smaller l_max, or take ContentWordSelector(), which "
                "reads no corpus",
                len(self.grams),
                100 * share,
            )

    def replace(
        self, *, threshold: float | None = None, mode: Mode | None = None
    ) -> "LowTransitionSelector":
        """Return a selector that reads the same n-grams in another way, at no cost in privacy.

        Args:
            threshold: τ; by default as it is.
            mode: "transition" or "coverage"; by default as it is.
        """
        threshold = self.threshold if threshold is None else threshold
        return replace(self, threshold=threshold, mode=self.mode if mode is None else mode)

    def __repr__(self) -> str:
        settings = f"threshold={self.threshold:g}" if self.mode == "transition" else "coverage"
        epsilon = self.config.epsilon
        law = (
            "None: exact counts of a public corpus"
            if epsilon is None
            else f"{epsilon:g} per record"
        )
        return f"{type(self).__name__}({len(self.grams)} n-grams, epsilon={law}, {settings})"

    @property
    def guarantee(self) -> CorpusGuarantee:
        """Guarantee for each record of the corpus that this was fitted on."""
        return CorpusGuarantee(self.config.epsilon)

    @property
    def disclosures(self) -> tuple[Disclosure, ...]:
        """See `Selector.disclosures`."""
        chosen = "Slots are chosen by n-grams of a corpus; to that corpus this applies: "
        return (Disclosure(f"{chosen}{self.guarantee.statement}."), *self.guarantee.disclosures)

    @property
    def corpora(self) -> dict[int, float]:
        """See `Selector.corpora`; what `replace` returns reads the same n-grams."""
        return {} if self.config.epsilon is None else {id(self.grams): self.config.epsilon}

    def to_dict(self) -> dict[str, Any]:
        """See `Selector.to_dict`; all else is in files of its own."""
        return {"kind": _KIND}

    @classmethod
    def from_dict(cls, folder: Path) -> "LowTransitionSelector":
        """Make a selector of the folder of its files."""
        return cls.from_pretrained(folder)

    def masks(self, words: Words, rows: Rows | None = None) -> list[Mask | None]:
        """See `Selector.masks`."""
        del rows
        present = [row for row in words if row is not None]
        codes = [code for row in present for code in (START, *encode(row, self.grams.codes), END)]
        symbols = np.array(codes, dtype=np.int32)
        slots = self._slots(symbols)[(symbols >= FIRST_WORD) | (symbols == UNKNOWN)]
        parts = iter(np.split(slots, np.cumsum([len(row) for row in present], dtype=np.int64)))
        return [None if row is None else next(parts) for row in words]

    def _slots(self, symbols: Symbols) -> Mask:
        """Tell which symbols of records, each from `START` to `END`, are slots.

        The probability of a symbol is that after the longest context before it: a gram with
        released continuations, under which it is 0 for a symbol that is not among them. Without
        any context it is the symbol's share of all words.
        """
        grams = self.grams
        probability = grams.probability[symbols]
        covered = np.zeros(len(symbols), dtype=np.bool_)
        # By length, the node of the gram from each position on.
        nodes = symbols.astype(np.int64)
        for length in range(1, len(grams.levels)):
            following = symbols[length:].astype(np.int64)
            contexts = np.where(symbols[length - 1 : -1] == END, _NONE, nodes[: len(following)])
            nodes = np.where(contexts != _NONE, grams.child(contexts, following), _NONE)
            released = nodes != _NONE
            informed = (contexts != _NONE) & grams.expanded[contexts]
            continued = np.where(released, grams.probability[nodes], 0.0)
            probability[length:][informed] = continued[informed]
            for offset in range(length + 1):
                covered[offset : offset + len(released)] |= released
        slots = ~covered if self.mode == "coverage" else probability < self.threshold
        # What is one symbol for many words says nothing about this one.
        slots[symbols == UNKNOWN] = True
        return slots

    @classmethod
    def from_pretrained(
        cls,
        name_or_path: str | Path,
        *,
        revision: str | None = None,
        cache_dir: str | Path | None = None,
        token: str | bool | None = None,
        local_files_only: bool = False,
        force_download: bool = False,
    ) -> "LowTransitionSelector":
        """Load a stored selector from a local folder or a repository on the Hub.

        Arguments and errors are those of `EmbeddingSpace.from_pretrained`.
        """
        access = HubOptions(cache_dir, token, local_files_only, force_download)
        source = resolve(name_or_path, FILES, revision, access, what="a selector", ships=False)
        path = source.folder / SETTINGS
        entries = read_record(path, "expected the folder of a selector")
        if entries.get("selector") != _KIND:
            raise ArtifactError(f"{path}: no {_KIND} selector of {LIBRARY_NAME}")
        require_fields(path, entries, _FIELDS)
        content = tensors.read_file(source.folder / GRAMS, entries["grams_sha256"], SETTINGS)
        try:
            grams = Grams.from_serialized(content)
        except (ValueError, LookupError, TypeError, RecursionError) as error:
            raise ArtifactError(
                f"{source.folder / GRAMS}: no n-grams of a selector ({error})"
            ) from error
        terms = [entries[name] for name in ("epsilon", "n_max", "l_max", "min_count")]
        rest = {name: entries[name] for name in ("alphabet_size", "threshold", "mode")}
        try:
            config = ReleaseConfig(*terms)
            selector = cls(grams, config, **rest)
        except (InvalidTypeError, InvalidValueError) as error:
            raise ArtifactError(f"{path}: {error}") from error
        if len(grams.levels) > config.n_max or grams.spent.max() > 1 + _ROUNDING:
            raise ArtifactError(
                f"{source.folder / GRAMS}: the n-grams are longer, or have spent more of ε_g, than "
                f"{SETTINGS} says; save the selector again"
            )
        return selector

    def _save(self, folder: Path) -> None:
        content = self.grams.serialized()
        settings = {
            "selector": _KIND,
            **asdict(self.config),
            "alphabet_size": self.alphabet_size,
            "threshold": float(self.threshold),
            "mode": self.mode,
            "grams_sha256": hashlib.sha256(content).hexdigest(),
        }
        folder.mkdir(parents=True, exist_ok=True)
        atomic_write(folder / GRAMS, [content])
        write_record(folder / SETTINGS, settings)

    def _write_card(self, folder: Path, *, license: str | None, name: str) -> None:
        lengths = [level.stop - level.start for level in self.grams.levels]
        shown = {"terms": asdict(self.config), "lengths": [lengths[0] - FIRST_WORD, *lengths[1:]]}
        shown |= {name: getattr(self, name) for name in ("alphabet_size", "threshold", "mode")}
        guarantee = str(self.guarantee)
        cards.write_card(folder, "selector", shown, guarantee, license=license, name=name)

    def _check_publishable(self, license: str | None) -> None:
        cards.require_licence(license, {})


def _too_small(config: ReleaseConfig, size: int) -> str:
    """Return the error text for a corpus that is too small; it shows no count of the corpus."""
    if config.epsilon is None:
        return (
            f"no n-gram of two words occurs {config.min_count} times; give more texts, or a "
            "smaller min_count"
        )
    needed = float(config.threshold(config.scale(1 / config.n_max), size))
    return (
        f"nothing was released: with epsilon={config.epsilon:g}, n_max={config.n_max}, "
        f"l_max={config.l_max} and an alphabet of {size} words, only words that occur more than "
        f"{needed:,.0f} times are. A corpus of {_WORDS_PER_FREQUENT * needed:,.0f} words would do "
        "for the single most frequent word of English, and ten times that for more; or an epsilon "
        "that is larger by as much as the corpus is smaller. Smaller n_max, l_max and alphabet "
        "help too"
    )
