"""The verb train-poincare: a hyperbolic space from is-a relations."""

import argparse
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hf_dxprivacy.cli.arguments import (
    Parser,
    UsageError,
    natural,
    positive,
    usage,
    whole,
    word_list,
)
from hf_dxprivacy.cli.artifacts import OVERWRITE, check_folder, save_measured
from hf_dxprivacy.cli.terminal import say, seconds

if TYPE_CHECKING:
    from hf_dxprivacy.training import Relations

SOURCES = ("wordnet", "webisadb", "counts", "conceptnet", "pairs")
COUNTED = ("webisadb", "counts")
SYNSETS = "/usr/share/wordnet"


def train_poincare_arguments(parser: Parser) -> None:
    """Declare the arguments."""
    parser.usage, add = "%(prog)s SOURCE [PATH ...] --output FOLDER [options]", parser.add
    add("source", "SOURCE", ", ".join(SOURCES), choices=SOURCES)
    add("paths", "PATH", f"files or folders; for wordnet {SYNSETS}", nargs="*")
    add("--output", "FOLDER", "the folder to make", Path, required=True)
    add("--overwrite", None, OVERWRITE)
    add("--license", "ID", "as the Hub names it; known for wordnet and webisadb")
    add("--push", "REPOSITORY", "push the space to namespace/name on the Hub, too")
    add("--private", None, "make a new repository private", default=None)
    add = parser.under("which relations")
    add("--words", None, "wordnet: single words as nodes, not synsets")
    add("--below", "NODE", "only a node and what is below it, as mammal.n.01")
    about = "leave out nodes that no chain of relations joins to most others"
    add("--largest-component", None, about)
    add = parser.under("which relations of webisadb and counts")
    add("--vocabulary", "SPACE|FILE", "words that relations are between")
    add("--min-frequency", "N", "(%(default)s)", natural, default=10)
    add("--min-links", "N", "(%(default)s)", natural, default=3)
    for name in ("--stopwords", "--offensive"):
        add(name, "english|none|FILE", "words to leave out (%(default)s)", default="english")
    about = "take phrases as they are, only the head of a class, or the head of both (%(default)s)"
    add("--phrases", ("whole", "class", "head"), about, default="whole")
    add("--max-classes", "N", "the most frequent of each word (all)", whole)
    add("--acyclic", None, "leave out what contradicts more frequent pairs")
    add("--work", "FOLDER", "where reading goes on after an interruption")
    add = parser.under("training")
    add("--dim", "N", "dimensions (%(default)s)", whole, default=10)
    add("--epochs", "N", "passes over the relations (100 to 600)", whole)
    about = "passes after them that look at the nearest nodes of each (0)"
    add("--refinement", "N", about, natural)
    add("--negatives", "N", "negative samples for each node", whole)
    add("--learning-rate", "X", "length of a step", positive)
    add("--sharpness", "X", "factor on distances in the loss", positive)
    add("--seed", "N", "of start, order and negatives", natural)
    add("--threads", "N", "1 is reproducible; by default all", whole)
    add("--device", "NAME", "train with torch, for example on cuda")
    add("--checkpoint", "FILE", "kept up to date; training goes on from it")


