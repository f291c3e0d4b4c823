// What Slice and Split take of a tensor.
#include "backends/layers/slice.h"

#include <string.h>

#include "backends/constants.h"

static int64_t clamped(int64_t i, int64_t size, int64_t low, int64_t high) {
  if (i < 0) i = i < -size ? -1 : i + size;
  return i < low ? low : i > high ? high : i;
}

static void take_all(int rank, const int64_t* dims, layer_slice_t* out) {
  *out = (layer_slice_t){.first = {0}};
  for (int d = 0; d < rank; d++) {
    out->step[d] = 1;
    out->dims[d] = dims[d];
  }
}

// Source: ONNX Slice-13, which counts as numpy does.
bool layer_slice_read(const assay_sized_layer_t* l, const assay_node_t* slice, int rank,
                      const int64_t* dims, layer_slice_t* out) {
  enum { STARTS, ENDS, AXES, STEPS, N };
  static const char* const names[] = {"starts", "ends", "axes", "steps"};
  int64_t list[N][ASSAY_KERNEL_RANK];
  int n[N];
  bool seen[ASSAY_KERNEL_RANK] = {false};
  for (int i = 0; i < N; i++)
    if (!assay_known_list(l, slice, names[i], (size_t)i + 1, ASSAY_KERNEL_RANK, list[i], &n[i]))
      return false;
  if (n[STARTS] < 0 || n[ENDS] != n[STARTS] || (n[AXES] >= 0 && n[AXES] != n[STARTS]) ||
      (n[STEPS] >= 0 && n[STEPS] != n[STARTS]) || n[STARTS] > rank)
    return false;
  take_all(rank, dims, out);
  for (int i = 0; i < n[STARTS]; i++) {
    const int d = assay_known_axis(n[AXES] < 0 ? i : list[AXES][i], rank);
    const int64_t step = n[STEPS] < 0 ? 1 : list[STEPS][i];
    if (d < 0 || seen[d] || !step || step <= -INT32_MAX || step >= INT32_MAX) return false;
    seen[d] = true;
    const int64_t size = dims[d], back = step < 0;
    const int64_t first = clamped(list[STARTS][i], size, 0, size - back);
    const int64_t end = clamped(list[ENDS][i], size, -back, size - back);
    const int64_t span = back ? first - end : end - first, stride = back ? -step : step;
    out->first[d] = first;
    out->dims[d] = span > 0 ? (span + stride - 1) / stride : 0;
    out->step[d] = out->dims[d] > 1 ? step : 0;  // a step past the end cannot overflow
  }
  return true;
}

// Source: ONNX Split-18: parts of one size where none are given, the last one smaller if it must
// be.
bool layer_split_read(const assay_sized_layer_t* l, const assay_node_t* split, int rank,
                      const int64_t* dims, layer_slice_t* out) {
  const int axis = assay_known_axis(assay_attr_i64(split, "axis", 0), rank);
  const int64_t parts = (int64_t)split->n_outputs;
  int64_t sizes[ASSAY_KERNEL_OPERANDS], at = 0;
  int n;
  if (axis < 0 || parts < 1 || parts > ASSAY_KERNEL_OPERANDS ||
      !assay_known_list(l, split, "split", 1, ASSAY_KERNEL_OPERANDS, sizes, &n) ||
      (n >= 0 && n != parts))
    return false;
  const int64_t each = (dims[axis] + parts - 1) / parts;
  for (int64_t i = 0; i < parts; i++) {
    const int64_t left = dims[axis] - at, size = n >= 0 ? sizes[i] : each < left ? each : left;
    if (size < 0 || size > left) return false;
    take_all(rank, dims, &out[i]);
    out[i].first[axis] = at;
    out[i].dims[axis] = size;
    at += size;
  }
  return at == dims[axis];
}
