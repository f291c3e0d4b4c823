// Which axis of each input is the batch.
#include "debug/batch_axis.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

static const assay_valtype_t* type_of(const assay_value_t* v) {
  const assay_valtype_t* t = v->type ? v->type : v->declared;
  return !v->constant && t && t->kind == ASSAY_KIND_TENSOR && t->has_shape ? t : NULL;
}

static bool is_open(const assay_dim_t* d) {
  int64_t fixed;
  return !assay_dim_value(d, &fixed);
}

// The open size that a test takes, of all inputs, the first axes first.
static const assay_dim_t* find_open(const assay_graph_t* g, const char* like,
                                    bool (*takes)(const char* name, const char* like)) {
  for (int axis = 0; axis < ASSAY_MAX_RANK; axis++)
    for (size_t i = 0; i < g->n_inputs; i++) {
      const assay_valtype_t* t = type_of(g->inputs[i]);
      if (!t || axis >= t->rank || !is_open(t->dims[axis])) continue;
      const char* name = assay_dim_name(t->dims[axis]);
      if (name && takes(name, like)) return t->dims[axis];
    }
  return NULL;
}

static bool is_named(const char* name, const char* like) { return strcmp(name, like) == 0; }
static bool is_like(const char* name, const char* like) {
  for (; *name; name++)
    if (strncasecmp(name, like, strlen(like)) == 0) return true;
  return false;
}
static bool is_any(const char* name, const char* like) { return (void)name, (void)like, true; }

static bool any_open(const assay_graph_t* g, int axis) {
  for (size_t i = 0; i < g->n_inputs; i++) {
    const assay_valtype_t* t = type_of(g->inputs[i]);
    if (t && axis < t->rank && is_open(t->dims[axis])) return true;
  }
  return false;
}

static assay_status_t find_asked(const assay_graph_t* g, const char* asked,
                                 assay_batch_axis_t* out) {
  char* end = NULL;
  const long place = strtol(asked, &end, 10);
  if (!*asked || *end) {
    out->open = find_open(g, asked, is_named);
    if (out->open) return NULL;
    return ASSAY_ERROR(ASSAY_INVALID_ARGUMENT,
                       "--axis '%s': no input has an open size of this name; give a number, or "
                       "the name of one",
                       asked);
  }
  for (size_t i = 0; i < g->n_inputs; i++) {
    const assay_valtype_t* t = type_of(g->inputs[i]);
    if (!t || place < 0 || place >= t->rank) continue;
    out->place = (int)place;
    return NULL;
  }
  return ASSAY_ERROR(ASSAY_INVALID_ARGUMENT, "--axis %s: no input has so many axes, from 0 on",
                     asked);
}

assay_status_t assay_batch_axis_find(const assay_model_t* m, const char* asked,
                                     assay_batch_axis_t* out) {
  assay_batch_axis_t a = {0};
  if (asked)
    ASSAY_TRY(find_asked(m->graph, asked, &a));
  else if (!(a.open = find_open(m->graph, "batch", is_like)) && !any_open(m->graph, 0))
    a.open = find_open(m->graph, "", is_any);
  // Along the first axis, sizes of other names are batches, too.
  bool first = a.open && !asked;
  for (size_t i = m->graph->n_inputs; a.open && i-- > 0;) {
    const int at = assay_batch_axis_of(&a, m->graph->inputs[i], 0);
    first &= at <= 0;
    if (at >= 0) a.place = at;
  }
  if (first) a = (assay_batch_axis_t){0};
  *out = a;
  return NULL;
}

int assay_batch_axis_of(const assay_batch_axis_t* a, const assay_value_t* input, int64_t batch) {
  const assay_valtype_t* t = type_of(input);
  int64_t fixed;
  for (int axis = 0; t && a->open && axis < t->rank; axis++)
    if (assay_dim_same(t->dims[axis], a->open)) return axis;
  if (!t || a->open || a->place >= t->rank) return -1;
  const bool known = assay_dim_value(t->dims[a->place], &fixed);
  return !known || (batch && fixed == batch) ? a->place : -1;
}
