"""The verb audit: attacks on a release, and the check of a guarantee; docstrings are their help."""

import argparse
import json
import secrets
from collections import Counter
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

from hf_dxprivacy.cli.arguments import (
    Add,
    Parser,
    UsageError,
    add_mechanism,
    add_outputs,
    add_space,
    an_epsilon,
    at_least,
    check_outputs,
    given_options,
    load_space,
    natural,
    put,
    read_input,
    require_epsilon,
    say_done,
    share,
    usage,
    whole,
)
from hf_dxprivacy.cli.terminal import progress, say
from hf_dxprivacy.errors import InvalidValueError

if TYPE_CHECKING:
    import numpy as np

    from hf_dxprivacy.evaluation import MaskedWordModel
    from hf_dxprivacy.results import Results

PICTURES = (".png", ".svg", ".pdf")
# Words of which laws that no formula gives are learned.
DRAWN_WORDS = 2000


def audit_arguments(parser: Parser) -> None:
    """Declare the attacks and their arguments."""
    attacks = parser.add_subparsers(dest="attack", required=True, metavar="ATTACK")
    parser.usage = "%(prog)s ATTACK ..."
    for name, (declare, run_attack) in ATTACKS.items():
        about = (run_attack.__doc__ or "").partition("\n")[0]
        attack = attacks.add_parser(name, function=run_attack, help=about)
        files = "" if name == "guarantee" else "ORIGINAL RELEASED ... "
        attack.usage = f"%(prog)s {files}[options]"
        declare(attack)
        attack.add("--seed", "N", "of the attacker", natural)


def audit(args: argparse.Namespace) -> None:
    """Attack a release, and see how far that gets; or check the guarantee of a mechanism.

      hf-dxprivacy audit attribution mail.csv released-4.csv released-8.csv --epsilon 4 8
      hf-dxprivacy audit membership reviews.csv released.csv --label-column stars
      hf-dxprivacy audit users mail.csv released.csv --user-column author
      hf-dxprivacy audit reconstruction mail.csv released.csv --mechanism tem --epsilon 8
      hf-dxprivacy audit guarantee --space english --mechanism hierarchical --epsilon 1.5

    ORIGINAL and each RELEASED have the same rows in the same order, as 'privatize' leaves them. The
    original is attacked as well, for without noise an attack should succeed: where it does not, its
    failure on a release says nothing. An attack that fails is no proof; the guarantee is.
    'hf-dxprivacy audit ATTACK --help' explains an attack.
    """
    if args.attack in ("reconstruction", "guarantee"):
        require_epsilon(args)
    if args.attack != "guarantee" and len(args.epsilon or args.released) != len(args.released):
        raise UsageError(
            f"expected an --epsilon for each RELEASED, got {len(args.epsilon)} for "
            f"{len(args.released)}"
        )
    if args.attack != "guarantee" and "-" in (args.original, *args.released):
        raise UsageError("an audit reads files more than once; name a file instead of -")
    check_outputs(args, "plot", {"plot": PICTURES})
    if args.seed is None:
        args.seed = secrets.randbits(64)
    ATTACKS[args.attack][1](args)
    say_done(args, f"{args.attack}: done", "plot")


def _add_data(parser: Parser, named: bool = True) -> Add:
    """Declare data and outputs, and a free name of the mechanism if it is only shown."""
    parser.add("original", "ORIGINAL", "a file, or a dataset on the Hub")
    parser.add("released", "RELEASED", "what was made of it", nargs="*" if named else "+")
    add = parser.under("data")
    add("--text-column", "NAME", "(%(default)s)", default="text")
    add("--released-column", "NAME", "text column of RELEASED, if it is another one")
    add("--split", "NAME", "split of datasets on the Hub (%(default)s)", default="train")
    about = "epsilon of each RELEASED, in the same order"
    add("--epsilon", "E", about, an_epsilon, nargs="+")
    if named:
        add("--mechanism", "NAME", "for the table (%(default)s)", default="released")
    add("--dataset", "NAME", "for the table (the name of ORIGINAL)")
    about = "draw them against epsilon: .png, .svg or .pdf"
    add_outputs(add, "write the results as JSON lines", "--plot", about)
    return parser.under("the attacker")


def _attribution_arguments(parser: Parser) -> None:
    add = _add_data(parser)
    add("--author-column", "NAME", "(%(default)s)", default="author")
    about = "share of the rows whose authors the attacker knows (%(default)s)"
    add("--known", "SHARE", about, share, default=0.5)
    about = "the attacker knows those rows as they were released, not as they were written"
    add("--known-released", None, about)
    add("--subsets", "K", "of features (%(default)s)", whole, default=100)
    about = "least share of wins for which an author is named (%(default)s)"
    add("--threshold", "S", about, float, default=0.9)


