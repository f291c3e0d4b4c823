#!/bin/bash
# What needs an NVIDIA GPU, from a relocatable build, on a machine where nothing can be installed.
#
#   bench/gpu.sh pack [FILE]            here: the program with its libraries and the tests of the driver, in one
#                                       file (build/gpu.tar.xz) of about 20 MB
#   bench/gpu.sh PART FILE OUT [MODELS] there, in a checkout: one part, each within 10 minutes; results are OUT/gpu-PART.*
#
# Parts:
#   driver        the tests of the driver and of products on the real one
#   conformance   the ONNX operator tests through --target cuda (onnx's Python package writes them)
#   sanitize      the same under compute-sanitizer: memcheck, racecheck, initcheck, synccheck side by side (EVERY=4: each 4th case;
#                 RACE_EVERY=6: for races, each 6th of these)
#   graphs        2,000 random graphs (GRAPHS=N) in fp32, bf16 and fp16 against truth, on all cores
#   account       `check` of each model of the folder MODELS in fp32, tf32, fp16 and bf16, JOBS=4 at a time, in batches of BATCH=1
#   users         `check` of each model of each case in the folder MODELS (CASE/model*.onnx, inputs.npz, golden.npz) in these formats,
#                 as it is on the GPU and on the emulated engine: verdict, blame and cause, side by side
#   load          of each model of the folder MODELS: from a plan file to the end of its first run, in a process of its own; with a
#                 library's kernels and without
#   bits          of each model of the folder MODELS (a small one without): the same bits run after run, by 1, 2 and 4
#                 contexts, alone and in a batch of 8, for open and fixed sizes, from a plan file; plans of two builds
#   soak          10,000 runs (RUNS=N) of each of these: no growth of the process, its contexts, the GPU's memory
#   speed         builds and `bench` of each model of the folder MODELS, BATCHES="1 8", FORMATS="fp16 fp32"; with PEERS beside torch
#                 (gpu_peers.py); BUILD_GPU=1: builds on that GPU while the peers compile
#
# A GPU's driver, NVRTC 12 or 13 (ASSAY_CUDA_PATH, CUDA_HOME or the loader finds it) and python3 with onnx are needed there.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
ROOT=$PWD

usage() {
  sed -n '2,/^set/{/^#/s/^# \{0,1\}//p}' "$ROOT/bench/gpu.sh"
  exit 2
}

# Tests whose kernels run on a real GPU, too.
KERNEL_TESTS=(cuda_test_wgmma cuda_test_bulk cuda_test_parts cuda_test_fma cuda_test_pairs cuda_test_gates cuda_test_scales cuda_test_attention cuda_test_int8 cuda_test_int8_bulk
  cuda_test_int8_pairs cuda_test_int8_siblings cuda_test_int8_excite cuda_test_quantized_pairs cuda_test_attention_int8 cuda_test_norms cuda_test_lines cuda_test_direct_conv
  cuda_test_few cuda_test_rough cuda_test_ex2)

pack() {
  local file=${1:-build/gpu.tar.xz} folder programs=(assay cuda_test_driver "${KERNEL_TESTS[@]}" promises backends_random_graphs)
  folder=$(mktemp -d)
  mkdir -p "$folder/lib"
  cmake --build build/release --target promises
  cp build/release/src/cli/assay build/release/tests/cuda_test_driver build/release/bench/promises \
    build/release/tests/backends_random_graphs "${KERNEL_TESTS[@]/#/build/release/tests/}" "$folder"
  (cd "$folder" && strip "${programs[@]}")
  # What each machine has for itself stays here.
  (cd "$folder" && ldd "${programs[@]/#/./}") | sed -n 's/.*=> \(\/[^ ]*\) .*/\1/p' | sort -u |
    grep -vE '/lib(c|m|pthread|dl|rt)\.so|/ld-linux' | xargs -I{} cp -L {} "$folder/lib"
  git rev-parse --short=8 HEAD > "$folder/commit"
  XZ_OPT=-6 tar -C "$folder" -cJf "$file" .
  rm -r "$folder"
  ls -l "$file"
}

