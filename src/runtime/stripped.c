// Plans without weights (docs/adr/0019-stripped-plans.md): which elements a plan file leaves out,
// and what is kept of them so that a refit knows them again.
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/hash.h"
#include "formats/format.h"
#include "ir/compare.h"
#include "onnx/onnx.h"
#include "ops/infer.h"
#include "runtime/engine_internal.h"

enum {
  FEW = 8,            // elements that stay in any case: factors of a Resize, limits, epsilons
  FOLD_ELEMS = 4096,  // inference evaluates nodes of up to that many (ops/infer.c)
};

// ---- walking a model ----------------------------------------------------------------------------

typedef struct walk {
  assay_status_t (*value)(void* user, assay_value_t* v);  // initializers; NULL: none
  assay_status_t (*node)(void* user, const assay_node_t* n);
  void* user;
} walk_t;

// Initializers, then nodes with the graphs in them, depth first: the order is that of the file,
// which the numbers of graphs and values need not have.
static assay_status_t walk_graph(const assay_graph_t* g, const walk_t* w) {
  for (size_t i = 0; w->value && i < g->n_initializers; i++)
    ASSAY_TRY(w->value(w->user, g->initializers[i]));
  for (size_t i = 0; i < g->n_nodes; i++) {
    const assay_node_t* n = g->nodes[i];
    ASSAY_TRY(w->node(w->user, n));
    for (size_t a = 0; a < n->n_attrs; a++) {
      const assay_attr_t* attr = &n->attrs[a];
      if (attr->type == ASSAY_ATTR_GRAPH) ASSAY_TRY(walk_graph(attr->u.g, w));
      for (size_t k = 0; attr->type == ASSAY_ATTR_GRAPHS && k < attr->n; k++)
        ASSAY_TRY(walk_graph(attr->u.graphs[k], w));
    }
  }
  return NULL;
}

typedef struct list {
  assay_value_t** at;
  size_t n, cap;
} list_t;

static assay_status_t list_value(void* user, assay_value_t* v) {
  list_t* l = user;
  if (!v || !v->constant) return NULL;
  ASSAY_TRY(assay_grow(&l->at, &l->cap, l->n + 1, sizeof *l->at));
  l->at[l->n++] = v;
  return NULL;
}

static assay_status_t list_outputs(void* user, const assay_node_t* n) {
  for (size_t o = 0; o < n->n_outputs; o++) ASSAY_TRY(list_value(user, n->outputs[o]));
  return NULL;
}

assay_status_t assay_constants_list(const assay_model_t* m, assay_value_t*** out, size_t* out_n) {
  list_t l = {0};
  const walk_t w = {list_value, list_outputs, &l};
  assay_status_t st = walk_graph(m->graph, &w);
  if (st) return assay_free(l.at), st;
  *out = l.at;
  *out_n = l.n;
  return NULL;
}

// ---- what is left out ---------------------------------------------------------------------------

static bool is_quantizer(const assay_node_t* n) {
  return strcmp(n->op_type, "QuantizeLinear") == 0 || strcmp(n->op_type, "DequantizeLinear") == 0 ||
         strncmp(n->op_type, "QLinear", strlen("QLinear")) == 0;
}

// Scales and zero points: which layers run on integers is told by them.
static void mark_scales(const assay_model_t* m, bool* kept) {
  for (size_t k = 0; k < m->n_graphs; k++)
    for (size_t i = 0; i < m->graphs[k]->n_nodes; i++) {
      const assay_node_t* n = m->graphs[k]->nodes[i];
      for (size_t a = 1; is_quantizer(n) && a < n->n_inputs; a++) {
        const assay_value_t* v = n->inputs[a];
        if (v && v->constant && v->constant->rank <= 1) kept[v->id] = true;
      }
    }
}

