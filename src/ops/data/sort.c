// TopK and Unique: what needs an order of elements.
//
// One order for all: numbers by value, -0 equal to +0, NaN above all numbers and equal to NaN (as
// numpy sorts); complex numbers by real, then imaginary part; strings by bytes.
#include <math.h>
#include <string.h>

#include "ops/bound_parts.h"
#include "ops/content.h"
#include "ops/data/strided.h"
#include "ops/families.h"

static int compare_f64(double a, double b) {
  if (a < b) return -1;
  if (a > b) return 1;
  return isnan(a) - isnan(b) == 0 ? 0 : isnan(a) ? 1 : -1;
}

static int compare_strings(assay_string_t a, assay_string_t b) {
  size_t n = a.len < b.len ? a.len : b.len;
  int r = n ? memcmp(a.text, b.text, n) : 0;
  return r ? r : (a.len > b.len) - (a.len < b.len);
}

static int compare(const assay_tensor_t* t, int64_t i, int64_t j) {
  switch (t->store) {
    case ASSAY_STORE_F64:
      return compare_f64(assay_f64(t)[i], assay_f64(t)[j]);
    case ASSAY_STORE_C128: {
      int r = compare_f64(assay_c128(t)[2 * i], assay_c128(t)[2 * j]);
      return r ? r : compare_f64(assay_c128(t)[2 * i + 1], assay_c128(t)[2 * j + 1]);
    }
    case ASSAY_STORE_STR:
      return compare_strings(assay_strings(t)[i], assay_strings(t)[j]);
    default: {
      int64_t a = assay_i64(t)[i], b = assay_i64(t)[j];
      if (t->type == ASSAY_TYPE_UINT64) {
        return ((uint64_t)a > (uint64_t)b) - ((uint64_t)a < (uint64_t)b);
      }
      return (a > b) - (a < b);
    }
  }
}

// ---- a heap ----------------------------------------------------------------------------------

// An order of items by number: negative if a comes before b. Ties never occur: orders end with the
// number itself, which also makes every result independent of the algorithm.
typedef struct order {
  const assay_tensor_t* t;
  int64_t base, step;                // item k starts at element base + k * step
  int64_t outer, outer_step, inner;  // Unique's items: outer x inner elements
  bool falling;
} order_t;

static int topk_before(const order_t* o, int64_t a, int64_t b) {
  int r = compare(o->t, o->base + a * o->step, o->base + b * o->step);
  if (o->falling) r = -r;
  return r ? r : (a > b) - (a < b);
}

static int items_compare(const order_t* o, int64_t a, int64_t b) {
  for (int64_t i = 0; o->inner && i < o->outer; i++) {
    for (int64_t j = 0; j < o->inner; j++) {
      int64_t at = i * o->outer_step + j;
      int r = compare(o->t, at + a * o->step, at + b * o->step);
      if (r) return r;
    }
  }
  return 0;
}

static int unique_before(const order_t* o, int64_t a, int64_t b) {
  int r = items_compare(o, a, b);
  return r ? r : (a > b) - (a < b);
}

typedef int before_t(const order_t* o, int64_t a, int64_t b);

// Moves heap[i] down in a heap whose root comes last.
static void sift(const order_t* o, before_t* before, int64_t* heap, int64_t n, int64_t i) {
  for (;;) {
    int64_t child = 2 * i + 1;
    if (child >= n) return;
    if (child + 1 < n && before(o, heap[child], heap[child + 1]) < 0) child++;
    if (before(o, heap[i], heap[child]) >= 0) return;
    int64_t swap = heap[i];
    heap[i] = heap[child];
    heap[child] = swap;
    i = child;
  }
}

// The first k of n items in order, into heap[0..k): O(n log k).
static void first_items(const order_t* o, before_t* before, int64_t n, int64_t k, int64_t* heap) {
  if (k == 0) return;
  for (int64_t i = 0; i < k; i++) heap[i] = i;
  for (int64_t i = k / 2 - 1; i >= 0; i--) sift(o, before, heap, k, i);
  for (int64_t i = k; i < n; i++) {
    if (before(o, i, heap[0]) > 0) continue;
    heap[0] = i;
    sift(o, before, heap, k, 0);
  }
  for (int64_t end = k - 1; end > 0; end--) {
    int64_t swap = heap[0];
    heap[0] = heap[end];
    heap[end] = swap;
    sift(o, before, heap, end, 0);
  }
}

// ---- TopK ------------------------------------------------------------------------------------

