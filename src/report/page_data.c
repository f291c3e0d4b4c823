// What the page shows beyond the check's JSON: the graph, and pictures of every value.
#include "report/page_data.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "formats/format.h"
#include "io/json.h"

// ---- who reads whom -----------------------------------------------------------------------------

enum { NOBODY = INT32_MIN };

typedef struct wiring {
  const assay_check_t* check;
  int* maker;  // by value id: the layer that makes it; -1 - k for input k of the graph; NOBODY
} wiring_t;

static size_t nodes_of(const assay_layer_account_t* a, const assay_node_t* const** out) {
  *out = a->layer ? a->layer->nodes : &a->node;
  return a->layer ? a->layer->n_nodes : 1;
}

static const assay_model_t* model_of(const assay_check_t* c) {
  return assay_plan_layers(c->plan)->model;
}

static assay_status_t wire(const assay_check_t* c, wiring_t* w) {
  const assay_model_t* m = model_of(c);
  *w = (wiring_t){.check = c};
  ASSAY_TRY(assay_new_array((size_t)m->n_values, sizeof *w->maker, &w->maker));
  for (int i = 0; i < m->n_values; i++) w->maker[i] = NOBODY;
  for (size_t k = 0; k < m->graph->n_inputs; k++)
    if (!m->graph->inputs[k]->constant) w->maker[m->graph->inputs[k]->id] = -1 - (int)k;
  for (size_t i = 0; i < assay_account_layer_count(c->account); i++) {
    const assay_node_t* const* nodes;
    const size_t n = nodes_of(assay_account_layer(c->account, i), &nodes);
    for (size_t k = 0; k < n; k++)
      for (size_t o = 0; o < nodes[k]->n_outputs; o++)
        if (nodes[k]->outputs[o]) w->maker[nodes[k]->outputs[o]->id] = (int)i;
  }
  return NULL;
}

// Adds the maker of a value to those that a layer reads, unless it is there already.
static json_t* add_source(const wiring_t* w, json_t* list, const assay_value_t* v, int self) {
  const int maker = v ? w->maker[v->id] : NOBODY;
  if (maker == NOBODY || maker == self || !list) return list;
  for (size_t i = 0; i < json_array_size(list); i++)
    if (json_integer_value(json_array_get(list, i)) == maker) return list;
  return assay_json_push(list, json_integer(maker));
}

// What a node reads; of one with bodies also what these give.
static json_t* add_sources(const wiring_t* w, json_t* list, const assay_node_t* node, int self) {
  for (size_t i = 0; i < node->n_inputs; i++) list = add_source(w, list, node->inputs[i], self);
  for (size_t i = 0; i < node->n_attrs; i++) {
    const assay_attr_t* a = &node->attrs[i];
    if (a->type != ASSAY_ATTR_GRAPH) continue;
    for (size_t o = 0; o < a->u.g->n_outputs; o++)
      list = add_source(w, list, a->u.g->outputs[o], self);
  }
  return list;
}

static json_t* sources(const wiring_t* w, size_t layer) {
  const assay_node_t* const* nodes;
  const size_t n = nodes_of(assay_account_layer(w->check->account, layer), &nodes);
  json_t* list = json_array();
  for (size_t k = 0; k < n; k++) list = add_sources(w, list, nodes[k], (int)layer);
  return list;
}

// ---- pictures -----------------------------------------------------------------------------------

// [bin of the first count, counts ...]; [] if there are none.
static json_t* counts(const int64_t* at) {
  int first = 0, end = ASSAY_PICTURE_BINS;
  while (first < end && !at[first]) first++;
  while (end > first && !at[end - 1]) end--;
  json_t* list = json_array();
  if (first < end) list = assay_json_push(list, json_integer(first + ASSAY_PICTURE_LOW));
  for (int k = first; k < end; k++) list = assay_json_push(list, json_integer((json_int_t)at[k]));
  return list;
}

static json_t* magnitudes(const assay_magnitudes_t* m) {
  return json_pack("{s:I, s:o}", "zero", (json_int_t)m->zero, "at", counts(m->at));
}

// A map in hand: codes that may have been shrunk.
typedef struct shrunk {
  uint8_t code[ASSAY_PICTURE_SIDE * ASSAY_PICTURE_SIDE];
  int rows, columns;
} shrunk_t;

