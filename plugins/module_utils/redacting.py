# Copyright (c) 2026 The fleetcheck authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Text of a host made fit to be shown: no secrets, no control characters, one line, not too long."""

from __future__ import annotations

import re

HIDDEN = "***"
LONGEST = 300
"""The most characters of a line that are shown."""

# What repeats has an end: a line of ten thousand hyphens must not take hours.
_WORDS = r"api[_-]?keys?|tokens?|secrets?|passw(?:or)?d|passphrase|credentials?|auth|_(?:key|pwd)(?![\w-])"
_NAME = rf"[\w-]{{0,60}}(?:{_WORDS})[\w-]{{0,60}}"
# A list is how vLLM itself logs its keys. Without quotes all counts up to a blank: & and ; may be part of a key.
_VALUE = r"(?:\"(?:\\.|[^\"\\])*\"?|'[^']*'?|\[[^\]]*\]?|\([^)]*\)?|[^\s\"']\S*)"
_RULES = (
    (re.compile(r"(?i)(\bauthorization\s*[=:]\s*)[^\"']+"), r"\1" + HIDDEN),
    (re.compile(r"(?i)\b(bearer|basic)\s+[^\s\"';|&]+"), r"\1 " + HIDDEN),
    # systemd quotes a whole assignment, and a value in it may hold blanks.
    (re.compile(rf"(?i)([\"'])({_NAME}=)(?:\\.|(?!\1)[^\\])*"), r"\1\2" + HIDDEN),
    (re.compile(rf"(?i)((?<![\w-]){_NAME}[\"']?\s*[=:]\s*){_VALUE}"), r"\1" + HIDDEN),
    (re.compile(r"(?i)([?&](?:key|sig|signature|code)=)[^\s&\"']+"), r"\1" + HIDDEN),
    # vLLM takes several keys after one --api-key.
    (re.compile(rf"(?i)(--api-keys?\s+)(?![-\s]){_VALUE}(?:\s+(?![-;|&}}]){_VALUE})*"), r"\1" + HIDDEN),
    (re.compile(rf"(?i)((?<![\w-])--?{_NAME}\s+)(?![-\s]){_VALUE}"), r"\1" + HIDDEN),
    (re.compile(r"(\w+://)[^/\s@]+@"), r"\1" + HIDDEN + "@"),
    (re.compile(r"(?i)((?:^|\s)(?:-[a-z]*u|--user)[\s=]*)[^\s:]+:\S+"), r"\1" + HIDDEN),
    (re.compile(r"(\b(?:sshpass|mysql\w{0,20}|(?:docker|podman|nerdctl)\s+login)\b[^|;&]{0,200}?\s-p\s*)\S+"), r"\1" + HIDDEN),
    (re.compile(r"(\bhooks[.]slack[.]com/services/)[^\s\"']+"), r"\1" + HIDDEN),
    (re.compile(r"\b(?:sk|hf|ghp|gho|glpat|xox[a-z])[-_][\w-]{6,}"), HIDDEN),
    (re.compile(r"\beyJ[\w-]{10,}(?:\.[\w-]+)*"), HIDDEN),
)
_MARGIN = 500  # so that a secret at the end of what is shown is seen whole
_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f\u200b-\u200f\u2028-\u202e\u2066-\u2069]+")


def shown(text: str, longest: int = LONGEST) -> str:
    """One line of a host's text without secrets and without anything that moves a terminal's cursor."""
    line = _CONTROL.sub(" ", text[: longest + _MARGIN]).strip()
    for pattern, replacement in _RULES:
        line = pattern.sub(replacement, line)
    return line if len(line) <= longest else line[: longest - 1] + "…"
