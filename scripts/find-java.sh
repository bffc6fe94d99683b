#!/bin/sh
# Print the home of a Java that Spark can run on (17 or newer); install one where that needs no password.
#
# Looks at JAVA_HOME, then PATH, then where systems keep their Javas. Ends with 1, after one line that
# says what to do, when there is none.
set -eu

# Print the home of the java command $1 when it runs and is new enough.
usable() {
  settings=$("$1" -XshowSettings:properties -version 2>&1) || return 1
  version=$(printf '%s\n' "$settings" | sed -n 's/^ *java\.specification\.version = *//p')
  case "$version" in
    '' | *[!0-9]*) return 1 ;; # 1.8 and the like
  esac
  [ "$version" -ge 17 ] || return 1
  printf '%s\n' "$settings" | sed -n 's/^ *java\.home = *//p'
}

find_java() {
  for java in \
    "${JAVA_HOME:+$JAVA_HOME/bin/java}" \
    "$(command -v java || true)" \
    /usr/lib/jvm/*/bin/java \
    /opt/homebrew/opt/openjdk*/bin/java \
    /usr/local/opt/openjdk*/bin/java \
    /Library/Java/JavaVirtualMachines/*/Contents/Home/bin/java; do
    if [ -n "$java" ] && [ -x "$java" ] && usable "$java"; then
      return 0
    fi
  done
  return 1
}

find_java && exit 0
sh "$(dirname "$0")/install-package.sh" java
find_java && exit 0
echo "millstream needs Java 17 or newer: what was installed does not run; set JAVA_HOME to one that does." >&2
exit 1
