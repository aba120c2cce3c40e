"""spaCy: the component ``dxprivacy`` of a pipeline, and a selector of a pipeline's entities."""

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

from hf_dxprivacy._runtime import require
from hf_dxprivacy.errors import InvalidValueError, require_at_least
from hf_dxprivacy.integrations._tools import ToolSelector, pipeline_digest
from hf_dxprivacy.privatizers.text_privatizer import DxPrivatizer

_spacy = require("spacy", "spacy")
_ENTITIES = "doc.ents"
# Arguments that would be written, with the pipeline, to config.cfg.
_SECRETS = ("seed", "key", "memoize")


class DxPrivacyComponent:
    """Component ``dxprivacy``: releases the text of every `Doc` into an attribute of it.

    >>> nlp = spacy.blank("en")
    >>> config = {"space": "english", "mechanism": "hierarchical", "epsilon": 1.5}
    >>> nlp.add_pipe("dxprivacy", config=config)
    >>> nlp("Someone in Ohio used my card.")._.private_text

    The whole text goes through a `DxPrivatizer`, whatever other components find in it. Its noise is
    fresh for every document and process; it takes no seed, since a pipeline writes its settings
    down. `Doc` itself still holds the original: publish ``doc._.private_text``, and nothing else.

    Attributes:
        privatizer: The `DxPrivatizer`, which has the guarantee.
        attribute: Name of the attribute.
    """

    def __init__(self, privatizer: DxPrivatizer, attribute: str) -> None:
        self.privatizer, self.attribute = privatizer, attribute
        if not _spacy.tokens.Doc.has_extension(attribute):
            _spacy.tokens.Doc.set_extension(attribute, default=None)

    def __call__(self, doc: Any) -> Any:
        """Privatize a document."""
        return next(self.pipe([doc]))

    def pipe(self, stream: Iterable[Any], *, batch_size: int = 256) -> Iterator[Any]:
        """Privatize a stream of documents, `batch_size` at once."""
        for docs in _spacy.util.minibatch(stream, batch_size):
            released = self.privatizer.privatize([doc.text for doc in docs])
            for doc, text in zip(docs, released, strict=True):
                doc._.set(self.attribute, text)
                yield doc


@_spacy.Language.factory(  # type: ignore[untyped-decorator]
    "dxprivacy",
    assigns=["doc._.private_text"],
    default_config={
        **{"privatizer": None, "space": None, "mechanism": None, "epsilon": None},
        **{"options": {}, "attribute": "private_text"},
    },
)
def make_component(
    nlp: Any,
    name: str,
    privatizer: str | None,
    space: str | None,
    mechanism: str | None,
    epsilon: float | None,
    options: dict[str, Any],
    attribute: str,
) -> DxPrivacyComponent:
    """Make the component from its settings, which `nlp.to_disk` stores, and nothing else.

    Args:
        nlp: The pipeline.
        name: Name of the component.
        privatizer: Folder or repository of a stored `DxPrivatizer`; or None, and
        space: The space, as for `DxPrivatizer`;
        mechanism: the mechanism;
        epsilon: ε, always your decision;
        options: and others of its arguments, such as {"oov": "drop"}, but no secrets.
        attribute: The attribute of `Doc` for the released text.

    Raises:
        InvalidValueError: If both or neither of `privatizer` and `space` are given, or a secret.
    """
    del nlp, name
    if secrets := [option for option in _SECRETS if option in options]:
        raise InvalidValueError(
            f"{secrets[0]}= would be written to config.cfg with the pipeline, where it is no "
            "secret; leave it out, or privatize with Dataset.map, which takes one"
        )
    if privatizer is not None:
        given = {"space": space, "mechanism": mechanism, "epsilon": epsilon} | options
        if other := [key for key, value in given.items() if value is not None]:
            raise InvalidValueError(
                f"a stored privatizer brings its own settings, got {other[0]}= beside privatizer=; "
                "leave one of them out"
            )
        return DxPrivacyComponent(DxPrivatizer.from_pretrained(privatizer), attribute)
    if space is None:
        raise InvalidValueError(
            "the component dxprivacy needs privatizer=, the folder of a stored one, or space=, "
            'mechanism= and epsilon=, as in config={"space": "english", "mechanism": '
            '"hierarchical", "epsilon": 1.5}'
        )
    return DxPrivacyComponent(DxPrivatizer(space, mechanism, epsilon, **options), attribute)


class SpacySelector(ToolSelector):
    """Selects the words that touch an entity (``doc.ents``) which a spaCy pipeline finds.

    Args:
        pipeline: Name or folder of a pipeline that `spacy.load` takes, a function without arguments
            that makes one, or a `Language`, which serves this process and those forked from it; see
            `PresidioSelector`.
        labels: The labels to select, such as ["PERSON"]; by default all.
        batch_size: How many texts the pipeline is given at once.

    Raises:
        InvalidTypeError: If it is, or makes, no `Language`.
        InvalidValueError: If no component has such a label, or a number is out of range.
    """

    _kind = _spacy.Language

    def __init__(
        self,
        pipeline: Any | str | Path | Callable[[], Any],
        labels: Collection[str] | None = None,
        *,
        batch_size: int = 64,
    ) -> None:
        require_at_least(1, batch_size=batch_size)
        self.batch_size = batch_size
        self.name = pipeline if isinstance(pipeline, str) else None
        super().__init__(_Load(pipeline) if isinstance(pipeline, (str, Path)) else pipeline, labels)

    @property
    def _described(self) -> str:
        named = "an entity" if self.labels is None else " or ".join(self.labels)
        return f"the spaCy pipeline {self.name or ''} takes for {named}".replace("  ", " ")

    def _labels_of(self, tool: Any) -> Collection[str] | None:
        """See base class; a component that does not say what it sets may set any."""
        known: set[str] = set()
        for name, component in tool.pipeline:
            assigned = tool.get_pipe_meta(name).assigns
            if _ENTITIES in assigned and hasattr(component, "labels"):
                known.update(component.labels)
            elif _ENTITIES in assigned or not (
                assigned or type(component).__module__.startswith("spacy.")
            ):
                return None
        if not known:
            raise InvalidValueError(
                "no component of this pipeline finds entities; give it one that does, such as ner "
                "or an entity_ruler with patterns"
            )
        return known

    def _found(self, tool: Any, texts: Sequence[str]) -> list[list[Any]]:
        docs = tool.pipe(texts, batch_size=self.batch_size)
        return [[(e.start_char, e.end_char, e.label_) for e in doc.ents] for doc in docs]

    def _digest(self, tool: Any) -> str:
        return pipeline_digest(tool)


class _Load:
    """Loads a pipeline by name, and pickles to the same bytes in every process."""

    def __init__(self, name: str | Path) -> None:
        self.name = str(Path(name).resolve()) if Path(name).exists() else str(name)

    def __call__(self) -> Any:
        return _spacy.load(self.name)