static assay_status_t topk_range(const assay_node_t* node, int64_t k, int64_t size, int axis) {
  if (k >= 0 && k <= size) return NULL;
  return ASSAY_NODE_ERROR(node, ASSAY_INVALID_ARGUMENT,
                          "k is %lld, axis %d has size %lld; expected 0 to %lld", (long long)k,
                          axis, (long long)size, (long long)size);
}

static assay_status_t topk_infer_by(assay_infer_t* c, const assay_dim_t* k) {
  assay_shape_t out = assay_infer_shape(c, 0);
  ASSAY_TRY(assay_infer_want_rank(c, 0, 1, ASSAY_MAX_RANK));
  if (out.known) {
    int axis;
    int64_t count, size;
    ASSAY_TRY(assay_infer_axis(c, "attribute axis", assay_attr_i64(c->node, "axis", -1), out.rank,
                               &axis));
    if (assay_dim_value(k, &count)) {
      bool sized = assay_dim_value(out.dims[axis], &size);
      ASSAY_TRY(topk_range(c->node, count, sized ? size : INT64_MAX, axis));
    }
    out.dims[axis] = k;
  }
  ASSAY_TRY(assay_infer_set(c, 0, assay_infer_elem(c, 0), &out));
  return assay_infer_set(c, 1, ASSAY_TYPE_INT64, &out);
}

static assay_status_t topk1_infer(assay_infer_t* c) {
  return topk_infer_by(c, assay_dim_const(c->dims, assay_attr_i64(c->node, "k", 0)));
}

static assay_status_t topk_infer(assay_infer_t* c) {
  assay_content_list_t k;
  bool known = assay_content_read(c, 1, &k) && k.n == 1;
  return topk_infer_by(c, known ? k.elems[0] : NULL);
}

// Source: ONNX TopK-1, -10, -11: equal values by rising index. NaN is the largest value, as in
// numpy and PyTorch (ONNX does not say). sorted=0 leaves the order open; it is sorted all the same.
static assay_status_t topk(assay_eval_t* c, int64_t k) {
  const assay_tensor_t* in = c->in[0];
  int axis;
  ASSAY_TRY(
      assay_eval_axis(c, "attribute axis", assay_attr_i64(c->node, "axis", -1), in->rank, &axis));
  ASSAY_TRY(topk_range(c->node, k, in->dims[axis], axis));
  bool largest = assay_attr_i64(c->node, "largest", 1) != 0;
  int64_t dims[ASSAY_MAX_RANK];
  memcpy(dims, in->dims, sizeof dims);
  dims[axis] = k;
  assay_tensor_t *values = NULL, *indices = NULL;
  if (assay_eval_wants(c, 0)) {
    ASSAY_TRY(assay_eval_output(c, 0, in->type, in->rank, dims, &values));
  }
  if (assay_eval_wants(c, 1)) {
    ASSAY_TRY(assay_eval_output(c, 1, ASSAY_TYPE_INT64, in->rank, dims, &indices));
  }
  if (in->size == 0 || k == 0) return NULL;
  int64_t inner = assay_dims_product(in->dims, axis + 1, in->rank), n = in->dims[axis];
  int64_t lines = in->size / n;
  int64_t* found = NULL;
  ASSAY_TRY(assay_new_array((size_t)(lines * k), sizeof *found, &found));
#pragma omp parallel for schedule(static) if (in->size > 100000)
  for (int64_t l = 0; l < lines; l++) {
    order_t o = {
        .t = in, .base = l / inner * n * inner + l % inner, .step = inner, .falling = largest};
    first_items(&o, topk_before, n, k, found + l * k);
  }
  assay_status_t st = NULL;
  for (int64_t l = 0; l < lines && !st; l++) {
    int64_t from = l / inner * n * inner + l % inner, to = l / inner * k * inner + l % inner;
    for (int64_t i = 0; i < k && !st; i++) {
      int64_t at = found[l * k + i];
      if (indices) assay_i64(indices)[to + i * inner] = at;
      if (values) st = assay_copy_run(in, from + at * inner, values, to + i * inner, 1);
    }
  }
  assay_free(found);
  return st;
}

static assay_status_t topk1_eval(assay_eval_t* c) {
  return topk(c, assay_attr_i64(c->node, "k", 0));
}

static assay_status_t topk_eval(assay_eval_t* c) {
  if (c->in[1]->size != 1) {
    return ASSAY_NODE_ERROR(c->node, ASSAY_INVALID_ARGUMENT, "input 'K' has shape %s, expected [1]",
                            ASSAY_DIMS_TEXT(c->in[1]));
  }
  return topk(c, assay_i64(c->in[1])[0]);
}

