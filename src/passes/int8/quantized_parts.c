// A product of a quantized tensor whose columns are taken apart, as queries, keys and values are,
// and quantized by scales of their own: each part becomes a product of its own columns, so that it
// is quantized where its sums are and no float32 tensor is moved.
//
//   P = MatMul(x, w) (+ bias), Reshape?, Transpose*, and Split or Gathers along an axis that counts
//   columns: each part p becomes MatMul(x, w's columns of p) (+ bias's), Reshape?, Transpose*.
//
// Every column is what it was. x and w are dequantized, w is a constant, and every part ends in a
// quantizer.
#include <string.h>

#include "ops/quant/int8.h"
#include "passes/edit.h"

enum { X, W, SCALE = 1, ZERO, MAX_TURNS = 4, MAX_PARTS = 16, MAX_WEIGHTS = 2, MAX_ELEMS = 1 << 26 };

typedef struct part {
  assay_node_t* node;  // that takes it: its output `at`
  size_t at;
  int64_t from, to;
  assay_node_t* squeeze;  // behind that, takes the axis away; NULL: nothing does, or `node` did
  bool drops;             // the axis is not there any more
  assay_node_t* turn;     // a Transpose behind that, which the last one becomes; NULL: none
} part_t;

typedef struct site {
  assay_node_t *product, *add, *reshape;  // add, reshape NULL: none
  assay_node_t* turns[MAX_TURNS];         // Transposes, the last one first
  size_t n_turns;
  assay_node_t* weights[MAX_WEIGHTS];  // what quantizes and dequantizes them, in this order
  size_t n_weights;
  int64_t columns;       // of the product
  int axis, taken;       // what counts parts: behind the Reshape; of what is taken apart
  int64_t count, inner;  // entries of that axis, columns of one
  part_t parts[MAX_PARTS];
  size_t n_parts;
} site_t;

// ---- what is asked of nodes ---------------------------------------------------------------------

// -1: there is no such axis.
static int axis_of(int64_t axis, int rank) {
  if (axis < 0) axis += rank;
  return axis < 0 || axis >= rank ? -1 : (int)axis;
}

static assay_node_t* only_reader(const assay_edit_t* e, const assay_value_t* v) {
  if (v->is_output || v->id >= e->uses.n_values || e->uses.n_reads[v->id] != 1) return NULL;
  assay_node_t* n = e->uses.readers[e->uses.first[v->id]];
  return assay_edit_is_dead(e, n) ? NULL : n;
}

// The node that makes v, which `reader` alone reads.
static assay_node_t* hidden_maker(const assay_edit_t* e, assay_value_t* v,
                                  const assay_node_t* reader) {
  assay_node_t* n = v->constant ? NULL : v->producer;
  const bool hidden = n && n->graph == reader->graph && n->n_outputs == 1 && !v->is_output &&
                      assay_uses_of(&e->uses, v) == 1 && !assay_edit_is_dead(e, n);
  return hidden ? n : NULL;
}

static bool is_dequantized(const assay_edit_t* e, assay_value_t* v) {
  const assay_node_t* n = assay_edit_value(e, v)->producer;
  return n && assay_int8_is_dequantizer(n);
}

// A function of one tensor and numbers.
static bool is_of_one(const assay_node_t* n, const assay_value_t* v) {
  if (!assay_int8_knows(n)) return false;
  for (size_t i = 0; i < n->n_inputs; i++) {
    const assay_tensor_t* k = n->inputs[i] ? assay_pass_constant(n->inputs[i]) : NULL;
    if (n->inputs[i] && n->inputs[i] != v && (!k || k->size != 1)) return false;
  }
  return true;
}

// Whether a quantizer is all that reads it, past what moves elements and functions of one tensor.
static bool ends_in_quantizer(const assay_edit_t* e, const assay_value_t* v) {
  static const char* const moves[] = {"Reshape", "Flatten", "Squeeze", "Unsqueeze", "Transpose"};
  for (;;) {
    const assay_node_t* n = only_reader(e, v);
    if (!n || n->n_outputs != 1 || !n->outputs[0]) return false;
    if (assay_int8_is_quantizer(n)) return true;
    bool passes = is_of_one(n, v);
    for (size_t i = 0; i < sizeof moves / sizeof *moves; i++)
      passes |= assay_is(n, moves[i]) && n->inputs[X] == v;
    if (!passes) return false;
    v = n->outputs[0];
  }
}

