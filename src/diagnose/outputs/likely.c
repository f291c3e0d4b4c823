// Which nodes a search that found nothing suspects most.
#include "diagnose/outputs/likely.h"

#include <stdlib.h>

#include "base/alloc.h"
#include "diagnose/outputs/region.h"

typedef struct place {
  size_t position;
  double merit;
} place_t;

// Of equal merit the later one, which is cheaper to try.
static int by_merit(const void* a, const void* b) {
  const place_t *x = a, *y = b;
  if (x->merit != y->merit) return x->merit > y->merit ? -1 : 1;
  return x->position > y->position ? -1 : x->position < y->position;
}

static bool reads(const assay_node_t* n, const assay_node_t* from) {
  for (size_t i = 0; i < n->n_inputs; i++)
    if (n->inputs[i] && n->inputs[i]->producer == from) return true;
  return false;
}

static void take(bool* out, size_t position, size_t* n) {
  if (!out[position]) ++*n;
  out[position] = true;
}

// What goes wrong in a node is often mended in the one before or after as well.
static void take_beside(const assay_search_t* s, const bool* possible, size_t position, bool* out,
                        size_t* n) {
  for (size_t i = 0; i < s->n_nodes; i++)
    if (possible[i] &&
        (reads(s->nodes[i], s->nodes[position]) || reads(s->nodes[position], s->nodes[i])))
      take(out, i, n);
}

assay_status_t assay_search_likely(const assay_trials_t* t, size_t most, bool* out, size_t* out_n) {
  enum { BESIDE = 3 };
  const assay_search_t* s = t->s;
  bool* possible = NULL;
  place_t* places = NULL;
  size_t n = 0;
  *out_n = 0;
  assay_status_t st = assay_new_array(s->n_nodes, sizeof *possible, &possible);
  if (!st) st = assay_new_array(s->n_nodes, sizeof *places, &places);
  if (!st) st = assay_search_possible(s, possible);
  for (size_t i = 0; !st && i < s->n_nodes; i++)
    if (possible[i]) places[n++] = (place_t){i, t->merit[i]};
  if (!st && n) qsort(places, n, sizeof *places, by_merit);
  for (size_t i = 0; !st && i < n && i < BESIDE && *out_n < most; i++)
    take_beside(s, possible, places[i].position, out, out_n);
  for (size_t i = 0; !st && i < n && *out_n < most; i++) take(out, places[i].position, out_n);
  assay_free(possible);
  assay_free(places);
  return st;
}
