#!/bin/bash
# What needs an NVIDIA GPU, from a relocatable build, on a machine where nothing can be installed.
#
#   bench/gpu.sh pack [FILE]            here: the program with its libraries and the tests of the driver, in one
#                                       file (build/gpu.tar.xz) of about 20 MB
#   bench/gpu.sh PART FILE OUT [MODELS] there, in a checkout: one part, each within 10 minutes; results are OUT/gpu-PART.*
#
# Parts:
#   driver        the tests of the driver on the real one
#   conformance   the ONNX operator tests through --target cuda (onnx's Python package writes them)
#   sanitize      the same, every 8th of them, under compute-sanitizer: memcheck, racecheck, initcheck, synccheck
#   account       `check` of each model of the folder MODELS in fp32, tf32, fp16 and bf16
#   bits          the same bits run after run, by 1, 2 and 4 contexts, in a batch of 8, from a plan file
#   speed         `bench` of each model of the folder MODELS, in batches of 1 and 8
#
# A GPU's driver, NVRTC 12 or 13 (ASSAY_CUDA_PATH, CUDA_HOME or the loader finds it) and python3 with onnx are needed there.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
ROOT=$PWD

usage() {
  sed -n '2,/^set/{/^#/s/^# \{0,1\}//p}' "$ROOT/bench/gpu.sh"
  exit 2
}

pack() {
  local file=${1:-build/gpu.tar.xz} folder
  folder=$(mktemp -d)
  mkdir -p "$folder/lib"
  cp build/release/src/cli/assay build/release/tests/cuda_test_driver "$folder"
  strip "$folder/assay" "$folder/cuda_test_driver"
  git rev-parse --short=8 HEAD > "$folder/commit"
  # What each machine has for itself stays here.
  ldd "$folder/assay" "$folder/cuda_test_driver" | sed -n 's/.*=> \(\/[^ ]*\) .*/\1/p' | sort -u |
    grep -vE '/lib(c|m|pthread|dl|rt)\.so|/ld-linux' | xargs -I{} cp -L {} "$folder/lib"
  tar -C "$folder" -cJf "$file" .
  rm -r "$folder"
  ls -l "$file"
}

# Unpacks FILE once; sets ASSAY, the program with its libraries.
unpack() {
  HOME_=/tmp/assay-gpu-$(sha256sum "$1" | cut -c1-12)
  if [ ! -x "$HOME_/assay.sh" ]; then
    mkdir -p "$HOME_"
    tar -C "$HOME_" -xJf "$1"
    printf '#!/bin/sh\nLD_LIBRARY_PATH=%s/lib:$LD_LIBRARY_PATH exec %s/assay "$@"\n' "$HOME_" "$HOME_" > "$HOME_/assay.sh"
    chmod +x "$HOME_/assay.sh"
  fi
  ASSAY=$HOME_/assay.sh
}

header() {
  printf '%s, commit %s, %s\n\n' "$(date +%F)" "$(cat "$HOME_/commit")" \
    "$("$ASSAY" --version | sed -n 's/^target *cuda: //p')"
  command -v nvidia-smi > /dev/null &&
    nvidia-smi --query-gpu=driver_version,clocks.sm,clocks.mem,power.draw --format=csv,noheader | sed 's/^/driver, clocks and power at the start: /'
  printf '\n    bench/gpu.sh %s\n\n' "$PART"
}

cases() {
  [ -d "$HOME_/cases" ] || python3 scripts/make_cases.py "$HOME_/cases" > /dev/null
  CASES=$HOME_/cases
}

driver() {
  LD_LIBRARY_PATH=$HOME_/lib ASSAY_TEST_GPU=1 "$HOME_/cuda_test_driver" 2>&1 | tail -20
}

