// Open sizes of a model become numbers: what is asked for, what shares a name with it, else 1.
#include "onnx/sizes.h"

#include <stdio.h>
#include <string.h>

#include "base/alloc.h"

enum { OPEN = -1, LISTED = 6 };

// What is known of the dimensions of one name.
typedef struct known {
  const char* name;
  int64_t size;  // OPEN: it is to stay so
  // Who says so: an input, or NULL for an option.
  const char *input, *option;
} known_t;

typedef struct table {
  const assay_graph_t* graph;
  const assay_open_sizes_t* sizes;
  known_t* at;
  size_t n, capacity;
} table_t;

// The type of an input that has sizes; NULL: it has none that could be settled. As declared: there
// a dimension without a name has none that inference made up.
static const assay_valtype_t* shaped(const assay_value_t* v) {
  const assay_valtype_t* t = v->declared && v->declared->has_shape ? v->declared : v->type;
  return !v->constant && t && t->kind == ASSAY_KIND_TENSOR && t->has_shape ? t : NULL;
}

static const assay_input_shape_t* given_for(const assay_open_sizes_t* s, const assay_value_t* v) {
  for (size_t i = 0; i < s->n_shapes; i++)
    if (strcmp(s->shapes[i].name, v->name) == 0) return &s->shapes[i];
  return NULL;
}

// What is given for a dimension of an input: a size, or OPEN where others are closed; false:
// nothing, or it does not fit.
static bool given_size(const assay_open_sizes_t* s, const assay_value_t* v, int rank, int d,
                       int64_t* out) {
  const assay_input_shape_t* own = given_for(s, v);
  if (!own || own->rank != rank || (own->dims[d] < 0 && !s->close)) return false;
  *out = own->dims[d] < 0 ? OPEN : own->dims[d];
  return true;
}

static const known_t* find(const table_t* t, const char* name) {
  for (size_t i = 0; i < t->n; i++)
    if (strcmp(t->at[i].name, name) == 0) return &t->at[i];
  return NULL;
}

static assay_status_t disagree(const known_t* a, const known_t* b) {
  if (a->input && b->input)
    return ASSAY_ERROR(ASSAY_INVALID_ARGUMENT,
                       "inputs '%s' and '%s' share dimension '%s', which is given as %lld and as "
                       "%lld: give both the same size",
                       a->input, b->input, a->name, (long long)a->size, (long long)b->size);
  const known_t* input = a->input ? a : b;
  const known_t* option = a->input ? b : a;
  if (!input->input)
    return ASSAY_ERROR(ASSAY_INVALID_ARGUMENT,
                       "dimension '%s' is given as %lld (%s) and as %lld (%s)", a->name,
                       (long long)a->size, a->option, (long long)b->size, b->option);
  return ASSAY_ERROR(
      ASSAY_INVALID_ARGUMENT,
      "dimension '%s' of input '%s' is given as %lld, and as %lld by %s: give both the "
      "same size",
      a->name, input->input, (long long)input->size, (long long)option->size, option->option);
}

static assay_status_t learn(table_t* t, known_t what) {
  const known_t* before = find(t, what.name);
  if (before && before->size == what.size) return NULL;
  // A range that is left open takes whatever else is said.
  if (before && (before->size == OPEN || what.size == OPEN)) return NULL;
  if (before) return disagree(before, &what);
  ASSAY_TRY(assay_grow(&t->at, &t->capacity, t->n + 1, sizeof *t->at));
  t->at[t->n++] = what;
  return NULL;
}

// ---- what is said -------------------------------------------------------------------------------

// The names that there are, for a message: "'N', 'seq'".
static void list_names(const assay_graph_t* g, assay_str_t* out) {
  size_t n = 0;
  for (size_t i = 0; i < g->n_inputs; i++) {
    const assay_valtype_t* t = shaped(g->inputs[i]);
    for (int d = 0; t && d < t->rank; d++) {
      char quoted[256];
      const char* name = assay_dim_name(t->dims[d]);
      if (!name) continue;
      snprintf(quoted, sizeof quoted, "'%s'", name);
      if ((out->text && strstr(out->text, quoted)) || n++ == LISTED) continue;
      assay_str_printf(out, "%s%s", out->len ? ", " : "", quoted);
    }
  }
}

static bool has_name(const assay_graph_t* g, const char* name) {
  for (size_t i = 0; i < g->n_inputs; i++) {
    const assay_valtype_t* t = shaped(g->inputs[i]);
    for (int d = 0; t && d < t->rank; d++)
      if (assay_dim_name(t->dims[d]) && strcmp(assay_dim_name(t->dims[d]), name) == 0) return true;
  }
  return false;
}

