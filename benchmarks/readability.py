"""What the n-gram model says of real texts, the same shuffled, random words, and releases.

python benchmarks/readability.py
"""

import common
from hf_dxprivacy import DxPrivatizer
from hf_dxprivacy.evaluation import NgramModel
from hf_dxprivacy.randomness import keyed_generator

FILES = {
    "mr": "film reviews",
    "trec6": "questions",
    "sms_spam": "SMS",
    "imdb_sample": "long reviews",
}
RELEASES = (("hierarchical", 1.5), ("hierarchical", 2.0), ("calibrated", 7.0), ("krr", 8.0))


def main() -> None:
    """Measure and print the table."""
    arguments = common.parser(__doc__)
    arguments.add_argument("--rows", type=int, default=600)
    options = arguments.parse_args()
    model, rows = NgramModel.load(), []
    for name, title in FILES.items():
        rng = keyed_generator(0)
        texts = [row["text"] for row in common.jsonl(options.data / "utility" / f"{name}.jsonl.gz")]
        texts = [texts[k] for k in rng.permutation(len(texts))[: options.rows]]
        privatizers = {f"{m}, ε = {e:g}": DxPrivatizer("english", m, e) for m, e in RELEASES}
        words = privatizers["krr, ε = 8"].space.words
        versions = {
            "words shuffled": [" ".join(rng.permutation(text.split())) for text in texts],
            "random words": [" ".join(rng.choice(words, len(text.split()))) for text in texts],
        }
        versions |= {title: each.privatize(texts) for title, each in privatizers.items()}
        original = model.perplexity(texts)
        ratios = {title: model.perplexity(each) / original for title, each in versions.items()}
        rows.append({"texts": title, "perplexity": round(original)} | ratios)
    common.report("Perplexity over that of the originals", rows, options.json)


if __name__ == "__main__":
    main()