// Whether the element at a place of a line may change places with another one: x of n elements,
// step apart, e their limits.
static bool may_change_places(const double* x, const double* e, int64_t n, int64_t step,
                              int64_t at) {
  for (int64_t i = 0; i < n; i++)
    if (i != at && !(fabs(x[i * step] - x[at * step]) > e[i * step] + e[at * step])) return true;
  return false;
}

static void open_indices(const assay_bound_t* c, int axis, bool probable, assay_tensor_t* to) {
  const assay_tensor_t *in = c->in[0], *indices = c->out[1];
  const double* e = assay_bound_in(c, 0, probable);
  const int64_t inner = assay_dims_product(in->dims, axis + 1, in->rank);
  const int64_t n = in->dims[axis], k = indices->dims[axis];
  for (int64_t i = 0; i < indices->size; i++) {
    const int64_t from = i / inner / k * n * inner + i % inner;
    if (may_change_places(assay_f64(in) + from, e + from, n, inner, assay_i64(indices)[i]))
      assay_f64(to)[i] = (double)INFINITY;
  }
}

// Values are sorted whatever comes in; which elements they are is open where two of them may change
// places.
static assay_status_t topk_bound(assay_bound_t* c) {
  int axis;
  double *guaranteed, *probable;
  ASSAY_TRY(assay_bound_exact(c));
  if (!assay_bound_is_limited(c, 0) || !assay_bound_is_float(c, 0) || c->n_out < 2 || !c->out[1] ||
      !c->out[1]->size)
    return NULL;
  const assay_eval_t e = assay_bound_as_eval(c);
  ASSAY_TRY(assay_eval_axis(&e, "attribute axis", assay_attr_i64(c->node, "axis", -1),
                            c->in[0]->rank, &axis));
  ASSAY_TRY(assay_bound_output(c, 1, &guaranteed, &probable));
  memset(guaranteed, 0, (size_t)c->out[1]->size * sizeof *guaranteed);
  memset(probable, 0, (size_t)c->out[1]->size * sizeof *probable);
  open_indices(c, axis, false, c->out_error[1].guaranteed);
  open_indices(c, axis, true, c->out_error[1].probable);
  return NULL;
}

// ---- Unique ----------------------------------------------------------------------------------

static assay_status_t unique_infer(assay_infer_t* c) {
  assay_shape_t out = assay_infer_shape(c, 0), list = {.known = true, .rank = 1};
  const assay_dim_t* count = assay_dim_fresh(c->dims, "unique");
  const assay_dim_t* items = NULL;
  if (!assay_attr_has(c->node, "axis")) {
    if (out.known) items = assay_shape_size(c->dims, &out, 0, out.rank);
    out = (assay_shape_t){.known = true, .rank = 1};
    out.dims[0] = count;
  } else if (out.known) {
    int axis;
    ASSAY_TRY(
        assay_infer_axis(c, "attribute axis", assay_attr_i64(c->node, "axis", 0), out.rank, &axis));
    items = out.dims[axis];
    out.dims[axis] = count;
  }
  ASSAY_TRY(assay_infer_set(c, 0, assay_infer_elem(c, 0), &out));
  list.dims[0] = count;
  ASSAY_TRY(assay_infer_set(c, 1, ASSAY_TYPE_INT64, &list));
  ASSAY_TRY(assay_infer_set(c, 3, ASSAY_TYPE_INT64, &list));
  list.dims[0] = items;
  return assay_infer_set(c, 2, ASSAY_TYPE_INT64, &list);
}

// The groups of equal items. All arrays have room for one entry an item.
typedef struct groups {
  int64_t n;
  int64_t* sorted;  // items in order
  int64_t* first;   // of each group: its first item
  int64_t* count;   // of each group: its items
  int64_t* of;      // of each item: its group
  int64_t* rank;    // of each group by value: its number in the output
} groups_t;

// Groups in order of value; equal items are neighbours in the sorted list, the first one in front.
static void group_items(const order_t* o, int64_t items, groups_t* g) {
  first_items(o, unique_before, items, items, g->sorted);
  g->n = 0;
  for (int64_t i = 0; i < items; i++) {
    int64_t item = g->sorted[i];
    if (i == 0 || items_compare(o, g->sorted[i - 1], item) != 0) {
      g->first[g->n] = item;
      g->count[g->n++] = 0;
    }
    g->of[item] = g->n - 1;
    g->count[g->n - 1]++;
  }
}

// The number of each group in the output: by value, or by first occurrence.
static void rank_groups(bool sorted, int64_t items, groups_t* g) {
  int64_t next = 0;
  for (int64_t i = 0; i < g->n && sorted; i++) g->rank[i] = i;
  for (int64_t item = 0; item < items && !sorted; item++) {
    if (g->first[g->of[item]] == item) g->rank[g->of[item]] = next++;
  }
}

