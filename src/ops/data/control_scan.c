// Scan: a body run along one axis of its scan inputs.
//
// Scan-8 runs batch by batch over axis 1, each row of the batch for as long as sequence_lens says;
// Scan-9 and later run once, along any axis. Both use one pass (scan_rounds) over slices.
#include <string.h>

#include "base/alloc.h"
#include "ops/data/control.h"
#include "ops/families.h"
#include "ops/join.h"

// ---- what the attributes say ------------------------------------------------------------------

typedef struct scan {
  assay_body_t body;
  size_t first;      // node input of state 0: 1 in Scan-8, which has sequence_lens before it
  size_t n_scan_in;  // scan inputs, after the states
  const int64_t *in_axes, *in_directions, *out_axes, *out_directions;  // NULL: all 0
} scan_t;

static assay_status_t scan_list(const assay_node_t* node, const char* name, size_t want,
                                bool is_flag, const int64_t** out) {
  size_t n = 0;
  const int64_t* list = assay_attr_ints(node, name, &n);
  if (n && n != want)
    return ASSAY_NODE_ERROR(node, ASSAY_CORRUPT, "attribute '%s' has %zu entries; %zu are needed",
                            name, n, want);
  for (size_t i = 0; is_flag && i < n; i++)
    if (list[i] != 0 && list[i] != 1)
      return ASSAY_NODE_ERROR(node, ASSAY_CORRUPT, "attribute '%s' holds %lld; 0 or 1 is expected",
                              name, (long long)list[i]);
  *out = n ? list : NULL;
  return NULL;
}

// first: 0 for Scan-9 and later, 1 for Scan-8.
static assay_status_t scan_read(const assay_node_t* node, size_t first, scan_t* s) {
  int64_t m = assay_attr_i64(node, "num_scan_inputs", 0);
  if (node->n_inputs < first || m < 1 || (uint64_t)m > node->n_inputs - first)
    return ASSAY_NODE_ERROR(node, ASSAY_CORRUPT,
                            "num_scan_inputs is %lld; it must be from 1 to the number of inputs, "
                            "%zu",
                            (long long)m, node->n_inputs > first ? node->n_inputs - first : 0);
  *s = (scan_t){.first = first, .n_scan_in = (size_t)m};
  s->body = (assay_body_t){.graph = assay_attr_graph(node, "body"),
                           .n_inputs = node->n_inputs - first,
                           .n_states = node->n_inputs - first - (size_t)m};
  ASSAY_TRY(assay_body_check(node, &s->body));
  size_t k = s->body.n_scans;
  ASSAY_TRY(scan_list(node, first ? "directions" : "scan_input_directions", (size_t)m, true,
                      &s->in_directions));
  if (first) return NULL;
  ASSAY_TRY(scan_list(node, "scan_output_directions", k, true, &s->out_directions));
  ASSAY_TRY(scan_list(node, "scan_input_axes", (size_t)m, false, &s->in_axes));
  return scan_list(node, "scan_output_axes", k, false, &s->out_axes);
}

assay_status_t assay_scan_check(const assay_node_t* node) {
  scan_t s;
  return scan_read(node, node->schema->since < 9, &s);
}

static int64_t at(const int64_t* list, size_t i) { return list ? list[i] : 0; }

// ---- inference --------------------------------------------------------------------------------

// Joins a dimension that several inputs must have in common into *dim; error if two differ.
static assay_status_t common_dim(const assay_infer_t* c, const char* what, size_t input,
                                 const assay_dim_t* d, const assay_dim_t** dim) {
  int64_t value;
  if (assay_dim_differ(d, *dim))
    return ASSAY_NODE_ERROR(
        c->node, ASSAY_CORRUPT, "input %zu '%s' has another %s (%s) than the inputs before it (%s)",
        input, c->node->inputs[input]->name, what, assay_dim_text(d, (char[96]){0}, 96),
        assay_dim_text(*dim, (char[96]){0}, 96));
  if (!*dim || (d && assay_dim_value(d, &value))) *dim = d;
  return NULL;
}

