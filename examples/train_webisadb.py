r"""From the dump of WebIsADB to a Poincaré space on the Hub, after Feyisetan et al. (ICDM 2019).

    pip install '.[train]'
    python examples/train_webisadb.py tuplesdb.*.tar.gz --vocabulary me/glove-50k \
        --output webisadb-poincare --push me/webisadb-poincare

The dump is at http://webdatacommons.org/isadb/; it is under CC BY-NC-SA 3.0, and so is the space.
Of a sample of some thousand rows the filters of the paper leave nothing: pass --min-links 2.
The command ``hf-dxprivacy train-poincare webisadb`` does the same with more options.
"""

import argparse
import sys
from pathlib import Path

from hf_dxprivacy import DxPrivacyError, EmbeddingSpace
from hf_dxprivacy.report import measure
from hf_dxprivacy.training import PoincareConfig, read_webisadb
from hf_dxprivacy.training.poincare import train_space
from hf_dxprivacy.training.webisadb import webisadb_origin


def main() -> int:
    """Read, train, save and push."""
    arguments = parse_arguments()
    filters = {
        "min_frequency": arguments.min_frequency,
        "min_links": arguments.min_links,
        "connected": True,
    }
    vocabulary = EmbeddingSpace.from_pretrained(arguments.vocabulary).words
    work = arguments.output / "parts"
    relations = read_webisadb(arguments.dump, vocabulary=vocabulary, work=work, **filters)
    print(relations.summary)
    settings = {} if arguments.epochs is None else {"epochs": arguments.epochs}
    space = train_space(
        relations,
        arguments.dim,
        PoincareConfig.for_size(len(relations), **settings),
        provenance=webisadb_origin(relations, filters),
        checkpoint=arguments.output / "training.npz",
    )
    print(space.provenance["reconstruction"])
    space = measure(space)
    space.save_pretrained(arguments.output / "space")
    if arguments.push:
        print(space.push_to_hub(arguments.push).commit_url)
    return 0


def parse_arguments() -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    add = parser.add_argument
    add("dump", type=Path, nargs="+", help="files or folders of the dump")
    add("--vocabulary", default="wordnet-gloss", help="space with the words (%(default)s)")
    add("--min-frequency", type=int, default=10, help="how often a pair occurs (%(default)s)")
    add("--min-links", type=int, default=3, help="relations that each word has (%(default)s)")
    add("--dim", type=int, default=100, help="dimensions of the ball (%(default)s)")
    add("--epochs", type=int, help="passes over the relations (by their number)")
    add("--output", type=Path, required=True, help="folder for the space and interim results")
    add("--push", metavar="NAMESPACE/NAME", help="repository on the Hub")
    arguments = parser.parse_args()
    arguments.output.mkdir(parents=True, exist_ok=True)
    return arguments


if __name__ == "__main__":
    try:
        sys.exit(main())
    except DxPrivacyError as error:
        sys.exit(f"train_webisadb: {error}")
