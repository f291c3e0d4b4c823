// Forges plan files: takes one apart, changes what its parts say, and puts it together again.
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "assay/assay.h"
#include "base/alloc.h"
#include "base/file.h"
#include "base/hash.h"
#include "base/str.h"
#include "exec/backend.h"
#include "forge.h"
#include "formats/format.h"
#include "io/json.h"
#include "onnx/onnx.h"
#include "ops/schema.h"
#include "runtime/plan_head.h"
#include "wire.h"

enum { TEXT = 0, MESSAGE, SOURCE, DATA, SAVED, N_PARTS };

typedef struct pieces {
  assay_plan_head_t head;
  forged_t part[N_PARTS];
  json_t* text;  // TEXT, read
} pieces_t;

static void* must(void* p) {
  if (!p) abort();
  return p;
}

// ---- the file -----------------------------------------------------------------------------------

bool forge_is_plan(const uint8_t* data, size_t n) {
  return n >= ASSAY_PLAN_PAGE + sizeof(uint64_t) && memcmp(data, ASSAY_PLAN_MAGIC, 8) == 0;
}

static void seal_machine(assay_plan_head_t* h) {
  h->backend[sizeof h->backend - 1] = 0;
  const assay_backend_t* b = assay_backend_find(h->backend);
  assay_str_t text = {0};
  if (b && b->describe) b->describe(&text);
  memset(h->machine, 0, sizeof h->machine);
  strncpy(h->machine, assay_str_get(&text), sizeof h->machine - 1);
  assay_str_deinit(&text);
}

static void sign(uint8_t* data, size_t n) {
  uint64_t hash = 0;
  const size_t end = n - sizeof hash;
  for (size_t at = 0; at < end; at += ASSAY_PLAN_BLOCK)
    hash = assay_hash(data + at, end - at < ASSAY_PLAN_BLOCK ? end - at : ASSAY_PLAN_BLOCK, hash);
  memcpy(data + end, &hash, sizeof hash);
}

void forge_seal_plan(uint8_t* data, size_t n) {
  assay_plan_head_t h;
  if (!forge_is_plan(data, n)) return;
  memcpy(&h, data, sizeof h);
  h.version = ASSAY_PLAN_VERSION;
  h.head_bytes = sizeof h;
  h.file_bytes = n;
  memset(h.assay, 0, sizeof h.assay);
  strncpy(h.assay, ASSAY_VERSION, sizeof h.assay - 1);
  seal_machine(&h);
  memcpy(data, &h, sizeof h);
  sign(data, n);
}

static assay_plan_part_t* part_of(assay_plan_head_t* h, int i) {
  assay_plan_part_t* const parts[] = {&h->text, &h->message, &h->source, &h->data, &h->saved};
  return parts[i];
}

static bool take_apart(const forged_t* f, pieces_t* out) {
  memset(out, 0, sizeof *out);
  if (!forge_is_plan(f->at, f->n)) return false;
  memcpy(&out->head, f->at, sizeof out->head);
  for (int i = 0; i < N_PARTS; i++) {
    const assay_plan_part_t p = *part_of(&out->head, i);
    if (p.offset > f->n || p.bytes > f->n - p.offset) return false;
  }
  for (int i = 0; i < N_PARTS; i++) {
    const assay_plan_part_t p = *part_of(&out->head, i);
    out->part[i] = (forged_t){must(malloc((size_t)p.bytes + 1)), (size_t)p.bytes};
    memcpy(out->part[i].at, f->at + p.offset, (size_t)p.bytes);
  }
  assay_status_t st = assay_json_parse(out->part[TEXT].at, out->part[TEXT].n, &out->text);
  assay_status_free(st);
  return true;
}

static void deinit(pieces_t* p) {
  for (int i = 0; i < N_PARTS; i++) free(p->part[i].at);
  json_decref(p->text);
}

