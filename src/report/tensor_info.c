// Statistics of saved tensors, by the names of the values that they are of: what is shown beside a
// model's values.
#include "report/tensor_info.h"

#include <string.h>

#include "compare/numeric_text.h"
#include "data/tensor_files.h"

void assay_tensor_info_deinit(assay_tensor_info_t* info) {
  assay_map_deinit(&info->by_name);
  assay_arena_destroy(info->arena);
  *info = (assay_tensor_info_t){0};
}

assay_tensor_stats_t* assay_tensor_info_find(const assay_tensor_info_t* info, const char* name) {
  uint64_t at;
  return info && assay_map_get(&info->by_name, name, &at) ? &info->items[at] : NULL;
}

// Tensors that are not numbers have a type and a shape only.
static assay_status_t measure(assay_arena_t* arena, assay_tensor_t* t, assay_tensor_stats_t* s) {
  assay_numeric_t a = {0};
  assay_str_t text = {0};
  s->type = t->type;
  s->rank = t->rank;
  memcpy(s->dims, t->dims, (size_t)t->rank * sizeof *s->dims);
  assay_status_t st = assay_numeric_from(t, &a);
  if (st && assay_status_code(st) == ASSAY_UNSUPPORTED) {
    assay_status_free(st);
    s->text = "";
    return NULL;
  }
  if (!st) st = assay_numeric_stats(&a, &s->numbers);
  if (!st) st = assay_put_stats(&a, &s->numbers, &text);
  if (!st) st = assay_str_status(&text);
  if (!st) st = assay_arena_strdup(arena, assay_str_get(&text), &s->text);
  assay_str_deinit(&text);
  assay_numeric_deinit(&a);
  return st;
}

static assay_status_t take_set(const assay_set_t* set, assay_tensor_info_t* out) {
  ASSAY_TRY(assay_arena_create(&out->arena));
  ASSAY_TRY(assay_arena_new(out->arena, set->n, sizeof *out->items, &out->items));
  for (size_t i = 0; i < set->n; i++) {
    assay_tensor_stats_t* s = &out->items[i];
    ASSAY_TRY(assay_arena_strdup(out->arena, set->names[i], &s->name));
    ASSAY_TRY(assay_status_note(measure(out->arena, set->tensors[i], s), "'%s'", s->name));
    ASSAY_TRY(assay_map_put(&out->by_name, s->name, out->n++, NULL));
  }
  return NULL;
}

assay_status_t assay_tensor_info_read(const char* path, assay_tensor_info_t* out) {
  const assay_tensor_request_t request = {.path = path, .outputs = true};
  assay_run_results_t r = {0};
  assay_tensor_info_t made = {0};
  ASSAY_TRY(assay_tensor_file_read_all(&request, &r));
  const assay_set_t* first = NULL;
  for (size_t i = 0; i < r.n; i++) {
    if (!first && r.runners[i].saved.n) first = &r.runners[i].saved.runs[0];
    made.n_runs += r.runners[i].saved.n;
  }
  assay_status_t st = first && first->n
                          ? take_set(first, &made)
                          : ASSAY_ERROR(ASSAY_NOT_FOUND, "'%s' holds no tensors", path);
  assay_run_results_deinit(&r);
  if (st) return assay_tensor_info_deinit(&made), st;
  *out = made;
  return NULL;
}