// Names of dimensions that are near to one that no input has.
static assay_nearest_t near_dims(const assay_graph_t* g, const char* name) {
  assay_nearest_t near = {.wanted = name};
  for (size_t i = 0; i < g->n_inputs; i++) {
    const assay_valtype_t* t = shaped(g->inputs[i]);
    for (int d = 0; t && d < t->rank; d++) assay_nearest_offer(&near, assay_dim_name(t->dims[d]));
  }
  return near;
}

static assay_status_t learn_dims(table_t* t) {
  for (size_t i = 0; i < t->sizes->n_dims; i++) {
    const assay_dim_size_t* x = &t->sizes->dims[i];
    if (has_name(t->graph, x->name)) {
      ASSAY_TRY(learn(t, (known_t){x->name, x->size, NULL, "a size of that name"}));
      continue;
    }
    assay_str_t names = {0};
    const assay_nearest_t near = near_dims(t->graph, x->name);
    list_names(t->graph, &names);
    assay_status_t st =
        names.len
            ? ASSAY_ERROR(ASSAY_INVALID_ARGUMENT,
                          "no input has an open dimension '%s'; there are %s%s", x->name,
                          assay_str_get(&names), ASSAY_NEAREST_TEXT(&near))
            : ASSAY_ERROR(ASSAY_INVALID_ARGUMENT,
                          "no input has an open dimension '%s', nor one of another name", x->name);
    assay_str_deinit(&names);
    return st;
  }
  return NULL;
}

static assay_status_t learn_shapes(table_t* t) {
  for (size_t i = 0; i < t->graph->n_inputs; i++) {
    const assay_value_t* v = t->graph->inputs[i];
    const assay_valtype_t* type = shaped(v);
    int64_t size;
    for (int d = 0; type && d < type->rank; d++) {
      const char* name = assay_dim_name(type->dims[d]);
      if (name && given_size(t->sizes, v, type->rank, d, &size))
        ASSAY_TRY(learn(t, (known_t){name, size, v->name, NULL}));
    }
  }
  return NULL;
}

// Whether the batch is to be the input's leading dimension.
static bool takes_batch(const assay_open_sizes_t* s, const assay_value_t* v) {
  const assay_valtype_t* t = shaped(v);
  int64_t size;
  return s->batch > 0 && t && t->rank && !assay_dim_value(t->dims[0], &size) &&
         !given_size(s, v, t->rank, 0, &size);
}

static assay_status_t learn_batch(table_t* t) {
  for (size_t i = 0; i < t->graph->n_inputs; i++) {
    const assay_value_t* v = t->graph->inputs[i];
    const char* name = takes_batch(t->sizes, v) ? assay_dim_name(shaped(v)->dims[0]) : NULL;
    if (name) ASSAY_TRY(learn(t, (known_t){name, t->sizes->batch, NULL, "the batch"}));
  }
  return NULL;
}

// ---- what comes of it ---------------------------------------------------------------------------

static bool look_up(void* user, const char* name, int64_t* out) {
  const known_t* k = find(user, name);
  if (k) *out = k->size;
  return k && k->size != OPEN;
}

static void add_one(const char* name, const assay_value_t* v, int d, size_t* n, assay_str_t* out) {
  if ((*n)++ >= LISTED) return;
  if (out->len) assay_str_append(out, ", ");
  if (name)
    assay_str_printf(out, "'%s'", name);
  else
    assay_str_printf(out, "dimension %d of '%s'", d, v->name);
}

typedef struct settling {
  table_t* table;
  assay_settled_t* out;
  size_t n_ones;
} settling_t;

// The size of a dimension that the model leaves open; OPEN: it stays so.
static assay_status_t size_of(settling_t* s, const assay_value_t* v, const assay_valtype_t* t,
                              int d, int64_t* out) {
  const assay_open_sizes_t* sizes = s->table->sizes;
  const char* name = assay_dim_name(t->dims[d]);
  *out = OPEN;
  if (given_size(sizes, v, t->rank, d, out) && (*out != OPEN || !name)) return NULL;
  if (t->dims[d] && assay_dim_eval(t->dims[d], look_up, s->table, out)) return NULL;
  *out = OPEN;
  if (name && find(s->table, name)) return NULL;  // kept open on purpose
  if (d == 0 && !name && takes_batch(sizes, v)) return *out = sizes->batch, NULL;
  if (!sizes->close) return NULL;
  *out = 1;
  add_one(name, v, d, &s->n_ones, &s->out->ones);
  return name ? learn(s->table, (known_t){name, 1, NULL, "default"}) : NULL;
}