// The axis of a Transpose's input that becomes that one; -1: it is not known.
static int turned_axis(const assay_node_t* n, int axis) {
  size_t count = 0;
  const int rank = assay_rank_of(n->inputs[X]);
  const int64_t* perm = assay_attr_ints(n, "perm", &count);
  if (rank < 1 || (perm && count != (size_t)rank)) return -1;
  return perm ? axis_of(perm[axis], rank) : rank - 1 - axis;
}

// ---- parts --------------------------------------------------------------------------------------

static bool add_part(site_t* s, const part_t* p) {
  if (s->n_parts == MAX_PARTS || p->from < 0 || p->from >= p->to || p->to > s->count) return false;
  s->parts[s->n_parts++] = *p;
  return true;
}

static bool read_split(assay_node_t* n, site_t* s) {
  int64_t at = 0;
  for (size_t i = 0; i < n->n_outputs; i++) {
    const int64_t size = n->outputs[i] ? assay_dim_of(n->outputs[i], s->taken) : -1;
    const part_t p = {.node = n, .at = i, .from = at, .to = at + size};
    if (size < 1 || !add_part(s, &p)) return false;
    at += size;
  }
  return at == s->count;
}

static bool read_gather(assay_node_t* n, site_t* s) {
  enum { INDEX = 1 };
  int64_t place;
  if (assay_ints_of(n->inputs[INDEX], 1, &place) != 1) return false;
  const int rank = assay_rank_of(n->inputs[INDEX]);
  if (place < 0) place += s->count;
  const part_t p = {.node = n, .from = place, .to = place + 1, .drops = rank == 0};
  return rank <= 1 && add_part(s, &p);
}

// What takes the part last, and its output.
static assay_node_t* taker_of(const part_t* p, size_t* at) {
  *at = p->turn || p->squeeze ? 0 : p->at;
  return p->turn ? p->turn : p->squeeze ? p->squeeze : p->node;
}

static assay_value_t* taken_value(const part_t* p) {
  size_t at;
  const assay_node_t* n = taker_of(p, &at);
  return n->outputs[at];
}

// A Squeeze behind a part of one entry that takes its axis away.
static void read_squeeze(const assay_edit_t* e, const site_t* s, part_t* p) {
  enum { AXES = 1 };
  const assay_value_t* v = p->node->outputs[p->at];
  assay_node_t* n = p->to - p->from == 1 && !p->drops ? only_reader(e, v) : NULL;
  int64_t axis = -1;
  size_t count = 0;
  if (!n || !assay_is(n, "Squeeze") || n->graph != s->product->graph) return;
  const int64_t* attr = assay_attr_ints(n, "axes", &count);
  if (attr && count == 1) axis = attr[0];
  if (!attr && (n->n_inputs <= AXES || assay_ints_of(n->inputs[AXES], 1, &axis) != 1)) return;
  if ((attr && count != 1) || axis_of(axis, assay_rank_of(v)) != s->taken) return;
  p->squeeze = n;
  p->drops = true;
}

// Entries of the axis that counts parts where it is left by the Reshape; 0: it is not there.
static int64_t left_of(const site_t* s, const part_t* p) {
  return p->drops && s->reshape ? 0 : p->to - p->from;
}

static void read_turn(const assay_edit_t* e, const site_t* s, part_t* p) {
  assay_node_t* n = s->n_turns ? only_reader(e, taken_value(p)) : NULL;
  const bool squeezes_last = p->drops && left_of(s, p);
  if (n && !squeezes_last && assay_is(n, "Transpose") && n->graph == s->product->graph &&
      turned_axis(n, 0) >= 0)
    p->turn = n;
}

// The axis along which a node takes parts; -1: it takes none.
static int taken_axis(const assay_node_t* n, const assay_value_t* v) {
  if (!(assay_is(n, "Split") || (assay_is(n, "Gather") && n->n_inputs == 2)) || n->inputs[X] != v)
    return -1;
  return axis_of(assay_attr_i64(n, "axis", 0), assay_rank_of(v));
}

// All that is read of v are parts along one axis.
static bool read_parts(const assay_edit_t* e, const assay_value_t* v, site_t* s) {
  int64_t all = 0;
  for (int i = e->uses.first[v->id]; i < e->uses.first[v->id + 1]; i++) {
    assay_node_t* n = e->uses.readers[i];
    if (assay_edit_is_dead(e, n)) continue;
    if (n->graph != s->product->graph || taken_axis(n, v) != s->taken ||
        !(assay_is(n, "Split") ? read_split(n, s) : read_gather(n, s)))
      return false;
  }
  for (size_t i = 0; i < s->n_parts; i++) {
    part_t* p = &s->parts[i];
    read_squeeze(e, s, p);
    read_turn(e, s, p);
    if (!ends_in_quantizer(e, taken_value(p))) return false;
    all += p->to - p->from;
  }
  return s->n_parts >= 2 && all <= s->count;
}