static void print_text(pieces_t* p) {
  assay_str_t out = {0};
  if (!p->text) return;
  assay_json_print(p->text, 0, &out);
  free(p->part[TEXT].at);
  p->part[TEXT] = (forged_t){must(malloc(out.len + 1)), out.len};
  memcpy(p->part[TEXT].at, assay_str_get(&out), out.len);
  assay_str_deinit(&out);
}

static size_t paged(size_t n) {
  return (n + ASSAY_PLAN_PAGE - 1) / ASSAY_PLAN_PAGE * ASSAY_PLAN_PAGE;
}

static void put_together(pieces_t* p, forged_t* f) {
  size_t end = ASSAY_PLAN_PAGE;
  print_text(p);
  for (int i = 0; i < N_PARTS; i++) {
    *part_of(&p->head, i) = (assay_plan_part_t){paged(end), p->part[i].n};
    end = paged(end) + p->part[i].n;
  }
  free(f->at);
  f->n = end + sizeof(uint64_t);
  f->at = must(calloc(f->n, 1));
  memcpy(f->at, &p->head, sizeof p->head);
  for (int i = 0; i < N_PARTS; i++)
    memcpy(f->at + part_of(&p->head, i)->offset, p->part[i].at, p->part[i].n);
}

// ---- the text -----------------------------------------------------------------------------------

static int64_t odd_number(int64_t was) {
  static const int64_t odd[] = {0,         1,         -1,        2,    3,         7,
                                8,         63,        64,        4096, 65536,     INT32_MAX,
                                INT32_MIN, INT64_MAX, INT64_MIN, -2,   1LL << 32, 1LL << 62};
  switch (wire_draw(5)) {
    case 0:
      return odd[wire_draw(sizeof odd / sizeof *odd)];
    case 1:
      return (int64_t)((uint64_t)was + wire_draw(5) - 2);
    case 2:
      return (int64_t)wire_draw(40);
    case 3:
      return (int64_t)((uint64_t)was * (2 + wire_draw(3)));
    default:
      return (int64_t)((uint64_t)was ^ (uint64_t)1 << wire_draw(64));
  }
}

typedef struct place {
  json_t *parent, *item;
  const char* key;  // in an object
  size_t index;     // in a list
} place_t;

// Any item below j, each as likely as any other.
static void pick_below(json_t* j, uint64_t* seen, place_t* out) {
  const char* key;
  json_t* item;
  size_t i;
  if (json_is_object(j)) {
    json_object_foreach(j, key, item) {
      if (wire_draw(++*seen) == 0) *out = (place_t){j, item, key, 0};
      pick_below(item, seen, out);
    }
  } else if (json_is_array(j)) {
    json_array_foreach(j, i, item) {
      if (wire_draw(++*seen) == 0) *out = (place_t){j, item, NULL, i};
      pick_below(item, seen, out);
    }
  }
}

static place_t pick(json_t* j) {
  place_t p = {0};
  uint64_t seen = 0;
  pick_below(j, &seen, &p);
  return p;
}

static void put_item(const place_t* p, json_t* take) {
  if (p->key)
    json_object_set_new(p->parent, p->key, take);
  else
    json_array_set_new(p->parent, p->index, take);
}

static json_t* odd_string(json_t* root) {
  static const char* const words[] = {"",
                                      "emu",
                                      "cpu",
                                      "oneDNN",
                                      "assay",
                                      "timings",
                                      "tight",
                                      "loop",
                                      "stripped",
                                      "0",
                                      "zzzzzzzzzzzzzzzz",
                                      "*:fp16",
                                      "*",
                                      "fp32 x",
                                      "-",
                                      ",",
                                      "constant_folding",
                                      "Flatten",
                                      "If",
                                      "ai.onnx.ml"};
  char text[4096];
  switch (wire_draw(4)) {
    case 0:
      return json_string(words[wire_draw(sizeof words / sizeof *words)]);
    case 1:
      return json_string(assay_format_info((assay_format_t)wire_draw(ASSAY_FORMAT_COUNT))->name);
    case 2:
      memset(text, 'a' + (int)wire_draw(26), sizeof text);
      text[wire_draw(sizeof text)] = 0;
      text[sizeof text - 1] = 0;
      return json_string(text);
    default:
      for (int i = 0; i < 20; i++) {
        const place_t p = pick(root);
        if (json_is_string(p.item)) return json_copy(p.item);
      }
      return json_string("x");
  }
}

