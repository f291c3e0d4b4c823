#!/bin/bash
# Runs the release tests at each instruction set that oneDNN knows and this machine has, the widest last.
#
#   bench/isa_levels.sh [BUILD] [LEVEL...]
#
# Prints for each level how many tests passed, and the names of those that did not. Left out are tests
# that compile or install something or look at the sources only: no instruction set changes them.
# The documents' pages are among them: they show what the widest set chooses.
cd "$(dirname "${BASH_SOURCE[0]}")/.." || exit
build=${1:-build/release}
shift
levels=("$@")
if [ ${#levels[@]} -eq 0 ]; then
  has() { grep -qw "$1" /proc/cpuinfo; }
  levels=(SSE41)
  ! has avx || levels+=(AVX)
  ! has avx2 || levels+=(AVX2)
  ! has avx_vnni || levels+=(AVX2_VNNI)
  ! has avx512bw || levels+=(AVX512_CORE)
  ! has avx512_vnni || levels+=(AVX512_CORE_VNNI)
  ! has avx512_bf16 || levels+=(AVX512_CORE_BF16)
  ! has avx512_fp16 || levels+=(AVX512_CORE_FP16)
  ! has amx_bf16 || levels+=(AVX512_CORE_AMX)
  levels+=(DEFAULT)
fi
skip='^(install|format|tidy|house|includes|words|docs/|demo|headers|scripts/|mutants)'
status=0
for level in "${levels[@]}"; do
  log=build/isa-$level.log
  start=$SECONDS
  ONEDNN_MAX_CPU_ISA=$level ASSAY_TEST_SEED=1 ctest --test-dir "$build" -j "${ASSAY_JOBS:-$(nproc)}" -LE long -E "$skip" \
    --output-on-failure >"$log" 2>&1
  echo "$level: $(grep -E 'tests passed' "$log"), $((SECONDS - start)) s"
  if ! grep -qE '^100% tests passed' "$log"; then
    status=1
    sed -n '/^The following tests FAILED/,$p' "$log" | grep -E '^\s+[0-9]+ - '
  fi
done
exit $status
