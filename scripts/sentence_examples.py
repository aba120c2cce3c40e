"""Make the examples of docs/sentences.md: made-up texts, and what is released in their place.

python scripts/sentence_examples.py            rewrite them
python scripts/sentence_examples.py --check    fail if they are not what this script makes
"""

import argparse
import sys
from pathlib import Path

from hf_dxprivacy import SentencePool, SentencePrivatizer
from hf_dxprivacy.calibration import epsilon_for_local_bound

PAGE = Path(__file__).resolve().parents[1] / "docs" / "sentences.md"
START, END = "<!-- examples: made by scripts/sentence_examples.py -->\n", "<!-- end of examples -->"

# A seed that is printed protects nothing; the texts are made up.
SEED = 1
POOL = "wordnet-sentences"
BOUNDS = (8.0, 12.0, 15.0)
TEXTS = (
    "The food was cold, the waiter was rude and we will not come back.",
    "A wonderful little restaurant: fresh fish, friendly waiters and a fair bill.",
    "The doctor took her time and explained everything.",
    "The blood test of patient 20391 shows low iron; please repeat it in a month.",
    "Someone in Ohio used my credit card to buy a television.",
    "The train to Leeds was late again this morning.",
    "My daughter has had a rash on both arms since we changed the soap.",
    "I voted for the mayor twice, but the new tax on parking is a mistake.",
    "Please play some quiet piano music in the kitchen.",
    "What is the capital of Mongolia?",
    "not good at all, dont buy it",
    "omg i totaly forgot ur birthday im so sorry, drinks on me saturday",
    "ok",
    "Der Zug hatte wieder Verspätung.",
)


def main() -> int:
    """Rewrite or check the examples."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--check", action="store_true")
    options = parser.parse_args()
    page = PAGE.read_text("utf-8")
    head, start, rest = page.partition(START)
    _, end, tail = rest.partition(END)
    if not (start and end):
        raise SystemExit(f"{PAGE} has no place for the examples")
    after = f"{head}{start}\n{table()}\n{end}{tail}"
    if not options.check:
        PAGE.write_text(after, "utf-8")
        return 0
    if after != page:
        print(f"{PAGE} should read:\n\n{after}", file=sys.stderr)
    return int(after != page)


def table() -> str:
    """Return the texts, their entries, and a release for each bound, as a table in Markdown."""
    pool = SentencePool.from_pretrained(POOL)
    entries = pool.look_up(TEXTS)
    columns = [[*TEXTS], [pool.sentences[at] if at >= 0 else "none" for at in entries]]
    titles = ["text", "its entry"]
    for bound in BOUNDS:
        epsilon = epsilon_for_local_bound(pool, "hierarchical", bound)
        privatizer = SentencePrivatizer(pool, epsilon=epsilon, seed=SEED)
        columns.append([str(text) for text in privatizer.privatize(list(TEXTS))])
        titles.append(f"local DP {bound:g}, ε = {privatizer.epsilon:.3g}")
    rows = [titles, ["---"] * len(titles), *zip(*columns, strict=True)]
    return "".join(f"| {' | '.join(row)} |\n" for row in rows)


if __name__ == "__main__":
    raise SystemExit(main())
