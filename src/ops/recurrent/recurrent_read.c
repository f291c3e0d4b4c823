// What RNN, GRU and LSTM say alike: shapes, attributes, outputs.
#include <string.h>

#include "ops/recurrent/recurrent.h"

static int64_t gates_of(assay_cell_t cell) {
  return cell == ASSAY_CELL_RNN ? 1 : cell == ASSAY_CELL_GRU ? 3 : 4;
}

// ---- inference --------------------------------------------------------------------------------

static assay_status_t want_dim(const assay_infer_t* c, size_t input, int axis,
                               const assay_dim_t* expected) {
  if (!assay_infer_has(c, input)) return NULL;
  const assay_shape_t x = assay_infer_shape(c, input);
  if (!x.known || axis >= x.rank || !assay_dim_differ(x.dims[axis], expected)) return NULL;
  char found[128], wanted[128];
  return ASSAY_NODE_ERROR(c->node, ASSAY_INVALID_ARGUMENT,
                          "input %zu has %s along dimension %d; expected %s", input,
                          assay_dim_text(x.dims[axis], found, sizeof found), axis,
                          assay_dim_text(expected, wanted, sizeof wanted));
}

assay_status_t assay_recurrent_infer(assay_infer_t* c, assay_cell_t cell, int w_axis) {
  for (size_t i = 0; i < 3; i++) ASSAY_TRY(assay_infer_want_rank(c, i, 3, 3));
  const int64_t gates = gates_of(cell);
  const bool both = assay_attr_is(c->node, "direction", "bidirectional");
  const bool batch_first = assay_attr_i64(c->node, "layout", 0) != 0;
  const assay_dim_t* directions = assay_dim_const(c->dims, both ? 2 : 1);
  const assay_shape_t x = assay_infer_shape(c, 0), w = assay_infer_shape(c, 1);
  const assay_shape_t r = assay_infer_shape(c, 2);
  const assay_dim_t* hidden = NULL;
  if (assay_attr_has(c->node, "hidden_size")) {
    hidden = assay_dim_const(c->dims, assay_attr_i64(c->node, "hidden_size", 0));
  } else if (r.known) {
    hidden = r.dims[3 - w_axis];
  } else if (w.known) {
    hidden = assay_dim_floordiv(c->dims, w.dims[w_axis], assay_dim_const(c->dims, gates));
  }
  const assay_dim_t* all = assay_dim_mul_i(c->dims, hidden, gates);
  for (size_t i = 1; i < 3; i++) {
    ASSAY_TRY(want_dim(c, i, 0, directions));
    ASSAY_TRY(want_dim(c, i, w_axis, all));
  }
  ASSAY_TRY(want_dim(c, 2, 3 - w_axis, hidden));
  if (x.known) ASSAY_TRY(want_dim(c, 1, 3 - w_axis, x.dims[2]));
  if (assay_infer_has(c, 3)) ASSAY_TRY(assay_infer_want_rank(c, 3, 2, 2));
  ASSAY_TRY(want_dim(c, 3, 1, assay_dim_mul_i(c->dims, all, 2)));
  const assay_dim_t* length = x.known ? x.dims[batch_first ? 1 : 0] : NULL;
  const assay_dim_t* batch = x.known ? x.dims[batch_first ? 0 : 1] : NULL;
  assay_shape_t y = {.known = true, .rank = 4, .dims = {length, directions, batch, hidden}};
  assay_shape_t state = {.known = true, .rank = 3, .dims = {directions, batch, hidden}};
  if (batch_first) {
    y = (assay_shape_t){.known = true, .rank = 4, .dims = {batch, length, directions, hidden}};
    state = (assay_shape_t){.known = true, .rank = 3, .dims = {batch, directions, hidden}};
  }
  const assay_type_t type = assay_infer_elem(c, 0);
  ASSAY_TRY(assay_infer_set(c, 0, type, &y));
  ASSAY_TRY(assay_infer_set(c, 1, type, &state));
  return cell == ASSAY_CELL_LSTM ? assay_infer_set(c, 2, type, &state) : NULL;
}

// ---- reading ----------------------------------------------------------------------------------

static assay_status_t want_shape(const assay_eval_t* c, const char* name, const assay_tensor_t* t,
                                 int rank, const int64_t* dims) {
  if (!t) return NULL;
  bool fits = t->rank == rank;
  for (int i = 0; fits && i < rank; i++) fits = t->dims[i] == dims[i];
  if (fits) return NULL;
  char expected[256];
  return ASSAY_NODE_ERROR(c->node, ASSAY_INVALID_ARGUMENT, "%s has shape %s; expected %s", name,
                          ASSAY_DIMS_TEXT(t),
                          assay_dims_text(rank, dims, expected, sizeof expected));
}

