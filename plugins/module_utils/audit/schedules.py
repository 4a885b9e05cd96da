# Copyright (c) 2026 The fleetcheck authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""How often: spans and calendars of systemd, fields of cron, and how people say it. All in seconds."""

from __future__ import annotations

import re
import typing as t

DAY = 86400
# systemd.time(7): it shows the first of each, people write all of them.
_UNITS = {
    name: seconds
    for names, seconds in (
        ("us usec", 1e-6),
        ("ms msec", 1e-3),
        ("s sec second seconds", 1),
        ("min m minute minutes", 60),
        ("h hr hour hours", 3600),
        ("d day days", DAY),
        ("w week weeks", 7 * DAY),
        ("month M months", 30.44 * DAY),
        ("y year years", 365.25 * DAY),
    )
    for name in names.split()
}
_WORDS = {
    "@hourly": 3600,
    "@daily": DAY,
    "@midnight": DAY,
    "@weekly": 7 * DAY,
    "@monthly": 30 * DAY,
    "@yearly": 365 * DAY,
    "@annually": 365 * DAY,
}


def span(text: str) -> t.Optional[int]:
    """The seconds of a time span as systemd shows it and reads it: `1h 30min`; None for `infinity`, `0` and what is none."""
    parts = re.findall(r"(\d+(?:\.\d+)?)\s*([A-Za-z]*)\s*", text)
    if "".join(amount + unit for amount, unit in parts) != "".join(text.split()):
        return None
    if not all((unit or "s") in _UNITS for _amount, unit in parts):
        return None
    return round(sum(float(amount) * _UNITS[unit or "s"] for amount, unit in parts)) or None


def calendar(text: str) -> t.Optional[int]:
    """The shortest distance between two moments of an OnCalendar= in systemd's own form, such as
    `*-*-* *:00/10:00`. None where it is not one of the regular ones.
    """
    match = re.fullmatch(r"(?:([A-Za-z,.-]+) )?(\S+-\S+-\S+) (\S+):(\S+):(\S+?)(?: UTC)?", text.strip())
    if not match:
        return None
    weekday, date, hour, minute, second = match.groups()
    if not re.fullmatch(r"00|0", second):
        return None
    times = _times(hour, minute, "/", start=True)
    if times is None:
        return None
    periods = {r"\*-\*-\*": 7 * DAY if weekday else DAY, r"\*-\*-\d+": 30 * DAY, r"\*-\d+-\d+": 365 * DAY}
    period = next((days for pattern, days in periods.items() if re.fullmatch(pattern, date)), None)
    if period is None:
        return None
    return _distance(times, DAY if len(times) > 1 else period)


def cron(fields: t.Sequence[str]) -> t.Optional[int]:
    """The shortest distance between two moments of five fields of a crontab, or of one word like `@daily`."""
    if len(fields) == 1:
        return _WORDS.get(fields[0].lower())
    times = _times(fields[1], fields[0], "/", start=False)
    if times is None:
        return None
    if fields[2] == "*" and fields[4] == "*":
        return _distance(times, DAY)
    return _distance(times, DAY if len(times) > 1 else (7 * DAY if fields[2] == "*" else 30 * DAY))


def _times(hour: str, minute: str, step: str, start: bool) -> t.Optional[t.List[int]]:
    hours = _numbers(hour, 24, step, start)
    minutes = _numbers(minute, 60, step, start)
    if hours is None or minutes is None:
        return None
    return sorted({3600 * one + 60 * other for one in hours for other in minutes})


def _numbers(text: str, end: int, step: str, start: bool) -> t.Optional[t.Set[int]]:
    """The numbers a field names. With `start`, `5/10` means 5, 15, 25, … as in systemd."""
    numbers: t.Set[int] = set()
    for part in text.split(","):
        match = re.fullmatch(r"(\*|\d{1,2})(?:(?:-|\.\.)(\d{1,2}))?(?:/(\d{1,2}))?", part)
        if not match:
            return None
        low = 0 if match.group(1) == "*" else int(match.group(1))
        last = end - 1 if match.group(1) == "*" or (start and match.group(3)) else low
        high = int(match.group(2)) if match.group(2) else last
        every = int(match.group(3) or 1)
        if not 0 <= low <= high < end or every == 0:
            return None
        numbers.update(range(low, high + 1, every))
    return numbers


def _distance(times: t.Sequence[int], period: int) -> int:
    if len(times) == 1:
        return period
    within = [later - earlier for earlier, later in zip(times, times[1:])]
    return min([*within, DAY - times[-1] + times[0]])


def say(seconds: float) -> str:
    """`5 minutes`, `1 hour`, `90 seconds`, `2 days`: in the largest unit that leaves no remainder."""
    whole = round(seconds)
    for size, word in ((7 * DAY, "week"), (DAY, "day"), (3600, "hour"), (60, "minute")):
        if whole >= size and whole % size == 0:
            return number(whole // size, word)
    return number(whole, "second")


def number(count: int, word: str) -> str:
    """`1 party`, `2 parties`."""
    if count == 1:
        return f"1 {word}"
    return f"{count} {word[:-1]}ies" if word.endswith("y") and word not in ("day",) else f"{count} {word}s"


def series(words: t.Sequence[str]) -> str:
    """`a`, `a and b`, `a, b and c`."""
    if len(words) < 2:
        return "".join(words)
    return ", ".join(words[:-1]) + " and " + words[-1]


def say_every(spans: t.Sequence[int]) -> str:
    """`every 5, 10, 15 and 30 minutes`; `every 5 minutes and every day` where the units differ."""
    said = [say(one) for one in sorted(set(spans))]
    pairs = [one.split(" ", 1) for one in said]
    words = {word.rstrip("s") for _count, word in pairs}
    if len(words) == 1 and len(pairs) > 1:
        return f"every {series([count for count, _word in pairs])} {pairs[0][1].rstrip('s')}s"
    return series(["every " + re.sub(r"\A1 ", "", one) for one in said])
