"""What the adapters for Presidio and spaCy cost by themselves, beside `Dataset.map`.

Own microseconds are those of a release through the adapter, less those of the other tool and those
of a privatizer that is told the same spans. Of one process and the processor; the least of many
short rounds, since what else a machine does only adds. Texts: those of `hf-dxprivacy demo`, a third
of them with a name and the number of a card.

    python benchmarks/privacy_tools.py [--only presidio]
"""

import time
from collections.abc import Callable, Sequence
from typing import Any

import datasets
from datasets import Dataset

import common
from hf_dxprivacy import DxPrivatizer, SlotPrivatizer
from hf_dxprivacy.integrations.redaction import RedactingPrivatizer
from hf_dxprivacy.slots import SpanSelector

SENTENCES = common.HERE.parent / "examples" / "demo_sentences.txt"
COPIES, ROUNDS, ROUNDS_OF_MAP = 10, 60, 5
ADDED = " Ann Lindqvist paid with 4111 1111 1111 1111."
LAW: dict[str, Any] = {"mechanism": "hierarchical", "epsilon": 1.5}
LABELS = ["CREDIT_CARD", "PERSON"]

Row = dict[str, Any]


def texts() -> list[str]:
    """Return the texts, which are one batch."""
    lines = [line.split("\t")[1] for line in SENTENCES.read_text("utf-8").splitlines()]
    return [line + ADDED * (at % 3 == 0) for at, line in enumerate(lines)]


def least(*ways: Callable[[], object], rounds: int = ROUNDS) -> list[float]:
    """Return the least processor seconds of each way, measured in turn."""
    took = [[_took(way) for way in ways] for _ in range(rounds)]
    return [min(column) for column in zip(*took, strict=True)]


def _took(way: Callable[[], object]) -> float:
    """Return the processor seconds of a call."""
    start = time.process_time()
    way()
    return time.process_time() - start


def mapped(privatizer: DxPrivatizer) -> float:
    """Return the seconds of `Dataset.map` for as many texts."""
    rows = Dataset.from_dict({"text": texts() * COPIES})
    (took,) = least(lambda: rows.map(privatizer, batched=True), rounds=ROUNDS_OF_MAP)
    return took / COPIES


def through(privatizer: DxPrivatizer) -> Callable[[], object]:
    """Return a release of all texts."""
    batch = {"text": texts()}
    return lambda: privatizer(batch)


def row(what: str, own: float, whole: float) -> Row:
    """Return a row of the table."""
    per_text = 1e6 / len(texts())
    costs = {
        "map, µs a text": round(whole * per_text, 1),
        "own, µs a text": round(own * per_text, 1),
    }
    return {"adapter": what, **costs, "share of map": f"{own / whole:.0%}"}


class Known(SpanSelector):
    """Knows the spans of every text."""

    def __init__(self, selector: SpanSelector) -> None:
        found = zip(texts(), selector.spans(texts()), strict=True)
        self._found = dict(found)
        self.labels = selector.labels

    def spans(self, texts: Sequence[str]) -> Any:
        """Return the spans of texts."""
        return [self._found[text] for text in texts]


def timed_tool(selector: Any) -> list[float]:
    """Let a selector note the seconds that its tool takes."""
    find, spent = selector._found, [0.0]

    def found(tool: Any, texts: Sequence[str]) -> Any:
        start = time.process_time()
        result = find(tool, texts)
        spent[0] += time.process_time() - start
        return result

    selector._found = found
    return spent


def of_selector(what: str, selector: Any) -> list[Row]:
    """Measure a selector of slots, and redaction by it."""
    known = Known(selector)
    spent = timed_tool(selector)
    slots = through(SlotPrivatizer("english", selector=selector, **LAW))
    base = through(SlotPrivatizer("english", selector=known, **LAW))
    ours, alone = [], []
    for _ in range(ROUNDS):
        spent[0] = 0.0
        ours.append(_took(slots) - spent[0])
        alone.append(_took(base))
    plain = DxPrivatizer("english", **LAW)
    redacting = RedactingPrivatizer("english", redact=known, **LAW)
    whole = mapped(plain)
    with_it, without = least(through(redacting), through(plain))
    return [
        row(f"{what}, slots", min(ours) - min(alone), whole),
        row("RedactingPrivatizer, beside DxPrivatizer", with_it - without, whole),
    ]


def presidio() -> list[Row]:
    """Measure the operator and the selector."""
    from presidio_analyzer import AnalyzerEngine, PatternRecognizer, RecognizerRegistry
    from presidio_analyzer.nlp_engine import NoOpNlpEngine
    from presidio_analyzer.predefined_recognizers import CreditCardRecognizer

    from hf_dxprivacy.integrations.presidio import DxPrivacyOperator, PresidioSelector

    people = PatternRecognizer("PERSON", deny_list=["Ann Lindqvist"])
    analyzer = AnalyzerEngine(
        registry=RecognizerRegistry([CreditCardRecognizer(), people]),
        nlp_engine=NoOpNlpEngine([{"lang_code": "en", "model_name": ""}]),
    )
    rows = of_selector("PresidioSelector", PresidioSelector(analyzer, LABELS))
    privatizer = DxPrivatizer("english", **LAW)
    operator, config = DxPrivacyOperator(), {"privatizer": privatizer}
    found = [(text, analyzer.analyze(text, "en")) for text in texts() if ADDED in text]
    entities = [text[span.start : span.end] for text, spans in found for span in spans]
    ours, alone = least(
        lambda: [(operator.validate(config), operator.operate(each, config)) for each in entities],
        lambda: [privatizer.privatize(f"I {entity}") for entity in entities],
    )
    return [*rows, row("DxPrivacyOperator, beside privatize() of each entity", ours - alone, alone)]


def spacy() -> list[Row]:
    """Measure the component and the selector."""
    import spacy as library

    from hf_dxprivacy.integrations.spacy import SpacySelector

    nlp = library.blank("en")
    card = [{"ORTH": part} for part in "4111 1111 1111 1111".split()]
    patterns: list[Row] = [{"label": "PERSON", "pattern": "Ann Lindqvist"}]
    nlp.add_pipe("entity_ruler").add_patterns([*patterns, {"label": LABELS[0], "pattern": card}])
    rows = of_selector("SpacySelector", SpacySelector(nlp, LABELS))

    @library.Language.component("keeps_text")
    def keeps_text(doc: Any) -> Any:
        doc._.set("private_text", doc.text)
        return doc

    bare, full = library.blank("en"), library.blank("en")
    bare.add_pipe("keeps_text")
    full.add_pipe("dxprivacy", config={"space": "english", **LAW})
    privatizer = DxPrivatizer("english", **LAW)
    every = texts()
    ours, theirs, alone = least(
        lambda: [*full.pipe(every, batch_size=len(every))],
        lambda: [*bare.pipe(every, batch_size=len(every))],
        lambda: privatizer.privatize(every),
    )
    return [*rows, row("component dxprivacy", ours - theirs - alone, mapped(privatizer))]


TOOLS = {"presidio": presidio, "spacy": spacy}


def main() -> None:
    """Measure the adapters for all tools, or for one."""
    parser = common.parser(__doc__)
    parser.add_argument("--only", choices=TOOLS, help="measure the adapters for one tool")
    arguments = parser.parse_args()
    datasets.disable_progress_bars()
    chosen = [arguments.only] if arguments.only else list(TOOLS)
    rows = [found for name in chosen for found in TOOLS[name]()]
    common.report(
        "What the adapters for Presidio and spaCy cost by themselves", rows, arguments.json
    )


if __name__ == "__main__":
    main()