// The activations by name, or the cell's own. Each takes the next alpha and beta of the lists if it
// uses one and there is one left.
static assay_status_t read_activations(const assay_eval_t* c, assay_recurrent_t* n) {
  static const char* const defaults[3][3] = {
      {"Tanh", NULL, NULL}, {"Sigmoid", "Tanh", NULL}, {"Sigmoid", "Tanh", "Tanh"}};
  size_t n_names = 0, n_alpha = 0, n_beta = 0, alpha = 0, beta = 0;
  const assay_string_t* names = assay_attr_strings(c->node, "activations", &n_names);
  const float* alphas = assay_attr_floats(c->node, "activation_alpha", &n_alpha);
  const float* betas = assay_attr_floats(c->node, "activation_beta", &n_beta);
  const size_t each = (size_t)n->cell + 1;  // functions a direction: 1, 2, 3
  // More are left alone, as in ONNX Runtime: the default that RNN declares has two.
  if (n_names > 0 && n_names < each * (size_t)n->directions) {
    return ASSAY_NODE_ERROR(c->node, ASSAY_INVALID_ARGUMENT,
                            "activations has %zu names; expected %zu", n_names,
                            each * (size_t)n->directions);
  }
  for (size_t d = 0; d < (size_t)n->directions; d++) {
    for (size_t i = 0; i < each; i++) {
      assay_activation_t* a = &n->activations[3 * d + i];
      const assay_string_t* given = n_names > 0 ? &names[d * each + i] : NULL;
      const char* name = given ? given->text : defaults[n->cell][i];
      const size_t len = given ? given->len : strlen(name);
      if (!assay_activation_find(name, len, a)) {
        return ASSAY_NODE_ERROR(c->node, ASSAY_INVALID_ARGUMENT, "unknown activation '%.*s'",
                                (int)(len < 64 ? len : 64), name);
      }
      if (a->has_alpha && alpha < n_alpha) a->alpha = (double)alphas[alpha++];
      if (a->has_beta && beta < n_beta) a->beta = (double)betas[beta++];
    }
  }
  return NULL;
}

static assay_status_t read_direction(const assay_eval_t* c, assay_recurrent_t* n) {
  // The default of RNN-1 and GRU-1 is misspelt in the standard.
  const bool given = assay_attr_has(c->node, "direction");
  const char* direction = given ? assay_attr_str(c->node, "direction", "forward") : "forward";
  n->directions = strcmp(direction, "bidirectional") == 0 ? 2 : 1;
  n->reverse = strcmp(direction, "reverse") == 0;
  if (n->directions == 1 && !n->reverse && strcmp(direction, "forward") != 0) {
    return ASSAY_NODE_ERROR(c->node, ASSAY_INVALID_ARGUMENT,
                            "direction is '%s'; expected forward, reverse or bidirectional",
                            direction);
  }
  return NULL;
}

static assay_status_t check_lengths(const assay_eval_t* c, const assay_tensor_t* lengths,
                                    const assay_recurrent_t* n) {
  if (!lengths) return NULL;
  ASSAY_TRY(want_shape(c, "sequence_lens", lengths, 1, &n->batch));
  for (int64_t b = 0; b < n->batch; b++) {
    const int64_t v = assay_i64(lengths)[b];
    if (v < 0 || v > n->length) {
      return ASSAY_NODE_ERROR(c->node, ASSAY_INVALID_ARGUMENT,
                              "sequence_lens[%lld] is %lld; expected one of [0, %lld]",
                              (long long)b, (long long)v, (long long)n->length);
    }
  }
  return NULL;
}

static assay_status_t check_shapes(const assay_eval_t* c, int w_axis,
                                   const assay_recurrent_inputs_t* in, const assay_recurrent_t* n) {
  const int64_t directions = n->directions, all = n->gates * n->hidden;
  int64_t w[3] = {directions, n->inputs, n->inputs}, r[3] = {directions, n->hidden, n->hidden};
  w[w_axis] = r[w_axis] = all;
  const int64_t bias[2] = {directions, 2 * all}, peepholes[2] = {directions, 3 * n->hidden};
  const int64_t state[3] = {n->batch_first ? n->batch : directions,
                            n->batch_first ? directions : n->batch, n->hidden};
  ASSAY_TRY(want_shape(c, "W", in->w, 3, w));
  ASSAY_TRY(want_shape(c, "R", in->r, 3, r));
  ASSAY_TRY(want_shape(c, "B", in->bias, 2, bias));
  ASSAY_TRY(want_shape(c, "P", in->peepholes, 2, peepholes));
  ASSAY_TRY(want_shape(c, "initial_h", in->initial_h, 3, state));
  ASSAY_TRY(want_shape(c, "initial_c", in->initial_c, 3, state));
  return check_lengths(c, in->lengths, n);
}

