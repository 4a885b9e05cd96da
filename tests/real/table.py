"""The table of a run, for a terminal and for a README."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from dataclasses import dataclass, field

from .truth import Outcome

HEADINGS = ("state", "truth", "said", "probes", "seconds", "message")


@dataclass(frozen=True)
class Row:
    """One state: what was true, what was said, and what is wrong about it."""

    name: str
    state: str
    truth: str
    got: Outcome | None
    wrong: Sequence[str] = field(default_factory=tuple)

    @property
    def right(self) -> bool:
        """Whether an answer came and agrees with the truth."""
        return self.got is not None and not self.wrong

    def cells(self) -> tuple[str, ...]:
        """The row's cells in the order of HEADINGS."""
        if self.got is None:
            return (self.state, self.truth, "–", "–", "–", "; ".join(self.wrong))
        got = self.got
        return (self.state, self.truth, got.answer, str(got.probes), f"{got.elapsed:.1f}", got.message)


@dataclass(frozen=True)
class Healed:
    """The restart of a real unit: its figures, and what is wrong about it."""

    lines: Sequence[str]
    wrong: Sequence[str] = field(default_factory=tuple)


@dataclass(frozen=True)
class Report:
    """All rows, and what was measured beside them."""

    version: str
    date: str
    patience: float
    rows: Sequence[Row]
    longest_step: tuple[float, str] | None = None
    healed: Healed | None = None

    @property
    def right(self) -> bool:
        """Whether nothing in it contradicts the truth."""
        return not self.wrong and not (self.healed and self.healed.wrong)

    @property
    def wrong(self) -> list[Row]:
        """The rows whose answer contradicts the truth, or never came."""
        return [row for row in self.rows if not row.right]


def verdict_line(report: Report) -> str:
    """One line of counts, and where there are any, the names of the wrong ones."""
    good = len(report.rows) - len(report.wrong)
    line = f"{good} of {len(report.rows)} states told right"
    if report.wrong:
        line += f"; wrong: {', '.join(row.name for row in report.wrong)}"
    return line + "."


def step_line(report: Report) -> str:
    """The number above which patience has to lie here; empty where nothing was measured."""
    if report.longest_step is None:
        return ""
    seconds, state = report.longest_step
    return f"Longest silence of a working engine: {seconds:.1f} s ({state}); patience was {report.patience:g} s."


def summary(report: Report) -> list[str]:
    """The lines at the end of a run."""
    return [line for line in (verdict_line(report), step_line(report)) if line] if report.rows else []


def terminal(row: Row) -> str:
    """One row as two or more lines, written while the run goes on."""
    mark = "right" if row.right else "WRONG"
    said = row.got.answer if row.got else "no answer"
    figures = f"{row.got.probes} probes, {row.got.elapsed:.1f} s" if row.got else ""
    lines = [f"{mark}  {row.name:<28} truth {row.truth:<10} said {said:<24} {figures}".rstrip()]
    texts = [row.got.message] if row.got else []
    for text in [*texts, *row.wrong]:
        lines += textwrap.wrap(text, 110, initial_indent="       ", subsequent_indent="       ")
    return "\n".join(lines)


def markdown(report: Report) -> str:
    """The whole report as markdown: a line on where it comes from, the table, the figures."""
    lines = [f"vLLM {report.version} (CPU build), {report.date}, patience {report.patience:g} s.", ""]
    if report.rows:
        rows = [HEADINGS, ["---"] * len(HEADINGS), *(_marked(row) for row in report.rows)]
        lines += [*map(_markdown_row, rows), "", *summary(report)]
    if report.healed:
        lines += ["", "The same vLLM as a unit, its engine stopped:", "", "```", *report.healed.lines, "```"]
        lines += report.healed.wrong
    return "\n".join(lines).rstrip() + "\n"


def _marked(row: Row) -> tuple[str, ...]:
    """A row's cells, with what is wrong about it beside the answer."""
    state, truth, said, *rest = row.cells()
    if row.wrong and row.got is not None:
        said = f"**{said}** ({'; '.join(row.wrong)})"
    return (state, truth, said, *rest)


def _markdown_row(cells: Sequence[str]) -> str:
    """One line of a markdown table; a bar inside a cell would end it."""
    return "| " + " | ".join(cell.replace("|", "\\|").replace("\n", " ") for cell in cells) + " |"
