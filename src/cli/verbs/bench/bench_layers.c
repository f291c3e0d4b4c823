// Finds groups of layers that share names, and sums their times.
#include "cli/verbs/bench/bench_layers.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"

static int ascending(const void* a, const void* b) {
  const double x = *(const double*)a, y = *(const double*)b;
  return (x > y) - (x < y);
}

void bench_sort(double* x, size_t n) {
  if (n) qsort(x, n, sizeof *x, ascending);
}

void bench_layer_rows_deinit(bench_layer_rows_t* rows) {
  for (size_t i = 0; i < rows->n; i++)
    for (int k = 0; k < 2; k++) assay_str_deinit(&rows->at[i].names[k]);
  assay_free(rows->at);
  *rows = (bench_layer_rows_t){0};
}

// ---- what layers have in common -----------------------------------------------------------------

// A name that a layer is known by. Nodes and values have names of their own.
typedef struct name {
  const char* text;
  char kind;  // 'n' a node, 'v' a value
  size_t layer;
} name_t;

typedef struct names {
  name_t* at;
  size_t n, cap;
} names_t;

// Labels that were made up of an index say nothing of another model.
static assay_status_t add_name(names_t* names, const char* text, char kind, size_t layer) {
  if (!text || !*text) return NULL;
  ASSAY_TRY(assay_grow(&names->at, &names->cap, names->n + 1, sizeof *names->at));
  names->at[names->n++] = (name_t){text, kind, layer};
  return NULL;
}

static assay_status_t add_node(names_t* names, const assay_node_t* node, size_t layer) {
  ASSAY_TRY(add_name(names, node->name, 'n', layer));
  for (size_t i = 0; i < node->n_outputs; i++)
    if (node->outputs[i]) ASSAY_TRY(add_name(names, node->outputs[i]->name, 'v', layer));
  return NULL;
}

static assay_status_t add_plan(names_t* names, const assay_plan_t* plan, size_t first) {
  const assay_layers_t* layers = assay_plan_layers(plan);
  for (size_t i = 0; i < layers->n_layers; i++) {
    const assay_layer_t* l = &layers->layers[i];
    for (size_t k = 0; k < l->n_nodes; k++) {
      const assay_origins_t from = assay_plan_origins(plan, &l->nodes[k]);
      ASSAY_TRY(add_node(names, l->nodes[k], first + i));
      for (size_t j = 0; j < from.n; j++) ASSAY_TRY(add_node(names, from.nodes[j], first + i));
    }
  }
  return NULL;
}

static int by_name(const void* a, const void* b) {
  const name_t *x = a, *y = b;
  return x->kind != y->kind ? x->kind - y->kind : strcmp(x->text, y->text);
}

// The layer that stands for all those that are in one group with layer i.
static size_t find(size_t* group, size_t i) {
  while (group[i] != i) i = group[i] = group[group[i]];
  return i;
}

static assay_status_t make_groups(const bench_layer_times_t times[2], size_t n_first, size_t n,
                                  size_t* group) {
  names_t names = {0};
  for (size_t i = 0; i < n; i++) group[i] = i;
  assay_status_t st = add_plan(&names, times[0].plan, 0);
  if (!st) st = add_plan(&names, times[1].plan, n_first);
  if (!st && names.n) qsort(names.at, names.n, sizeof *names.at, by_name);
  for (size_t i = 1; !st && i < names.n; i++)
    if (by_name(&names.at[i - 1], &names.at[i]) == 0) {
      const size_t a = find(group, names.at[i - 1].layer), b = find(group, names.at[i].layer);
      group[a > b ? a : b] = a > b ? b : a;
    }
  assay_free(names.at);
  return st;
}

// ---- rows ---------------------------------------------------------------------------------------

static int longest_first(const void* a, const void* b) {
  const bench_layer_row_t *x = a, *y = b;
  const double p = fmax(x->milliseconds[0], x->milliseconds[1]);
  const double q = fmax(y->milliseconds[0], y->milliseconds[1]);
  return (p < q) - (p > q);
}

