"""The verbs calibrate and demo: effects of a mechanism, in tables and on a page."""

import argparse
import shlex
import threading
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from hf_dxprivacy.cli.arguments import (
    UsageError,
    add_local_epsilon,
    add_mechanism,
    an_epsilon,
    at_least,
    check_outputs,
    load_space,
    local_epsilon,
    number,
    share,
    usage,
)
from hf_dxprivacy.cli.terminal import PROGRAM, say, seconds
from hf_dxprivacy.errors import InvalidValueError

if TYPE_CHECKING:
    from hf_dxprivacy.report import Sweep

TABLES = (".csv", ".json", ".parquet")
GUESSED = (
    "An attacker who knows how often each occurs guesses more often than N_w says;\n"
    f"{PROGRAM} audit reconstruction tells how often on your texts"
)

OPEN_TO_OTHERS = (
    "warning: {host} is not the loopback address: others may reach this page. What they paste "
    "travels unencrypted, and the host of the page could read it"
)


def calibrate_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    parser.usage = "%(prog)s SPACE --mechanism NAME --epsilon E [E ...] [options]"
    about = "a built-in space or pool of sentences, a folder, or a repository on the Hub"
    parser.add_argument("space", metavar="SPACE", help=about)
    add = parser.add_argument_group("what to look at").add_argument
    add_mechanism(parser, add)
    add("--epsilon", type=an_epsilon, nargs="+", metavar="E", help="values to look at")
    add_local_epsilon(add, nargs="+")
    add("--max-nw", type=share, metavar="P", help="target: no word stays more often")
    add("--min-sw", type=at_least(1), metavar="N", help="target: no word becomes one of fewer")
    add = parser.add_argument_group("how it runs").add_argument
    add("--words", type=at_least(1), default=500, metavar="N", help="words looked at (%(default)s)")
    add("--runs", type=at_least(1), default=1000, metavar="N", help="draws of a word (%(default)s)")
    add("--seed", type=at_least(0), metavar="N", help="of the choice of words and of the draws")
    add("--output", type=Path, metavar="FILE", help="all figures: .csv, .json or .parquet")
    add("--report", type=Path, metavar="FILE", help="a page with pictures, one HTML file")
    add("--overwrite", action="store_true", help="replace the files if they exist")


def calibrate(args: argparse.Namespace) -> None:
    """Show what a mechanism does to the words of a space at several epsilons, to choose one.

      hf-dxprivacy calibrate english --mechanism hierarchical --epsilon 1 1.5 2 --report report.html
      hf-dxprivacy calibrate ./glove --mechanism laplace --epsilon 8 16 32 --max-nw 0.5
      hf-dxprivacy calibrate ./pool --mechanism hierarchical --local-epsilon 8 10 12 15

    N_w is the probability that a word stays, S_w the number of words it may become. A word is
    hidden better where N_w is small and S_w is large; a text stays useful where they are not. An
    attacker who knows how often words occur guesses more often than N_w says: see 'audit
    reconstruction'. The local epsilon bounds the log-ratio of any two inputs. Of a pool of
    sentences, the same is shown of its sentences, each of which stands for the texts that are
    nearest to it.

    The exponential mechanisms (hierarchical, calibrated, tem, krr) are measured exactly, the others
    by draws. With --max-nw or --min-sw the largest of the epsilons is named at which every word
    that was looked at meets the targets. Only the public space goes in, so none of it is private.
    """
    from hf_dxprivacy.calibration import sample_words, suggest_epsilon
    from hf_dxprivacy.randomness import keyed_generator, process_generator
    from hf_dxprivacy.report import sweep

    check_outputs(args, "report", {"output": TABLES})
    if Path(args.space).is_file():
        raise UsageError(
            f"{args.space} is a file, and this looks at the words of a space, such as english; to "
            f"look at your own texts: {PROGRAM} compare {shlex.quote(args.space)}"
        )
    space, options = load_space(args)
    if args.epsilon is None:
        bounds, mechanism = args.local_epsilon, args.mechanism
        args.epsilon = [local_epsilon(mechanism, [space], bound, options) for bound in bounds]
    rng = process_generator() if args.seed is None else keyed_generator(args.seed, "calibrate")
    words = sample_words(space, args.words, rng=rng)
    settings = {**options, "runs": args.runs, "rng": rng}
    with usage():
        found = sweep(space, args.mechanism, args.epsilon, words, **settings)
    print(_table(found))
    answer, epsilon = None, "E"
    try:
        if args.max_nw is not None or args.min_sw is not None:
            suggestion = suggest_epsilon(
                space,
                args.mechanism,
                max_nw=args.max_nw,
                min_sw=args.min_sw,
                words=found.statistics.words,
                epsilons=args.epsilon,
                **settings,
            )
            answer, epsilon = str(suggestion), str(suggestion.epsilon)
    except InvalidValueError as error:
        _write(args, found, str(error))
        raise
    _write(args, found, answer)
    if answer:
        print(f"\n{answer}")
    files = ", ".join(str(path) for path in (args.output, args.report) if path)
    say(f"{len(found.steps)} epsilons in {seconds()}{f'; written: {files}' * bool(files)}")
    chosen = f"--space {args.space} --mechanism {args.mechanism} --epsilon {epsilon}"
    say(f"next: {PROGRAM} privatize INPUT --output OUT {chosen}", more=True)


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

    # Two lines of headings, so that the table fits a terminal.
    last = ""
    heads = []
    for name in HEADINGS:
        first, _, below = name.replace(",", "").rpartition(" ")
        last = first or last
        heads.append((first or (last if name in ("median", "largest", "least") else ""), below))
    rows = [*map(list, zip(*heads, strict=True)), *(step.cells() for step in found.steps)]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines = ["  ".join(c.rjust(w) for c, w in zip(row, widths, strict=True)) for row in rows]
    how = "exactly" if found.statistics.exact else f"by {found.statistics.runs:,} draws of each"
    about = f"{len(found.statistics.words):,} {found.entries}, {how}"
    kept = f"N_w: how often one of them stays; S_w: {found.spread_name}"
    return "\n".join([*lines, about, kept, GUESSED])


def demo_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    parser.usage = "%(prog)s [options]"
    add = parser.add_argument
    add("--host", default="127.0.0.1", metavar="ADDRESS", help="to listen at (%(default)s)")
    port = number(int, "a port from 1 to 65535", lambda value: 0 < value < 1 << 16)
    add("--port", type=port, metavar="N", help="to listen at (a free one)")
    add(
        "--space",
        action="append",
        metavar="NAME",
        help="a built-in space or pool, a folder that holds one, or a repository on the Hub; "
        "repeat it for several (all built-in ones)",
    )


def demo(args: argparse.Namespace) -> None:
    """Show a page in the browser: paste a text, move epsilon, see what a release would be.

      hf-dxprivacy demo
      hf-dxprivacy demo --space ./glove --space english --port 8000

    The page is served on this machine and can be reached from this machine only, unless --host says
    otherwise. It sends nothing anywhere, logs no text and keeps none. Ctrl-C ends it.
    """
    from hf_dxprivacy.page.demo import demo_page, is_loopback, serve

    if not is_loopback(args.host):
        say(OPEN_TO_OTHERS.format(host=args.host))
    page = demo_page(args.space or ())
    url = serve(page, args.host, args.port)
    print(f"Open {url}", flush=True)
    threading.Event().wait()
