"""Results side by side."""

from hf_dxprivacy.results import ORIGINAL, Result, Results


def pivot(results: Results, metric: str | None = None, digits: int = 3) -> str:
    """Return a Markdown table with a row for each mechanism and ε, and a column for each dataset.

    Args:
        results: The figures, in the order in which they are shown.
        metric: Which ones. By default all, with a column for each dataset and metric.
        digits: After the point. Behind ± is half the width of the interval.
    """
    chosen = results if metric is None else results.where(metric=metric)
    cells = {(_row(r), _column(r, metric)): r for r in chosen}
    rows = list(dict.fromkeys(row for row, _ in cells))
    columns = list(dict.fromkeys(column for _, column in cells))
    lines = [f"| mechanism | ε | {' | '.join(columns)} |", "|---|---:|" + "---:|" * len(columns)]
    for mechanism, epsilon in rows:
        found = [cells.get(((mechanism, epsilon), column)) for column in columns]
        shown = " | ".join("" if r is None else _cell(r, digits) for r in found)
        lines.append(f"| {mechanism} | {epsilon} | {shown} |")
    return "\n".join(lines)


def _row(result: Result) -> tuple[str, str]:
    name = "original" if result.mechanism == ORIGINAL else result.mechanism
    return name, "" if result.epsilon is None else f"{result.epsilon:g}"


def _column(result: Result, metric: str | None) -> str:
    return result.dataset if metric else f"{result.dataset}, {result.metric}"


def _cell(result: Result, digits: int) -> str:
    half = (result.high - result.low) / 2.0
    spread = f" ± {half:.{digits}f}" if round(half, digits) else ""
    return f"{result.value:.{digits}f}{spread}"
