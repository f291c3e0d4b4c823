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
