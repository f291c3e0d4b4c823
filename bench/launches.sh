#!/bin/bash
# What a run of each row launches on an H200, without one: built on a GPU that compiles kernels and runs none
# (tests/cuda/fake/README.md), each launch told to take as long as any other, so that what takes fewer is chosen.
#
#   bench/launches.sh FOLDER MODEL/BATCH/FORMAT...    models are FOLDER/MODEL.onnx; KERNELS=FOLDER keeps what was compiled, for
#                                                     a machine that has the GPU (ASSAY_KERNEL_CACHE)
#
# A release build with its tests, and scripts/setup test. Which tile a layer gets is not said: only times of a GPU tell.
set -euo pipefail
ROOT=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
[ $# -ge 2 ] || { sed -n '2,/^set/{/^#/s/^# \{0,1\}//p}' "$0"; exit 2; }
MODELS=$1
shift
FOLDER=$(mktemp -d)
trap 'rm -r "$FOLDER"' EXIT
ln -s "$ROOT"/build/release/tests/libcuda/libcuda.so.1 "$ROOT"/build/venv/lib/python3*/site-packages/nvidia/cu13/lib/libnvrtc* "$FOLDER"
export ASSAY_CUDA_PATH=$FOLDER ASSAY_FAKE_DRY=1 ASSAY_FAKE_TIMES=2000,2000,5000,5000 ASSAY_KERNEL_CACHE=${KERNELS:-$FOLDER/kernels}
export ASSAY_FAKE_LAUNCHES=$FOLDER/launches
ASSAY=$ROOT/build/release/src/cli/assay
for row in "$@"; do
  IFS=/ read -r model batch format <<< "$row"
  "$ASSAY" build "$MODELS/$model.onnx" --precision "$format" --batch "$batch" --target cuda -o "$FOLDER/plan" > "$FOLDER/said" 2>&1 &&
    "$ASSAY" bench "$FOLDER/plan" --target cuda --seconds 0.01 > "$FOLDER/said" 2>&1 || { cat "$FOLDER/said"; continue; }
  printf '%s, batch %s, %s: %s launches: %s\n' "$model" "$batch" "$format" "$(wc -l < "$FOLDER/launches")" \
    "$(cut -d' ' -f1 "$FOLDER/launches" | sort | uniq -c | sort -rn | awk '{printf "%s%s %s", (NR > 1 ? ", " : ""), $1, $2}')"
done