static bool is_weight(const assay_value_t* v) {
  const assay_tensor_t* t = v->constant;
  if (t->kind != ASSAY_KIND_TENSOR || t->type == ASSAY_TYPE_STRING || t->size <= FEW) return false;
  if (v->producer && strcmp(v->producer->op_type, "Constant") != 0) return false;
  const bool number =
      t->type != ASSAY_TYPE_BOOL && (assay_type_is_float(t->type) || assay_type_bits(t->type) <= 8);
  return number || t->size > FOLD_ELEMS;
}

// What is not held as a plain tensor is, from now on: else its elements would be written all the
// same.
static void make_plain(assay_value_t* v) {
  if (v->is_sparse_initializer) {
    v->is_sparse_initializer = false;
    v->tensor_extra = (assay_bytes_t){0};
  }
  v->external_location = NULL;
  if (v->producer && strcmp(v->producer->op_type, "Constant") == 0)
    v->producer->attrs[0] = (assay_attr_t){.name = "value",
                                           .doc = "",
                                           .ref = "",
                                           .type = ASSAY_ATTR_TENSOR,
                                           .n = 1,
                                           .u.t = v->constant};
}

// ---- what sizes depend on -----------------------------------------------------------------------

// Puts zeros into the first n of some constants, by their ids, of a copy.
static assay_status_t put_zeros(assay_model_t* copy, assay_mapping_t* zeros, const int* ids,
                                size_t n) {
  assay_value_t** list = NULL;
  bool* is = NULL;
  size_t n_list = 0;
  ASSAY_TRY(assay_constants_list(copy, &list, &n_list));
  assay_status_t st = assay_new_array((size_t)copy->n_values, sizeof *is, &is);
  for (size_t i = 0; !st && i < n; i++) is[ids[i]] = true;
  for (size_t i = 0; !st && i < n_list; i++) {
    assay_value_t* v = list[i];
    const assay_tensor_t* was = v->constant;
    assay_tensor_t* t = NULL;
    int64_t bytes = 0;
    if (!is[v->id] || !assay_type_packed_bytes(was->type, was->size, &bytes)) continue;
    assay_mapping_retain(zeros);
    st = assay_tensor_wrap_packed(was->type, was->rank, was->dims, assay_mapping_data(zeros), bytes,
                                  assay_mapping_release_owner, zeros, &t);
    if (!st) st = assay_model_take_tensor(copy, t);
    if (!st) v->constant = t;
    if (!st && v->producer) v->producer->attrs[0].u.t = t;
  }
  assay_free(list);
  assay_free(is);
  return st;
}

typedef struct candidates {
  const assay_model_t* model;
  assay_model_t* whole;  // the same, inferred anew
  assay_mapping_t* zeros;
  int* ids;
  size_t n;
} candidates_t;

// Whether all sizes are what they were if the first n are zeros.
static assay_status_t try_without(const candidates_t* c, size_t n, bool* out) {
  const assay_compare_t options = {.types = true};
  assay_model_t* copy = NULL;
  assay_str_t difference = {0};
  *out = false;
  ASSAY_TRY(assay_model_clone(c->model, &copy));
  assay_status_t st = put_zeros(copy, c->zeros, c->ids, n);
  if (!st) {
    assay_status_t inferred = assay_infer_model(copy);
    if (!inferred)
      st = assay_model_compare(c->whole, copy, &options, &difference);
    else
      assay_str_append(&difference, assay_status_message(inferred));
    if (assay_status_code(inferred) == ASSAY_NO_MEMORY)
      st = inferred;
    else
      assay_status_free(inferred);
  }
  if (!st) st = assay_str_status(&difference);
  *out = !st && !difference.len;
  assay_str_deinit(&difference);
  assay_model_release(copy);
  return st;
}