static assay_status_t settle_input(settling_t* s, const assay_value_t* v) {
  const assay_valtype_t* t = shaped(v);
  const assay_input_shape_t* own = given_for(s->table->sizes, v);
  assay_settled_t* out = s->out;
  bool said = own != NULL;
  if (own && (!t || own->rank != t->rank)) return out->shapes[out->n++] = *own, NULL;
  if (!t || t->rank > ASSAY_MAX_RANK) return NULL;
  int64_t* dims = out->dims[out->n];
  for (int d = 0; d < t->rank; d++) {
    const bool fixed = t->dims[d] && assay_dim_value(t->dims[d], &dims[d]);
    if (fixed && own && own->dims[d] >= 0) dims[d] = own->dims[d];  // which may not fit
    if (fixed) continue;
    ASSAY_TRY(size_of(s, v, t, d, &dims[d]));
    said |= dims[d] != OPEN;
  }
  if (said) out->shapes[out->n++] = (assay_input_shape_t){v->name, t->rank, dims};
  return NULL;
}

// Whether a leading dimension is the batch's, be it that the model or a shape says the same.
static bool batch_is_somewhere(const assay_open_sizes_t* s, const assay_graph_t* g) {
  for (size_t i = 0; i < g->n_inputs; i++) {
    const assay_valtype_t* t = shaped(g->inputs[i]);
    int64_t size = 0;
    if (!t || !t->rank) continue;
    if (takes_batch(s, g->inputs[i])) return true;
    if (!assay_dim_value(t->dims[0], &size)) given_size(s, g->inputs[i], t->rank, 0, &size);
    if (size == s->batch) return true;
  }
  return false;
}

// Shapes of names that are not inputs of the model: whoever takes them refuses them.
static void hand_on(const assay_open_sizes_t* s, const assay_graph_t* g, assay_settled_t* out) {
  for (size_t i = 0; i < s->n_shapes; i++) {
    bool there = false;
    for (size_t k = 0; !there && k < g->n_inputs; k++)
      there = strcmp(g->inputs[k]->name, s->shapes[i].name) == 0 &&
              given_for(s, g->inputs[k]) == &s->shapes[i];
    if (!there) out->shapes[out->n++] = s->shapes[i];
  }
}

assay_status_t assay_sizes_settle(const assay_model_t* model, const assay_open_sizes_t* sizes,
                                  assay_settled_t* out) {
  const assay_graph_t* g = model->graph;
  table_t t = {.graph = g, .sizes = sizes};
  assay_settled_t made = {0};
  settling_t s = {&t, &made, 0};
  assay_status_t st =
      assay_new_array(g->n_inputs + sizes->n_shapes, sizeof *made.shapes, &made.shapes);
  if (!st) st = assay_new_array(g->n_inputs + 1, sizeof *made.dims, &made.dims);
  if (!st) st = learn_dims(&t);
  if (!st) st = learn_shapes(&t);
  if (!st) st = learn_batch(&t);
  for (size_t i = 0; !st && i < g->n_inputs; i++) st = settle_input(&s, g->inputs[i]);
  if (!st && !sizes->close) hand_on(sizes, g, &made);
  if (!st && s.n_ones > LISTED) assay_str_printf(&made.ones, " and %zu more", s.n_ones - LISTED);
  made.batch_is_nowhere = sizes->batch > 0 && !batch_is_somewhere(sizes, g);
  if (!st) st = assay_str_status(&made.ones);
  assay_free(t.at);
  if (st) return assay_settled_deinit(&made), st;
  *out = made;
  return NULL;
}

assay_status_t assay_input_shapes_check(size_t n, const assay_input_shape_t* shapes,
                                        const assay_model_t* model) {
  for (size_t i = 0; i < n; i++) {
    const assay_input_shape_t* s = &shapes[i];
    if (!s->name || s->rank < 0 || s->rank > ASSAY_MAX_RANK || (s->rank && !s->dims))
      return ASSAY_ERROR(ASSAY_INVALID_ARGUMENT,
                         "shape %zu has no name, no dimensions, or %d of them; there may be %d", i,
                         s->rank, ASSAY_MAX_RANK);
    const assay_value_t* v = model ? assay_graph_find(model->graph, s->name) : NULL;
    if (model && (!v || !v->is_input))
      return ASSAY_ERROR(
          ASSAY_INVALID_ARGUMENT, "the model has no input '%s'%s", s->name,
          ASSAY_VALUES_NEAR_TEXT(model->graph->inputs, model->graph->n_inputs, s->name));
  }
  return NULL;
}

void assay_settled_deinit(assay_settled_t* s) {
  assay_free(s->shapes);
  assay_free(s->dims);
  assay_str_deinit(&s->ones);
  *s = (assay_settled_t){0};
}
