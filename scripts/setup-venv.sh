#!/bin/sh
# Make .venv in the project's root and install Millstream with everything its tests need.
#
# Uses $PYTHON when set, otherwise the newest of the pythons below that runs and is 3.11 or newer.
set -eu
cd "$(dirname "$0")/.."

new_enough() {
  "$1" -c 'import sys; sys.exit(sys.version_info < (3, 11))' >/dev/null 2>&1
}

find_python() {
  for candidate in ${PYTHON:+"$PYTHON"} python3.13 python3.12 python3.11 python3; do
    if new_enough "$candidate"; then
      echo "$candidate"
      return 0
    fi
  done
  return 1
}

# A half-made environment, or one whose python has gone, is made again.
if ! { new_enough .venv/bin/python && .venv/bin/python -m pip --version; } >/dev/null 2>&1; then
  if ! PYTHON=$(find_python); then
    echo "millstream needs Python 3.11 or newer: install it, or set PYTHON to one you have." >&2
    exit 1
  fi
  export PYTHON
  echo "setup: making .venv with $("$PYTHON" --version)"
  rm -rf .venv
  if ! "$PYTHON" -m venv .venv >/dev/null 2>&1; then
    rm -rf .venv
    sh scripts/install-package.sh venv
    "$PYTHON" -m venv .venv
  fi
fi

echo "setup: installing millstream and its dependencies into .venv"
.venv/bin/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[dev]'