// Takes the first one out on which a size depends, if there is one: those before `known` are none.
static assay_status_t keep_one(candidates_t* c, size_t* known, bool* out_kept) {
  size_t low = *known, high = c->n;
  bool same;
  ASSAY_TRY(try_without(c, c->n, &same));
  *out_kept = !same;
  if (same) return NULL;
  while (high - low > 1) {
    const size_t middle = low + (high - low) / 2;
    ASSAY_TRY(try_without(c, middle, &same));
    if (same)
      low = middle;
    else
      high = middle;
  }
  if (high == 0) return ASSAY_ERROR(ASSAY_INTERNAL, "the model's sizes differ from themselves");
  memmove(&c->ids[high - 1], &c->ids[high], (c->n - high) * sizeof *c->ids);
  c->n--;
  *known = high - 1;
  return NULL;
}

static assay_status_t keep_sizes(candidates_t* c) {
  size_t known = 0;
  bool kept = c->n > 0;
  ASSAY_TRY(assay_model_clone(c->model, &c->whole));
  assay_status_t st = assay_infer_model(c->whole);
  while (!st && kept) st = keep_one(c, &known, &kept);
  assay_model_release(c->whole);
  return st;
}

assay_status_t assay_stripped_choose(assay_model_t* m, bool** out) {
  assay_value_t** list = NULL;
  size_t n_list = 0;
  bool *kept = NULL, *chosen = NULL;
  candidates_t c = {.model = m};
  int64_t bytes, max = 0;
  assay_status_t st = assay_constants_list(m, &list, &n_list);
  if (!st) st = assay_new_array((size_t)m->n_values, sizeof *kept, &kept);
  if (!st) st = assay_new_array((size_t)m->n_values, sizeof *chosen, &chosen);
  if (!st) st = assay_new_array(n_list, sizeof *c.ids, &c.ids);
  if (!st) mark_scales(m, kept);
  for (size_t i = 0; !st && i < n_list; i++) {
    assay_value_t* v = list[i];
    const assay_tensor_t* t = v->constant;
    if (kept[v->id] || !is_weight(v) || !assay_type_packed_bytes(t->type, t->size, &bytes))
      continue;
    make_plain(v);
    c.ids[c.n++] = v->id;
    if (bytes > max) max = bytes;
  }
  if (!st) st = assay_mapping_zeros((size_t)max, &c.zeros);
  if (!st) st = keep_sizes(&c);
  for (size_t i = 0; !st && i < c.n; i++) chosen[c.ids[i]] = true;
  assay_mapping_release(c.zeros);
  assay_free(c.ids);
  assay_free(list);
  assay_free(kept);
  if (st) return assay_free(chosen), st;
  *out = chosen;
  return NULL;
}

// ---- hashes -------------------------------------------------------------------------------------

assay_status_t assay_stripped_digest(assay_tensor_t* t, uint64_t* out) {
  assay_tensor_t* packed = NULL;
  int64_t bytes = 0;
  ASSAY_TRY(assay_tensor_pack(t, &packed));
  assay_type_packed_bytes(packed->type, packed->size, &bytes);
  *out = assay_hash(packed->data, (size_t)bytes, 0);
  assay_tensor_release(packed);
  return NULL;
}

// Sizes, with -1 for those that only a run tells: their names say nothing.
static uint64_t hash_type(const assay_valtype_t* t, uint64_t hash) {
  const int64_t head[] = {t ? (int64_t)t->kind : -1, t ? (int64_t)t->elem : -1,
                          t && t->has_shape ? t->rank : -1};
  hash = assay_hash(head, sizeof head, hash);
  for (int d = 0; t && t->has_shape && d < t->rank; d++) {
    int64_t size;
    if (!assay_dim_value(t->dims[d], &size)) size = -1;
    hash = assay_hash(&size, sizeof size, hash);
  }
  return hash;
}

static assay_status_t hash_node(void* user, const assay_node_t* n) {
  uint64_t* hash = user;
  const int64_t version = n->schema ? n->schema->since : 0;
  *hash = assay_hash(&version, sizeof version, *hash);
  for (size_t o = 0; o < n->n_outputs; o++)
    if (n->outputs[o]) *hash = hash_type(n->outputs[o]->type, *hash);
  return NULL;
}