assay_status_t assay_recurrent_read(const assay_eval_t* c, assay_cell_t cell, int w_axis,
                                    const assay_recurrent_inputs_t* in, assay_recurrent_t* out) {
  assay_recurrent_t n = {.cell = cell, .gates = gates_of(cell)};
  ASSAY_TRY(read_direction(c, &n));
  n.batch_first = assay_attr_i64(c->node, "layout", 0) != 0;
  if (in->x->rank != 3 || in->r->rank != 3) {
    return ASSAY_NODE_ERROR(c->node, ASSAY_INVALID_ARGUMENT,
                            "X has shape %s, R %s; expected three dimensions each",
                            ASSAY_DIMS_TEXT(in->x), ASSAY_DIMS_TEXT(in->r));
  }
  n.length = in->x->dims[n.batch_first ? 1 : 0];
  n.batch = in->x->dims[n.batch_first ? 0 : 1];
  n.inputs = in->x->dims[2];
  n.hidden = in->r->dims[3 - w_axis];
  if (assay_attr_i64(c->node, "hidden_size", n.hidden) != n.hidden) {
    return ASSAY_NODE_ERROR(c->node, ASSAY_INVALID_ARGUMENT,
                            "hidden_size is %lld, R has shape %s; expected the same size",
                            (long long)assay_attr_i64(c->node, "hidden_size", 0),
                            ASSAY_DIMS_TEXT(in->r));
  }
  if (n.hidden > INT32_MAX) {
    return ASSAY_NODE_ERROR(c->node, ASSAY_UNSUPPORTED, "%lld hidden units", (long long)n.hidden);
  }
  ASSAY_TRY(check_shapes(c, w_axis, in, &n));
  ASSAY_TRY(read_activations(c, &n));
  const int64_t all = n.gates * n.hidden;
  const bool gates_first = w_axis == 1;
  n.x = assay_f64(in->x);
  n.w = (assay_matrix_t){in->w->data, in->w->store,          in->w->type,
                         0,           gates_first ? 1 : all, gates_first ? n.inputs : 1};
  n.r = (assay_matrix_t){in->r->data, in->r->store,          in->r->type,
                         0,           gates_first ? 1 : all, gates_first ? n.hidden : 1};
  n.w_step = all * n.inputs;
  n.r_step = all * n.hidden;
  n.bias = in->bias ? assay_f64(in->bias) : NULL;
  n.lengths = in->lengths ? assay_i64(in->lengths) : NULL;
  n.initial_h = in->initial_h ? assay_f64(in->initial_h) : NULL;
  n.initial_c = in->initial_c ? assay_f64(in->initial_c) : NULL;
  n.peepholes = in->peepholes ? assay_f64(in->peepholes) : NULL;
  n.clips = assay_attr_has(c->node, "clip");
  n.clip = assay_attr_f64(c->node, "clip", 0);
  if (n.clips && !(n.clip > 0)) n.clips = false;
  n.couples_forget = assay_attr_i64(c->node, "input_forget", 0) != 0;
  n.linear_before_reset = assay_attr_i64(c->node, "linear_before_reset", 0) != 0;
  *out = n;
  return NULL;
}

assay_status_t assay_recurrent_outputs(assay_eval_t* c, assay_type_t type, assay_recurrent_t* n) {
  const int64_t directions = n->directions;
  const int64_t y[2][4] = {{n->length, directions, n->batch, n->hidden},
                           {n->batch, n->length, directions, n->hidden}};
  const int64_t state[2][3] = {{directions, n->batch, n->hidden},
                               {n->batch, directions, n->hidden}};
  assay_tensor_t* t = NULL;
  const int layout = n->batch_first ? 1 : 0;
  if (assay_eval_wants(c, 0)) {
    ASSAY_TRY(assay_eval_output(c, 0, assay_eval_out_type(c, 0, type), 4, y[layout], &t));
    memset(t->data, 0, (size_t)t->size * sizeof(double));
    n->y = assay_f64(t);
  }
  if (assay_eval_wants(c, 1)) {
    ASSAY_TRY(assay_eval_output(c, 1, assay_eval_out_type(c, 1, type), 3, state[layout], &t));
    n->y_h = assay_f64(t);
  }
  if (n->cell == ASSAY_CELL_LSTM && assay_eval_wants(c, 2)) {
    ASSAY_TRY(assay_eval_output(c, 2, assay_eval_out_type(c, 2, type), 3, state[layout], &t));
    n->y_c = assay_f64(t);
  }
  return NULL;
}
