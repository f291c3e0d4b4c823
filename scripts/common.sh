# Shared by the scripts beside it: strict mode, where the project is, and how things are said.
# Sourced, not run.
set -euo pipefail

# A bare environment (env -i, cron, a build machine) has neither of these.
export PATH="${PATH:-/usr/bin:/bin}:/usr/local/sbin:/usr/sbin:/sbin"
export HOME="${HOME:-$(getent passwd "$(id -u)" | cut -d: -f6)}"
export LC_ALL=C.UTF-8
# Threads that wait sleep: on a machine that does other work, too, spinning ones are in the way.
export OMP_WAIT_POLICY=${OMP_WAIT_POLICY:-passive}

ROOT=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
JOBS=${ASSAY_JOBS:-$(nproc)}
PYTHON=$ROOT/build/venv/bin/python
cd "$ROOT"

say() { printf '== %s\n' "$*"; }
warn() { printf 'warning: %s\n' "$*" >&2; }
die() {
  printf 'error: %s\n' "$*" >&2
  exit 1
}

# configure PRESET OPTION...: makes build/PRESET.
configure() {
  local preset=$1
  shift
  cmake --preset "$preset" "$@" >"build/$preset.configure.log" 2>&1 || {
    cat "build/$preset.configure.log"
    return 1
  }
}

# configure_and_build PRESET OPTION...: compiles build/PRESET.
configure_and_build() {
  configure "$@" || return 1
  cmake --build "build/$1" -j "$JOBS"
}

# python_is_ready FOLDER FILE...: whether the environment holds exactly what the files ask for.
python_is_ready() {
  [ -x "$1/bin/python" ] && "$1/bin/python" - "${@:2}" <<'PY'
import platform
import sys
from importlib import metadata

for path in sys.argv[1:]:
    for line in open(path):
        line, _, only = line.split("#")[0].partition(";")
        if only and platform.machine() not in only:
            continue
        name, sep, version = line.strip().partition("==")
        try:
            if sep and metadata.version(name) != version:
                sys.exit(1)
        except metadata.PackageNotFoundError:
            sys.exit(1)
PY
}

# install_python FOLDER FILE...: the files name all packages, those that others need as well.
install_python() {
  local folder=$1 file files=()
  shift
  if python_is_ready "$folder" "$@"; then return; fi
  say "Python packages in $folder"
  # An environment that was cut short in the making is made again.
  "$folder/bin/python" -m pip --version >/dev/null 2>&1 || rm -rf "$folder"
  [ -d "$folder" ] || /usr/bin/python3 -m venv "$folder"
  for file in "$@"; do files+=(-r "$file"); done
  # What is imported is compiled then; compiling all of PyTorch here takes longer than unpacking it.
  "$folder/bin/python" -m pip install --quiet --no-input --disable-pip-version-check --retries 5 --no-deps --no-compile "${files[@]}"
  /usr/bin/python3 "$ROOT/scripts/make_cuda_stand_ins.py" "$folder"
  python_is_ready "$folder" "$@" || die "$folder lacks packages; remove it and run scripts/setup again"
}
