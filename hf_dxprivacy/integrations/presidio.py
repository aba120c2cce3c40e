"""Presidio: an operator that perturbs what its analyzer finds, and a selector of what it finds."""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
from functools import lru_cache
from pathlib import Path
from typing import Any

from hf_dxprivacy._runtime import require
from hf_dxprivacy.errors import require_at_least, require_one_of, require_within
from hf_dxprivacy.guarantee import PrivacyGuarantee, uncovered
from hf_dxprivacy.integrations import require_texts_privatizer
from hf_dxprivacy.integrations._tools import ToolSelector, digest, pipeline_digest
from hf_dxprivacy.privatizers.text_privatizer import DxPrivatizer

_analyzer = require("presidio_analyzer", "presidio")
_operators = require("presidio_anonymizer.operators", "presidio")

_OPERATED = uncovered(
    "which spans are found, their labels, and every other word, as it is or as another operator "
    "makes it",
    "The statement holds for inputs that agree in this. What is not found is released as it is.",
    before="Only spans that the analyzer finds and that the operators= of anonymize() give to "
    "dxprivacy are perturbed, each for itself.",
    how=", released",
)
# The first word of a text may have its capital from that; that of an entity is a name's. Between
# them stands a control character, since a released entry may hold blanks.
_BEFORE, _BETWEEN = "I", "\x1f"
# Attributes of a recognizer that differ between processes, or change at the first use.
_PASSING = ("_id", "is_loaded")


class DxPrivacyOperator(_operators.Operator):  # type: ignore[misc, name-defined]
    """Operator ``dxprivacy`` of an `AnonymizerEngine`: entities are perturbed, not masked.

    >>> engine = AnonymizerEngine()
    >>> engine.add_anonymizer(DxPrivacyOperator)
    >>> operators = {"PERSON": OperatorConfig("dxprivacy", {"privatizer": privatizer})}
    >>> engine.anonymize(text, analyzer.analyze(text, "en"), operators)

    Its parameter ``privatizer`` is a privatizer of texts, or the folder or repository of a stored
    `DxPrivatizer`, which is loaded once in each process. Noise is fresh for every entity, and no
    two processes share it; a privatizer with ``memoize="row"`` and a key gives equal entities
    equal replacements, everywhere.
    """

    def operate(self, text: str, params: Mapping[str, Any] | None = None) -> str:
        """Return the perturbed text of an entity."""
        privatizer = _privatizer(params)
        if not isinstance(privatizer, DxPrivatizer):
            return str(privatizer.privatize(text))
        return str(privatizer.privatize(_BEFORE + _BETWEEN + text)).partition(_BETWEEN)[2]

    def validate(self, params: Mapping[str, Any] | None = None) -> None:
        """Check the parameters.

        Raises:
            InvalidTypeError: If ``privatizer`` is neither a privatizer of texts nor a name.
            ArtifactError: If a stored privatizer is missing or damaged.
        """
        _privatizer(params)

    def operator_name(self) -> str:
        """Return "dxprivacy"."""
        return "dxprivacy"

    def operator_type(self) -> Any:
        """Return the type of operators that anonymize."""
        return _operators.OperatorType.Anonymize

    @staticmethod
    def guarantee(privatizer: Any) -> PrivacyGuarantee:
        """Return what holds for a text whose entities go through this operator.

        Args:
            privatizer: As in the parameters.
        """
        bare: PrivacyGuarantee = _privatizer({"privatizer": privatizer}).guarantee
        disclosures = (*bare.disclosures, _OPERATED)
        return replace(bare, ldp_epsilon=float("inf"), disclosures=disclosures)


def _privatizer(params: Mapping[str, Any] | None) -> Any:
    given = (params or {}).get("privatizer")
    if isinstance(given, (str, Path)):
        return _stored(str(given))
    return require_texts_privatizer(given)


@lru_cache(maxsize=8)
def _stored(name: str) -> Any:
    return DxPrivatizer.from_pretrained(name)


class PresidioSelector(ToolSelector):
    """Selects the words that touch an entity which Presidio's analyzer finds.

    Args:
        analyzer: An `AnalyzerEngine`, or a function without arguments that makes one, such as the
            class itself. An engine serves this process and those forked from it; where workers are
            not forked (macOS, Windows, Ray, Spark) give a function, which each of them calls once.
            The settings of recognizers and pipelines are part of the fingerprint, but not the code
            of a recognizer of yours: raise its ``version`` when you change it.
        entities: The types to select, such as ["PERSON"]; by default all that it knows.
        language: The language of the texts.
        score_threshold: Least score of an entity; by default that of the engine.
        batch_size: How many texts a pipeline is given at once.

    Raises:
        InvalidTypeError: If it is, or makes, no `AnalyzerEngine`.
        InvalidValueError: If the analyzer knows no such entity, or a number is out of range.
    """

    _kind = _analyzer.AnalyzerEngine

    def __init__(
        self,
        analyzer: Any | Callable[[], Any],
        entities: Collection[str] | None = None,
        *,
        language: str = "en",
        score_threshold: float | None = None,
        batch_size: int = 64,
    ) -> None:
        if score_threshold is not None:
            require_within(0, 1, "it is a score", score_threshold=score_threshold)
        require_at_least(1, batch_size=batch_size)
        self.language, self.score_threshold = language, score_threshold
        self.batch_size = batch_size
        super().__init__(analyzer, entities)

    @property
    def _described(self) -> str:
        named = "any entity" if self.labels is None else " or ".join(self.labels)
        least = self.score_threshold
        score = "" if least is None else f" with a score of {least:g} or more"
        return f"Presidio takes for {named}{score} (language {self.language!r})"

    def _labels_of(self, tool: Any) -> Collection[str]:
        require_one_of(tool.supported_languages, language=self.language)
        known: list[str] = tool.get_supported_entities(self.language)
        return known

    def _found(self, tool: Any, texts: Sequence[str]) -> list[list[Any]]:
        found: list[list[Any]] = _analyzer.BatchAnalyzerEngine(tool).analyze_iterator(
            texts,
            self.language,
            batch_size=self.batch_size,
            entities=None if self.labels is None else list(self.labels),
            score_threshold=self.score_threshold,
        )
        return found

    def _digest(self, tool: Any) -> str:
        engine = tool.nlp_engine
        recognizers = [
            [
                f"{type(each).__module__}.{type(each).__qualname__}",
                {name: value for name, value in vars(each).items() if name not in _PASSING},
            ]
            for each in tool.registry.recognizers
        ]
        configuration = getattr(engine, "ner_model_configuration", None)
        pipelines = getattr(engine, "nlp", None) or {}
        return digest(
            type(engine).__qualname__,
            configuration and vars(configuration),
            recognizers,
            {language: nlp and pipeline_digest(nlp) for language, nlp in pipelines.items()},
            vars(tool.context_aware_enhancer),
            tool.default_score_threshold,
        )