// Two by two cells become one: of errors the largest, of values the mean.
static void halve(shrunk_t* s, bool errors) {
  const int rows = (s->rows + 1) / 2, columns = (s->columns + 1) / 2;
  for (int y = 0; y < rows; y++)
    for (int x = 0; x < columns; x++) {
      int maximum = 0, sum = 0, n = 0;
      for (int k = 0; k < 4; k++) {
        const int yy = 2 * y + k / 2, xx = 2 * x + k % 2;
        if (yy >= s->rows || xx >= s->columns) continue;
        const int code = s->code[yy * s->columns + xx];
        maximum = code > maximum ? code : maximum;
        sum += code;
        n++;
      }
      // Row y is written after rows 2y and 2y + 1 were read.
      s->code[y * columns + x] =
          (uint8_t)(errors || maximum == ASSAY_MAP_UNFINITE ? maximum : (sum + n / 2) / n);
    }
  s->rows = rows;
  s->columns = columns;
}

static json_t* map(const assay_picture_t* p, const assay_map_of_t* m, bool errors, int side) {
  char text[ASSAY_PICTURE_SIDE * ASSAY_PICTURE_SIDE + 1];
  shrunk_t s = {.rows = p->rows, .columns = p->columns};
  memcpy(s.code, m->code, (size_t)(p->rows * p->columns));
  while (!m->plain && (s.rows > side || s.columns > side)) halve(&s, errors);
  const int n = m->plain ? 1 : s.rows * s.columns;
  for (int i = 0; i < n; i++) text[i] = ASSAY_PAGE_DIGITS[s.code[i]];
  text[n] = 0;
  json_t* j = json_pack("{s:i, s:i, s:s, s:o}", "rows", s.rows, "columns", s.columns, "cells", text,
                        "top", assay_json_number(m->top));
  return errors ? j : assay_json_put(j, "bottom", assay_json_number(m->bottom));
}

static json_t* picture(const assay_picture_t* p, int side) {
  json_t* shape = json_array();
  for (int k = 0; k < p->rank; k++)
    shape = assay_json_push(shape, json_integer((json_int_t)p->dims[k]));
  json_t* j = json_pack("{s:o, s:o, s:I, s:o, s:o, s:I}", "name", assay_json_text(p->value->name),
                        "shape", shape, "zero", (json_int_t)p->truth.zero, "positive",
                        counts(p->truth.positive), "negative", counts(p->truth.negative),
                        "truth_unfinite", (json_int_t)p->truth_unfinite);
  j = assay_json_put(j, "nan", json_integer((json_int_t)p->engine_nan));
  j = assay_json_put(j, "inf", json_integer((json_int_t)p->engine_inf));
  j = assay_json_put(j, "own", magnitudes(&p->own));
  j = assay_json_put(j, "total", magnitudes(&p->total));
  if (!p->rows) return j;
  json_t* maps =
      json_pack("{s:o, s:o, s:o}", "truth", map(p, &p->truth_map, false, side), "own",
                map(p, &p->own_map, true, side), "total", map(p, &p->total_map, true, side));
  return assay_json_put(j, "maps", maps);
}

static json_t* pictures_of(const assay_layer_account_t* a, const assay_pictures_t* pictures,
                           int side) {
  const assay_node_t* const* nodes;
  const size_t n = nodes_of(a, &nodes);
  json_t* list = json_array();
  for (size_t k = 0; k < n; k++)
    for (size_t o = 0; o < nodes[k]->n_outputs; o++) {
      const assay_picture_t* p = assay_pictures_get(pictures, nodes[k]->outputs[o]);
      if (p) list = assay_json_push(list, picture(p, side));
    }
  return list;
}

// ---- how large maps are -------------------------------------------------------------------------

// The layers that err most have theirs in full.
enum { FULL_MAPS = 120, HALF_MAPS = 500 };

typedef struct ranked {
  size_t layer;
  double error;
} ranked_t;

static double own_error(const assay_layer_account_t* a) {
  if (a->own.mismatched) return (double)INFINITY;
  return a->own.sum_ref2 > 0 ? a->own.sum_err2 / a->own.sum_ref2 : 0;
}

static int by_error(const void* x, const void* y) {
  const ranked_t *a = x, *b = y;
  if (a->error != b->error) return a->error > b->error ? -1 : 1;
  return a->layer < b->layer ? -1 : 1;
}

static bool gives_output(const assay_layer_account_t* a, const assay_model_t* m) {
  for (size_t o = 0; o < a->node->n_outputs; o++)
    if (a->node->outputs[o] && a->node->outputs[o]->is_output && a->node->graph == m->graph)
      return true;
  return false;
}

