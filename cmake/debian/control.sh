#!/bin/sh
# control.sh FOLDER LIBRARY PACKAGE VERSION: what the package of a library has for dpkg, in FOLDER: symbols (deb-symbols(5)),
# shlibs and triggers. Version 0 promises nothing from one minor version to the next, so each symbol asks for the version that
# a program was compiled with.
set -e
soname=$(objdump -p "$2" | awk '$1 == "SONAME" { print $2 }')
{
  printf '%s %s #MINVER#\n* Build-Depends-Package: libassay-dev\n' "$soname" "$3"
  nm -D --defined-only "$2" | LC_ALL=C sort -k 3 | awk -v version="$4" '{ print " " $3 "@Base " version }'
} >"$1/symbols"
printf '%s %s %s (>= %s)\n' "${soname%.so.*}" "${soname##*.so.}" "$3" "$4" >"$1/shlibs"
printf 'activate-noawait ldconfig\n' >"$1/triggers"
chmod 644 "$1/symbols" "$1/shlibs" "$1/triggers"
