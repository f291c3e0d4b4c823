// Golden tensors: what the user knows of a model's values from elsewhere, and how far truth may lie
// from them.
#include "account/golden/golden.h"

#include <math.h>
#include <string.h>

#include "base/alloc.h"
#include "io/json.h"

void assay_golden_deinit(assay_golden_t* g) {
  for (size_t i = 0; i < g->n; i++) {
    assay_tensor_release(g->at[i].tensor);
    assay_free((char*)g->at[i].name);
  }
  assay_free(g->at);
  assay_str_deinit(&g->notes);
  assay_golden_origin_destroy(g->origin);
  *g = (assay_golden_t){0};
}

assay_golden_tensor_t* assay_golden_of(const assay_golden_t* g, const assay_value_t* value) {
  for (size_t i = 0; i < g->n; i++)
    if (g->at[i].value == value) return &g->at[i];
  return NULL;
}

// ---- names --------------------------------------------------------------------------------------

static const assay_value_t* value_of(const assay_model_t* m, const char* name) {
  const assay_value_t* v = assay_graph_find(m->graph, name);
  if (v || !strchr(name, '|')) return v;
  char slashes[1024];
  size_t n = strlen(name);
  if (n >= sizeof slashes) return NULL;
  for (size_t i = 0; i <= n; i++) slashes[i] = name[i] == '|' ? '/' : name[i];
  return assay_graph_find(m->graph, slashes);
}

assay_status_t assay_name_map_check(const assay_name_map_t* map, const assay_set_t* set,
                                    const assay_model_t* model) {
  for (size_t k = 0; k < map->n; k++) {
    const char *from = map->from[k], *to = map->to[k];
    const bool exchanged = !assay_set_find(set, from) && assay_set_find(set, to) &&
                           value_of(model, from) && !value_of(model, to);
    if (exchanged)
      return ASSAY_ERROR(
          ASSAY_INVALID_ARGUMENT,
          "the name map has '%s' on the left and '%s' on the right, but the file has "
          "'%s' and the model '%s': its left and right sides look exchanged; write "
          "{\"%s\": \"%s\"}",
          from, to, to, from, to, from);
  }
  return NULL;
}

const assay_value_t* assay_golden_value(const assay_model_t* model, const assay_name_map_t* map,
                                        const char* name) {
  for (size_t k = 0; map && k < map->n; k++)
    if (strcmp(map->from[k], name) == 0) return value_of(model, map->to[k]);
  return value_of(model, name);
}

// The values of the top graph whose names are near to one that is none of them.
static assay_nearest_t near_values(const assay_model_t* m, const char* name) {
  const assay_graph_t* g = m->graph;
  assay_nearest_t near = assay_values_near(g->inputs, g->n_inputs, name);
  for (size_t i = 0; i < g->n_nodes; i++)
    for (size_t k = 0; k < g->nodes[i]->n_outputs; k++)
      if (g->nodes[i]->outputs[k]) assay_nearest_offer(&near, g->nodes[i]->outputs[k]->name);
  return near;
}

assay_status_t assay_golden_match(const assay_set_t* set, const assay_model_t* model,
                                  const assay_name_map_t* map, assay_golden_t* out) {
  if (map) ASSAY_TRY(assay_name_map_check(map, set, model));
  for (size_t i = 0; i < set->n; i++) {
    const char* mapped = NULL;
    for (size_t k = 0; map && k < map->n; k++)
      if (strcmp(map->from[k], set->names[i]) == 0) mapped = map->to[k];
    const assay_value_t* v = value_of(model, mapped ? mapped : set->names[i]);
    if (mapped && !v)
      return ASSAY_ERROR(ASSAY_NOT_FOUND,
                         "the name map gives '%s' for '%s', which the model does not have%s",
                         mapped, set->names[i],
                         ASSAY_NEAREST_TEXT((assay_nearest_t[]){near_values(model, mapped)}));
    ASSAY_TRY(assay_grow(&out->at, &out->capacity, out->n + 1, sizeof *out->at));
    assay_golden_tensor_t* g = &out->at[out->n];
    *g = (assay_golden_tensor_t){.value = v,
                                 .match = mapped ? ASSAY_GOLDEN_BY_MAP : ASSAY_GOLDEN_BY_NAME};
    char* name = NULL;
    ASSAY_TRY(assay_new_array(strlen(set->names[i]) + 1, 1, &name));
    strcpy(name, set->names[i]);
    g->name = name;
    out->n++;
    ASSAY_TRY(assay_golden_as_read(set->tensors[i], &g->tensor));
  }
  return NULL;
}