static assay_status_t choose_sides(const assay_check_t* c, int** out) {
  const size_t n = assay_account_layer_count(c->account);
  ranked_t* r = NULL;
  int* sides = NULL;
  ASSAY_TRY(assay_new_array(n, sizeof *r, &r));
  assay_status_t st = assay_new_array(n, sizeof *sides, &sides);
  if (st) return assay_free(r), st;
  for (size_t i = 0; i < n; i++) {
    const assay_layer_account_t* a = assay_account_layer(c->account, i);
    r[i] = (ranked_t){i, gives_output(a, model_of(c)) ? (double)INFINITY : own_error(a)};
  }
  qsort(r, n, sizeof *r, by_error);
  for (size_t i = 0; i < n; i++) {
    const int parts = i < FULL_MAPS ? 1 : i < HALF_MAPS ? 2 : 4;
    sides[r[i].layer] = ASSAY_PICTURE_SIDE / parts;
  }
  assay_free(r);
  *out = sides;
  return NULL;
}

// ---- the whole ----------------------------------------------------------------------------------

static json_t* graph_inputs(const assay_model_t* m) {
  json_t* list = json_array();
  for (size_t k = 0; k < m->graph->n_inputs; k++) {
    const assay_value_t* v = m->graph->inputs[k];
    list = assay_json_push(list,
                           json_pack("{s:o, s:o}", "name", assay_json_text(v->name), "type",
                                     assay_json_text(v->type ? ASSAY_VALTYPE_TEXT(v->type) : "")));
  }
  return list;
}

static json_t* input_files(const assay_report_names_t* n) {
  json_t* list = json_array();
  for (size_t i = 0; i < n->n_inputs; i++)
    list = assay_json_push(list, assay_json_text(n->inputs[i]));
  return list;
}

static json_t* formats(void) {
  json_t* all = json_object();
  for (int f = ASSAY_FORMAT_FP64; f < ASSAY_FORMAT_COUNT; f++) {
    const assay_format_info_t* info = assay_format_info((assay_format_t)f);
    if (!info->is_float) continue;
    all = assay_json_put(
        all, info->name,
        json_pack("{s:f, s:f, s:f, s:f}", "max", info->max, "min_normal", info->min_normal,
                  "min_subnormal", info->min_subnormal, "unit", info->unit_roundoff));
  }
  return all;
}

// json_object_set_new, with a missing object or item told as false.
static bool put(json_t* object, const char* key, json_t* take_item) {
  return !json_object_set_new(object, key, take_item);
}

static bool fill(const wiring_t* w, const assay_report_names_t* names,
                 const assay_pictures_t* pictures, const int* sides, json_t* j) {
  const assay_model_t* m = model_of(w->check);
  json_t *layers = json_object_get(j, "layers"), *outputs = json_object_get(j, "outputs");
  bool whole = true;
  for (size_t i = 0; i < json_array_size(layers); i++) {
    const assay_layer_account_t* a = assay_account_layer(w->check->account, i);
    json_t* layer = json_array_get(layers, i);
    whole &= put(layer, "from", sources(w, i));
    whole &= put(layer, "values", pictures_of(a, pictures, sides[i]));
    if (a->node->graph != m->graph) whole &= put(layer, "body", json_true());
  }
  for (size_t k = 0; k < json_array_size(outputs) && k < m->graph->n_outputs; k++) {
    const int maker = w->maker[m->graph->outputs[k]->id];
    whole &= put(json_array_get(outputs, k), "layer",
                 maker == NOBODY ? json_null() : json_integer(maker));
  }
  whole &= put(j, "inputs", graph_inputs(m));
  whole &= put(j, "input_files", input_files(names));
  whole &= put(j, "formats", formats());
  return whole;
}

assay_status_t assay_page_data(const assay_check_t* c, const assay_report_names_t* names,
                               const assay_pictures_t* pictures, json_t** out) {
  wiring_t w = {0};
  int* sides = NULL;
  json_t* j = NULL;
  assay_status_t st = wire(c, &w);
  if (!st) st = choose_sides(c, &sides);
  if (!st) st = assay_report_json(c, names, &j);
  if (!st && !fill(&w, names, pictures, sides, j)) st = assay_status_no_memory();
  assay_free(w.maker);
  assay_free(sides);
  if (st) return json_decref(j), st;
  *out = j;
  return NULL;
}
