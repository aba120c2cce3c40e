"""The verb calibrate: effects of a mechanism at several epsilons."""

import argparse
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from hf_dxprivacy.cli.arguments import (
    UsageError,
    add_mechanism,
    at_least,
    given_options,
    load_space,
    positive,
    share,
    usage,
)

if TYPE_CHECKING:
    import numpy as np

    from hf_dxprivacy.errors import InvalidValueError
    from hf_dxprivacy.report import Sweep

TABLES = (".csv", ".json", ".parquet")


def calibrate_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    parser.usage = "%(prog)s SPACE --mechanism NAME --epsilon E [E ...] [options]"
    add = parser.add_argument
    add("space", metavar="SPACE", help="a built-in space, a folder, or a repository on the Hub")
    add("--epsilon", type=positive, nargs="+", required=True, metavar="E", help="values to look at")
    add_mechanism(add)
    add("--words", type=at_least(1), default=500, metavar="N", help="words looked at (%(default)s)")
    add("--runs", type=at_least(1), default=1000, metavar="N", help="draws of each (%(default)s)")
    add("--max-nw", type=share, metavar="P", help="target: no word stays more often")
    add("--min-sw", type=at_least(1), metavar="N", help="target: no word becomes one of fewer")
    add("--seed", type=at_least(0), metavar="N", help="of the choice of words and of the draws")
    add("--output", type=Path, metavar="FILE", help="a row for each word: .csv, .json or .parquet")
    add("--report", type=Path, metavar="FILE", help="a page with pictures, one HTML file")
    add("--overwrite", action="store_true", help="replace the files if they exist")


def calibrate(args: argparse.Namespace) -> None:
    """Show what a mechanism does to the words of a space at several epsilons, to choose one.

    N_w is the probability that a word stays, S_w the number of words it may become. A word is
    hidden well where N_w is small and S_w is large; a text stays useful where they are not.

      hf-dxprivacy calibrate english --mechanism hierarchical --epsilon 1 1.5 2 --report report.html
      hf-dxprivacy calibrate ./glove --mechanism laplace --epsilon 8 16 32 --max-nw 0.5

    The exponential mechanisms (calibrated, tem) are measured exactly, the others by draws. With
    --max-nw or --min-sw the largest of the epsilons is named at which every word that was looked at
    meets the targets. Nothing but the space goes in, so that none of it is private.

    Raises:
        UsageError: If the arguments do not go together.
        DxPrivacyError: If there is no such space, or none of the epsilons meets the targets.
        OSError: If a file cannot be written.
    """
    _check_outputs(args)
    from hf_dxprivacy.calibration import sample_words
    from hf_dxprivacy.randomness import keyed_generator, process_generator
    from hf_dxprivacy.report import sweep

    space = load_space(args)
    rng = process_generator() if args.seed is None else keyed_generator(args.seed, "calibrate")
    words = sample_words(space, args.words, rng=rng)
    with usage():
        found = sweep(
            space,
            args.mechanism,
            args.epsilon,
            words,
            runs=args.runs,
            rng=rng,
            **given_options(args),
        )
    print(_table(found))
    answer, failure = _answer(args, found, rng)
    _write(args, found, answer)
    if failure:
        raise failure
    if answer:
        print(f"\n{answer}")


def _check_outputs(args: argparse.Namespace) -> None:
    from hf_dxprivacy.files.writers import check_output

    if args.output and args.output.suffix not in TABLES:
        raise UsageError(f"{args.output}: expected a name that ends in {', '.join(TABLES)}")
    if args.output and args.output == args.report:
        raise UsageError("the report and the table are the same file; name another one")
    if args.report:
        from hf_dxprivacy._runtime import require

        require("matplotlib", "report")
    for path in filter(None, (args.output, args.report)):
        with usage():
            check_output(path, args.overwrite)


def _answer(
    args: argparse.Namespace, found: "Sweep", rng: "np.random.Generator"
) -> "tuple[str | None, InvalidValueError | None]":
    """Return which ε to take, or why none will do; nothing if there is no target."""
    from hf_dxprivacy.calibration import suggest_epsilon
    from hf_dxprivacy.errors import InvalidValueError

    if args.max_nw is None and args.min_sw is None:
        return None, None
    try:
        suggestion = suggest_epsilon(
            found.mechanism.space,
            args.mechanism,
            max_nw=args.max_nw,
            min_sw=args.min_sw,
            words=found.statistics.words,
            epsilons=args.epsilon,
            runs=args.runs,
            rng=rng,
            **given_options(args),
        )
    except InvalidValueError as error:
        return str(error), error
    return str(suggestion), None


def _write(args: argparse.Namespace, found: "Sweep", answer: str | None) -> None:
    from hf_dxprivacy.files.writers import replacing
    from hf_dxprivacy.report import calibration_report

    if args.output:
        frame = found.to_dataset().to_pandas()
        write = {
            ".csv": partial(frame.to_csv, index=False),
            ".json": partial(frame.to_json, orient="records", force_ascii=False),
            ".parquet": frame.to_parquet,
        }[args.output.suffix]
        with replacing(args.output, overwrite=args.overwrite) as file:
            write(file)
    if args.report:
        page = calibration_report(found, answer)
        with replacing(args.report, overwrite=args.overwrite) as file:
            file.write(page.encode())


def _table(found: "Sweep") -> str:
    """Return the table, its columns in line."""
    from hf_dxprivacy.report import HEADINGS

    rows = [list(HEADINGS), *(step.cells() for step in found.steps)]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines = ["  ".join(c.rjust(w) for c, w in zip(row, widths, strict=True)) for row in rows]
    how = "exactly" if found.statistics.exact else f"by {found.statistics.runs:,} draws of each"
    about = f"{len(found.statistics.words):,} words, {how}; S_w: {found.spread_name}"
    return "\n".join([*lines, about])
