"""Goals of speed and size, and the parts of docs/results/speed.md made from measured figures."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import common

Content = dict[str, Any]
# What scripts wrote, by their names.
Results = dict[str, Content]


class Goal(NamedTuple):
    """One figure of a script, and the bound that it should keep.

    Attributes:
        what: What is measured.
        against: The peer or the limit, or nothing.
        script: Name of the script.
        row: Columns that single out its row.
        column: The column of the figure.
        bound: Least figure, or the largest with `at_most`.
        unit: Of the figure.
        at_most: Whether smaller is better.
        beside: Column of another figure of the row, shown in brackets.
    """

    what: str
    against: str
    script: str
    row: dict[str, Any]
    column: str
    bound: float
    unit: str = "×"
    at_most: bool = False
    beside: str = ""

    def figures(self, results: Results, optional: bool = False) -> dict[str, Any] | None:
        """Return the row of the figure, or None if the script has no results.

        Args:
            results: What scripts wrote.
            optional: Return None, too, if there are results without such a row.

        Raises:
            LookupError: If there are results, but not one such row.
        """
        if self.script not in results:
            return None
        rows = [row for row in results[self.script]["rows"] if self.row.items() <= row.items()]
        if optional and not rows:
            return None
        if len(rows) != 1 or self.column not in rows[0]:
            raise LookupError(f"{self.script}: {len(rows)} rows of {self.row} with {self.column!r}")
        return rows[0]

    def is_met(self, row: dict[str, Any]) -> bool:
        """Tell whether a row keeps the bound."""
        figure = row[self.column]
        return bool(figure <= self.bound if self.at_most else figure >= self.bound)

    def shown(self, row: dict[str, Any] | None) -> str:
        """Return the figure as it stands on the page."""
        if row is None:
            return "not measured"
        beside = f" ({common.cell(row[self.beside])} {self.beside})" if self.beside else ""
        return f"{common.cell(row[self.column])} {self.unit}".rstrip() + beside


def goals_table(goals: Sequence[Goal], runs: Sequence[Results]) -> list[dict[str, str]]:
    """Return the rows of the table of goals: each with its figure in every run, and the verdict."""
    table = []
    for goal in goals:
        # An earlier run may have had other rows; in the last one a missing row is an error.
        rows = [*(goal.figures(run, optional=True) for run in runs[:-1]), goal.figures(runs[-1])]
        verdicts = {"met" if goal.is_met(row) else "**missed**" for row in rows if row is not None}
        table.append(
            {
                "what": goal.what,
                "against": goal.against,
                "goal": f"{'≤' if goal.at_most else '≥'} {goal.bound:,g} {goal.unit}".rstrip(),
                **{f"run {n}": goal.shown(row) for n, row in enumerate(rows, 1)},
                "": verdicts.pop() if len(verdicts) == 1 else "met once" if verdicts else "",
            }
        )
    return table


def machine_table(runs: Sequence[Results]) -> list[dict[str, Any]]:
    """Return the facts of the machine and what else it did, for each run."""
    table = []
    for number, run in enumerate(runs, 1):
        if not run:
            continue
        machines = [content["machine"] for content in run.values()]
        started = min(machine["started"] for machine in machines)
        loads = ", ".join(str(machine["load before"]) for machine in machines)
        facts = {k: v for k, v in machines[0].items() if k not in ("started", "load before")}
        table.append({"run": number, "started": started} | facts | {"load before scripts": loads})
    return table


def all_tables(results: Results, commands: Mapping[str, str]) -> str:
    """Return the tables of scripts, in the order of their commands, under their titles."""
    return "\n".join(
        f"### {results[name]['title']}\n\n    {command}\n\n{common.markdown(results[name]['rows'])}"
        for name, command in commands.items()
        if name in results
    )


def read(folder: Path) -> Results:
    """Return what scripts wrote into a folder."""
    files = sorted(folder.glob("*.json"))
    return {file.stem: json.loads(file.read_text("utf-8")) for file in files}
