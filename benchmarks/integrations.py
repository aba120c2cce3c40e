"""What adapters for other tools add to the time of `Dataset.map`, over the same texts.

Their own code: the processor time of a call less that inside the privatizer, as a share of the
time of `Dataset.map`, the least of several rounds. Texts: examples/demo_sentences.txt, repeated.

    python benchmarks/integrations.py
    python benchmarks/integrations.py --tool datatrove sklearn
    python benchmarks/integrations.py --write
"""

import time
from collections.abc import Callable
from functools import wraps
from pathlib import Path
from typing import Any
from unittest import mock

import datasets
from datasets import Dataset

import common
from hf_dxprivacy import DxPrivatizer

ROOT = Path(__file__).parents[1]
SENTENCES = ROOT / "examples" / "demo_sentences.txt"
PAGE = ROOT / "docs" / "integrations.md"
SETTINGS = ("english", "hierarchical", 1.5)
COPIES, ROUNDS = 50, 5

# What a tool does with texts, once it is set up.
Job = Callable[[], object]


def datatrove(privatizer: DxPrivatizer, texts: list[str]) -> Job:
    """Documents through a formatter."""
    from datatrove.data import Document

    from hf_dxprivacy.integrations.datatrove import DxFormatter

    step = DxFormatter(privatizer)
    made = [Document(text=text, id=str(number)) for number, text in enumerate(texts)]
    return lambda: list(step.run(iter(made)))


def sklearn(privatizer: DxPrivatizer, texts: list[str]) -> Job:
    """A list of texts through a transformer."""
    from hf_dxprivacy.integrations.sklearn import DxTransformer

    transformer = DxTransformer(privatizer=privatizer).fit(texts)
    return lambda: transformer.transform(texts)


def one_by_one(privatizer: DxPrivatizer, texts: list[str]) -> Job:
    """A call of the privatizer for each text, as tools without batches make them."""
    return lambda: [privatizer.privatize(text) for text in texts]


TOOLS = {
    "datatrove": datatrove,
    "sklearn": sklearn,
    "one-by-one": one_by_one,
}


def measure(job: Job) -> tuple[float, float]:
    """Return the processor time of a job, and how much of it was spent inside privatizers."""
    inside: list[float] = []

    def timed(method: Callable[..., Any]) -> Callable[..., Any]:
        @wraps(method)
        def call(*given: Any, **named: Any) -> Any:
            start = time.process_time()
            try:
                return method(*given, **named)
            finally:
                inside.append(time.process_time() - start)

        return call

    outer = {name: timed(getattr(DxPrivatizer, name)) for name in ("__call__", "privatize")}
    with mock.patch.multiple(DxPrivatizer, **outer):
        start = time.process_time()
        job()
        return time.process_time() - start, sum(inside)


def main() -> None:
    """Measure map and the tools in turns, and print a table."""
    parser = common.parser(__doc__)
    parser.add_argument("--tool", nargs="+", choices=TOOLS, default=[*TOOLS])
    parser.add_argument("--write", action="store_true", help="put the table into the page")
    options = parser.parse_args()
    datasets.disable_progress_bars()
    lines = SENTENCES.read_text(encoding="utf-8").splitlines()
    texts = [line.split("\t")[1] for line in lines] * COPIES
    privatizer = DxPrivatizer(*SETTINGS)
    rows = Dataset.from_dict({"text": texts})
    jobs: dict[str, Job] = {
        "map": lambda: rows.map(privatizer, batched=True, load_from_cache_file=False)
    }
    jobs |= {name: TOOLS[name](privatizer, texts) for name in options.tool}
    times: dict[str, list[tuple[float, float]]] = {name: [] for name in jobs}
    for _ in range(ROUNDS + 1):
        for name, job in jobs.items():
            times[name].append(measure(job))
    whole = min(total for total, _ in times["map"][1:])
    found = []
    for name, measured in times.items():
        least = min(total for total, _ in measured[1:])
        own = min(total - inside for total, inside in measured[1:])
        found.append(
            {
                "tool": name,
                "CPU s": f"{least:.2f}",
                "of map": f"{least / whole:.0%}",
                "own code, of map": f"{own / whole:.1%}",
            }
        )
    common.report(f"Adapters beside Dataset.map, {len(texts):,} texts", found, options.json)
    if options.write:
        common.write_into(PAGE, "table: made by benchmarks/integrations.py", common.markdown(found))


if __name__ == "__main__":
    main()
