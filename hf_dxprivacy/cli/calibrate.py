"""The verbs calibrate and demo: effects of a mechanism, in tables and on a page."""

import argparse
import shlex
import threading
from pathlib import Path
from typing import TYPE_CHECKING

from hf_dxprivacy.cli.arguments import (
    Parser,
    UsageError,
    add_local_epsilon,
    add_mechanism,
    add_outputs,
    an_epsilon,
    check_outputs,
    load_space,
    local_epsilon,
    natural,
    number,
    put,
    put_table,
    require_epsilon,
    say_done,
    share,
    usage,
    whole,
)
from hf_dxprivacy.cli.terminal import PROGRAM, say
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


def calibrate_arguments(parser: Parser) -> None:
    """Declare the arguments."""
    parser.usage = "%(prog)s SPACE --mechanism NAME --epsilon E [E ...] [options]"
    about = "a built-in space or pool of sentences, a folder, or a repository on the Hub"
    parser.add("space", "SPACE", about)
    add = parser.under("what to look at")
    add_mechanism(parser, add)
    add("--epsilon", "E", "values to look at", an_epsilon, nargs="+")
    add_local_epsilon(add, nargs="+")
    add("--max-nw", "P", "target: no word stays more often", share)
    add("--min-sw", "N", "target: no word becomes one of fewer", whole)
    add = parser.under("how it runs")
    add("--words", "N", "words looked at (%(default)s)", whole, default=500)
    add("--runs", "N", "draws of a word (%(default)s)", whole, default=1000)
    add("--seed", "N", "of the choice of words and of the draws", natural)
    about = "all figures: .csv, .json or .parquet"
    add_outputs(add, about, "--report", "a page with pictures, one HTML file")


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

    require_epsilon(args)
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
    say_done(args, f"{len(found.steps)} epsilons", "report")
    chosen = f"--space {args.space} --mechanism {args.mechanism} --epsilon {epsilon}"
    say(f"next: {PROGRAM} privatize INPUT --output OUT {chosen}", more=True)


def _write(args: argparse.Namespace, found: "Sweep", answer: str | None) -> None:
    from hf_dxprivacy.report import calibration_report

    if args.output:
        put(args, args.output, put_table(found.to_dataset().to_pandas(), args.output.suffix))
    put(args, args.report, calibration_report(found, answer) if args.report else "")


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


def demo_arguments(parser: Parser) -> None:
    """Declare the arguments."""
    parser.usage, add = "%(prog)s [options]", parser.add
    add("--host", "ADDRESS", "to listen at (%(default)s)", default="127.0.0.1")
    port = number(int, "a port from 1 to 65535", lambda value: 0 < value < 1 << 16)
    add("--port", "N", "to listen at (a free one)", port)
    about = (
        "a built-in space or pool, a folder that holds one, or a repository on the Hub; repeat it "
        "for several (all built-in ones)"
    )
    add("--space", "NAME", about, action="append")


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