static json_t* odd_item(json_t* root) {
  switch (wire_draw(7)) {
    case 0:
      return json_null();
    case 1:
      return json_true();
    case 2:
      return json_array();
    case 3:
      return json_object();
    case 4:
      return json_integer(odd_number(0));
    case 5:
      return json_real(1e300);
    default:
      return odd_string(root);
  }
}

static void change_list(json_t* list, json_t* root) {
  const size_t n = json_array_size(list);
  const size_t a = (size_t)wire_draw(n), b = (size_t)wire_draw(n);
  if (!n || wire_draw(8) == 0) {
    json_array_append_new(list, odd_item(root));
    return;
  }
  json_t *x = json_array_get(list, a), *y = json_array_get(list, b);
  switch (wire_draw(5)) {
    case 0:
      json_array_remove(list, a);
      break;
    case 1:
      json_array_insert_new(list, b, json_deep_copy(x));
      break;
    case 2:
      json_incref(x);
      json_incref(y);
      json_array_set_new(list, a, y);
      json_array_set_new(list, b, x);
      break;
    case 3:
      json_array_set_new(list, a, json_deep_copy(y));
      break;
    default:
      while (json_array_size(list) > a) json_array_remove(list, a);
  }
}

static void change_item(json_t* root) {
  const place_t p = pick(root);
  if (!p.item) return;
  if (wire_draw(12) == 0) {
    put_item(&p, odd_item(root));
  } else if (p.key && wire_draw(24) == 0) {
    json_object_del(p.parent, p.key);
  } else if (json_is_integer(p.item)) {
    put_item(&p, json_integer(odd_number(json_integer_value(p.item))));
  } else if (json_is_string(p.item)) {
    put_item(&p, odd_string(root));
  } else if (json_is_boolean(p.item)) {
    put_item(&p, json_boolean(!json_is_true(p.item)));
  } else if (json_is_array(p.item)) {
    change_list(p.item, root);
  }
}

static int64_t nodes_of(const json_t* layer) {
  return json_integer_value(json_object_get(layer, "nodes"));
}

static void set_nodes(json_t* layer, int64_t n) {
  json_object_set_new(layer, "nodes", json_integer(n));
}

// Other layers of the same nodes: two become one, one becomes two, a node goes to its neighbour.
static void cut_again(json_t* root) {
  json_t* list = json_object_get(root, "layers");
  const size_t n = json_array_size(list);
  if (n < 2) return;
  const size_t at = (size_t)wire_draw(n - 1);
  json_t *a = json_array_get(list, at), *b = json_array_get(list, at + 1);
  const int64_t na = nodes_of(a), nb = nodes_of(b), all = (int64_t)((uint64_t)na + (uint64_t)nb);
  if (na <= 0 || nb <= 0 || all < 0) return;
  switch (wire_draw(3)) {
    case 0:
      set_nodes(a, all);
      json_array_remove(list, at + 1);
      break;
    case 1: {
      const int64_t first = all > 1 ? 1 + (int64_t)wire_draw((uint64_t)all - 1) : 1;
      set_nodes(a, first);
      set_nodes(b, all - first);
      break;
    }
    default:
      if (na < 2) return;
      set_nodes(a, 1);
      json_array_insert_new(list, at + 1, json_deep_copy(a));
      set_nodes(json_array_get(list, at + 1), na - 1);
  }
}