def attribution(args: argparse.Namespace) -> None:
    """Tell who wrote each text, from other texts of the same authors.

    Character 4-grams, random subsets of them, and the author with the largest cosine in most
    subsets (Koppel, Schler, Argamon, 2011). The attacker knows the authors of a random half of the
    rows, or of the share --known.
    """
    from hf_dxprivacy.evaluation import author_attribution
    from hf_dxprivacy.randomness import keyed_generator

    def attack(
        originals: list[str], released: list[str], authors: list[str], rng: "np.random.Generator"
    ) -> Any:
        count = round(args.known * len(authors))
        if not 0 < count < len(authors):
            raise UsageError(f"--known {args.known} leaves no row to know or none to attribute")
        order = keyed_generator(args.seed, "audit").permutation(len(authors)).tolist()
        known, asked = order[:count], order[count:]
        source = released if args.known_released else originals
        return author_attribution(
            [source[i] for i in known],
            [authors[i] for i in known],
            [released[i] for i in asked],
            [authors[i] for i in asked],
            subsets=args.subsets,
            threshold=args.threshold,
            rng=rng,
        ).results

    _attack_all(args, args.author_column, attack, "accuracy")


def _membership_arguments(parser: Parser) -> None:
    add = _add_data(parser)
    add("--label-column", "NAME", "(%(default)s)", default="label")
    add("--repeats", "N", "random splits (%(default)s)", whole, default=5)


def membership(args: argparse.Namespace) -> None:
    """Tell which texts a classifier was trained on, from its outputs for the originals.

    A classifier of averaged word vectors is trained on a part of RELEASED; an attacker who knows
    which texts another such classifier was trained on tells those of the first.
    """
    from hf_dxprivacy.evaluation import membership_inference

    attack = partial(membership_inference, repeats=args.repeats)
    _attack_all(args, args.label_column, attack, "AUC")


def _users_arguments(parser: Parser) -> None:
    add = _add_data(parser)
    add("--user-column", "NAME", "(%(default)s)", default="user")
    add("--repeats", "N", "random splits (%(default)s)", whole, default=3)
    about = "words that the language model knows (%(default)s)"
    add("--vocabulary", "N", about, at_least(2), default=2000)


def users(args: argparse.Namespace) -> None:
    """Tell whose texts a language model was trained on, from how it ranks their words.

    A next-word model is trained on what was released of some users; an auditor who knows the users
    of another such model tells those of the first (Song and Shmatikov, 2019).
    """
    from hf_dxprivacy.evaluation import user_audit

    attack = partial(user_audit, repeats=args.repeats, vocabulary=args.vocabulary)
    _attack_all(args, args.user_column, attack, "AUC")


def _attack_all(
    args: argparse.Namespace, column: str, attack: Callable[..., Any], metric: str
) -> None:
    """Attack the original and each release, which have the labels of a column."""
    from hf_dxprivacy.randomness import keyed_generator
    from hf_dxprivacy.results import ORIGINAL, Results

    labels = [str(cell) for cell in read_input(args, args.original, (column,))[0]]
    originals = _read_texts(args, args.original, args.text_column)
    results = Results()
    epsilons = [None, *(args.epsilon or [None] * len(args.released))]
    attacked = [*zip([None, *args.released], epsilons, strict=True)]
    for name, epsilon in progress(attacked, "Attacking"):
        texts = originals if name is None else _read_released(args, name)
        if len(texts) != len(labels):
            raise InvalidValueError(
                f"{name}: expected the {len(labels)} rows of {args.original}, got {len(texts)}"
            )
        # Equal generators: what is compared shall differ in nothing else.
        rng = keyed_generator(args.seed, "audit")
        mechanism = ORIGINAL if name is None else args.mechanism
        found = attack(originals, texts, labels, rng=rng)
        results += found.replace(mechanism=mechanism, epsilon=epsilon)
    _show(args, results, metric)


def _reconstruction_arguments(parser: Parser) -> None:
    add, made = _add_data(parser, named=False), parser.under("how it was released")
    add_space(made)
    add_mechanism(parser, made)
    about = (
        "text from which the adversary knows how frequent words are, in the same column; by "
        "default the original, so that it knows the most"
    )
    add("--prior", "FILE", about)
    about = f"the adversary guesses among the N most frequent words (all; {DRAWN_WORDS} by draws)"
    add("--words", "N", about, whole)
    about = "draws from each word, to learn laws that are not known exactly (%(default)s)"
    add("--draws", "N", about, at_least(2), default=200)
    about = "the adversary also knows which words follow each other in the text of --prior"
    add("--bigrams", None, about)
    about = (
        "a folder or repository with a model for masked language modelling, which tells the "
        "adversary what to expect in context"
    )
    add("--language-model", "NAME", about)