// The type of an input without the dimensions that the scan takes away. drop: their positions.
static assay_status_t without_dims(assay_infer_t* c, size_t input, int n_drop, const int* drop,
                                   const assay_valtype_t** out) {
  const assay_valtype_t* t = assay_infer_type(c, input);
  *out = t;
  if (!t || t->kind != ASSAY_KIND_TENSOR || !t->has_shape) return NULL;
  const assay_dim_t* dims[ASSAY_MAX_RANK];
  int rank = 0;
  for (int i = 0; i < t->rank; i++) {
    bool dropped = false;
    for (int k = 0; k < n_drop; k++) dropped |= drop[k] == i;
    if (!dropped) dims[rank++] = t->dims[i];
  }
  return assay_valtype_tensor(c->model, t->elem, rank, dims, out);
}

static assay_status_t set_with_dims(assay_infer_t* c, size_t output, const assay_valtype_t* t,
                                    int n_add, const int* add, const assay_dim_t* const* lengths) {
  assay_shape_t shape = {0};
  if (!t) return NULL;
  if (t->kind != ASSAY_KIND_TENSOR)
    return ASSAY_NODE_ERROR(c->node, ASSAY_CORRUPT,
                            "output %zu would be collected from %s; only "
                            "tensors can be",
                            output, ASSAY_VALTYPE_TEXT(t));
  if (t->has_shape && t->rank + n_add <= ASSAY_MAX_RANK) {
    shape.known = true;
    shape.rank = t->rank + n_add;
    int from = 0;
    for (int i = 0; i < shape.rank; i++) {
      int which = -1;
      for (int k = 0; k < n_add; k++)
        if (add[k] == i) which = k;
      shape.dims[i] = which >= 0 ? lengths[which] : t->dims[from++];
    }
  }
  return assay_infer_set(c, output, t->elem, &shape);
}

static assay_status_t scan_infer_body(assay_infer_t* c, const scan_t* s,
                                      const assay_valtype_t** types, bool batched) {
  size_t n = s->body.n_states;
  const assay_dim_t *length = NULL, *batch = NULL;
  for (size_t i = 0; i < s->body.n_inputs; i++) {
    size_t input = s->first + i;
    assay_shape_t shape = assay_infer_shape(c, input);
    int drop[2] = {0, 1}, n_drop = batched ? 1 : 0;
    types[i] = assay_infer_type(c, input);
    if (i >= n) n_drop++;
    if (!n_drop || !shape.known) continue;
    if (batched)
      ASSAY_TRY(assay_infer_want_rank(c, input, n_drop, ASSAY_MAX_RANK));
    else
      ASSAY_TRY(
          assay_infer_axis(c, "scan_input_axes", at(s->in_axes, i - n), shape.rank, &drop[0]));
    if (batched) ASSAY_TRY(common_dim(c, "batch size", input, shape.dims[0], &batch));
    if (i >= n)
      ASSAY_TRY(common_dim(c, "length to scan", input, shape.dims[drop[n_drop - 1]], &length));
    ASSAY_TRY(without_dims(c, input, n_drop, drop, &types[i]));
  }
  ASSAY_TRY(assay_body_settle(c, &s->body, types));
  const int leading[2] = {0, 1};
  const assay_dim_t* both[2] = {batch, length};
  for (size_t i = 0; i < c->node->n_outputs; i++) {
    const assay_valtype_t* t =
        i < n ? assay_body_state_type(&s->body, types, i) : s->body.graph->outputs[i]->type;
    if (batched) {
      ASSAY_TRY(set_with_dims(c, i, t, i < n ? 1 : 2, leading, both));
    } else if (i < n) {
      if (t) ASSAY_TRY(assay_infer_set_type(c, i, t));
    } else {
      int axis = 0;
      if (t && t->kind == ASSAY_KIND_TENSOR && t->has_shape)
        ASSAY_TRY(
            assay_infer_axis(c, "scan_output_axes", at(s->out_axes, i - n), t->rank + 1, &axis));
      ASSAY_TRY(set_with_dims(c, i, t, 1, &axis, &length));
    }
  }
  return NULL;
}

static assay_status_t scan_infer_any(assay_infer_t* c, size_t first) {
  scan_t s;
  const assay_valtype_t** types = NULL;
  ASSAY_TRY(scan_read(c->node, first, &s));
  ASSAY_TRY(assay_new_array(s.body.n_inputs, sizeof *types, &types));
  assay_status_t st = scan_infer_body(c, &s, types, first == 1);
  assay_free(types);
  return st;
}