// A layer in another format, or all of them.
static void change_formats(json_t* root) {
  json_t* list = json_object_get(root, "layers");
  const size_t n = json_array_size(list), only = (size_t)wire_draw(n);
  const bool all = wire_draw(3) == 0;
  const char* name = assay_format_info((assay_format_t)wire_draw(ASSAY_FORMAT_COUNT))->name;
  const char* key = wire_draw(3) ? "format" : "accumulator";
  for (size_t i = 0; i < n; i++)
    if ((all || i == only) && json_is_object(json_array_get(list, i)))
      json_object_set_new(json_array_get(list, i), key, json_string(name));
}

// What is saved under one key is another's, or lies elsewhere.
static void change_saved(json_t* root, size_t bytes) {
  json_t* list = json_object_get(root, "saved");
  const size_t n = json_array_size(list);
  json_t *a = json_array_get(list, (size_t)wire_draw(n)), *b = json_array_get(list, wire_draw(n));
  if (!json_is_array(a) || !json_is_array(b)) return;
  switch (wire_draw(4)) {
    case 0:
      json_array_set_new(a, 0, json_deep_copy(json_array_get(b, 0)));
      break;
    case 1:
      json_array_set_new(a, 1, json_integer((json_int_t)wire_draw(bytes + 1)));
      break;
    case 2:
      json_array_set_new(a, 1, json_integer(odd_number(json_integer_value(json_array_get(a, 1)))));
      break;
    default:
      json_array_set_new(a, 2, json_integer(odd_number(json_integer_value(json_array_get(a, 2)))));
  }
}

static void change_text(pieces_t* p) {
  if (!p->text) {
    wire_seed(wire_draw(UINT32_MAX));
    return;
  }
  for (uint64_t left = 1 + wire_draw(3); left--;) switch (wire_draw(8)) {
      case 0:
      case 1:
        cut_again(p->text);
        break;
      case 2:
        change_formats(p->text);
        break;
      case 3:
        change_saved(p->text, p->part[SAVED].n);
        break;
      default:
        change_item(p->text);
    }
}

// ---- the models ---------------------------------------------------------------------------------

static int64_t version_of(const assay_model_t* m, const assay_node_t* n) {
  bool known;
  const int64_t newest = assay_schema_newest(n->domain), imported = assay_model_opset(m, n->domain);
  const int64_t of = wire_draw(16) ? imported : 1 + (int64_t)wire_draw((uint64_t)newest + 2);
  const assay_schema_t* s = assay_schema_find(n->domain, n->op_type, of, &known);
  if (!s) s = assay_schema_find(n->domain, n->op_type, newest, &known);
  return s ? s->since : of;
}

static void list_nodes(const assay_model_t* m, const assay_graph_t* g, json_t* list) {
  for (size_t i = 0; i < g->n_nodes; i++) {
    const assay_node_t* n = g->nodes[i];
    json_t* line = json_array();
    json_array_append_new(line, json_string(n->op_type));
    json_array_append_new(line, json_integer(version_of(m, n)));
    json_array_append_new(list, line);
    for (size_t a = 0; a < n->n_attrs; a++) {
      const assay_attr_t* attr = &n->attrs[a];
      if (attr->type == ASSAY_ATTR_GRAPH) list_nodes(m, attr->u.g, list);
      for (size_t k = 0; attr->type == ASSAY_ATTR_GRAPHS && k < attr->n; k++)
        list_nodes(m, attr->u.graphs[k], list);
    }
  }
}

// Makes the layers as many as the nodes are.
static void fit_layers(json_t* root, size_t n_nodes) {
  json_t* list = json_object_get(root, "layers");
  int64_t sum = 0;
  if (!json_array_size(list)) return;
  for (size_t i = 0; i < json_array_size(list);) {
    const int64_t n = nodes_of(json_array_get(list, i));
    if (n <= 0 || n > (int64_t)n_nodes - sum) {
      if (json_array_size(list) == 1) return;
      json_array_remove(list, i);
      continue;
    }
    sum += n;
    i++;
  }
  json_t* last = json_array_get(list, json_array_size(list) - 1);
  for (; sum < (int64_t)n_nodes; sum++) {
    json_array_append_new(list, json_deep_copy(last));
    set_nodes(json_array_get(list, json_array_size(list) - 1), 1);
  }
}

