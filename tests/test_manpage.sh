#!/bin/bash
# The manual page that "$@" prints has no fault that mandoc would warn of, and groff's man reads it too.
#
#   test_manpage.sh FAKE_CLI man
set -euo pipefail

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
"$@" >"$work/antifreeze.1"

command -v mandoc >/dev/null || {
    echo "mandoc is not installed: the manual page is not checked"
    exit 77
}
mandoc -Tlint -Wwarning "$work/antifreeze.1"
mandoc -Tutf8 "$work/antifreeze.1" | sed 's/.\x08//g' >"$work/text"
for heading in NAME SYNOPSIS DESCRIPTION OPTIONS COMMANDS 'EXIT STATUS' ENVIRONMENT FILES EXAMPLES 'SEE ALSO'; do
    grep -qx "$heading" "$work/text" || {
        echo "the section $heading is missing"
        exit 1
    }
done
if command -v groff >/dev/null; then
    groff -man -Tutf8 -ww "$work/antifreeze.1" 2>&1 >/dev/null | tee "$work/complaints"
    [[ ! -s $work/complaints ]]
fi