def reconstruction(args: argparse.Namespace) -> None:
    """Guess each word from its release.

    The adversary knows the space, the mechanism, epsilon and how frequent each word is, and guesses
    the most probable word (Bayes' rule; exact for the exponential mechanisms hierarchical,
    calibrated, tem and krr, learned from draws for the others). "unchanged" is the share of words
    that stayed. Both are of the words that the space has, "counted" is their share of all words;
    numbers and names that are drawn anew are left out, and come in rows of their own: "of numbers"
    (words with digits, addresses) and "of names" (words within sentences with a capital first),
    whether the space has them or not. The texts must have been privatized without
    --oov drop. Of a release over a pool of sentences, by text and without --refill, the entry of
    each text is guessed instead.
    """
    from hf_dxprivacy.evaluation import BayesAdversary, BigramModel, reconstruct_texts
    from hf_dxprivacy.randomness import keyed_generator
    from hf_dxprivacy.results import Results
    from hf_dxprivacy.sentences import is_pool

    originals = _read_texts(args, args.original, args.text_column)
    known = _read_texts(args, args.prior, args.text_column) if args.prior else originals
    if args.bigrams and args.language_model is not None:
        raise UsageError("--bigrams and --language-model are two models: give one of them")
    mechanisms, prior = _laws_and_prior(args, known)
    model = None if args.language_model is None else _language_model(args.language_model)
    results = Results()
    for name, mechanism in progress([*zip(args.released, mechanisms, strict=True)], "Guessing"):
        rng = keyed_generator(args.seed, "audit")
        adversary = BayesAdversary(mechanism, prior, draws=args.draws, rng=rng)
        results += reconstruct_texts(
            adversary,
            originals,
            _read_released(args, name),
            language_model=BigramModel(known, adversary) if args.bigrams else model,
        )
    _show(args, results, "top-1")
    about = f"by one who knows how often each occurs in {args.prior or args.original}"
    say(f"top-1, top-10: share guessed right with one guess, with ten, {about}", more=True)
    for epsilon in args.epsilon:
        _say_guessed(results.where(epsilon=epsilon), "texts" if is_pool(args.space) else "words")
    told, of_all = (results.where(metric=name)[0] for name in ("unchanged", "counted"))
    about = f"all are shares of {told.repeats:,}"
    if is_pool(args.space):
        say(f"{about} texts that the encoder knows, {of_all.value:.1%} of the texts", more=True)
    else:
        left = "left out are words that it lacks; numbers and names have rows of their own"
        share = f"{of_all.value:.1%} of the {of_all.repeats:,} in the texts"
        say(f"{about} words that the space has, {share}; {left}", more=True)


def _say_guessed(results: "Results", what: str) -> None:
    """Say in plain words what an attacker gets with one guess."""
    found = {result.metric: result.value for result in results}
    right, stayed = found["top-1"], found["top-1, unchanged"]
    of_these = f"; {stayed / right:.0%} of these never changed" if right else ""
    shares = {kind: found.get(f"top-1 of {kind}") for kind in ("numbers", "names")}
    others = [f"{each:.0%} of the {kind}" for kind, each in shares.items() if each is not None]
    listed = f"; {' and '.join(others)}" * bool(others)
    said = f"with one guess an attacker gets {right:.0%} of the {what}{of_these}{listed}"
    say(f"ε = {results[0].epsilon:g}: {said}", more=True)


def _laws_and_prior(args: argparse.Namespace, known: list[str]) -> tuple[list[Any], dict[str, int]]:
    """Return what was released by at each epsilon, and the most frequent inputs in known texts."""
    from hf_dxprivacy.mechanisms import ExactMechanism, create_mechanism
    from hf_dxprivacy.sentences import SentencePool, is_pool
    from hf_dxprivacy.sentences.sentence_privatizer import SentencePrivatizer
    from hf_dxprivacy.spaces.lookup import look_up_rows
    from hf_dxprivacy.text import RowReader

    make: Callable[..., Any]
    counts, others = Counter[str](), Counter[str]()
    if is_pool(args.space):
        if args.bigrams or args.language_model is not None:
            raise UsageError(
                "--bigrams and --language-model are of words, and there are none to guess in a "
                "release over a pool of sentences; leave them out"
            )
        pool, options = SentencePool.from_pretrained(args.space), given_options(args)
        make, counts = partial(SentencePrivatizer, pool), Counter(known)
    else:
        space, options = load_space(args)
        make, read = partial(create_mechanism, space=space), RowReader().read_text
        for row in map(read, known):
            for word, at in zip(row.words, look_up_rows([row], space).tolist(), strict=True):
                told = at >= 0 and not space.is_shape[at]
                (counts if told else others)[space.words[at] if told else word] += 1
    with usage():
        laws = [make(args.mechanism, epsilon=epsilon, **options) for epsilon in args.epsilon]
    exact = all(isinstance(getattr(law, "mechanism", law), ExactMechanism) for law in laws)
    prior = dict(counts.most_common(args.words or (None if exact else DRAWN_WORDS)))
    if len(prior) < len(counts):
        share = f"{sum(prior.values()) / counts.total():.1%} of all occurrences"
        told = f"{len(prior):,} of {len(counts):,}, which are {share}"
        say(f"the most frequent {told}, are guessed, others never; --words N takes more")
    # Numbers and names that the space lacks, which are guessed for rows of their own.
    return laws, {**others, **prior}