// After a message was changed: the text knows its nodes again.
static void fit_text(pieces_t* p, int which) {
  assay_mapping_t *message = NULL, *data = NULL;
  assay_model_t* m = NULL;
  const forged_t *from = &p->part[which], *beside = &p->part[DATA];
  if (!p->text || !json_is_object(p->text)) return;
  assay_status_t st = assay_mapping_copy(from->at, from->n, &message);
  if (!st) st = assay_mapping_copy(beside->at, beside->n, &data);
  if (!st) st = assay_onnx_join(message, data, &m);
  assay_mapping_release(message);
  assay_mapping_release(data);
  if (!st) {
    json_t* list = json_array();
    list_nodes(m, m->graph, list);
    if (which == MESSAGE) fit_layers(p->text, json_array_size(list));
    json_object_set_new(p->text, which == MESSAGE ? "nodes" : "source_nodes", list);
  }
  assay_status_free(st);
  assay_model_release(m);
}

// ---- nodes --------------------------------------------------------------------------------------

static assay_node_t* any_node(const assay_model_t* m) {
  const assay_graph_t* g = m->n_graphs ? m->graphs[wire_draw(m->n_graphs)] : m->graph;
  if (wire_draw(3)) g = m->graph;
  return g->n_nodes ? g->nodes[wire_draw(g->n_nodes)] : NULL;
}

// A value of a node of the same graph, or a constant.
static assay_value_t* any_value(const assay_graph_t* g) {
  const assay_node_t* n = g->n_nodes ? g->nodes[wire_draw(g->n_nodes)] : NULL;
  if (g->n_initializers && wire_draw(3) == 0) return g->initializers[wire_draw(g->n_initializers)];
  if (n && n->n_inputs && wire_draw(2)) return n->inputs[wire_draw(n->n_inputs)];
  return n && n->n_outputs ? n->outputs[wire_draw(n->n_outputs)] : NULL;
}

static void change_number(assay_model_t* m, assay_attr_t* a) {
  static const float odd[] = {0, -1, 1e38f, 1e-40f, 7, 0.5f};
  if (a->type == ASSAY_ATTR_INT) {
    a->u.i = odd_number(a->u.i);
  } else if (a->type == ASSAY_ATTR_FLOAT) {
    a->u.f = odd[wire_draw(sizeof odd / sizeof *odd)];
  } else if (a->type == ASSAY_ATTR_INTS) {
    int64_t* list = assay_arena_alloc(m->arena, a->n + 1, sizeof *list);
    if (!list) abort();
    if (a->n) memcpy(list, a->u.ints, a->n * sizeof *list);
    const size_t at = (size_t)wire_draw(a->n + 1);
    list[at] = odd_number(list[at]);
    a->u.ints = list;
    if (wire_draw(4) == 0) a->n = wire_draw(2) ? a->n + 1 : a->n - (a->n > 0);
  }
}

// Another operator; most take as many inputs.
static const char* any_operator(const assay_node_t* n) {
  const size_t count = assay_schema_count();
  for (int i = 0; i < 200; i++) {
    const assay_schema_t* s = assay_schema_at((size_t)wire_draw(count));
    if (strcmp(s->domain, n->domain) == 0 &&
        (wire_draw(8) == 0 ||
         (s->min_inputs <= (int)n->n_inputs && (int)n->n_inputs <= s->max_inputs)))
      return s->name;
  }
  return n->op_type;
}

static void swap_nodes(assay_graph_t* g) {
  const size_t a = (size_t)wire_draw(g->n_nodes), b = (size_t)wire_draw(g->n_nodes);
  assay_node_t* n = g->nodes[a];
  g->nodes[a] = g->nodes[b];
  g->nodes[b] = n;
}