static assay_status_t scan8_infer(assay_infer_t* c) { return scan_infer_any(c, 1); }
static assay_status_t scan11_infer(assay_infer_t* c) { return scan_infer_any(c, 0); }

// Scan-9 counts axes from the front only.
static assay_status_t scan9_infer(assay_infer_t* c) {
  const char* names[] = {"scan_input_axes", "scan_output_axes"};
  for (size_t k = 0; k < 2; k++) {
    size_t n = 0;
    const int64_t* axes = assay_attr_ints(c->node, names[k], &n);
    for (size_t i = 0; i < n; i++)
      if (axes[i] < 0)
        return ASSAY_NODE_ERROR(c->node, ASSAY_CORRUPT,
                                "attribute '%s' holds %lld; negative axes came with opset 11",
                                names[k], (long long)axes[i]);
  }
  return scan11_infer(c);
}

// ---- evaluation -------------------------------------------------------------------------------

// A tensor seen as [outer, length, inner] around an axis.
typedef struct strip {
  int64_t outer, length, inner;
} strip_t;

static strip_t strip_of(int rank, const int64_t* dims, int axis) {
  return (strip_t){assay_dims_product(dims, 0, axis), dims[axis],
                   assay_dims_product(dims, axis + 1, rank)};
}

// The slice of t at `index` of `axis`, without that dimension.
static assay_status_t slice(const assay_tensor_t* t, int axis, int64_t index,
                            assay_tensor_t** out) {
  int64_t dims[ASSAY_MAX_RANK];
  int rank = 0;
  for (int i = 0; i < t->rank; i++)
    if (i != axis) dims[rank++] = t->dims[i];
  strip_t s = strip_of(t->rank, t->dims, axis);
  assay_tensor_t* r = NULL;
  assay_status_t st = assay_tensor_create(t->type, rank, dims, &r);
  for (int64_t o = 0; !st && r->size && o < s.outer; o++)
    st = assay_copy_elems(t, (o * s.length + index) * s.inner, r, o * s.inner, s.inner);
  if (st) return assay_tensor_release(r), st;
  *out = r;
  return NULL;
}

// Puts `item` at `index` of `axis` of t, whose shape is item's with that dimension inserted.
static assay_status_t put(assay_tensor_t* t, int axis, int64_t index, const assay_tensor_t* item) {
  strip_t s = strip_of(t->rank, t->dims, axis);
  for (int64_t o = 0; item->size && o < s.outer; o++)
    ASSAY_TRY(assay_copy_elems(item, o * s.inner, t, (o * s.length + index) * s.inner, s.inner));
  return NULL;
}

// Whether item has t's shape without `axis`, and its type.
static bool fits(const assay_tensor_t* t, int axis, const assay_tensor_t* item) {
  if (item->kind != ASSAY_KIND_TENSOR || item->type != t->type || item->rank != t->rank - 1)
    return false;
  for (int i = 0, k = 0; i < t->rank; i++)
    if (i != axis && t->dims[i] != item->dims[k++]) return false;
  return true;
}

// One run over one sequence.
typedef struct run {
  const scan_t* s;
  assay_tensor_t* const* scan_in;  // n_scan_in of them
  assay_tensor_t** in;             // of the body: states first; they change
  assay_tensor_t** out;            // of the body
  assay_tensor_t** made;           // scan outputs; NULL until the first iteration
  int64_t steps, length;           // iterations; room in the scan outputs
} run_t;

// Makes room for scan output i, zeros: Scan-8 leaves what lies after a short sequence undefined.
static assay_status_t make_output(assay_eval_t* c, run_t* r, size_t i, assay_type_t type, int rank,
                                  const int64_t* item_dims, int* out_axis) {
  int64_t dims[ASSAY_MAX_RANK];
  if (rank >= ASSAY_MAX_RANK)
    return ASSAY_NODE_ERROR(c->node, ASSAY_UNSUPPORTED,
                            "scan output %zu would have rank %d; %d is the most", i, rank + 1,
                            ASSAY_MAX_RANK);
  ASSAY_TRY(assay_eval_axis(c, "scan_output_axes", at(r->s->out_axes, i), rank + 1, out_axis));
  if (r->made[i]) return NULL;
  for (int d = 0, k = 0; d <= rank; d++) dims[d] = d == *out_axis ? r->length : item_dims[k++];
  return assay_status_note(assay_tensor_create_zero(type, rank + 1, dims, &r->made[i]),
                           "node '%s' (%s): scan output %zu", c->node->label, c->node->op_type, i);
}