// ---- the product --------------------------------------------------------------------------------

// Whether a quantizer's numbers are one for all, or one for each column.
static bool read_quantizer(const assay_node_t* n, int64_t columns) {
  for (size_t i = SCALE; i < n->n_inputs; i++) {
    const assay_tensor_t* t = n->inputs[i] ? assay_pass_constant(n->inputs[i]) : NULL;
    if (n->inputs[i] && (!t || t->rank > 1 || (t->size != 1 && t->size != columns))) return false;
    if (t && t->size != 1 && axis_of(assay_attr_i64(n, "axis", 1), 2) != 1) return false;
  }
  return n->n_inputs > SCALE && n->n_inputs <= ZERO + 1 && n->inputs[SCALE] &&
         !assay_attr_i64(n, "block_size", 0);
}

static bool read_weights(const assay_edit_t* e, site_t* s) {
  assay_node_t* d = assay_edit_value(e, s->product->inputs[W])->producer;
  if (!d || !assay_int8_is_dequantizer(d) || !read_quantizer(d, s->columns)) return false;
  assay_value_t* w = assay_edit_value(e, d->inputs[X]);
  if (w->producer) {
    if (!assay_int8_is_quantizer(w->producer) || !read_quantizer(w->producer, s->columns))
      return false;
    s->weights[s->n_weights++] = w->producer;
    w = w->producer->inputs[X];
  }
  s->weights[s->n_weights++] = d;
  const assay_tensor_t* t = assay_pass_constant(w);
  return t && t->rank == 2 && t->dims[1] == s->columns && t->size && t->size <= MAX_ELEMS;
}

// The product, or the sum with its bias: numbers of columns, or one for all.
static bool read_product(const assay_edit_t* e, assay_node_t* n, site_t* s) {
  if (n && assay_is(n, "Add") && n->n_inputs == 2) {
    const size_t with = assay_pass_constant(n->inputs[0]) ? 0 : 1;
    const assay_value_t* y = n->outputs[0];
    const assay_tensor_t* bias = assay_pass_constant(n->inputs[with]);
    const int rank = assay_rank_of(y);
    if (!bias || bias->rank > rank || bias->size < 1) return false;
    s->add = n;
    n = hidden_maker(e, n->inputs[1 - with], n);
    if (!n || assay_rank_of(n->outputs[0]) != rank) return false;
    const int64_t columns = assay_dim_of(n->outputs[0], rank - 1);
    const int64_t wide = bias->rank ? bias->dims[bias->rank - 1] : 1;
    if (assay_dim_of(y, rank - 1) != columns || (wide != 1 && wide != columns)) return false;
  }
  if (!n || !assay_is(n, "MatMul") || n->n_inputs != 2 || !is_dequantized(e, n->inputs[X]))
    return false;
  const int rank = assay_rank_of(n->outputs[0]);
  s->product = n;
  s->columns = rank < 2 ? -1 : assay_dim_of(n->outputs[0], rank - 1);
  return s->columns > 1 && assay_elem_of(n->outputs[0]) == ASSAY_TYPE_FLOAT && read_weights(e, s);
}

// Whether the axis of v counts columns of the product, which are the last dimensions.
static bool read_axis(const assay_value_t* v, site_t* s) {
  int64_t inner = 1;
  for (int d = assay_rank_of(v) - 1; d >= 0 && inner < s->columns; d--) {
    const int64_t size = assay_dim_of(v, d);
    if (size < 1 || s->columns % (inner * size)) return false;
    if (d == s->axis) s->count = size, s->inner = inner;
    inner *= size;
  }
  return s->count > 1 && inner == s->columns;
}

