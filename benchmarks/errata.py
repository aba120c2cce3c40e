"""Make the table of docs/errata.md: the largest log-ratio found for each formula, and its ε·d.

python benchmarks/errata.py            print it
python benchmarks/errata.py --write    put it into the page
"""

import math
from pathlib import Path

from common import print_or_write
from faulty_mechanisms import CONTROLS, Control, ReleasesUnknown, clusters
from hf_dxprivacy.mechanisms import ExactMechanism, Mechanism, TruncatedExponential
from hf_dxprivacy.privatizers.text_privatizer import DxPrivatizer
from hf_dxprivacy.randomness import keyed_generator
from hf_dxprivacy.verify.check import GuaranteeCheck
from hf_dxprivacy.verify.laws import verify_guarantee

PAGE = Path(__file__).resolve().parents[1] / "docs" / "errata.md"

# Noise is searched on sixty inputs with this many draws; seeds are fixed, so that the table is.
INPUTS, DRAWS, ALPHA = 60, 400_000, 1e-6


def main() -> None:
    """Print the table, or write it into the page."""
    print_or_write(__doc__, PAGE, Path(__file__).name, table)


def table() -> str:
    """Return the table in Markdown."""
    rows = [
        ["formula", "found in", "log-ratio", "ε·d allows", "corrected, at worst"],
        ["---", "---", "---:", "---:", "---"],
        *(_row(control) for control in CONTROLS.values()),
        _unknown_words(),
    ]
    return "".join(f"| {' | '.join(row)} |\n" for row in rows)


def _row(control: Control) -> list[str]:
    faulty, right = _audited(control.faulty()), control.honest()
    found = _audited(right)
    corrected = _corrected(found)
    if math.isinf(right.diameter):
        corrected = "states ∞" + ("" if math.isinf(found.allowed) else f"; {_corrected(found)}")
    return [control.formula, control.source, *_figures(faulty), corrected]


def _audited(mechanism: Mechanism) -> GuaranteeCheck:
    inputs = None if isinstance(mechanism, ExactMechanism) else INPUTS
    return verify_guarantee(
        mechanism, inputs=inputs, draws=DRAWS, alpha=ALPHA, rng=keyed_generator(1)
    )


def _unknown_words() -> list[str]:
    """Return the row of unknown words that are released as they are."""
    mechanism = TruncatedExponential(clusters(), 2.0)
    words = [*clusters().words[:40], "first", "second"]
    kept = ReleasesUnknown(mechanism, keyed_generator(1))
    honest = DxPrivatizer(clusters(), mechanism)
    faulty, corrected = (
        verify_guarantee(
            function,
            words,
            mechanism.word_bound,
            draws=DRAWS // 4,
            alpha=ALPHA,
            rng=keyed_generator(1),
        )
        for function in (kept, honest.privatize)
    )
    formula = "words out of vocabulary are released unchanged"
    return [formula, "mldp-text 0.1.2, all mechanisms", *_figures(faulty), _corrected(corrected)]


def _figures(found: GuaranteeCheck) -> list[str]:
    at_least = "≥ " if found.method == "sampling" else ""
    ratio = "∞" if found.log_ratio == float("inf") else f"{found.log_ratio:.2f}"
    return [f"{at_least}{ratio}", f"{found.allowed:.2f}"]


def _corrected(found: GuaranteeCheck) -> str:
    if not found.passed:
        return "broken too"
    if found.method == "sampling":
        return "nothing above ε·d in the draws"
    return f"{found.log_ratio:.2f} of {found.allowed:.2f}, all triples"


if __name__ == "__main__":
    main()