def _language_model(name: str) -> "MaskedWordModel":
    from hf_dxprivacy._runtime import require
    from hf_dxprivacy.evaluation import MaskedWordModel

    transformers = require("transformers", "models")
    require("torch", "models")
    try:
        model = transformers.AutoModelForMaskedLM.from_pretrained(name)
        tokenizer = transformers.AutoTokenizer.from_pretrained(name)
    except (OSError, ValueError) as error:
        raise InvalidValueError(
            f"{name}: no model for masked language modelling could be loaded from there "
            f"({type(error).__name__})"
        ) from error
    return MaskedWordModel(model, tokenizer)


def _guarantee_arguments(parser: Parser) -> None:
    add = parser.under("what to check")
    add_space(add)
    add_mechanism(parser, add)
    add("--epsilon", "E", "what the mechanism is given", an_epsilon)
    add = parser.under("how")
    add("--inputs", "N", "words compared (all if exact, else 200)", at_least(2))
    about = "words drawn where the law is not known exactly (%(default)s)"
    add("--draws", "N", about, whole, default=1_000_000)
    add("--alpha", "P", "false-alarm rate of the draws (%(default)s)", share, default=0.001)
    add("--output", "FILE", "write what was found as JSON", Path)
    add("--overwrite", None, "replace FILE if it exists")


def guarantee(args: argparse.Namespace) -> None:
    """Check that a mechanism keeps its guarantee over the words of a space.

    Exactly, over all pairs of words, for the exponential mechanisms hierarchical, calibrated, tem
    and krr (--inputs looks at some words only); by draws for the others, which finds faults but
    cannot prove that there are none. The exit code is 1 if the guarantee is broken.
    """
    from hf_dxprivacy.mechanisms import create_mechanism
    from hf_dxprivacy.randomness import keyed_generator
    from hf_dxprivacy.verify import verify_guarantee

    space, options = load_space(args)
    rng = keyed_generator(args.seed, "audit")
    with usage():
        mechanism = create_mechanism(args.mechanism, space, args.epsilon, **options)
        found = verify_guarantee(
            mechanism, inputs=args.inputs, draws=args.draws, alpha=args.alpha, rng=rng
        )
    print(found)
    put(args, args.output, f"{json.dumps(found.to_dict(), ensure_ascii=False)}\n")
    if not found.passed:
        raise InvalidValueError("the guarantee is broken; see above")


def _read_texts(args: argparse.Namespace, name: str, column: str) -> list[str]:
    """Read a column of texts, in which a missing one is empty."""
    from hf_dxprivacy.files.readers import as_texts

    return as_texts(read_input(args, name, (column,))[0], name, column)


def _read_released(args: argparse.Namespace, name: str) -> list[str]:
    return _read_texts(args, name, args.released_column or args.text_column)


def _show(args: argparse.Namespace, results: "Results", metric: str) -> None:
    """Print results, and write what was asked for, among it a picture of one metric."""
    results = results.replace(dataset=args.dataset or Path(args.original).name.partition(".")[0])
    print(results.to_markdown())
    put(args, args.output, results.to_json_lines())
    if args.plot:
        from hf_dxprivacy.report import draw_results

        figure = draw_results(results, metric).figure
        put(args, args.plot, partial(figure.savefig, format=args.plot.suffix[1:], dpi=150))


_Declare: TypeAlias = Callable[[Parser], None]
ATTACKS: dict[str, tuple[_Declare, Callable[[argparse.Namespace], None]]] = {
    "attribution": (_attribution_arguments, attribution),
    "membership": (_membership_arguments, membership),
    "users": (_users_arguments, users),
    "reconstruction": (_reconstruction_arguments, reconstruction),
    "guarantee": (_guarantee_arguments, guarantee),
}