// A site whose parts `taker` and others take; false: it is none.
static bool read_site(const assay_edit_t* e, const assay_node_t* taker, site_t* s) {
  assay_value_t* v = taker->n_inputs ? taker->inputs[X] : NULL;
  *s = (site_t){0};
  if (!v || v->is_output || !v->producer || v->id >= e->uses.n_values) return false;
  const assay_value_t* whole = v;
  assay_node_t* n = v->producer;
  s->taken = s->axis = taken_axis(taker, v);
  if (s->axis < 0 || n->n_outputs != 1 || n->graph != taker->graph || assay_edit_is_dead(e, n))
    return false;
  for (; n && s->axis >= 0 && assay_is(n, "Transpose"); n = hidden_maker(e, n->inputs[X], n)) {
    if (s->n_turns == MAX_TURNS) return false;
    s->axis = turned_axis(n, s->axis);
    s->turns[s->n_turns++] = n;
    v = n->inputs[X];
  }
  if (n && assay_is(n, "Reshape")) {
    s->reshape = n;
    n = hidden_maker(e, n->inputs[X], n);
  }
  return n && s->axis >= 0 && read_product(e, n, s) && read_axis(v, s) && read_parts(e, whole, s);
}

// ---- rewriting ----------------------------------------------------------------------------------

static int64_t part_columns(const site_t* s, const part_t* p) {
  return s->columns / s->count * (p->to - p->from);
}

// The columns of a part of t, whose last dimension counts columns.
static assay_status_t cut(const site_t* s, const part_t* p, assay_tensor_t* t,
                          assay_tensor_t** out) {
  int64_t dims[ASSAY_MAX_RANK];
  assay_tensor_t* wide = NULL;
  memcpy(dims, t->dims, (size_t)t->rank * sizeof *dims);
  dims[t->rank - 1] = part_columns(s, p);
  ASSAY_TRY(assay_tensor_widen(t, &wide));
  assay_status_t st = assay_tensor_create(t->type, t->rank, dims, out);
  const size_t elem = assay_store_elem_bytes(wide->store);
  const int64_t period = s->count * s->inner, width = (p->to - p->from) * s->inner;
  for (int64_t i = 0; !st && i < t->size / period; i++)
    memcpy((char*)(*out)->data + (size_t)(i * width) * elem,
           (const char*)wide->data + (size_t)(i * period + p->from * s->inner) * elem,
           (size_t)width * elem);
  assay_tensor_release(wide);
  return st;
}

// The part of a constant, where that has columns.
static assay_status_t cut_constant(assay_edit_t* e, const site_t* s, const part_t* p,
                                   assay_value_t* v, assay_value_t** out) {
  assay_tensor_t *t = assay_pass_constant(v), *made = NULL;
  *out = v;
  if (!t->rank || t->dims[t->rank - 1] == 1) return NULL;
  ASSAY_TRY(cut(s, p, t, &made));
  return assay_edit_constant(e, s->product->graph, v->name, made, out);
}

// The type of v, with another size of one axis; 0: without it.
static assay_status_t resized(assay_edit_t* e, const assay_value_t* v, int axis, int64_t size,
                              const assay_valtype_t** out) {
  const assay_valtype_t* t = v->type;
  const assay_dim_t* dims[ASSAY_MAX_RANK];
  int rank = 0;
  for (int d = 0; d < t->rank; d++) {
    if (d == axis && !size) continue;
    dims[rank++] = d == axis ? assay_dim_const(e->c->model->dims, size) : t->dims[d];
  }
  return assay_valtype_tensor(e->c->model, t->elem, rank, dims, out);
}

// A node of a part that does what `like` did, whose output's axis has that size now.
static assay_status_t repeat(assay_edit_t* e, const site_t* s, const assay_node_t* like,
                             assay_value_t* const* inputs, int axis, int64_t size,
                             assay_value_t** out) {
  const assay_valtype_t* type = NULL;
  assay_node_t* n = NULL;
  ASSAY_TRY(resized(e, like->outputs[0], axis, size, &type));
  ASSAY_TRY(assay_edit_insert(e, s->product, like->op_type, like->n_inputs, inputs,
                              like->outputs[0]->name, type, &n));
  n->attrs = like->attrs;
  n->n_attrs = like->n_attrs;
  e->c->rewrite->origins[n->id] = assay_rewrite_origins(e->c->rewrite, like);
  *out = n->outputs[0];
  return NULL;
}

static assay_status_t make_weights(assay_edit_t* e, const site_t* s, const part_t* p,
                                   assay_value_t** out) {
  assay_value_t *w = assay_edit_value(e, s->weights[0]->inputs[X]), *in[3] = {NULL};
  ASSAY_TRY(cut_constant(e, s, p, w, &w));
  for (size_t i = 0; i < s->n_weights; i++) {
    const assay_node_t* n = s->weights[i];
    in[X] = w;
    for (size_t k = SCALE; k < n->n_inputs; k++) {
      in[k] = NULL;
      if (n->inputs[k]) ASSAY_TRY(cut_constant(e, s, p, n->inputs[k], &in[k]));
    }
    ASSAY_TRY(repeat(e, s, n, in, 1, part_columns(s, p), &w));
  }
  *out = w;
  return NULL;
}

