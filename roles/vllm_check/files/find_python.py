# Copyright (c) 2026 The fleetcheck authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Find the Python that runs a unit of vLLM, which has the packages that the check needs.

Run on the managed host: ``python3 find_python.py '["vllm.service"]'``. Prints JSON: ``python`` (a path, or empty) and
``tried`` (a sentence for each unit and interpreter that will not do).
"""

from __future__ import annotations

import json
import os
import stat
import subprocess
import sys

PACKAGES = "import requests, prometheus_client"


def main(argv):
    units = json.loads(argv[0]) if argv else []
    print(json.dumps(find(units)))


def find(units):
    """The first interpreter of a unit that has the packages, and why the others will not do."""
    tried = []
    for unit in units:
        candidates = interpreters(facts(unit))
        if not candidates:
            tried.append("No running Python was found in the unit %s." % unit)
        for python in candidates:
            objection = why_not(python)
            if objection is None:
                return {"python": python, "tried": tried}
            tried.append("%s, which runs the unit %s, %s." % (python, unit, objection))
    if not units:
        tried.append("No unit is named in vllm_servers, whose Python could be used instead.")
    return {"python": "", "tried": tried}


def facts(unit):
    """What systemd says of a unit, which may be one of the system or of this user; empty where it does not run."""
    for scope in ("--system", "--user"):
        text = output(["systemctl", scope, "show", "--property=MainPID,ControlGroup,ExecStart", "--", unit])
        found = dict(line.split("=", 1) for line in text.splitlines() if "=" in line)
        if found.get("MainPID", "0") != "0":
            return found
    return {}


def interpreters(unit_facts):
    """Paths of the interpreters of a running unit: of its processes, then of the script that it starts."""
    paths = [command_of(pid) for pid in processes(unit_facts)] + [shebang_of(started_by(unit_facts))]
    return unique(path for path in paths if is_python(path))


def processes(unit_facts):
    """The main process first: it may be a shell script, and vLLM one of its children."""
    if not unit_facts:
        return []
    group = unit_facts.get("ControlGroup", "")
    members = read_text("/sys/fs/cgroup%s/cgroup.procs" % group).split() if group else []
    return unique([unit_facts["MainPID"]] + members)


def command_of(pid):
    """The first argument, which still names a virtual environment; /proc/PID/exe names what its Python links to."""
    return read_text("/proc/%s/cmdline" % pid).split("\0", 1)[0]


def started_by(unit_facts):
    """The program in ``ExecStart={ path=/opt/vllm/bin/vllm ; argv[]=... }``."""
    return unit_facts.get("ExecStart", "").partition("path=")[2].partition(" ;")[0]


def shebang_of(path):
    first = read_text(path).split("\n", 1)[0] if path else ""
    return first[2:].split()[0] if first.startswith("#!") and first[2:].split() else ""


def is_python(path):
    return os.path.isabs(path) and os.path.basename(path).startswith("python") and os.access(path, os.X_OK)


def why_not(python):
    """None where this interpreter will do."""
    if os.geteuid() == 0 and not only_root_can_change(python):
        return "could be changed by another user than root (to use it all the same, set vllm_check_python)"
    try:
        subprocess.run(
            [python, "-c", PACKAGES], check=True, timeout=60, stdin=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )
    except (OSError, subprocess.SubprocessError):
        return "has no requests and prometheus-client either"
    return None


def only_root_can_change(python):
    """Whether the interpreter, what it links to, and every folder above them belong to root alone.

    The path comes from a process that serves strangers: what it names must not become a way to root.
    """
    return all(owned_by_root(path) for path in with_parents(python) + with_parents(os.path.realpath(python)))


def with_parents(path):
    parent = os.path.dirname(path)
    return [path] if parent == path else [path, *with_parents(parent)]


def owned_by_root(path):
    status = os.stat(path)
    # In a sticky folder (/tmp) nobody can replace what is root's.
    replaceable = status.st_mode & (stat.S_IWGRP | stat.S_IWOTH) and not status.st_mode & stat.S_ISVTX
    return status.st_uid == 0 and not replaceable


def read_text(path):
    """The start of a file, empty where it cannot be read."""
    try:
        with open(path, encoding="utf-8", errors="replace") as file:
            return file.read(65536)
    except OSError:
        return ""


def output(command):
    environment = dict(os.environ, LC_ALL="C")
    # A user's own manager is found through this, which a login without a session (become, cron) lacks.
    environment.setdefault("XDG_RUNTIME_DIR", "/run/user/%d" % os.geteuid())
    try:
        run = subprocess.run(command, env=environment, capture_output=True, timeout=10, check=False)
    except (OSError, subprocess.SubprocessError):
        return ""
    return run.stdout.decode("utf-8", "replace")


def unique(items):
    return list(dict.fromkeys(items))


if __name__ == "__main__":
    main(sys.argv[1:])