static assay_status_t collect(assay_eval_t* c, run_t* r, size_t i, int64_t step,
                              const assay_tensor_t* item) {
  int axis = 0;
  if (item->kind != ASSAY_KIND_TENSOR)
    return ASSAY_NODE_ERROR(c->node, ASSAY_INVALID_ARGUMENT, "scan output %zu is not a tensor", i);
  ASSAY_TRY(make_output(c, r, i, item->type, item->rank, item->dims, &axis));
  if (!fits(r->made[i], axis, item))
    return ASSAY_NODE_ERROR(c->node, ASSAY_INVALID_ARGUMENT,
                            "scan output %zu is %s%s in iteration %lld, which does not fit in with "
                            "%s%s of the iterations before; it must not change",
                            i, assay_type_name(item->type), ASSAY_DIMS_TEXT(item), (long long)step,
                            assay_type_name(r->made[i]->type), ASSAY_DIMS_TEXT(r->made[i]));
  bool prepend = at(r->s->out_directions, i);
  return put(r->made[i], axis, prepend ? r->length - 1 - step : step, item);
}

static assay_status_t scan_rounds(assay_eval_t* c, run_t* r) {
  const scan_t* s = r->s;
  const assay_graph_t* g = s->body.graph;
  size_t n = s->body.n_states;
  for (int64_t t = 0; t < r->steps; t++) {
    assay_status_t st = NULL;
    for (size_t i = 0; !st && i < s->n_scan_in; i++) {
      int axis = 0;
      st = assay_eval_axis(c, "scan_input_axes", at(s->in_axes, i), r->scan_in[i]->rank, &axis);
      if (!st)
        st = slice(r->scan_in[i], axis, at(s->in_directions, i) ? r->steps - 1 - t : t,
                   &r->in[n + i]);
    }
    c->round++;  // Scan-8 goes on counting in the next row of the batch
    if (!st) st = c->run_graph(c, s->body.graph, s->body.n_inputs, r->in, g->n_outputs, r->out);
    for (size_t i = 0; !st && i < s->body.n_scans; i++) st = collect(c, r, i, t, r->out[n + i]);
    for (size_t i = 0; i < n; i++) {
      if (st) break;
      assay_tensor_release(r->in[i]);
      r->in[i] = r->out[i];
      r->out[i] = NULL;
    }
    for (size_t i = 0; i < s->n_scan_in; i++) {
      assay_tensor_release(r->in[n + i]);
      r->in[n + i] = NULL;
    }
    for (size_t i = 0; i < g->n_outputs; i++) {
      assay_tensor_release(r->out[i]);
      r->out[i] = NULL;
    }
    if (st) return st;
  }
  // Without an iteration the shape is what inference knows of it.
  for (size_t i = 0; i < s->body.n_scans; i++) {
    int64_t dims[ASSAY_MAX_RANK];
    int axis = 0;
    if (r->made[i]) continue;
    const assay_valtype_t* t = g->outputs[n + i]->type;
    assay_type_t type = t && t->kind == ASSAY_KIND_TENSOR && t->elem ? t->elem : ASSAY_TYPE_FLOAT;
    int rank = assay_body_empty_shape(c, g->outputs[n + i], dims);
    if (!t || t->kind != ASSAY_KIND_TENSOR || !t->has_shape) {
      int64_t length = r->length;
      ASSAY_TRY(assay_tensor_create_zero(type, 1, &length, &r->made[i]));
    } else {
      ASSAY_TRY(make_output(c, r, i, type, rank, dims, &axis));
    }
  }
  return NULL;
}

// Lengths along the scanned axes: all the same.
static assay_status_t scan_length(assay_eval_t* c, const scan_t* s, int64_t* out) {
  int64_t length = -1;
  for (size_t i = 0; i < s->n_scan_in; i++) {
    size_t input = s->first + s->body.n_states + i;
    const assay_tensor_t* t = c->in[input];
    int axis = 1;
    if (!s->first)
      ASSAY_TRY(assay_eval_axis(c, "scan_input_axes", at(s->in_axes, i), t->rank, &axis));
    if (t->rank <= axis || (length >= 0 && t->dims[axis] != length))
      return ASSAY_NODE_ERROR(c->node, ASSAY_INVALID_ARGUMENT,
                              "input %zu has shape %s; %lld is expected as length of axis %d",
                              input, ASSAY_DIMS_TEXT(t), (long long)length, axis);
    length = t->dims[axis];
  }
  *out = length;
  return NULL;
}