// A Reshape's target: sizes that stay are copied, one may be open. out NULL: only *ok is asked.
static assay_status_t make_target(assay_edit_t* e, const site_t* s, const part_t* p, bool* ok,
                                  assay_value_t** out) {
  const assay_value_t *x = s->reshape->inputs[X], *y = s->reshape->outputs[0];
  int64_t dims[ASSAY_MAX_RANK];
  bool open = false;
  int rank = 0;
  *ok = true;
  for (int d = 0; d < assay_rank_of(y); d++) {
    const int64_t size = d == s->axis ? left_of(s, p) : assay_dim_of(y, d);
    if (d == s->axis && !size) continue;
    // Copied sizes are those of the same place, which is another one behind an axis that goes.
    const bool same = size < 1 && rank < assay_rank_of(x) &&
                      assay_dim_same(x->type->dims[rank], y->type->dims[d]);
    dims[rank++] = size >= 1 ? size : same ? 0 : -1;
    *ok = *ok && (size >= 1 || same || !open);
    open |= size < 1 && !same;
  }
  if (!*ok || !out) return NULL;
  return assay_edit_ints(e, s->product->graph, "part", rank, dims, out);
}

static assay_status_t make_product(assay_edit_t* e, const site_t* s, const part_t* p,
                                   assay_value_t** out) {
  assay_value_t* in[2] = {assay_edit_value(e, s->product->inputs[X]), NULL};
  const int axis = assay_rank_of(s->product->outputs[0]) - 1;
  ASSAY_TRY(make_weights(e, s, p, &in[W]));
  ASSAY_TRY(repeat(e, s, s->product, in, axis, part_columns(s, p), out));
  if (!s->add) return NULL;
  for (size_t i = 0; i < 2; i++) {
    in[i] = *out;
    if (assay_pass_constant(s->add->inputs[i]))
      ASSAY_TRY(cut_constant(e, s, p, s->add->inputs[i], &in[i]));
  }
  return repeat(e, s, s->add, in, axis, part_columns(s, p), out);
}

static assay_status_t make_reshape(assay_edit_t* e, const site_t* s, const part_t* p,
                                   assay_value_t** v) {
  assay_value_t* in[2] = {*v, NULL};
  const assay_valtype_t* type = NULL;
  assay_node_t* n = NULL;
  bool ok;
  ASSAY_TRY(make_target(e, s, p, &ok, &in[1]));
  ASSAY_TRY(resized(e, s->reshape->outputs[0], s->axis, left_of(s, p), &type));
  ASSAY_TRY(
      assay_edit_insert(e, s->product, "Reshape", 2, in, s->reshape->outputs[0]->name, type, &n));
  e->c->rewrite->origins[n->id] = assay_rewrite_origins(e->c->rewrite, s->reshape);
  *v = n->outputs[0];
  return NULL;
}

// The order of a Transpose behind the axis that counts parts, or without it, and then of the one
// behind the part.
static size_t find_order(const site_t* s, const part_t* p, const assay_node_t* like, int from,
                         const assay_node_t* behind, int64_t* perm) {
  int64_t first[ASSAY_MAX_RANK];
  size_t rank = 0;
  for (int d = 0; d < assay_rank_of(like->outputs[0]); d++) {
    const int of = turned_axis(like, d);
    const bool goes = !left_of(s, p);
    if (!goes || of != from) first[rank++] = of - (goes && of > from);
  }
  for (size_t d = 0; d < rank; d++) perm[d] = first[behind ? turned_axis(behind, (int)d) : (int)d];
  return rank;
}

// A Transpose, whose input's axis `from` becomes `to`.
static assay_status_t make_turn(assay_edit_t* e, const site_t* s, const part_t* p, size_t i,
                                int from, int to, assay_value_t** v) {
  const assay_node_t *like = s->turns[i], *behind = i ? NULL : p->turn;
  const assay_valtype_t* type = behind ? behind->outputs[0]->type : NULL;
  assay_node_t* n = NULL;
  int64_t perm[ASSAY_MAX_RANK];
  const size_t rank = find_order(s, p, like, from, behind, perm);
  if (!behind) ASSAY_TRY(resized(e, like->outputs[0], to, left_of(s, p), &type));
  ASSAY_TRY(assay_edit_insert(e, s->product, "Transpose", 1, v, like->outputs[0]->name, type, &n));
  ASSAY_TRY(assay_edit_attr_ints(e, n, "perm", rank, perm));
  e->c->rewrite->origins[n->id] = assay_rewrite_origins(e->c->rewrite, like);
  *v = n->outputs[0];
  return NULL;
}