static void change_node(assay_model_t* m, assay_node_t* n) {
  const size_t in = (size_t)wire_draw(n->n_inputs), out = (size_t)wire_draw(n->n_outputs);
  switch (wire_draw(12)) {
    case 0:
      n->n_inputs -= n->n_inputs > 0;
      break;
    case 1:
      if (n->n_inputs) n->inputs[in] = NULL;
      break;
    case 2:
    case 3:
      if (n->n_inputs) n->inputs[in] = any_value(n->graph);
      break;
    case 4:
      if (n->n_inputs > 1) {
        assay_value_t* v = n->inputs[0];
        n->inputs[0] = n->inputs[in];
        n->inputs[in] = v;
      }
      break;
    case 5:
      if (n->n_outputs > 1) n->n_outputs--;
      break;
    case 6:
      if (n->n_outputs) n->outputs[out] = NULL;
      break;
    case 7:
      n->op_type = any_operator(n);
      break;
    case 8:
      n->n_attrs -= n->n_attrs > 0;
      break;
    case 9:
      swap_nodes(n->graph);
      break;
    default:
      if (n->n_attrs) change_number(m, &n->attrs[wire_draw(n->n_attrs)]);
  }
}

// What inputs and outputs are declared as.
static void change_type(assay_model_t* m) {
  const assay_graph_t* g = m->graph;
  const uint64_t n = g->n_inputs + g->n_outputs, at = wire_draw(n);
  if (!n) return;
  assay_value_t* v = at < g->n_inputs ? g->inputs[at] : g->outputs[at - g->n_inputs];
  const assay_valtype_t* t = v->declared;
  const assay_dim_t* dims[ASSAY_MAX_RANK] = {NULL};
  if (!t || t->kind != ASSAY_KIND_TENSOR || !t->has_shape || t->rank >= ASSAY_MAX_RANK) return;
  for (int d = 0; d < t->rank; d++) dims[d] = t->dims[d];
  const int d = (int)wire_draw((uint64_t)t->rank + 1);
  dims[d] = wire_draw(3) ? assay_dim_const(m->dims, (int64_t)wire_draw(300)) : NULL;
  const assay_type_t elem =
      wire_draw(3) ? t->elem : (assay_type_t)(1 + wire_draw(ASSAY_TYPE_COUNT - 1));
  assay_status_free(
      assay_valtype_tensor(m, elem, wire_draw(4) ? t->rank : t->rank + 1, dims, &v->declared));
}

// The message is written again with all of its elements in it.
bool forge_model(forged_t* f, const forged_t* beside) {
  assay_mapping_t *message = NULL, *data = NULL;
  assay_model_t* m = NULL;
  uint8_t* bytes = NULL;
  size_t n = 0;
  assay_status_t st = assay_mapping_copy(f->at, f->n, &message);
  if (!st) st = assay_mapping_copy(beside->at, beside->n, &data);
  if (!st) st = assay_onnx_join(message, data, &m);
  assay_mapping_release(message);
  assay_mapping_release(data);
  for (uint64_t left = 1 + wire_draw(3); !st && left--;) {
    assay_node_t* node = any_node(m);
    if (node && wire_draw(8))
      change_node(m, node);
    else
      change_type(m);
  }
  if (!st) st = assay_onnx_write_bytes(m, &bytes, &n);
  assay_model_release(m);
  if (st) return assay_status_free(st), false;
  free(f->at);
  f->at = must(malloc(n + 1));
  memcpy(f->at, bytes, n);
  f->n = n;
  assay_free(bytes);
  return true;
}

static void change_message(pieces_t* p, int which) {
  forged_t* f = &p->part[which];
  const bool known = wire_draw(4) && forge_model(f, &p->part[DATA]);
  for (uint64_t left = 1 + wire_draw(3); !known && left--;) {
    uint8_t* made = must(malloc(f->n + 2 * WIRE_CAPACITY));
    const size_t n = wire_change(f->at, f->n, made);
    if (!n) {
      free(made);
      continue;
    }
    free(f->at);
    *f = (forged_t){made, n};
  }
  if (wire_draw(16)) fit_text(p, which);
}