# Unpacks FILE once; sets ASSAY, the program with its libraries.
unpack() {
  HOME_=/tmp/assay-gpu-$(sha256sum "$1" | cut -c1-12)
  if [ ! -x "$HOME_/assay.sh" ]; then
    # Two parts may begin at once: the folder is there whole or not at all.
    local made
    made=$(mktemp -d "$HOME_.XXXX")
    tar -C "$made" -xJf "$1"
    printf '#!/bin/sh\nLD_LIBRARY_PATH=%s/lib:$LD_LIBRARY_PATH exec %s/assay "$@"\n' "$HOME_" "$HOME_" > "$made/assay.sh"
    chmod +x "$made/assay.sh"
    mv -T "$made" "$HOME_" 2> /dev/null || rm -r "$made"
  fi
  ASSAY=$HOME_/assay.sh
  # Parts, and the processes of one, share what they compile.
  export ASSAY_KERNEL_CACHE=${ASSAY_KERNEL_CACHE:-$HOME_/kernels}
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
  local test
  for test in "${KERNEL_TESTS[@]}"; do kernel_test "$test" | tail -4; done
}

# kernel_test NAME [TOOL ...]: a test of kernels on the real GPU, under a tool.
kernel_test() {
  local name=$1
  shift
  LD_LIBRARY_PATH=$HOME_/lib ASSAY_TEST_GPU=1 ASSAY_TEST_KERNELS=$ROOT/tests/cuda/kernels ASSAY_TEST_LIBCUDA=${ASSAY_CUDA_PATH:-/usr/local/cuda/lib64} "$@" "$HOME_/$name" 2>&1
}

conformance() {
  cases
  local target
  for target in cuda cpu; do
    "$ASSAY" conformance "$CASES" --backend $target --json "$OUT/gpu-conformance-$target.json" \
      -j "$PROCESSES" > "$OUT/gpu-conformance-$target.txt" 2>&1 || true
    printf '%s: %s\n' $target "$(tail -1 "$OUT/gpu-conformance-$target.txt")"
  done
}

# few_of EVERY FOLDER: a copy of each so manieth case.
few_of() {
  rm -rf "$2"
  find -L "$CASES" -name model.onnx | sort | awk "NR % $1 == 1 || $1 == 1" | xargs -n1 dirname |
    while read -r case; do
      mkdir -p "$2/$(basename "$(dirname "$case")")"
      cp -r "$case" "$2/$(basename "$(dirname "$case")")"
    done
}

# The tool for races takes many times as long as the others: it gets each RACE_EVERY-th case of theirs.
sanitize() {
  cases
  local tool test log errors few
  few_of "${EVERY:-4}" "$HOME_/few"
  few_of $((${EVERY:-4} * ${RACE_EVERY:-6})) "$HOME_/few-racecheck"
  for tool in memcheck racecheck initcheck synccheck; do
    few=$HOME_/few
    [ -d "$few-$tool" ] && few=$few-$tool
    timeout "${SECONDS_FOR_TOOLS:-560}" compute-sanitizer --tool $tool --target-processes all "$ASSAY" conformance "$few" \
      --backend cuda --verbose --timeout 300 -j $((($(nproc) + 3) / 4)) > "$OUT/gpu-sanitize-$tool.txt" 2>&1 ||
      printf '%s: exit code %s\n' $tool $? &
    for test in "${KERNEL_TESTS[@]}"; do
      kernel_test "$test" timeout "${SECONDS_FOR_TOOLS:-560}" compute-sanitizer --tool $tool > "$OUT/gpu-sanitize-$tool-$test.txt" ||
        printf '%s of %s: exit code %s\n' $tool "$test" $? &
    done
  done
  wait
  for tool in memcheck racecheck initcheck synccheck; do
    for test in "${KERNEL_TESTS[@]}"; do
      printf '%s of %s: %s; %s\n' $tool "$test" "$(grep -E 'ERROR SUMMARY|RACECHECK SUMMARY' "$OUT/gpu-sanitize-$tool-$test.txt" | sed 's/^=* *//')" \
        "$(grep -E 'PASSED|FAILED' "$OUT/gpu-sanitize-$tool-$test.txt" | head -1)"
    done
  done
  for tool in memcheck racecheck initcheck synccheck; do
    log=$OUT/gpu-sanitize-$tool.txt
    errors=$(grep -E 'ERROR SUMMARY|RACECHECK SUMMARY' "$log" | sed 's/^=* *//' | sort | uniq -c | tr '\n' ';')
    printf '%s: %s of %s cases passed, %s failed; %s\n' $tool "$(grep -c '^ok ' "$log")" \
      "$(find "$HOME_/few$([ -d "$HOME_/few-$tool" ] && printf -- '-%s' $tool)" -name model.onnx | wc -l)" "$(grep -c '^FAIL' "$log")" "$errors"
  done
}

