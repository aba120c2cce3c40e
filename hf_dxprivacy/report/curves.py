"""Curves of `Results`: a figure against ε, and what is useful against what leaks.

Without matplotlib both functions raise MissingExtraError.
"""

from collections.abc import Sequence
from typing import Any

from hf_dxprivacy.errors import InvalidValueError, require_one_of
from hf_dxprivacy.hub.cards import COLOURS, OTHER_COLOUR
from hf_dxprivacy.report.figures import Picture, panels, show_epsilons
from hf_dxprivacy.results import ORIGINAL, Result, Results

# Mechanisms differ in their markers too, not in colour alone.
MARKERS = {
    "hierarchical": "P",
    "calibrated": "o",
    "tem": "s",
    "laplace": "^",
    "mahalanobis": "v",
    "hyperbolic": "D",
    "krr": "x",
}


def draw_results(results: Results, metric: str) -> Picture:
    """Draw a metric against ε with its intervals, a panel for each task and dataset.

    Figures without an ε, such as those of original texts and of random words, become level lines.

    Args:
        results: The figures; those of other metrics are left out.
        metric: Which one to draw.

    Raises:
        InvalidValueError: If there is no figure of the metric.
    """
    require_one_of(dict.fromkeys(r.metric for r in results), metric=metric)
    chosen = results.where(metric=metric)
    places = list(dict.fromkeys((r.task, r.dataset) for r in chosen))
    figure, axes = panels(len(places), 3.0)
    for (task, dataset), each in zip(places, axes, strict=True):
        here = chosen.where(task=task, dataset=dataset)
        each.set_title(f"{task}, {dataset}", fontsize="medium")
        for name in dict.fromkeys(r.mechanism for r in here):
            found, style = here.where(mechanism=name), _style(name)
            rows = sorted(found, key=lambda r: r.epsilon or 0.0)
            if steps := [r for r in rows if r.epsilon is not None]:
                grid, values = [r.epsilon for r in steps], [r.value for r in steps]
                each.errorbar(grid, values, yerr=_errors(steps), **style)
            for r in found.where(epsilon=None):
                dashes = "-" if name == ORIGINAL else "--"
                level = {"color": style["color"], "label": style["label"], "linewidth": 1}
                each.axhline(r.value, linestyle=dashes, **level)
        each.set_ylabel(metric)
        each.set_xlabel("ε")
        show_epsilons(each, [r.epsilon for r in here if r.epsilon is not None])
        each.grid(alpha=0.3)
    _add_legend(figure)
    listed = "; ".join(f"{task} on {dataset}" for task, dataset in places)
    return Picture(
        f"{metric} against ε",
        f"Charts of {metric} against ε with confidence intervals, for {listed}. The numbers are in "
        "the table of results.",
        figure,
    )


def draw_tradeoff(utility: Results, privacy: Results) -> Picture:
    """Draw a useful figure against a leaking one, a point for each mechanism and ε of both.

    Args:
        utility: Figures of one task, dataset and metric, such as the accuracy of a classifier.
        privacy: The same of an attack, such as its share of successes.

    Raises:
        InvalidValueError: If either has not exactly one task, dataset and metric, or they share no
            mechanism at an ε.
    """
    useful, leaking = _by_setting(utility), _by_setting(privacy)
    shared = [setting for setting in useful if setting in leaking]
    if not shared:
        raise InvalidValueError("the two share no mechanism at an ε; measure both at the same ε")
    figure, (axes,) = panels(1, 4.2)
    for name in dict.fromkeys(name for name, _ in shared):
        settings = [setting for setting in shared if setting[0] == name]
        across, up = [leaking[s] for s in settings], [useful[s] for s in settings]
        x, y = [r.value for r in across], [r.value for r in up]
        axes.errorbar(x, y, xerr=_errors(across), yerr=_errors(up), **_style(name))
        for (_, epsilon), *point in zip(settings, x, y, strict=True):
            if epsilon is not None:
                place = {"xytext": (4, 4), "textcoords": "offset points"}
                axes.annotate(f"{epsilon:g}", point, fontsize="x-small", **place)
    axes.set_xlabel(_title(privacy[0]))
    axes.set_ylabel(_title(utility[0]))
    axes.grid(alpha=0.3)
    _add_legend(figure)
    return Picture(
        "Utility against leakage",
        f"A chart of {_title(utility[0])} against {_title(privacy[0])}, with ε beside each point. "
        "Up is more useful, left leaks less. The numbers are in the table of results.",
        figure,
    )


def _add_legend(figure: Any) -> None:
    """Name each mechanism once, below all panels."""
    named: dict[str, Any] = {}
    for axes in figure.axes:
        handles, labels = axes.get_legend_handles_labels()
        named |= dict(zip(labels, handles, strict=True))
    placed = {"loc": "outside lower center", "ncols": 3, "fontsize": "small"}
    figure.legend(named.values(), named.keys(), **placed)


def _style(name: str) -> dict[str, Any]:
    return {
        "label": "original" if name == ORIGINAL else name,
        "color": COLOURS.get(name, OTHER_COLOUR),
        "marker": MARKERS.get(name, "x"),
        "markersize": 4,
        "linewidth": 1,
        "capsize": 2,
    }


def _errors(results: Sequence[Result]) -> list[list[float]]:
    return [[r.value - r.low for r in results], [r.high - r.value for r in results]]


def _by_setting(results: Results) -> dict[tuple[str, float | None], Result]:
    """Return the figures by mechanism and ε, in the order of ε."""
    if len({_title(r) for r in results}) != 1:
        raise InvalidValueError(
            "expected figures of exactly one task, dataset and metric; choose with results.where"
        )
    ordered = sorted(results, key=lambda r: r.epsilon or 0.0)
    return {(r.mechanism, r.epsilon): r for r in ordered}


def _title(result: Result) -> str:
    return f"{result.metric} ({result.task}, {result.dataset})"