static assay_status_t add_layer(bench_layer_row_t* row, int side, const bench_layer_times_t* times,
                                size_t i) {
  const assay_layer_t* l = &assay_plan_layers(times->plan)->layers[i];
  assay_str_t* names = &row->names[side];
  row->milliseconds[side] += 1e3 * times->seconds[i] / (double)times->runs;
  assay_str_printf(names, "%s%s", row->n[side]++ ? " + " : "", l->name);
  return assay_str_status(names);
}

assay_status_t bench_layer_rows_make(const bench_layer_times_t times[2], bench_layer_rows_t* out) {
  const size_t n_first = assay_plan_layers(times[0].plan)->n_layers;
  const size_t n = n_first + assay_plan_layers(times[1].plan)->n_layers;
  size_t *group = NULL, *row_of = NULL;
  bench_layer_rows_t rows = {0};
  assay_status_t st = assay_new_array(n, sizeof *group, &group);
  if (!st) st = assay_new_array(n, sizeof *row_of, &row_of);
  if (!st) st = assay_new_array(n, sizeof *rows.at, &rows.at);
  if (!st) st = make_groups(times, n_first, n, group);
  for (size_t i = 0; !st && i < n; i++) {
    const size_t first = find(group, i);
    if (first == i) row_of[i] = rows.n++;
    const int side = i >= n_first;
    st = add_layer(&rows.at[row_of[first]], side, &times[side], side ? i - n_first : i);
  }
  assay_free(group);
  assay_free(row_of);
  if (st) return bench_layer_rows_deinit(&rows), st;
  if (rows.n) qsort(rows.at, rows.n, sizeof *rows.at, longest_first);
  *out = rows;
  return NULL;
}

// ---- printing -----------------------------------------------------------------------------------

static void print_time(const bench_layer_row_t* row, int side, FILE* out) {
  if (row->n[side])
    fprintf(out, "%10.4f  ", row->milliseconds[side]);
  else
    fprintf(out, "%10s  ", "-");
}

void bench_layer_rows_print(const bench_layer_rows_t* rows, FILE* out) {
  fprintf(out, "\n%10s  %10s  %6s  %s\n", "A ms", "B ms", "A / B", "layer");
  for (size_t i = 0; i < rows->n; i++) {
    const bench_layer_row_t* r = &rows->at[i];
    const char *a = assay_str_get(&r->names[0]), *b = assay_str_get(&r->names[1]);
    print_time(r, 0, out);
    print_time(r, 1, out);
    if (r->n[0] && r->n[1])
      fprintf(out, "%6.2f  ", r->milliseconds[0] / fmax(r->milliseconds[1], 1e-300));
    else
      fprintf(out, "%6s  ", "-");
    if (!r->n[0] || !r->n[1])
      fprintf(out, "%s (only %c)\n", r->n[0] ? a : b, r->n[0] ? 'A' : 'B');
    else if (strcmp(a, b) == 0)
      fprintf(out, "%s\n", a);
    else
      fprintf(out, "A: %s; B: %s\n", a, b);
  }
}

json_t* bench_layer_rows_json(const bench_layer_rows_t* rows) {
  json_t* list = json_array();
  for (size_t i = 0; i < rows->n; i++) {
    const bench_layer_row_t* r = &rows->at[i];
    json_t* o = json_object();
    if (r->n[0]) o = assay_json_put(o, "a", assay_json_str(&r->names[0]));
    if (r->n[0]) o = assay_json_put(o, "a_ms", assay_json_number(r->milliseconds[0]));
    if (r->n[1]) o = assay_json_put(o, "b", assay_json_str(&r->names[1]));
    if (r->n[1]) o = assay_json_put(o, "b_ms", assay_json_number(r->milliseconds[1]));
    if (r->n[0] && r->n[1])
      o = assay_json_put(o, "speed_of_b",
                         assay_json_number(r->milliseconds[0] / fmax(r->milliseconds[1], 1e-300)));
    list = assay_json_push(list, o);
  }
  return list;
}