static assay_status_t check_given(assay_eval_t* c, const scan_t* s) {
  for (size_t i = s->first; i < c->n_in; i++)
    if (!c->in[i] || (i >= s->first + s->body.n_states && c->in[i]->kind != ASSAY_KIND_TENSOR))
      return ASSAY_NODE_ERROR(c->node, ASSAY_INVALID_ARGUMENT, "input %zu is left out or no tensor",
                              i);
  return NULL;
}

static assay_status_t run_init(run_t* r) {
  const assay_body_t* b = &r->s->body;
  ASSAY_TRY(assay_new_array(b->n_inputs, sizeof *r->in, &r->in));
  ASSAY_TRY(assay_new_array(b->graph->n_outputs, sizeof *r->out, &r->out));
  return assay_new_array(b->n_scans, sizeof *r->made, &r->made);
}

static void run_deinit(run_t* r) {
  for (size_t i = 0; r->in && i < r->s->body.n_inputs; i++) assay_tensor_release(r->in[i]);
  for (size_t i = 0; r->made && i < r->s->body.n_scans; i++) assay_tensor_release(r->made[i]);
  assay_free(r->in);
  assay_free(r->out);
  assay_free(r->made);
}

// ai.onnx Scan-9 and later.
static assay_status_t scan9_eval(assay_eval_t* c) {
  scan_t s;
  ASSAY_TRY(scan_read(c->node, 0, &s));
  ASSAY_TRY(check_given(c, &s));
  run_t r = {.s = &s, .scan_in = c->in + s.body.n_states};
  ASSAY_TRY(scan_length(c, &s, &r.length));
  r.steps = r.length;
  assay_status_t st = run_init(&r);
  for (size_t i = 0; !st && i < s.body.n_states; i++) r.in[i] = assay_tensor_retain(c->in[i]);
  if (!st) st = scan_rounds(c, &r);
  for (size_t i = 0; !st && i < s.body.n_states; i++) st = assay_body_final_state(c, i, r.in[i]);
  for (size_t i = 0; !st && i < s.body.n_scans; i++)
    if (assay_eval_wants(c, s.body.n_states + i)) assay_eval_set(c, s.body.n_states + i, r.made[i]);
  run_deinit(&r);
  return st;
}

// ---- Scan-8 -----------------------------------------------------------------------------------

// Puts one row of the batch into output i, which the first row makes.
static assay_status_t put_row(assay_eval_t* c, size_t i, int64_t batch, int64_t row,
                              const assay_tensor_t* item) {
  if (!assay_eval_wants(c, i)) return NULL;
  if (item->kind != ASSAY_KIND_TENSOR || item->rank >= ASSAY_MAX_RANK)
    return ASSAY_NODE_ERROR(c->node, ASSAY_INVALID_ARGUMENT, "output %zu cannot be batched", i);
  if (!c->out[i]) {
    int64_t dims[ASSAY_MAX_RANK];
    dims[0] = batch;
    if (item->rank) memcpy(dims + 1, item->dims, (size_t)item->rank * sizeof *dims);
    ASSAY_TRY(assay_eval_output(c, i, item->type, item->rank + 1, dims, &(assay_tensor_t*){0}));
  }
  if (!fits(c->out[i], 0, item))
    return ASSAY_NODE_ERROR(c->node, ASSAY_INVALID_ARGUMENT,
                            "output %zu is %s in row %lld of the batch, which does not fit in "
                            "with %s",
                            i, ASSAY_DIMS_TEXT(item), (long long)row, ASSAY_DIMS_TEXT(c->out[i]));
  return put(c->out[i], 0, row, item);
}

