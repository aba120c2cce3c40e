"""Analyzers of Presidio for tests, which need no model, and the adapters for it.

Imported when a test needs it: Presidio takes seconds, in every process that collects tests.
"""

from typing import Any

import spacy
from presidio_analyzer import AnalyzerEngine, Pattern, PatternRecognizer, RecognizerRegistry
from presidio_analyzer.nlp_engine import NoOpNlpEngine, SpacyNlpEngine
from presidio_analyzer.predefined_recognizers import CreditCardRecognizer, PhoneRecognizer
from presidio_anonymizer import AnonymizerEngine
from presidio_anonymizer.entities import OperatorConfig

from hf_dxprivacy.integrations.presidio import DxPrivacyOperator, PresidioSelector

__all__ = ["DxPrivacyOperator", "PresidioSelector"]

NAMES = ("Waab", "Zork Waac")


def make(names: Any = NAMES) -> AnalyzerEngine:
    """Return an analyzer of patterns."""
    people = PatternRecognizer("PERSON", deny_list=list(names))
    registry = RecognizerRegistry([CreditCardRecognizer(), PhoneRecognizer(), people])
    engine = NoOpNlpEngine([{"lang_code": "en", "model_name": ""}])
    return AnalyzerEngine(registry=registry, nlp_engine=engine)


def in_two_languages() -> AnalyzerEngine:
    """Return an analyzer with doubtful numbers in English, and a word in German."""
    numbers = PatternRecognizer("NUMBER", patterns=[Pattern("n", r"\d+", 0.3)])
    german = PatternRecognizer("WORT", deny_list=["Wort"], supported_language="de")
    languages = ["en", "de"]
    return AnalyzerEngine(
        registry=RecognizerRegistry([numbers, german], supported_languages=languages),
        nlp_engine=NoOpNlpEngine([{"lang_code": code, "model_name": ""} for code in languages]),
        supported_languages=languages,
    )


class Blank(SpacyNlpEngine):  # type: ignore[misc]
    """An engine over a pipeline that is made, where Presidio would load one by name."""

    def __init__(self, nlp: Any) -> None:
        super().__init__()
        self.nlp = {"en": nlp}


def with_pipeline(pattern: str = "Waab") -> AnalyzerEngine:
    """Return an analyzer with all predefined recognizers, over a pipeline that finds a name."""
    nlp = spacy.blank("en")
    nlp.add_pipe("entity_ruler").add_patterns([{"label": "ORG", "pattern": pattern}])
    return AnalyzerEngine(nlp_engine=Blank(nlp))


def anonymize(text: str, privatizer: Any, analyzer: AnalyzerEngine | None = None) -> Any:
    """Return the result of Presidio's engine with the operator ``dxprivacy`` for people."""
    engine = AnonymizerEngine()
    engine.add_anonymizer(DxPrivacyOperator)
    config = {"PERSON": OperatorConfig("dxprivacy", {"privatizer": privatizer})}
    found = (analyzer or make()).analyze(text, "en")
    return engine.anonymize(text, found, config)  # type: ignore[arg-type]