static assay_status_t unique_output(assay_eval_t* c, const order_t* o, const groups_t* g, int axis,
                                    bool flat) {
  const assay_tensor_t* in = c->in[0];
  int64_t dims[ASSAY_MAX_RANK];
  memcpy(dims, in->dims, sizeof dims);
  dims[axis] = g->n;
  assay_tensor_t* y;
  ASSAY_TRY(assay_eval_output(c, 0, in->type, flat ? 1 : in->rank, dims, &y));
  if (y->size == 0) return NULL;
  for (int64_t k = 0; k < g->n; k++) {
    for (int64_t i = 0; i < o->outer; i++) {
      ASSAY_TRY(assay_copy_run(in, i * o->outer_step + g->first[k] * o->step, y,
                               (i * g->n + g->rank[k]) * o->inner, o->inner));
    }
  }
  return NULL;
}

static assay_status_t unique_lists(assay_eval_t* c, int64_t items, const groups_t* g) {
  assay_tensor_t* t;
  if (assay_eval_wants(c, 1)) {
    ASSAY_TRY(assay_eval_output(c, 1, ASSAY_TYPE_INT64, 1, &g->n, &t));
    for (int64_t k = 0; k < g->n; k++) assay_i64(t)[g->rank[k]] = g->first[k];
  }
  if (assay_eval_wants(c, 2)) {
    ASSAY_TRY(assay_eval_output(c, 2, ASSAY_TYPE_INT64, 1, &items, &t));
    for (int64_t i = 0; i < items; i++) assay_i64(t)[i] = g->rank[g->of[i]];
  }
  if (assay_eval_wants(c, 3)) {
    ASSAY_TRY(assay_eval_output(c, 3, ASSAY_TYPE_INT64, 1, &g->n, &t));
    for (int64_t k = 0; k < g->n; k++) assay_i64(t)[g->rank[k]] = g->count[k];
  }
  return NULL;
}

// Source: ONNX Unique-11. Items are elements, or the parts along `axis`, compared in row-major
// order.
static assay_status_t unique_eval(assay_eval_t* c) {
  const assay_tensor_t* in = c->in[0];
  bool flat = !assay_attr_has(c->node, "axis");
  int axis = 0;
  if (!flat) {
    ASSAY_TRY(
        assay_eval_axis(c, "attribute axis", assay_attr_i64(c->node, "axis", 0), in->rank, &axis));
  }
  int64_t items = flat ? in->size : in->dims[axis];
  order_t o = {.t = in, .outer = 1, .inner = 1, .step = 1};
  if (!flat) {
    o.outer = assay_dims_product(in->dims, 0, axis);
    o.inner = o.step = assay_dims_product(in->dims, axis + 1, in->rank);
    o.outer_step = o.inner * items;
  }
  int64_t* memory = NULL;
  int64_t total;
  if (!assay_mul_i64(items, 5, &total)) return assay_status_no_memory();
  ASSAY_TRY(assay_new_array((size_t)total, sizeof *memory, &memory));
  groups_t g = {.sorted = memory,
                .first = memory + items,
                .count = memory + 2 * items,
                .of = memory + 3 * items,
                .rank = memory + 4 * items};
  group_items(&o, items, &g);
  rank_groups(assay_attr_i64(c->node, "sorted", 1) != 0, items, &g);
  assay_status_t st = NULL;
  if (assay_eval_wants(c, 0)) st = unique_output(c, &o, &g, axis, flat);
  if (!st) st = unique_lists(c, items, &g);
  assay_free(memory);
  return st;
}

const assay_op_t assay_ops_sort[] = {{.domain = "",
                                      .name = "TopK",
                                      .since = 1,
                                      .flags = ASSAY_OP_MOVES | ASSAY_OP_SELECTS,
                                      .discrete = 2,
                                      .infer = topk1_infer,
                                      .eval = topk1_eval,
                                      .bound = topk_bound},
                                     {.domain = "",
                                      .name = "TopK",
                                      .since = 10,
                                      .flags = ASSAY_OP_MOVES | ASSAY_OP_SELECTS,
                                      .discrete = 2,
                                      .infer = topk_infer,
                                      .eval = topk_eval,
                                      .bound = topk_bound},
                                     {.domain = "",
                                      .name = "Unique",
                                      .since = 11,
                                      .discrete = 15,
                                      .infer = unique_infer,
                                      .eval = unique_eval},
                                     {0}};
