"""Base class of the privatizers: arguments, state, and folders."""

import copy
import logging
import math
from abc import abstractmethod
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict
from difflib import get_close_matches
from importlib import import_module
from inspect import signature
from numbers import Real
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Literal, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from hf_dxprivacy._notebook import ReprHTML
from hf_dxprivacy._runtime import SetOnce, lazy_property
from hf_dxprivacy.errors import (
    ArtifactError,
    HubFileNotFoundError,
    InvalidTypeError,
    InvalidValueError,
    a_kind,
    require_one_of,
)
from hf_dxprivacy.guarantee import PrivacyGuarantee
from hf_dxprivacy.hub import ArtifactSource, HubOptions, Publishable, is_builtin, resolve
from hf_dxprivacy.hub.artifact import README
from hf_dxprivacy.mechanisms import (
    MECHANISMS,
    Mechanism,
    check_options,
    required_index,
    resolve_mechanism,
)
from hf_dxprivacy.privatizers import config
from hf_dxprivacy.privatizers.budget import BudgetUnit, PrivacyBudget
from hf_dxprivacy.privatizers.config import PrivatizerConfig
from hf_dxprivacy.privatizers.dataset_formats import column_names
from hf_dxprivacy.privatizers.fingerprint import fingerprint_tag
from hf_dxprivacy.privatizers.keyed_noise import KeyedNoise, Memoize
from hf_dxprivacy.privatizers.nested import TextPath, text_paths
from hf_dxprivacy.spaces import EmbeddingSpace
from hf_dxprivacy.spaces.space_artifact import refer, require_digest

if TYPE_CHECKING:
    from datasets import Dataset, DatasetDict

logger = logging.getLogger(__name__)

P = TypeVar("P", bound="Privatizer")

# A named prior, how often each word occurs (words that the space lacks are unknown ones), or the
# same as numbers, one for each word of the space.
Prior = Literal["zipf", "uniform"] | Mapping[str, float] | ArrayLike

# Why no ε keeps a local bound.
NOT_LOCAL = (
    "local_epsilon= is a bound of any two inputs, which cannot hold with {}: what these leave of "
    "an input tells it from others; pass epsilon="
)

# Names that papers and other programs have for a mechanism.
_ALIASES = {"madlib": "laplace", "exponential": "tem", "poincare": "hyperbolic"}
_ELSEWHERE = {
    "selector": "SlotPrivatizer",
    "mask_column": "SlotPrivatizer",
    "spans_column": "SlotPrivatizer",
    "tokenizer": "TokenPrivatizer",
    "ids_column": "TokenPrivatizer",
    **dict.fromkeys(("batched", "batch_size", "num_proc", "remove_columns"), "Dataset.map"),
    **dict.fromkeys(
        ("segmenter", "stopwords", "oov", "case"), "DxPrivatizer, which releases words"
    ),
}


