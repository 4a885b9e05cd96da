#!/bin/sh
# Make a virtual environment and install into it:  make_venv.sh FOLDER PIP-ARGUMENT...
#
# The first folder is .venv; the others get no pip of their own, which would take longer than what is installed.
# Nothing is compiled beforehand: most of it is never imported.
#
# Works on a machine that has only Python 3.11 or newer. Debian keeps venv in a package of its own, which is
# installed where that is possible. The folder appears complete or not at all.
set -eu

folder=$1
shift

newest_python() {
    for candidate in ${PYTHON:-} python3.11 python3.12 python3.13 python3; do
        if "$candidate" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; then
            echo "$candidate"
            return
        fi
    done
    echo "Python 3.11 or newer is needed; name one with: make PYTHON=/path/to/python3.11" >&2
    exit 1
}

have_venv() {
    "$python" -c 'import ensurepip, venv' 2>/dev/null
}

python=$(newest_python)
if ! have_venv; then
    if [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null; then
        apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq python3-venv >/dev/null
    fi
    have_venv || { echo "$python has no venv module; on Debian: sudo apt-get install python3-venv" >&2; exit 1; }
fi

echo "Making $folder with $("$python" --version)"
rm -rf "$folder"
if [ -x .venv/bin/pip ]; then
    "$python" -m venv --without-pip "$folder"
    set -- --python "$folder/bin/python" install "$@"
    pip=.venv/bin/python
else
    "$python" -m venv "$folder"
    set -- install "$@"
    pip=$folder/bin/python
fi
if ! "$pip" -m pip -qq --disable-pip-version-check "$@" --no-compile; then
    rm -rf "$folder"
    exit 1
fi