static assay_status_t hash_cuts(const assay_plan_t* plan, uint64_t* hash) {
  assay_layer_cut_t* cuts = NULL;
  size_t n = 0;
  ASSAY_TRY(assay_plan_cuts(plan, &cuts, &n));
  for (size_t i = 0; i < n; i++) {
    const uint64_t cut[] = {cuts[i].n_nodes, (uint64_t)cuts[i].format,
                            (uint64_t)cuts[i].accumulator};
    *hash = assay_hash(cut, sizeof cut, *hash);
  }
  assay_free(cuts);
  return NULL;
}

assay_status_t assay_stripped_form(const assay_plan_t* plan, uint64_t* out) {
  assay_model_t* copy = NULL;
  assay_value_t** list = NULL;
  size_t n = 0;
  bool* all = NULL;
  assay_onnx_parts_t parts = {0};
  uint64_t hash = 0;
  const walk_t walk = {NULL, hash_node, &hash};
  ASSAY_TRY(assay_model_copy_named(assay_plan_layers(plan)->model, &copy));
  assay_status_t st = assay_constants_list(copy, &list, &n);
  if (!st) st = assay_new_array((size_t)copy->n_values, sizeof *all, &all);
  for (size_t i = 0; !st && i < n; i++) {
    const assay_tensor_t* t = list[i]->constant;
    all[list[i]->id] = t->kind == ASSAY_KIND_TENSOR && t->type != ASSAY_TYPE_STRING;
    if (all[list[i]->id]) make_plain(list[i]);
  }
  if (!st) st = assay_onnx_split(copy, NULL, all, &parts);
  if (!st) hash = assay_hash(parts.message, parts.message_bytes, 0);
  if (!st) st = walk_graph(copy->graph, &walk);
  if (!st) st = hash_cuts(plan, &hash);
  assay_onnx_parts_deinit(&parts);
  assay_free(all);
  assay_free(list);
  assay_model_release(copy);
  if (!st) *out = hash;
  return st;
}

// ---- what is kept of weights --------------------------------------------------------------------

assay_status_t assay_stripped_note(const assay_model_t* source, const bool* left_out,
                                   assay_stripped_t* s) {
  assay_value_t** list = NULL;
  size_t n = 0;
  ASSAY_TRY(assay_constants_list(source, &list, &n));
  assay_status_t st = assay_new_array(n, sizeof *s->weights, &s->weights);
  for (size_t i = 0; !st && i < n; i++) {
    int64_t bytes = 0;
    assay_tensor_t* t = list[i]->constant;
    if (!left_out[list[i]->id] || !assay_type_packed_bytes(t->type, t->size, &bytes)) continue;
    assay_missing_t* w = &s->weights[s->n];
    *w = (assay_missing_t){.place = i, .name = list[i]->name, .bytes = (uint64_t)bytes};
    st = assay_stripped_digest(t, &w->digest);
    s->bytes += w->bytes;
    s->n++;
  }
  assay_free(list);
  return st;
}

static json_t* hex(uint64_t x) {
  char text[17];
  snprintf(text, sizeof text, "%016" PRIx64, x);
  return json_string(text);
}

json_t* assay_stripped_print(const assay_stripped_t* s) {
  json_t* list = json_array();
  for (size_t i = 0; i < s->n; i++) {
    const assay_missing_t* w = &s->weights[i];
    json_t* line = assay_json_push(json_array(), json_integer((json_int_t)w->place));
    line = assay_json_push(line, assay_json_text(w->name));
    line = assay_json_push(line, json_integer((json_int_t)w->bytes));
    list = assay_json_push(list, assay_json_push(line, hex(w->digest)));
  }
  json_t* j = assay_json_put(json_object(), "refittable", json_boolean(s->refittable));
  j = assay_json_put(j, "packed", json_boolean(s->packed));
  j = assay_json_put(j, "form", hex(s->form));
  j = assay_json_put(j, "data_bytes", json_integer((json_int_t)s->data_bytes));
  return assay_json_put(j, "weights", list);
}