static assay_status_t scan8_row(assay_eval_t* c, const scan_t* s, int64_t batch, int64_t row,
                                int64_t steps, int64_t length) {
  size_t n = s->body.n_states;
  assay_tensor_t** rows = NULL;
  run_t r = {.s = s, .steps = steps, .length = length};
  ASSAY_TRY(assay_new_array(s->body.n_inputs, sizeof *rows, &rows));
  assay_status_t st = run_init(&r);
  for (size_t i = 0; !st && i < s->body.n_inputs; i++) st = slice(c->in[1 + i], 0, row, &rows[i]);
  for (size_t i = 0; !st && i < n; i++) r.in[i] = assay_tensor_retain(rows[i]);
  r.scan_in = rows + n;
  if (!st) st = scan_rounds(c, &r);
  for (size_t i = 0; !st && i < n; i++) st = put_row(c, i, batch, row, r.in[i]);
  for (size_t i = 0; !st && i < s->body.n_scans; i++) st = put_row(c, n + i, batch, row, r.made[i]);
  run_deinit(&r);
  for (size_t i = 0; i < s->body.n_inputs; i++) assay_tensor_release(rows[i]);
  assay_free(rows);
  return st;
}

// Outputs for a batch of none.
static assay_status_t scan8_empty(assay_eval_t* c, const scan_t* s, int64_t length) {
  for (size_t i = 0; i < c->n_out; i++) {
    int64_t dims[ASSAY_MAX_RANK + 2] = {0, length};
    const assay_value_t* made = s->body.graph->outputs[i];
    bool state = i < s->body.n_states;
    const assay_tensor_t* in = state ? c->in[1 + i] : NULL;
    int rank = state ? in->rank : 2 + assay_body_empty_shape(c, made, dims + 2);
    if (state) memcpy(dims, in->dims, (size_t)rank * sizeof *dims);
    assay_type_t type = state                            ? in->type
                        : made->type && made->type->elem ? made->type->elem
                                                         : ASSAY_TYPE_FLOAT;
    if (assay_eval_wants(c, i))
      ASSAY_TRY(assay_eval_output(c, i, type, rank, dims, &(assay_tensor_t*){0}));
  }
  return NULL;
}

// ai.onnx Scan-8.
static assay_status_t scan8_eval(assay_eval_t* c) {
  scan_t s;
  int64_t length = 0, batch = -1;
  ASSAY_TRY(scan_read(c->node, 1, &s));
  ASSAY_TRY(check_given(c, &s));
  for (size_t i = 1; i < c->n_in; i++) {
    const assay_tensor_t* t = c->in[i];
    if (t->kind != ASSAY_KIND_TENSOR || !t->rank || (batch >= 0 && t->dims[0] != batch))
      return ASSAY_NODE_ERROR(c->node, ASSAY_INVALID_ARGUMENT,
                              "input %zu has shape %s; all inputs need one batch size in dimension "
                              "0",
                              i, ASSAY_DIMS_TEXT(t));
    batch = t->dims[0];
  }
  ASSAY_TRY(scan_length(c, &s, &length));
  const assay_tensor_t* lens = assay_eval_has(c, 0) ? c->in[0] : NULL;
  if (lens && (lens->rank != 1 || lens->dims[0] != batch))
    return ASSAY_NODE_ERROR(c->node, ASSAY_INVALID_ARGUMENT,
                            "sequence_lens has shape %s; [%lld] is expected", ASSAY_DIMS_TEXT(lens),
                            (long long)batch);
  for (int64_t b = 0; b < batch; b++) {
    int64_t steps = lens ? assay_i64(lens)[b] : length;
    if (steps < 0 || steps > length)
      return ASSAY_NODE_ERROR(c->node, ASSAY_INVALID_ARGUMENT,
                              "sequence_lens[%lld] is %lld; it must be in [0, %lld]", (long long)b,
                              (long long)steps, (long long)length);
    ASSAY_TRY(scan8_row(c, &s, batch, b, steps, length));
  }
  return batch ? NULL : scan8_empty(c, &s, length);
}

const assay_op_t assay_ops_control_scan[] = {{.domain = "",
                                              .name = "Scan",
                                              .since = 8,
                                              .flags = ASSAY_OP_CONTROL,
                                              .infer = scan8_infer,
                                              .eval = scan8_eval},
                                             {.domain = "",
                                              .name = "Scan",
                                              .since = 9,
                                              .flags = ASSAY_OP_CONTROL,
                                              .infer = scan9_infer,
                                              .eval = scan9_eval},
                                             {.domain = "",
                                              .name = "Scan",
                                              .since = 11,
                                              .flags = ASSAY_OP_CONTROL,
                                              .infer = scan11_infer,
                                              .eval = scan9_eval},
                                             {0}};
