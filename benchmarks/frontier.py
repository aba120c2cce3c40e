"""The frontier: what mechanisms keep of tasks where attacks succeed as often, on seven datasets.

    python benchmarks/frontier.py --folder benchmarks/out/frontier
    python benchmarks/frontier.py --folder benchmarks/out/frontier --page

Each dataset goes through `hf_dxprivacy.evaluation.compare`: mechanisms of words, those of other
papers, and the built-in pool of sentences. Rows that are done are kept in the folder, one for each
dataset; a run that was stopped goes on there, and --page writes down what is done. Columns are as
docs/comparing.md has them.
"""

import argparse
from pathlib import Path
from typing import Any, NamedTuple

from datasets import Dataset

import common
from hf_dxprivacy.evaluation import Comparison, compare
from hf_dxprivacy.sentences import WordEncoder

PAGE = common.HERE.parent / "docs" / "results" / "frontier.md"
IMAGES = common.HERE.parent / "docs" / "images"
MECHANISMS = ("hierarchical", "calibrated", "tem", "krr")
# Slower ones, and those of other papers, on three of the datasets.
MORE = ("laplace", "santext", "vickrey", "custext", "syntf")


class Source(NamedTuple):
    """A file of the development data, and what its columns are."""

    title: str
    file: str
    label: str | None = "label"
    user: str | None = None
    more: bool = False


SOURCES = {
    "mr": Source("MR, sentences of film reviews, positive or negative", "utility/mr", more=True),
    "trec": Source("TREC-6, questions, six kinds of answers", "utility/trec6", more=True),
    "pan11": Source("PAN11, e-mails, by author", "authorship/pan11_enron_small", None, "author"),
    "sms": Source("SMS, spam or not", "utility/sms_spam", more=True),
    "insurance": Source("InsuranceQA, questions, twelve domains", "utility/insuranceqa_questions"),
    "c50": Source("C50, news, by author", "authorship/reuters_c50", None, "author"),
    "imdb": Source("IMDB, whole film reviews, positive or negative", "utility/imdb_sample"),
}


def measured(name: str, options: argparse.Namespace) -> Comparison:
    """Compare on one dataset, going on where the folder is."""
    source = SOURCES[name]
    rows = common.jsonl(options.data / f"{source.file}.jsonl.gz")
    columns = [column for column in ("text", source.label, source.user) if column]
    return compare(
        Dataset.from_dict({column: [row[column] for row in rows] for column in columns}),
        label_column=source.label,
        user_column=source.user,
        mechanisms=options.mechanisms or (*MECHANISMS, *(MORE if source.more else ())),
        # Texts without labels are compared by what their averaged words say.
        encoder=None if source.label else WordEncoder(),
        quick=not options.thorough,
        releases=options.releases,
        resume=options.folder / f"{name}-{options.releases}",
        seed=options.seed,
    )


def section(name: str, found: Comparison) -> str:
    """Return a section of the page, and write its picture."""
    picture = found.figure()
    picture.save(IMAGES / f"frontier-{name}.png", dpi=110)
    table = "\n".join(line for line in found.to_markdown().splitlines() if line.startswith("|"))
    about = "\n".join(f"- {note}" for note in (*found.about[:-2], *found.notes))
    said = "\n\n".join(found.sentences)
    image = f"![{picture.alt}](../images/frontier-{name}.png)"
    return f"## {SOURCES[name].title}\n\n{said}\n\n{image}\n\n{table}\n\n{about}\n"


def main() -> None:
    """Measure, print, and write the page if asked to."""
    parser = common.parser(__doc__)
    parser.add_argument("--folder", type=Path, required=True, help="keeps what is done")
    parser.add_argument("--releases", type=int, default=5)
    parser.add_argument("--datasets", nargs="*", choices=SOURCES, default=list(SOURCES))
    parser.add_argument("--mechanisms", nargs="*")
    parser.add_argument("--thorough", action="store_true", help="5,000 rows and more pairs")
    parser.add_argument("--seed", type=int, default=20260101)
    parser.add_argument("--page", action="store_true", help="write docs/results/frontier.md")
    options = parser.parse_args()
    parts: list[str] = []
    rows: list[dict[str, Any]] = []
    for name in options.datasets:
        options.folder.mkdir(parents=True, exist_ok=True)
        found = measured(name, options)
        print(f"\n{name}\n{found}", flush=True)
        rows += [{"dataset": name, **row} for row in found.to_dataset()]
        parts.append(section(name, found) if options.page else "")
        if options.page:
            common.write_into(PAGE, "frontier", "\n".join(parts))
    common.report("The frontier", rows, options.json)


if __name__ == "__main__":
    main()