static bool read_hex(const json_t* j, uint64_t* out) {
  const char* text = json_string_value(j);
  if (!text || strlen(text) != 16 || strspn(text, "0123456789abcdef") != 16) return false;
  *out = strtoull(text, NULL, 16);
  return true;
}

static bool read_size(const json_t* j, uint64_t* out) {
  if (!json_is_integer(j) || json_integer_value(j) < 0) return false;
  *out = (uint64_t)json_integer_value(j);
  return true;
}

static assay_status_t senseless(void) {
  return ASSAY_ERROR(ASSAY_CORRUPT,
                     "the plan file is damaged: what it says of its missing weights makes no "
                     "sense; build the plan again");
}

// Places go up, so that each weight is there once.
static bool read_missing(const json_t* line, assay_stripped_t* s) {
  assay_missing_t* w = &s->weights[s->n];
  uint64_t place;
  w->name = json_string_value(json_array_get(line, 1));
  if (!read_size(json_array_get(line, 0), &place) || !w->name ||
      !read_size(json_array_get(line, 2), &w->bytes) ||
      !read_hex(json_array_get(line, 3), &w->digest) ||
      (s->n && place <= s->weights[s->n - 1].place) ||
      __builtin_add_overflow(s->bytes, w->bytes, &s->bytes))
    return false;
  w->place = (size_t)place;
  s->n++;
  return true;
}

assay_status_t assay_stripped_read(const json_t* j, assay_stripped_t** out) {
  assay_stripped_t* s = NULL;
  const json_t* list = json_object_get(j, "weights");
  const size_t n = json_array_size(list);
  ASSAY_TRY(ASSAY_NEW(&s));
  s->text = json_incref((json_t*)(uintptr_t)j);
  s->refittable = json_is_true(json_object_get(j, "refittable"));
  s->packed = json_is_true(json_object_get(j, "packed"));
  assay_status_t st = assay_new_array(n, sizeof *s->weights, &s->weights);
  bool ok = !st && n > 0 && read_hex(json_object_get(j, "form"), &s->form) &&
            read_size(json_object_get(j, "data_bytes"), &s->data_bytes);
  for (size_t i = 0; ok && i < n; i++) ok = read_missing(json_array_get(list, i), s);
  if (!st && !ok) st = senseless();
  if (st) return assay_stripped_destroy(s), st;
  *out = s;
  return NULL;
}

void assay_stripped_destroy(assay_stripped_t* s) {
  if (!s) return;
  assay_free(s->weights);
  json_decref(s->text);
  assay_free(s);
}

assay_status_t assay_stripped_find(const assay_stripped_t* s, const assay_model_t* source,
                                   const assay_missing_t*** out) {
  assay_value_t** list = NULL;
  const assay_missing_t** by_id = NULL;
  size_t n = 0;
  ASSAY_TRY(assay_constants_list(source, &list, &n));
  assay_status_t st = assay_new_array((size_t)source->n_values, sizeof *by_id, &by_id);
  for (size_t i = 0; !st && i < s->n; i++) {
    const assay_missing_t* w = &s->weights[i];
    const assay_tensor_t* t = w->place < n ? list[w->place]->constant : NULL;
    int64_t bytes = 0;
    if (!t || t->kind != ASSAY_KIND_TENSOR || !assay_type_packed_bytes(t->type, t->size, &bytes) ||
        (uint64_t)bytes != w->bytes)
      st = senseless();
    else
      by_id[list[w->place]->id] = w;
  }
  assay_free(list);
  if (st) return assay_free(by_id), st;
  *out = by_id;
  return NULL;
}