class Privatizer(SetOnce, Publishable, ReprHTML):
    """A mechanism, the source of its noise, and the decisions that are stored with them.

    It holds no generator: every process draws from its own key.
    """

    published_files: ClassVar[tuple[str, ...]] = (config.FILE, README)
    # The class that loads its folders, and the arguments that may differ between two uses of one.
    _owner: ClassVar[str]
    _runtime_arguments: ClassVar[tuple[str, ...]]
    # Attributes that are computed from the others, and do not travel.
    _derived: ClassVar[tuple[str, ...]] = ("guarantee", "_context", "_laws")

    mechanism: Mechanism
    budget: PrivacyBudget | None
    text_columns: tuple[str, ...]
    output_columns: tuple[str, ...]
    user_column: str | None
    # Where the texts of a column are, if they are not its cells.
    _paths: Mapping[str, TextPath]
    # None for fresh noise.
    _noise: KeyedNoise | None

    def _set_up(
        self,
        space: EmbeddingSpace | str | Path,
        mechanism: str | Mechanism | None,
        epsilon: float | None,
        options: Mapping[str, Any],
        device: str,
        noise: KeyedNoise | None,
        budget: PrivacyBudget | None,
        units: tuple[BudgetUnit, ...],
        local_epsilon: float | None = None,
        parts: Sequence[EmbeddingSpace] = (),
    ) -> None:
        """Check and set the arguments of all privatizers; `options` are those of the mechanism.

        `local_epsilon` bounds it over each of the `parts` of the space, if it has some.
        """
        self._noise = noise
        _check_arguments(type(self), mechanism, options)
        if hasattr(space, "encoder"):
            raise InvalidTypeError("expected a space of words, got a pool: use SentencePrivatizer")
        if isinstance(space, (str, Path)):
            space = EmbeddingSpace.from_pretrained(space, index=required_index(mechanism, options))
        if local_epsilon is not None:
            if epsilon is not None or isinstance(mechanism, Mechanism):
                raise InvalidValueError(
                    f"local_epsilon={local_epsilon} finds the epsilon of a named mechanism, and "
                    "epsilon= or a ready-made mechanism brings one; pass one of the two"
                )
            if self.memoize == "user":
                raise InvalidValueError(NOT_LOCAL.format('memoize="user"'))
            epsilon = local_epsilon
            if mechanism is not None:
                from hf_dxprivacy.mechanisms.local_bound import within_local_bound

                bounds = (within_local_bound(p, mechanism, epsilon, options) for p in parts)
                epsilon = min(bounds, default=None) or within_local_bound(
                    space, mechanism, epsilon, options
                )
        self.mechanism = resolve_mechanism(mechanism, space, epsilon, options, device)
        if self.mechanism.space.item_kind == "sentences" and self._owner != "SentencePrivatizer":
            raise InvalidValueError(
                "this is the space of a pool of sentences, in which no word of a text is found; "
                "pass the pool to SentencePrivatizer"
            )
        if budget is not None:
            if not isinstance(budget, PrivacyBudget):
                raise InvalidTypeError(
                    f"expected budget to be a PrivacyBudget, got {a_kind(budget)}; make one, as in "
                    "PrivacyBudget(6.0)"
                )
            require_one_of(units, budget_unit=budget.unit)
        self.budget = budget

    def _set_columns(
        self,
        text_column: str | Sequence[str],
        output_column: str | Sequence[str] | None,
        user_column: str | None,
        roles: str | Sequence[str] | None,
        keep_calls: bool,
    ) -> None:
        """Check and set the columns of a privatizer of texts, after `_set_up`."""
        names = column_names("text_column", text_column)
        self.text_columns, self._paths = text_paths(names, roles, keep_calls)
        if output_column is None:
            self.output_columns = self.text_columns
        else:
            outputs = column_names("output_column", output_column, len(self.text_columns))
            for output, column in zip(outputs, self.text_columns, strict=True):
                path = self._paths.get(column)
                if path is not None and output not in (column, str(path)):
                    raise InvalidValueError(
                        f"texts at {str(path)!r} are replaced in place, got output_column="
                        f"{output!r}; leave it out, and copy the column first to keep the originals"
                    )
            self.output_columns, _ = text_paths(outputs, None)
        by_user = self._noise is not None and self._noise.unit == "user"
        by_user = by_user or (self.budget is not None and self.budget.unit == "user")
        if by_user != (user_column is not None):
            raise InvalidValueError(
                'memoize="user" and a budget of users need user_column=, the column that says '
                "whose a row is, and nothing else does"
            )
        self.user_column = (
            None if user_column is None else column_names("user_column", user_column, 1)[0]
        )

    @property
    def roles(self) -> tuple[str, ...] | None:
        """The roles whose texts are privatized, where a column holds messages; None for all."""
        return next((path.roles for path in self._paths.values() if path.roles), None)

    @property
    def text_paths(self) -> tuple[str, ...]:
        """The text columns as they were given, with paths to texts in lists of dicts."""
        return (*[str(self._paths.get(name, name)) for name in self.text_columns],)

    @property
    def released_columns(self) -> dict[str, str]:
        """The columns that hold released texts, each with the column or path they are made from."""
        return dict(zip(self.output_columns, self.text_paths, strict=True))

    def _column_settings(self) -> dict[str, Any]:
        # The output is named only if it differs: with another text column, the original text must
        # not be left beside the result.
        output = None if self.output_columns == self.text_columns else [*self.output_columns]
        roles = {"roles": [*self.roles]} if self._paths and self.roles else {}
        return {"text_column": [*self.text_paths], "output_column": output, **roles}

    def _require_no_columns(self, *arguments: str) -> None:
        """Refuse bare texts where each row needs other columns too."""
        for argument in arguments:
            if (column := getattr(self, argument)) is not None:
                raise InvalidValueError(
                    f"{argument}={column!r} is set, so call the privatizer on rows that have that "
                    "column, as dataset.map(privatizer) does, not on bare texts"
                )

    def _input_bound(self, law: Mechanism, inputs: Sequence[NDArray[np.int64]]) -> float:
        """Bound the log-ratio of two texts, by their inputs of the mechanism."""
        pairs = np.column_stack(inputs)
        if self.memoize == "user":
            # One pair for each different input. Inputs that are equal in one text only tell it
            # apart.
            pairs = np.unique(pairs, axis=0)
            if any(len(np.unique(ids)) < len(pairs) for ids in pairs.T):
                return math.inf
        return law.id_bound(pairs[:, 0], pairs[:, 1])

    def __getstate__(self) -> dict[str, Any]:
        state = {name: v for name, v in self.__dict__.items() if name not in self._derived}
        return state | {"fingerprint_tag": fingerprint_tag(type(self).__name__, self.mechanism)}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update({k: v for k, v in state.items() if k != "fingerprint_tag"})

    def with_noise(self: P, noise: KeyedNoise | None) -> P:
        """Return the same privatizer with other noise; None for fresh noise."""
        changed = copy.copy(self)
        changed._noise = noise
        return changed

    @abstractmethod
    def __call__(self, examples: Any, indices: Any = None, rank: int | None = None) -> Any:
        """Privatize one example or a batch, as `Dataset.map` hands them over."""

    def __repr__(self) -> str:
        settings = ", ".join(f"{k}={v!r}" for k, v in self.mechanism.parameters.items())
        return f"{type(self).__name__}({self.space!r}, {settings})"

    def _shown(self) -> str:
        law, space = self.mechanism, self.space
        where = f"{len(space):,} {space.item_kind}"
        return f"{type(self).__name__}: {law.name}, ε = {law.epsilon:g}, {where}\n{self.guarantee}"

    @property
    def space(self) -> EmbeddingSpace:
        """The embedding space."""
        return self.mechanism.space

    @property
    def epsilon(self) -> float:
        """ε as it was asked for; `guarantee` has the certified one."""
        return self.mechanism.epsilon

    @property
    def seed(self) -> int | None:
        """The seed, a secret; None without one."""
        return None if self._noise is None or self._noise.unit else self._noise.secret

    @property
    def memoize(self) -> Memoize | None:
        """Unit that is always released in the same way: "row", "user", or None."""
        return None if self._noise is None else self._noise.unit

    @lazy_property
    @abstractmethod
    def guarantee(self) -> PrivacyGuarantee:
        """Guarantee for each unit that goes through this privatizer, and what it rests on."""

    def dataset_card(
        self,
        dataset: "Dataset | DatasetDict | Sequence[str]",
        *,
        license: str | None = None,
        description: str | None = None,
        with_originals: bool = False,
    ) -> Publishable:
        """Describe a dataset that this privatizer has released, to publish it with its guarantee.

        >>> released = dataset.map(privatizer, batched=True)
        >>> privatizer.dataset_card(released, license="cc-by-4.0").push_to_hub("me/released")

        The card (``print`` it) states the guarantee, in plain words and as JSON, which columns are
        in clear, what is not covered, how the rows were made, and the licence of the space. Rows
        and card depend on the released rows and on this privatizer only, since the rows go through
        `hf_dxprivacy.publishable`.

        Args:
            dataset: What `Dataset.map` returned, or the names of its columns for a card without
                rows. That this privatizer has made it is checked in part: many words that it never
                releases are refused, but with slots any text may come out, and another ε does not
                show; see docs/hub.md.
            license: Licence of the dataset, as the Hub names it; required to push.
            description: A sentence or two on what the texts are about.
            with_originals: Publish a column that holds the original texts, too; the card says so.

        Raises:
            InvalidValueError: If a column that this privatizer writes is missing or holds what it
                cannot have released, an original one is left, or the licence is unknown.
            InvalidTypeError: If it is neither a dataset nor names of columns.
        """
        card: Publishable = _later("publishing.claim", "card_of")(
            self, dataset, license, description, with_originals
        )
        return card

    def posterior(
        self,
        released: Any,
        prior: Prior | None = None,
        *,
        k: int = 0,
        masks: Sequence[Sequence[bool] | None] | None = None,
    ) -> Any:
        """Work out how likely each released word is the original one, from the release alone.

        By Bayes' rule from the exact law of the mechanism: p(x|y) ∝ π(x)·P(y|x), each word taken
        for itself. It is post-processing, and costs no privacy. See docs/posterior.md.

        Args:
            released: What this privatizer released, or would: a text or several, lists of tokens,
                token ids, sentences; None passes through.
            prior: π, which must be public: "zipf", "uniform", counts by word, or (V,) numbers, one
                for each word of the space. By default "zipf" for built-in spaces of words, whose
                rows are in order of frequency, and "uniform" for all others.
            k: How many of the likeliest originals to name.
            masks: With a `SlotPrivatizer`, the column that ``mask_column=`` names.

        Returns:
            For each text a list of `WordPosterior`, one for each of its words.

        Raises:
            InvalidValueError: If the law of the mechanism is not known, or an argument is out of
                range.
            InvalidTypeError: If `released` or `prior` is of the wrong type.
        """
        return _later("verify.posterior", "posterior")(self, released, prior, k, masks)

    @property
    def config(self) -> PrivatizerConfig:
        """All decisions but the seed, as they are stored.

        Raises:
            InvalidValueError: If the space, or another part, is in memory only, or the mechanism is
                one of another paper.
        """
        mechanism = self.mechanism
        require_one_of(MECHANISMS, mechanism=mechanism.name)
        return PrivatizerConfig(
            space=self._reference(),
            mechanism=mechanism.name,
            epsilon=mechanism.epsilon,
            options={name: mechanism.parameters[name] for name in mechanism.options},
            settings=self._settings(),
        )

    def _reference(self) -> dict[str, Any]:
        return refer(self.space)

    @abstractmethod
    def _settings(self) -> dict[str, Any]:
        """Return the decisions of this class; see `PrivatizerConfig.settings`."""

    @classmethod
    def from_pretrained(
        cls: type[P],
        name_or_path: str | Path,
        *,
        revision: str | None = None,
        cache_dir: str | Path | None = None,
        token: str | bool | None = None,
        local_files_only: bool = False,
        force_download: bool = False,
        **arguments: Any,
    ) -> P:
        """Make a privatizer over a stored space, or load a stored privatizer.

        Args:
            name_or_path: Name of a built-in space, a local folder, or a repository on the Hub.
            revision: Branch, tag or commit on the Hub; the main branch by default.
            cache_dir: Cache of the Hub's files; ``$HF_HUB_CACHE`` by default.
            token: A token for the Hub, True for the stored one, False for none.
            local_files_only: Use what the cache has, and no network.
            force_download: Fetch again what the cache has.
            **arguments: With a space, as for the class; ``epsilon=`` or ``local_epsilon=`` is
                required. With a privatizer, which has its own ε and logs it: ``text_column``,
                ``output_column``, ``roles``, ``keep_calls``, ``memoize``, ``user_column``, ``key``,
                ``is_split_into_words``, ``mask_column`` and ``spans_column`` for texts,
                ``ids_column`` and ``tokenizer`` (by default the one that it was saved with) for
                tokens, ``seed``, ``device`` and ``budget`` for both.

        Raises:
            InvalidValueError: If there is no such space or privatizer, or ε is missing.
            InvalidTypeError: If an argument is not for a stored privatizer.
            HubError: If the Hub refuses it or cannot be reached.
            ArtifactError: If a file is missing, altered or of a newer format, or the space or
                the tokenizer that a privatizer refers to has changed.
        """
        access = HubOptions(cache_dir, token, local_files_only, force_download)
        if "epsilon" in arguments or "local_epsilon" in arguments:
            if Path(name_or_path, config.FILE).is_file():
                raise InvalidValueError(
                    f"{name_or_path} holds a privatizer, which has its own ε: leave epsilon out, "
                    "or load it and make another privatizer over its space"
                )
        else:
            # A stored privatizer has its ε; looking for one costs a request that a space need not.
            source, what = None, "a space or a privatizer"
            with suppress(HubFileNotFoundError):
                source = resolve(name_or_path, (config.FILE,), revision, access, what=what)
            if source is not None and (source.folder / config.FILE).is_file():
                return cls._load(source, arguments)
        index = required_index(arguments.get("mechanism"), arguments)
        make: Callable[..., P] = cls
        return make(cls._read_space(name_or_path, revision, access, index), **arguments)

    @classmethod
    def _read_space(
        cls, name: str | Path, revision: str | None, access: HubOptions, index: str | None
    ) -> Any:
        """Load what the first argument of the class is."""
        options = asdict(access)
        return EmbeddingSpace.from_pretrained(name, revision=revision, index=index, **options)

    @classmethod
    def _load(cls: type[P], source: ArtifactSource, arguments: dict[str, Any]) -> P:
        if other := sorted(set(arguments) - set(cls._runtime_arguments)):
            raise InvalidTypeError(
                f"a stored privatizer brings its own settings, got {', '.join(other)}; only "
                f"{', '.join(cls._runtime_arguments)} may be given. To change more, load it and "
                "make another privatizer over its space"
            )
        stored = PrivatizerConfig.read(source.folder, cls._owner)
        make: Callable[..., P] = cls
        name, commit = stored.space["name"], stored.space["commit"]
        try:
            # An option of another name would be an argument of the privatizer, such as a seed.
            check_options(stored.mechanism, stored.options)
            index = required_index(stored.mechanism, stored.options)
            space = cls._read_space(name, commit, source.options, index)
            require_digest(stored.space, space.digest)
            parts = cls._load_parts(stored, source, arguments)
            privatizer = make(space, **stored.arguments() | parts | arguments)
        except (InvalidTypeError, InvalidValueError) as error:
            raise ArtifactError(f"{source.folder / config.FILE}: {error}") from error
        logger.warning("loaded a privatizer that is %s", privatizer.guarantee.statement)
        return privatizer

    @classmethod
    def _load_parts(
        cls, stored: PrivatizerConfig, source: ArtifactSource, arguments: Mapping[str, Any]
    ) -> dict[str, Any]:
        """Return the arguments that are more than values of the configuration."""
        return {}

    def _save(self, folder: Path) -> None:
        self.config.write(folder)

    def _write_card(self, folder: Path, *, license: str | None, name: str) -> None:
        stored = self.config
        limits = (
            ("memoize and its key", self._noise is not None and self._noise.unit is not None),
            ("the budget", self.budget is not None),
        )
        if left_out := [what for what, given in limits if given]:
            logger.warning(
                "not stored: %s; without them, given again to from_pretrained, what is loaded "
                "makes new releases",
                ", ".join(left_out),
            )
        shown = stored.to_dict() | {
            "ships": is_builtin(stored.space["name"]),
            "unknown": self.mechanism.unknown_input(),
        }
        # The card is about what is loaded from here, which has no seed or key.
        guarantee = str(self.with_noise(None).guarantee)
        from hf_dxprivacy.hub import cards

        cards.write_card(
            folder,
            "privatizer",
            shown,
            guarantee,
            license=license,
            name=name,
            provenance=self.space.provenance,
        )

    def _check_publishable(self, license: str | None) -> None:
        from hf_dxprivacy.hub import cards

        cards.require_licence(license, self.space.provenance)
        space = self.config.space
        if space["commit"] is None and not is_builtin(space["name"]):
            raise InvalidValueError(
                f"the space is in the local folder {space['name']!r}, where no other machine finds "
                "it; push it with space.push_to_hub, load it from there with "
                "EmbeddingSpace.from_pretrained, and make the privatizer over that"
            )