# In parts of 20 graphs, of which all are counted that end in SECONDS_FOR_GRAPHS=540.
graphs() {
  local folder=$HOME_/graphs
  rm -rf "$folder"
  mkdir -p "$folder"
  seq 0 20 $((${GRAPHS:-2000} - 1)) | LD_LIBRARY_PATH=$HOME_/lib OMP_NUM_THREADS=1 timeout "${SECONDS_FOR_GRAPHS:-540}" \
    xargs -P "$PROCESSES" -I{} sh -c "$HOME_/backends_random_graphs check 9 20 --first {} --target cuda --quiet > $folder/{}.txt 2>&1 || true" ||
    printf 'cut off by time\n'
  grep -hE '^[0-9]+ graphs' "$folder"/*.txt |
    awk '{ graphs += $1; plans += $3; layers += $5; refused += $7; failures += $(NF - 3) }
      END { printf "%d graphs, %d plans, %d layers, %d plans refused by both engines, %d failures\n", graphs, plans, layers, refused, failures }'
  grep -h '^FAIL' "$folder"/*.txt | cut -c1-300 | head -40 || true
  # Parts that did not come to their end.
  grep -LE '^[0-9]+ graphs' "$folder"/*.txt | while read -r part; do
    printf 'NO END from graph %s on: %s\n' "$(basename "$part" .txt)" "$(tail -3 "$part" | tr '\n' ' ' | cut -c1-300)"
  done
}

# account_of MODEL FORMAT: the verdict in one line, the seconds of building and checking, and what is at fault.
account_of() {
  local begin text=$HOME_/check/$(basename "$1" .onnx)-$2
  begin=$(date +%s.%N)
  timeout "${SECONDS_FOR_CHECK:-150}" "$ASSAY" check "$1" --precision "$2" --target cuda --seed 1 --batch "${BATCH:-1}" > "$text" 2>&1 || true
  printf '%-28s %-5s %5.1f s  %s\n' "$(basename "$1" .onnx)" "$2" "$(python3 -c "print($(date +%s.%N) - $begin)")" \
    "$(grep -v 'no inputs given' "$text" | head -1 | cut -c1-120)" > "$text.line"
  grep -E '^  (origin|also|blame)' "$text" | cut -c1-160 >> "$text.line" || true
}

# JOBS=4 models at a time.
account() {
  local model format
  rm -rf "$HOME_/check"
  mkdir -p "$HOME_/check"
  export -f account_of
  export ASSAY HOME_
  for model in "$MODELS"/*.onnx; do
    for format in fp32 tf32 fp16 bf16; do printf '%s %s\n' "$model" $format; done
  done | xargs -P "${JOBS:-4}" -L 1 bash -c 'account_of "$@"' _
  cat "$HOME_"/check/*.line
}

# user_case_of CASE MODEL FORMAT: the verdicts on both targets, and what the GPU's has to say.
user_case_of() {
  local target text=$HOME_/users/$(basename "$1")-$2-$3 golden=()
  [ ! -f "$1/golden.npz" ] || golden=(--golden "$1/golden.npz")
  for target in cuda emu; do
    timeout 280 "$ASSAY" check "$1/$2.onnx" --precision "$3" --target $target --inputs "$1/inputs.npz" "${golden[@]}" > "$text.$target" 2>&1 || true
  done
  printf '%-24s %-38s %-5s %-10s %-10s %s\n' "$(basename "$1")" "$2" "$3" "$(grep -oEm1 '^(UN)?FAITHFUL|^error' "$text.cuda")" \
    "$(grep -oEm1 '^(UN)?FAITHFUL|^error' "$text.emu")" "$(head -1 "$text.cuda" | sed 's/.*on cuda: //' | cut -c1-90)" > "$text.line"
  # What is told of causes, and where the emulated engine's says something else.
  grep -E '^  (origin|also|blame|export|repair|fix)' "$text.cuda" | cut -c1-160 | head -8 >> "$text.line" || true
  diff <(grep -E '^  (origin|blame|export|repair)' "$text.emu" | cut -c1-160) \
    <(grep -E '^  (origin|blame|export|repair)' "$text.cuda" | cut -c1-160) | sed -n 's/^< /      on emu: /p' | head -4 >> "$text.line" || true
}

users() {
  local case model format
  rm -rf "$HOME_/users"
  mkdir -p "$HOME_/users"
  export -f user_case_of
  export ASSAY HOME_
  for case in "$MODELS"/*/; do
    for model in "$case"model*.onnx; do
      for format in fp32 tf32 fp16 bf16 int8; do
        case $format-${model##*/} in int8-*int8*) ;; int8-*) continue ;; esac
        printf '%s %s %s\n' "${case%/}" "$(basename "$model" .onnx)" $format
      done
    done
  done | xargs -P "${JOBS:-4}" -L 1 bash -c 'user_case_of "$@"' _
  printf '%-24s %-38s %-5s %-10s %s\n' case model in 'on cuda' 'on emu'
  cat "$HOME_"/users/*.line
}

# One model after the other; the second of two processes, so that files are in memory.
load() {
  local model begin end sources format=${FORMATS:-fp16} plan=$HOME_/load.plan
  for model in "$MODELS"/*.onnx; do
    for sources in assay,cublaslt assay; do
      "$ASSAY" build "$model" --precision "$format" --target cuda --batch 1 --tactic-sources $sources --timing-cache "$HOME_/load.times" -o "$plan" > /dev/null 2>&1 ||
        continue
      "$ASSAY" inspect plan "$plan" > "$HOME_/load.layers" 2>&1 || true
      "$ASSAY" run "$plan" --target cuda:0 > /dev/null 2>&1 || true
      begin=$(date +%s.%N)
      "$ASSAY" run "$plan" --target cuda:0 --time > "$HOME_/load.txt" 2>&1 || true
      end=$(date +%s.%N)
      printf '%-20s %-5s plan of %4d MB, %2d layers of a library: %s; the whole process %s s\n' "$(basename "$model" .onnx)" "$format" \
        $(($(stat -c %s "$plan") / 1000000)) "$(grep -c cublaslt "$HOME_/load.layers" || true)" "$(grep -E '^loaded' "$HOME_/load.txt")" \
        "$(python3 -c "print(f'{$end - $begin:.3f}')")"
      rm -f "$plan"
    done
  done
}

same() {
  if cmp -s "$1" "$2"; then echo equal; else echo DIFFERENT; fi
}

models() {
  if [ -n "$MODELS" ]; then ls "$MODELS"/*.onnx; else echo "$ROOT/tests/models/small/cnn.onnx"; fi
}

# promises MODEL FORMAT RUNS
promises() {
  LD_LIBRARY_PATH=$HOME_/lib timeout 200 "$HOME_/promises" "$1" cuda "$2" "$3" 8 2>&1 | sed "s#^$(dirname "$1")/##"
}

bits() {
  local model format plan out=$HOME_/bits
  mkdir -p "$out"
  for model in $(models); do
    for format in fp32 tf32 bf16 fp16; do
      promises "$model" $format 100
      for plan in a b; do
        "$ASSAY" build "$model" --precision $format --target cuda --timing-cache "$out/times" -o "$out/$plan.plan" > /dev/null 2>&1
      done
      printf 'plans of two builds with a timing cache: %s\n' "$(same "$out/a.plan" "$out/b.plan")"
    done
  done
}

# The memory in use of GPU number GPU=0 of nvidia-smi, in MiB, every second, until it is killed.
watch_memory() {
  exec nvidia-smi -i "${GPU:-0}" -lms 500 --query-gpu=memory.used --format=csv,noheader,nounits > "$1" 2>&1
}

soak() {
  local model watch
  for model in $(models); do
    watch_memory "$HOME_/memory" &
    watch=$!
    promises "$model" fp16 "${RUNS:-10000}"
    kill $watch 2> /dev/null || true
    # The runs that are counted come last and take longest; a driver's own blocks are of 2 MiB.
    awk '{ at[NR] = $1 }
      END { if (NR < 8 || at[NR - 2] !~ /^[0-9]+$/) { printf "memory of the GPU in use: not read: %s\n", at[1]; exit }
        before = at[int(NR * 3 / 4)]; after = at[NR - 2]
        printf "memory of the GPU in use: %d MiB after three quarters of the time, %d MiB at the end: %s\n", before, after,
          (after > before + 2 ? "GROWTH" : "no growth") }' "$HOME_/memory"
  done
}

# build_of MODEL FORMAT BATCH: a plan; seconds of a build whose kernels and times nobody kept, and of one that finds both.
build_of() {
  local begin built again plan=$HOME_/speed/$2-b$3-$(basename "$1" .onnx)
  export ASSAY_KERNEL_CACHE=$plan.kernels
  build_one() { timeout 100 "$ASSAY" build "$@" --target cuda -o "$plan.plan" --timing-cache "$plan.times" > "$plan.txt" 2>&1 || true; }
  begin=$(date +%s.%N)
  build_one "$1" --precision "$2" --batch "$3"
  built=$(date +%s.%N)
  build_one "$1" --precision "$2" --batch "$3"
  again=$(date +%s.%N)
  python3 -c "print('built in %5.1f s, again in %4.1f s' % ($built - $begin, $again - $built))" > "$plan.built"
  "$ASSAY" inspect plan "$plan.plan" > "$plan.layers" 2>&1 || true
}

# time_of MODEL FORMAT BATCH: times of runs, and how many layers a library's kernels run.
time_of() {
  local name plan=$HOME_/speed/$2-b$3-$(basename "$1" .onnx)
  name=$(basename "$1" .onnx)
  timeout 60 "$ASSAY" bench "$plan.plan" --target cuda --seconds "${SECONDS_FOR_BENCH:-0.6}" > "$plan.txt" 2>&1 || true
  printf '%-20s %-5s b%-3s %s; %s; %s layers by cublaslt\n' "$name" "$2" "$3" "$(cat "$plan.built")" \
    "$(grep -E '^(latency|device|assay:)' "$plan.txt" | grep -v 'no inputs given' | sed 's/  */ /g' | cut -c1-75 | tr '\n' ' ')" \
    "$(grep -c cublaslt "$plan.layers" || true)"
  cp "$plan.layers" "$OUT/$2-b$3-$name.layers"
  rm -f "$plan.plan"
}

build_and_time() {
  build_of "$@"
  time_of "$@"
}

# each_row DO: for each format, batch and model.
each_row() {
  local model batch format
  for format in ${FORMATS:-fp16 fp32}; do
    for batch in ${BATCHES:-1 8}; do
      for model in "$MODELS"/*.onnx; do "$1" "$model" "$format" "$batch"; done
    done
  done
}

peers() {
  [ -n "${PEERS:-}" ] || return 0
  python3 bench/gpu_peers.py "$PEERS" "$OUT/gpu-peers.txt" ${PEER_ROWS:-} > "$HOME_/peers.txt" 2>&1 || tail -5 "$HOME_/peers.txt"
  cat "$OUT/gpu-peers.txt"
}

# The peers compile first, as far as they can while nothing is timed (PEERS: a folder with bench_common.py, see gpu_peers.py), beside
# the builds where these have a GPU of their own (BUILD_GPU=1, of one kind with the first); then all is timed one after the other.
speed() {
  mkdir -p "$HOME_/speed"
  if [ -n "${BUILD_GPU:-}" ]; then
    CUDA_VISIBLE_DEVICES=$BUILD_GPU each_row build_of &
    peers
    wait
    each_row time_of
  else
    peers
    each_row build_and_time
  fi
}

# Processes take turns on a GPU: with 16 each case took 3.6 s, where a process alone needs less than half of that.
PROCESSES=${PROCESSES:-4}
PART=${1:-}
case $PART in
  pack)
    pack "${2:-}"
    ;;
  driver | conformance | sanitize | graphs | account | users | load | bits | soak | speed)
    [ $# -ge 3 ] || usage
    unpack "$2"
    OUT=$3
    MODELS=${4:-}
    mkdir -p "$OUT"
    { header; $PART; } 2>&1 | tee "$OUT/gpu-$PART.md"
    ;;
  *) usage ;;
esac