// ---- bytes --------------------------------------------------------------------------------------

static void change_bytes(forged_t* f) {
  for (uint64_t left = 1 + wire_draw(8); f->n && left--;) {
    const size_t at = (size_t)wire_draw(f->n);
    static const uint8_t odd[] = {0, 1, 2, 0x7f, 0x80, 0xff};
    const size_t n = f->n - at < 16 ? f->n - at : 1 + (size_t)wire_draw(16);
    memset(f->at + at, odd[wire_draw(sizeof odd)], n);
  }
}

static void change_size(forged_t* f) {
  const size_t n = (size_t)(wire_draw(2) ? wire_draw(f->n + 1) : f->n + wire_draw(5000));
  uint8_t* at = must(calloc(n + 1, 1));
  if (f->n) memcpy(at, f->at, n < f->n ? n : f->n);
  free(f->at);
  *f = (forged_t){at, n};
}

static void swap_parts(pieces_t* p) {
  const uint64_t a = wire_draw(N_PARTS), b = wire_draw(N_PARTS);
  const forged_t kept = p->part[a];
  if (a == TEXT || b == TEXT) {
    const assay_plan_part_t of = p->head.message;  // the text is printed anew: the heads only
    p->head.message = p->head.source;
    p->head.source = of;
    return;
  }
  p->part[a] = p->part[b];
  p->part[b] = kept;
}

// Numbers of the head, behind everything else: offsets and sizes that are not so.
static void change_head(forged_t* f) {
  assay_plan_head_t h;
  static const char* const backends[] = {"cpu", "emu", "null", "cuda", "", "mock"};
  memcpy(&h, f->at, sizeof h);
  assay_plan_part_t* p = part_of(&h, (int)wire_draw(N_PARTS));
  switch (wire_draw(6)) {
    case 0:
      p->offset = (uint64_t)odd_number((int64_t)p->offset);
      break;
    case 1:
      p->bytes = (uint64_t)odd_number((int64_t)p->bytes);
      break;
    case 2:
      p->offset = ASSAY_PLAN_PAGE * wire_draw(f->n / ASSAY_PLAN_PAGE + 2);
      break;
    case 3:
      *p = *part_of(&h, (int)wire_draw(N_PARTS));
      break;
    case 4:
      p->bytes = wire_draw(f->n + 10);
      break;
    default:
      memset(h.backend, 0, sizeof h.backend);
      strncpy(h.backend, backends[wire_draw(sizeof backends / sizeof *backends)],
              sizeof h.backend - 1);
  }
  memcpy(f->at, &h, sizeof h);
}

void forge_plan(forged_t* f, uint64_t seed) {
  pieces_t p;
  wire_seed(seed);
  if (!take_apart(f, &p)) {
    change_bytes(f);
    forge_seal_plan(f->at, f->n);
    return;
  }
  for (uint64_t left = 1 + wire_draw(2); left--;) switch (wire_draw(12)) {
      case 0:
      case 1:
      case 2:
      case 3:
        change_message(&p, MESSAGE);
        break;
      case 4:
        change_message(&p, SOURCE);
        break;
      case 5:
        change_bytes(&p.part[wire_draw(4) ? SAVED : DATA]);
        break;
      case 6:
        if (wire_draw(3))
          change_size(&p.part[DATA + wire_draw(2)]);
        else
          swap_parts(&p);
        break;
      default:
        change_text(&p);
    }
  put_together(&p, f);
  deinit(&p);
  if (wire_draw(8) == 0) change_head(f);
  if (wire_draw(24) == 0) f->n = (size_t)wire_draw(f->n + 1);
  forge_seal_plan(f->at, f->n);
}