static assay_status_t copy_text(const char* text, char** out) {
  ASSAY_TRY(assay_new_array(strlen(text) + 1, 1, out));
  strcpy(*out, text);
  return NULL;
}

void assay_name_map_deinit(assay_name_map_t* map) {
  for (size_t i = 0; i < map->n; i++) {
    assay_free(map->from[i]);
    assay_free(map->to[i]);
  }
  assay_free(map->from);
  assay_free(map->to);
  *map = (assay_name_map_t){0};
}

static assay_status_t fill_map(const char* path, json_t* json, assay_name_map_t* out) {
  const char* key;
  json_t* value;
  if (!json_is_object(json))
    return ASSAY_ERROR(ASSAY_CORRUPT,
                       "'%s': a name map is an object of names, such as {\"theirs\": \"ours\"}",
                       path);
  ASSAY_TRY(assay_new_array(json_object_size(json), sizeof *out->from, &out->from));
  ASSAY_TRY(assay_new_array(json_object_size(json), sizeof *out->to, &out->to));
  json_object_foreach(json, key, value) {
    if (!json_is_string(value))
      return ASSAY_ERROR(ASSAY_CORRUPT, "'%s': the entry of '%s' is not a name", path, key);
    const size_t i = out->n++;
    ASSAY_TRY(copy_text(key, &out->from[i]));
    ASSAY_TRY(copy_text(json_string_value(value), &out->to[i]));
  }
  return NULL;
}

assay_status_t assay_golden_outputs(const assay_golden_t* g, const assay_graph_t* graph,
                                    assay_samples_t* out) {
  bool any = false;
  for (size_t i = 0; i < graph->n_outputs; i++)
    any |= assay_golden_of(g, graph->outputs[i]) != NULL;
  if (!any) return NULL;
  assay_samples_t s = {.n = 1, .n_values = graph->n_outputs};
  ASSAY_TRY(assay_new_array(s.n_values, sizeof *s.at, &s.at));
  for (size_t i = 0; i < graph->n_outputs; i++) {
    const assay_golden_tensor_t* known = assay_golden_of(g, graph->outputs[i]);
    assay_status_t st = known ? assay_tensor_widen(known->tensor, &s.at[i]) : NULL;
    if (st) return assay_samples_deinit(&s), st;
  }
  *out = s;
  return NULL;
}

assay_status_t assay_name_map_read(const char* path, assay_name_map_t* out) {
  json_t* json = NULL;
  ASSAY_TRY(assay_json_read(path, &json));
  assay_status_t st = fill_map(path, json, out);
  json_decref(json);
  if (st) assay_name_map_deinit(out);
  return st;
}

// ---- differences -------------------------------------------------------------------------------

// Whether ref's shape is got's, but for fewer rows.
static bool fits(const assay_tensor_t* got, const assay_tensor_t* ref) {
  if (got->kind != ASSAY_KIND_TENSOR || ref->kind != ASSAY_KIND_TENSOR) return false;
  if (got->store != ref->store || got->rank != ref->rank) return false;
  for (int i = 0; i < got->rank; i++)
    if (i ? got->dims[i] != ref->dims[i] : got->dims[i] < ref->dims[i]) return false;
  return got->store <= ASSAY_STORE_I64;
}

assay_difference_t assay_difference(const assay_tensor_t* got, const assay_tensor_t* ref) {
  assay_difference_t d = {0};
  if (!got || !ref || !fits(got, ref)) return d;
  d.comparable = true;
  d.n = ref->size;
  double sum = 0, ref_sum = 0;
  for (int64_t i = 0; i < ref->size; i++) {
    if (got->store == ASSAY_STORE_I64) {
      d.mismatched += assay_i64(got)[i] != assay_i64(ref)[i];
      continue;
    }
    const double x = assay_f64(got)[i], y = assay_f64(ref)[i];
    if (!isfinite(x) || !isfinite(y)) {
      d.mismatched += !(x == y || (x != x && y != y));
      continue;
    }
    const double e = fabs(x - y);
    sum += e * e;
    ref_sum += y * y;
    if (e > d.max) d.max = e;
    if (fabs(y) > d.ref_max) d.ref_max = fabs(y);
  }
  if (d.n) {
    d.rms = sqrt(sum / (double)d.n);
    d.ref_rms = sqrt(ref_sum / (double)d.n);
  }
  return d;
}
