// Types of a model's values, and what their numbers are, where viewers of ONNX files show them.
#include <math.h>
#include <string.h>

#include "base/alloc.h"
#include "edit/types.h"
#include "report/annotate.h"

// What is known of values, by their names; of a name that several graphs use, nothing.
typedef struct known {
  const assay_value_t** typed;  // of the model as it was prepared
  const assay_picture_t** drawn;
  assay_map_t types, pictures;  // name -> place in these; AMBIGUOUS
} known_t;

enum { LINE = 160 };
static const uint64_t AMBIGUOUS = UINT64_MAX;

static void known_deinit(known_t* k) {
  assay_free(k->typed);
  assay_free(k->drawn);
  assay_map_deinit(&k->types);
  assay_map_deinit(&k->pictures);
}

static assay_status_t put(assay_map_t* map, const char* name, uint64_t at) {
  return assay_map_put(map, name, assay_map_get(map, name, NULL) ? AMBIGUOUS : at, NULL);
}

static assay_status_t note_types(const assay_model_t* m, known_t* k) {
  size_t n = 0;
  ASSAY_TRY(assay_new_array((size_t)m->n_values, sizeof *k->typed, &k->typed));
  for (size_t g = 0; g < m->n_graphs; g++)
    for (size_t i = 0; i < m->graphs[g]->n_nodes; i++) {
      const assay_node_t* node = m->graphs[g]->nodes[i];
      for (size_t o = 0; o < node->n_outputs; o++) {
        if (!node->outputs[o] || !node->outputs[o]->type) continue;
        k->typed[n] = node->outputs[o];
        ASSAY_TRY(put(&k->types, node->outputs[o]->name, n++));
      }
    }
  return NULL;
}

static assay_status_t note_pictures(const assay_pictures_t* p, known_t* k) {
  if (!p || !p->n) return NULL;
  ASSAY_TRY(assay_new_array(p->n, sizeof *k->drawn, &k->drawn));
  for (size_t i = 0; i < p->n; i++) {
    if (!p->of_value[i]) continue;
    k->drawn[i] = p->of_value[i];
    ASSAY_TRY(put(&k->pictures, p->of_value[i]->value->name, i));
  }
  return NULL;
}

// ---- of one value -------------------------------------------------------------------------------

static bool is_ours(const char* line) {
  return strstr(line, ", range [") &&
         (strncmp(line, "max abs ", 8) == 0 || strncmp(line, "not finite in ", 14) == 0);
}

// "max abs 1.2e-3, snr 48 dB, range [-3.1, 70123]": the error, and truth.
static void report(const assay_picture_t* p, char line[LINE]) {
  const assay_error_sum_t* e = &p->error;
  const double snr = assay_error_sum_snr_db(e);
  int n = 0;
  line[0] = '\0';
  if (!e->n || p->low > p->high) return;
  if (e->mismatched)
    n = snprintf(line, LINE, "not finite in %lld of %lld elements", (long long)e->mismatched,
                 (long long)e->n);
  else
    n = snprintf(line, LINE, "max abs %.2g", e->max_abs);
  if (!e->mismatched && isfinite(snr))
    n += snprintf(line + n, (size_t)(LINE - n), ", snr %.0f dB", snr);
  snprintf(line + n, (size_t)(LINE - n), ", range [%.5g, %.5g]", p->low, p->high);
}

// Whether it is to be listed: of types that tell something. `type` may be NULL.
static assay_status_t declare(assay_model_t* m, assay_value_t* v, const assay_valtype_t* type,
                              bool* out_list) {
  *out_list = false;
  if (!v->declared && type && (type->kind != ASSAY_KIND_TENSOR || type->elem))
    ASSAY_TRY(assay_types_copy(m, type, &v->declared));
  *out_list = v->declared && v->producer && !v->is_output && !v->in_value_info;
  return NULL;
}

static assay_status_t annotate(const known_t* k, assay_model_t* m, assay_value_t* v,
                               bool* out_list) {
  uint64_t at;
  char line[LINE] = "";
  const bool typed = assay_map_get(&k->types, v->name, &at) && at != AMBIGUOUS;
  ASSAY_TRY(declare(m, v, typed ? k->typed[at]->type : NULL, out_list));
  if (assay_map_get(&k->pictures, v->name, &at) && at != AMBIGUOUS) report(k->drawn[at], line);
  return assay_annotate_doc(m->arena, v->doc, line, is_ours, &v->doc);
}

// ---- of a graph ---------------------------------------------------------------------------------

// Bodies of functions belong to no graph of the model's own; names there are not those of runs.
static bool is_of_main(const assay_model_t* m, const assay_graph_t* g) {
  while (g->outer) g = g->outer;
  return g == m->graph;
}

static assay_status_t annotate_graph(const known_t* k, assay_model_t* m, assay_graph_t* g) {
  size_t capacity = g->n_value_info, n = g->n_value_info;
  assay_value_t** list = NULL;
  for (size_t i = 0; i < g->n_nodes; i++) capacity += g->nodes[i]->n_outputs;
  ASSAY_TRY(assay_arena_new(m->arena, capacity, sizeof *list, &list));
  if (n) memcpy(list, g->value_info, n * sizeof *list);
  for (size_t i = 0; i < g->n_nodes; i++)
    for (size_t o = 0; o < g->nodes[i]->n_outputs; o++) {
      assay_value_t* v = g->nodes[i]->outputs[o];
      bool listed;
      if (!v) continue;
      ASSAY_TRY(annotate(k, m, v, &listed));
      if (!listed) continue;
      v->in_value_info = true;
      list[n++] = v;
    }
  g->value_info = list;
  g->n_value_info = n;
  return NULL;
}

assay_status_t assay_annotate_values(const assay_check_t* check, const assay_pictures_t* pictures,
                                     assay_model_t* model) {
  known_t k = {0};
  assay_status_t st = note_types(check->model, &k);
  if (!st) st = note_pictures(pictures, &k);
  for (size_t g = 0; !st && g < model->n_graphs; g++)
    if (is_of_main(model, model->graphs[g])) st = annotate_graph(&k, model, model->graphs[g]);
  known_deinit(&k);
  return st;
}

assay_status_t assay_annotate_doc(assay_arena_t* arena, const char* doc, const char* line,
                                  bool (*is_line)(const char* line), const char** out) {
  const char* last = doc ? strrchr(doc, '\n') : NULL;
  const char* start = last ? last + 1 : doc ? doc : "";
  size_t kept = doc ? strlen(doc) : 0;
  if (is_line(start)) kept = last ? (size_t)(last - doc) : 0;
  if (!*line && doc && kept == strlen(doc)) return *out = doc, NULL;
  return assay_arena_printf(arena, out, "%.*s%s%s", (int)kept, doc ? doc : "",
                            kept && *line ? "\n" : "", line);
}
