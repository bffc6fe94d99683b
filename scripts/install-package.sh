#!/bin/sh
# Install Java or Python's venv with the system's package manager, where that needs no password.
#
#   install-package.sh java|venv
#
# Ends with 0 when something was installed. Otherwise prints one line that says what to do, and ends with 1.
set -eu

case "${1:-}" in
  java)
    what="Java 17 or newer"
    otherwise="or set JAVA_HOME to one you have"
    apt="openjdk-17-jre-headless openjdk-21-jre-headless default-jre-headless"
    dnf="java-17-openjdk-headless java-21-openjdk-headless"
    apk="openjdk17-jre-headless openjdk21-jre-headless"
    brew="openjdk@17 openjdk@21"
    ;;
  venv)
    what="Python's venv module"
    otherwise="or set PYTHON to a python that has it"
    version=$("${PYTHON:-python3}" -c 'import sys; print("%d.%d" % sys.version_info[:2])' 2>/dev/null || echo 3)
    apt="python$version-venv python3-venv"
    dnf="python3"
    apk="python3"
    brew="python@3.12"
    ;;
  *)
    echo "usage: $0 java|venv" >&2
    exit 2
    ;;
esac

if command -v apt-get >/dev/null 2>&1; then
  manager="apt-get" names=$apt verb="install" flags="-y -q --no-install-recommends"
elif command -v dnf >/dev/null 2>&1; then
  manager="dnf" names=$dnf verb="install" flags="-y -q"
elif command -v apk >/dev/null 2>&1; then
  manager="apk" names=$apk verb="add" flags="-q"
elif command -v brew >/dev/null 2>&1; then
  manager="brew" names=$brew verb="install" flags="-q"
else
  echo "millstream needs $what: install it with your system's package manager, $otherwise." >&2
  exit 1
fi
advice="$manager $verb ${names%% *}"

# brew wants no root; the others want it.
if [ "$manager" = brew ] || [ "$(id -u)" = 0 ]; then
  as_root=""
elif command -v sudo >/dev/null 2>&1 && sudo -n true >/dev/null 2>&1; then
  as_root="sudo -n"
else
  echo "millstream needs $what: run \`sudo $advice\`, $otherwise." >&2
  exit 1
fi

log=$(mktemp)
trap 'rm -f "$log"' EXIT
echo "setup: installing $what with $manager" >&2
export DEBIAN_FRONTEND=noninteractive
if [ "$manager" = apt-get ]; then
  # shellcheck disable=SC2086
  $as_root apt-get update -q >"$log" 2>&1 || true
fi
for name in $names; do
  # shellcheck disable=SC2086
  if $as_root $manager $verb $flags "$name" >>"$log" 2>&1 </dev/null; then
    exit 0
  fi
done
echo "millstream needs $what: \`$advice\` failed ($(tail -n 1 "$log")); install it yourself, $otherwise." >&2
exit 1