conformance() {
  cases
  local target
  for target in cuda cpu; do
    "$ASSAY" conformance "$CASES" --backend $target --json "$OUT/gpu-conformance-$target.json" \
      -j "$(nproc)" > "$OUT/gpu-conformance-$target.txt" 2>&1 || true
    printf '%s: %s\n' $target "$(tail -1 "$OUT/gpu-conformance-$target.txt")"
  done
}

sanitize() {
  cases
  local tool log errors
  for tool in memcheck racecheck initcheck synccheck; do
    log=$OUT/gpu-sanitize-$tool.txt
    find "$CASES" -name model.onnx | sort | awk 'NR % 8 == 1' | xargs -n1 dirname > "$HOME_/every8"
    rm -rf "$HOME_/few"
    mkdir "$HOME_/few"
    while read -r case; do cp -r "$case" "$HOME_/few/$(basename "$case")"; done < "$HOME_/every8"
    timeout 140 compute-sanitizer --tool $tool --target-processes all "$ASSAY" conformance "$HOME_/few" --backend cuda -j 1 \
      > "$log" 2>&1 || true
    errors=$(grep -E 'ERROR SUMMARY|RACECHECK SUMMARY' "$log" | sort | uniq -c | tr '\n' ';')
    printf '%s: %s %s\n' $tool "$(grep -E '^[0-9]+ (cases|passed)|passed' "$log" | tail -1)" "$errors"
  done
}

# One line a model and format: the verdict, and the seconds of building and checking.
account() {
  local model format begin
  for model in "$MODELS"/*.onnx; do
    for format in fp32 tf32 fp16 bf16; do
      begin=$(date +%s.%N)
      timeout 120 "$ASSAY" check "$model" --precision $format --target cuda --seed 1 > "$HOME_/check.txt" 2>&1 || true
      printf '%-28s %-5s %5.1f s  %s\n' "$(basename "$model" .onnx)" $format "$(python3 -c "print($(date +%s.%N) - $begin)")" \
        "$(grep -v 'no inputs given' "$HOME_/check.txt" | head -1 | cut -c1-120)"
      grep -E '^  (origin|also|blame)' "$HOME_/check.txt" | cut -c1-160 || true
    done
  done
}

same() {
  if cmp -s "$1" "$2"; then echo equal; else echo DIFFERENT; fi
}

bits() {
  local model=$ROOT/tests/models/small/cnn.onnx format plan out=$HOME_/bits
  mkdir -p "$out"
  for format in fp32 fp16 bf16; do
    for plan in a b; do
      "$ASSAY" build "$model" --precision $format --target cuda --timing-cache "$out/times" -o "$out/$plan.plan" > /dev/null 2>&1
    done
    printf '%s: plans of two builds with a timing cache: %s\n' $format "$(same "$out/a.plan" "$out/b.plan")"
    for i in 1 2; do "$ASSAY" run "$out/a.plan" --seed 1 -o "$out/$i.npz" > /dev/null 2>&1 || true; done
    printf '%s: two runs: %s\n' $format "$(same "$out/1.npz" "$out/2.npz")"
  done
}

speed() {
  local model batch format
  for model in "$MODELS"/*.onnx; do
    for format in fp16 fp32; do
      for batch in 1 8; do
        timeout 100 "$ASSAY" bench "$model" --precision $format --target cuda --batch $batch > "$HOME_/bench.txt" 2>&1 || true
        printf '%-24s %-5s b%d  %s\n' "$(basename "$model" .onnx)" $format $batch \
          "$(grep -E '^(latency|assay:)' "$HOME_/bench.txt" | grep -v 'no inputs given' | head -1 | cut -c1-110)"
      done
    done
  done
}

PART=${1:-}
case $PART in
  pack)
    pack "${2:-}"
    ;;
  driver | conformance | sanitize | account | bits | speed)
    [ $# -ge 3 ] || usage
    unpack "$2"
    OUT=$3
    MODELS=${4:-}
    mkdir -p "$OUT"
    { header; $PART; } 2>&1 | tee "$OUT/gpu-$PART.md"
    ;;
  *) usage ;;
esac