def train_poincare(args: argparse.Namespace) -> None:
    r"""Train a space of the Poincare ball from is-a relations, and push it if asked.

    Sources: wordnet, the folder of the WordNet 3.0 database (Debian: wordnet-base); webisadb, the
    dump of WebIsADB (csv, also inside gzip, bzip2, xz and tar); counts, tables of a word, its class
    and how often the two were found, which may be joined with the dump; conceptnet, the file of
    assertions; pairs, lines of a node, a tab and its class.

      hf-dxprivacy train-poincare wordnet --output nouns
      hf-dxprivacy train-poincare wordnet --below mammal.n.01 --output mammals
      hf-dxprivacy train-poincare webisadb tuplesdb.*.tar.gz --vocabulary me/glove-50k --dim 100 \
          --largest-component --checkpoint webisadb.ckpt --work parts --output webisadb \
          --push me/webisadb-poincare
      hf-dxprivacy train-poincare counts hearst_counts.txt.gz --vocabulary english --phrases head \
          --min-frequency 2 --max-classes 5 --acyclic --largest-component --license cc-by-nc-4.0 \
          --output hearst

    The vocabulary of webisadb and counts is that of a space, or a file with one word a line.
    Distances are scaled so that the median distance to the nearest neighbour is 1. Training can be
    interrupted: with --checkpoint it goes on from there, and with --work the reading does. One
    thread and the same seed give the same space. WebIsADB is under CC BY-NC-SA 3.0, and so is what
    is trained on it.
    """
    check_folder(args.output, args.overwrite)
    counted = args.source in COUNTED
    if counted and not args.vocabulary:
        message = "needs --vocabulary: a space, or a file with one word a line"
        raise UsageError(f"{args.source} {message}")
    if counted and args.below:
        raise UsageError("--below is for wordnet, conceptnet and pairs")
    if args.source != "wordnet" and not args.paths:
        raise UsageError(f"{args.source} needs at least one PATH")
    if not counted and len(args.paths) > 1:
        raise UsageError(f"{args.source} takes one PATH, got {len(args.paths)}")
    from hf_dxprivacy.hub.cards import check_licence
    from hf_dxprivacy.training import PoincareConfig
    from hf_dxprivacy.training.poincare import train_space

    names = ("epochs", "refinement", "negatives", "learning_rate", "sharpness", "seed")
    settings = {name: vars(args)[name] for name in names if vars(args)[name] is not None}
    with usage():
        check_licence(args.license)
        PoincareConfig(**settings)
    relations, origin = _counted(args) if counted else _relations(args)
    if args.license:
        origin["licence"] = args.license
    say(f"{len(relations):,} relations over {len(relations.nodes):,} nodes")
    space = train_space(
        relations,
        args.dim,
        PoincareConfig.for_size(len(relations), **settings),
        provenance=origin,
        threads=args.threads,
        device=args.device,
        checkpoint=args.checkpoint,
    )
    save_measured(space, args.output, args.license)
    found = space.provenance["reconstruction"]
    say(
        f"{args.output}: {len(space):,} words x {space.dim} dimensions in {seconds()}; mean "
        f"average precision {found['mean_average_precision']:.3f}, mean rank "
        f"{found['mean_rank']:.1f}"
    )
    if args.push:
        commit = space.push_to_hub(args.push, license=args.license, private=args.private)
        print(commit.commit_url)


def _relations(args: argparse.Namespace) -> "tuple[Relations, dict[str, Any]]":
    """Return relations, and where they come from."""
    from hf_dxprivacy import training
    from hf_dxprivacy.training.wordnet import wordnet_origin

    if args.source == "wordnet":
        path = args.paths[0] if args.paths else SYNSETS
        nodes = "words" if args.words else "synsets"
        relations = training.read_wordnet(path, nodes=nodes)
        origin = wordnet_origin(path) | {"nodes": nodes}
    else:
        read = {"conceptnet": training.read_conceptnet, "pairs": training.read_pairs}[args.source]
        relations, origin = read(args.paths[0]), {"source": Path(args.paths[0]).name}
    if args.below:
        relations, origin = relations.below(args.below), origin | {"below": args.below}
    if args.largest_component:
        return relations.largest_component(), origin | {"largest_component": True}
    return relations, origin


def _counted(args: argparse.Namespace) -> "tuple[Relations, dict[str, Any]]":
    from hf_dxprivacy.files.text_rows import read_words
    from hf_dxprivacy.spaces import EmbeddingSpace
    from hf_dxprivacy.training import read_webisadb
    from hf_dxprivacy.training.webisadb import webisadb_origin

    file = Path(args.vocabulary)
    words: Any = read_words(file) if file.is_file() else None
    if words is None:
        words = EmbeddingSpace.from_pretrained(args.vocabulary).words
    chosen = {name: vars(args)[name] for name in ("stopwords", "offensive")}
    lists: dict[str, Any] = {name: word_list(choice) for name, choice in chosen.items()}
    names = ("min_frequency", "min_links", "phrases", "max_classes", "acyclic")
    filters = {name: vars(args)[name] for name in names} | {"connected": args.largest_component}
    found = read_webisadb(args.paths, vocabulary=words, work=args.work, **filters, **lists)
    say(str(found.summary))
    shown = {name: Path(choice).name for name, choice in chosen.items()}
    origin = webisadb_origin(found, filters | shown)
    if args.source == "counts":
        origin["source"] = ", ".join(Path(path).name for path in args.paths)
    return found, origin
