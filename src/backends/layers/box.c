// Boxes of elements, and the order in which they are copied.
#include "backends/layers/box.h"

void box_layout_strides(int rank, const int64_t* dims, assay_layout_t layout, int64_t* strides) {
  const bool last = layout == ASSAY_LAYOUT_CHANNELS_LAST && rank >= 3;
  int64_t step = last ? dims[1] : 1;
  for (int i = rank - 1; i >= 0; i--) {
    if (last && i == 1) continue;
    strides[i] = step;
    step *= dims[i];
  }
  if (last) strides[1] = 1;
}

// ---- the order of a copy --------------------------------------------------------------------

static void swap(int64_t* x, int a, int b) {
  const int64_t t = x[a];
  x[a] = x[b];
  x[b] = t;
}

static void swap_dims(box_t* b, int i, int k) {
  swap(b->dims, i, k);
  swap(b->from_strides, i, k);
  swap(b->to_strides, i, k);
}

// The output is written from its beginning to its end: dimensions by falling strides.
static void sort_dims(box_t* b) {
  for (int i = 1; i < b->rank; i++)
    for (int k = i; k && b->to_strides[k - 1] < b->to_strides[k]; k--) swap_dims(b, k - 1, k);
}

// Those of 1 go, and neighbours over which both sides run on become one.
static void merge_dims(box_t* b) {
  int n = 0;
  for (int d = 0; d < b->rank; d++) {
    if (b->dims[d] == 1) continue;
    const bool joins = n && b->from_strides[n - 1] == b->from_strides[d] * b->dims[d] &&
                       b->to_strides[n - 1] == b->to_strides[d] * b->dims[d];
    if (!joins) n++;
    b->dims[n - 1] = joins ? b->dims[n - 1] * b->dims[d] : b->dims[d];
    b->from_strides[n - 1] = b->from_strides[d];
    b->to_strides[n - 1] = b->to_strides[d];
  }
  b->rank = n;
}

// Where the input runs along another dimension than the output, the two come last: a matrix that is
// transposed.
static void find_matrix(box_t* b) {
  if (b->rank < 2 || b->to_strides[b->rank - 1] != 1 || b->from_strides[b->rank - 1] == 1) return;
  for (int d = 0; d + 1 < b->rank; d++)
    if (b->from_strides[d] == 1) {
      for (; d + 2 < b->rank; d++) swap_dims(b, d, d + 1);
      return;
    }
}

void box_prepare(box_t* b) {
  for (int i = 0; b->from < 0 && i < b->rank; i++) b->from_strides[i] = 0;
  sort_dims(b);
  merge_dims(b);
  while (b->rank < 2) {
    for (int i = b->rank; i; i--) swap_dims(b, i, i - 1);
    b->dims[0] = 1;
    b->from_strides[0] = b->to_strides[0] = b->rank ? 0 : 1;
    b->rank++;
  }
  find_matrix(b);
}

bool box_is_empty(const box_t* b) {
  for (int i = 0; i < b->rank; i++)
    if (b->dims[i] <= 0) return true;
  return false;
}

bool box_is_matrix(const box_t* b) {
  const int n = b->rank;
  return b->to_strides[n - 1] == 1 && b->from_strides[n - 2] == 1 && b->from_strides[n - 1] != 1;
}
