"""Push a space, its lists of neighbours, a privatizer and a released dataset to the Hub and back.

    export HF_TOKEN=...
    python examples/hub_roundtrip.py --namespace me

By default the space is artifacts/hearst-poincare, under CC BY-NC 4.0, which all cards say. What is
pulled back is pinned to the commit of the push and is the same by its digest.
Any other Hub is reached with HF_ENDPOINT. Give other folders or built-in names with --space; a
Euclidean space gets an index instead of lists.
"""

import argparse
import sys
import tempfile
from pathlib import Path

from datasets import Dataset
from huggingface_hub import DatasetCard, ModelCard

from hf_dxprivacy import DxPrivacyError, DxPrivatizer, EmbeddingSpace

ARTIFACT = Path(__file__).resolve().parents[1] / "artifacts" / "hearst-poincare"
TEXT = "The president of Uganda met managers of Toyota and ate soup with a lawyer in Geneva."


def main() -> int:
    """Push, pull, and compare."""
    options = parse_arguments()
    repository = f"{options.namespace}/{Path(options.space).name}"
    space = EmbeddingSpace.from_pretrained(options.space)
    ball = space.metric == "poincare"
    space = space.build_neighbours(options.blocks) if ball else space.build_index("ivf")
    pushed = space.push_to_hub(repository, license=options.license, private=options.private)
    print(f"pushed {space!r} to {repository} at commit {pushed.oid}")

    extra = {"neighbour_lists": True} if ball else {"index": "ivf"}
    # An empty cache shows that everything comes from the Hub.
    with tempfile.TemporaryDirectory() as cache:
        pulled = EmbeddingSpace.from_pretrained(
            repository, revision=pushed.oid, cache_dir=cache, **extra
        )
        sent, got = (
            (one.digest, one.hierarchy and one.hierarchy.sha256) for one in (space, pulled)
        )
        same = sent == got
        print(f"pulled {pulled!r}, the same: {same}")

    pinned = EmbeddingSpace.from_pretrained(repository, revision=pushed.oid)
    name = f"{repository}-privatizer"
    privatizer = DxPrivatizer(pinned, options.mechanism, options.epsilon)
    commit = privatizer.push_to_hub(name, license=options.license, private=options.private)
    again = DxPrivatizer.from_pretrained(name, revision=commit.oid)
    print(f"pushed and pulled {name} at commit {commit.oid}: its space is {again.config.space}")

    licence = ModelCard.load(repository).data["license"]
    released = Dataset.from_dict({"text": [TEXT] * 3}).map(again, batched=True)
    dataset = f"{repository}-released"
    again.dataset_card(released, license=licence).push_to_hub(dataset, private=options.private)
    cards = [ModelCard.load(repository), ModelCard.load(name), DatasetCard.load(dataset)]
    for repo, card in zip((repository, name, dataset), cards, strict=True):
        print(f"licence on the card of {repo}: {card.data['license']}")
    print(TEXT, *released["text"], again.guarantee, sep="\n")
    return 0 if same and again.config == privatizer.config else 1


def parse_arguments() -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    add = parser.add_argument
    add("--namespace", required=True, help="user or organization on the Hub")
    add("--space", default=str(ARTIFACT), help="folder or built-in name (%(default)s)")
    add("--mechanism", default="hierarchical", help="of the privatizer (%(default)s)")
    add("--epsilon", type=float, default=2.0, help="of the privatizer (%(default)s)")
    add("--blocks", type=int, default=64, help="of the lists of neighbours (%(default)s)")
    add("--license", help="by default the one that the space names")
    add("--private", action="store_true", default=None, help="make new repositories private")
    return parser.parse_args()


if __name__ == "__main__":
    try:
        sys.exit(main())
    except DxPrivacyError as error:
        sys.exit(f"hub_roundtrip: {error}")