def _later(module: str, name: str) -> Any:
    """Return a function of a room above, which methods call: the only way up there is."""
    return getattr(import_module(f"hf_dxprivacy.{module}"), name)


def _check_arguments(privatizer: type, mechanism: object, options: Mapping[str, Any]) -> None:
    """Refuse a misspelt mechanism or argument, with the nearest name there is."""
    if isinstance(mechanism, Real):
        raise InvalidTypeError(
            f"expected mechanism to be a name or a Mechanism, got the number {mechanism}; "
            f"did you mean epsilon={mechanism}?"
        )
    if not isinstance(mechanism, str):
        return
    if mechanism not in MECHANISMS:
        near = get_close_matches(mechanism.lower(), [*MECHANISMS, *_ALIASES], 1)
        hint = f"; did you mean {_ALIASES.get(near[0], near[0])!r}?" if near else ""
        choices = ", ".join(map(repr, MECHANISMS))
        raise InvalidValueError(
            f"expected mechanism to be one of {choices}; got mechanism={mechanism!r}{hint}; those "
            "of other papers are classes of hf_dxprivacy.evaluation.PEERS, to pass ready-made"
        )
    own = MECHANISMS[mechanism].options
    # Whether a mechanism has a use for an index is its own to say.
    for name in options.keys() - {*own, "index"}:
        if name in _ELSEWHERE:
            raise InvalidTypeError(f"{name}= is an argument of {_ELSEWHERE[name]}; pass it there")
        known = {p for kind in privatizer.__mro__[:-1] for p in signature(kind).parameters}
        if any(name in each.options for each in MECHANISMS.values()):
            continue  # of another mechanism, which says so
        plain = name in ("column", "columns")
        usual = [*known & {"text_column", "ids_column"}] if plain else []
        if near := usual or get_close_matches(name, [*sorted(known), *own], 1):
            raise InvalidTypeError(f"there is no argument {name}=; did you mean {near[0]}=?")