// The part takes the place of what was taken.
static assay_status_t hand_over(assay_edit_t* e, const site_t* s, const part_t* p,
                                assay_value_t* v) {
  size_t at;
  assay_node_t* taker = taker_of(p, &at);
  assay_value_t *y = taken_value(p), *in[2] = {v, NULL};
  const int64_t axis = s->taken;
  assay_node_t* last = v->producer;
  if (p->drops && left_of(s, p)) {
    const bool by_input = assay_model_opset(e->c->model, "") >= 13;
    if (by_input) ASSAY_TRY(assay_edit_ints(e, s->product->graph, "axes", 1, &axis, &in[1]));
    ASSAY_TRY(assay_edit_insert_bare(e, s->product, "Squeeze", by_input ? 2 : 1, in, 1, &last));
    if (!by_input) ASSAY_TRY(assay_edit_attr_ints(e, last, "axes", 1, &axis));
  }
  ASSAY_TRY(assay_pass_absorb(e->c, p->node, last));
  if (p->squeeze) ASSAY_TRY(assay_pass_absorb(e->c, p->squeeze, last));
  if (p->turn) ASSAY_TRY(assay_pass_absorb(e->c, p->turn, last));
  assay_node_set_output(taker, at, NULL);
  assay_node_set_output(last, 0, y);
  return NULL;
}

static assay_status_t make_part(assay_edit_t* e, const site_t* s, const part_t* p) {
  assay_value_t* v = NULL;
  int axis = s->axis;
  ASSAY_TRY(make_product(e, s, p, &v));
  if (s->reshape) ASSAY_TRY(make_reshape(e, s, p, &v));
  for (size_t i = s->n_turns; i-- > 0;) {
    int to = 0;
    while (turned_axis(s->turns[i], to) != axis) to++;
    ASSAY_TRY(make_turn(e, s, p, i, axis, to, &v));
    axis = to;
  }
  return hand_over(e, s, p, v);
}

static assay_status_t rewrite(assay_edit_t* e, const site_t* s) {
  ASSAY_TRY(assay_pass_record(e->c, ASSAY_PASS_CHANGED, (const assay_node_t* const*)&s->product, 1,
                              "%d parts of its columns are quantized: a product each",
                              (int)s->n_parts));
  for (size_t i = 0; i < s->n_parts; i++) ASSAY_TRY(make_part(e, s, &s->parts[i]));
  for (size_t i = 0; i < s->n_parts; i++) {
    const part_t* p = &s->parts[i];
    if (p->turn) assay_edit_kill(e, p->turn);
    if (p->squeeze) assay_edit_kill(e, p->squeeze);
    if (!assay_edit_is_dead(e, p->node)) assay_edit_kill(e, p->node);
  }
  for (size_t i = 0; i < s->n_turns; i++) assay_edit_kill(e, s->turns[i]);
  if (s->reshape) assay_edit_kill(e, s->reshape);
  if (s->add) assay_edit_kill(e, s->add);
  assay_edit_kill(e, s->product);
  for (size_t i = s->n_weights; i-- > 0;)
    if (assay_uses_of(&e->uses, s->weights[i]->outputs[0]) == 0 &&
        !s->weights[i]->outputs[0]->is_output)
      assay_edit_kill(e, s->weights[i]);
  return NULL;
}

static assay_status_t visit(assay_edit_t* e, assay_node_t* n) {
  site_t s;
  bool ok = true;
  if (!read_site(e, n, &s)) return NULL;
  for (size_t i = 0; ok && s.reshape && i < s.n_parts; i++)
    ASSAY_TRY(make_target(e, &s, &s.parts[i], &ok, NULL));
  return ok ? rewrite(e, &s) : NULL;
}

static assay_status_t run(assay_pass_context_t* c) {
  if (assay_model_opset(c->model, "") < 7) return NULL;  // Add broadcasts by an attribute
  return assay_edit_each(c, visit);
}

const assay_pass_t assay_pass_quantized_parts = {
    .name = "quantized_parts",
    .summary = "columns of products that are quantized apart become products of their own",
    .until_fixpoint = true,
    .run = run,
};
