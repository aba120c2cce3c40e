"""Make the examples of docs/sentences.md: made-up texts, and what is released in their place.

python scripts/sentence_examples.py            rewrite them
python scripts/sentence_examples.py --check    fail if they are not what this script makes
"""

from pathlib import Path

import page_parts

from hf_dxprivacy import SentencePool, SentencePrivatizer
from hf_dxprivacy.calibration import epsilon_for_local_bound

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
    return page_parts.table(titles, columns)


if __name__ == "__main__":
    page = page_parts.ROOT / "docs" / "sentences.md"
    is_right = page_parts.rewrite(__doc__, Path(__file__).name, page, {"examples": table})
    raise SystemExit(not is_right)
