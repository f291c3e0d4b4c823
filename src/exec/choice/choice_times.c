// Times of a choice: looked up, measured, and which kernels of a library may have one.
#include "exec/choice/choice_times.h"

#include <math.h>

#include "base/cancel/cancel.h"
#include "base/shown.h"
#include "exec/choice/signature.h"

// ---- known --------------------------------------------------------------------------------------

// How timings call a way. Where bits matter a library's is known by the numerics whose bits it gave
// ('='), or did not give ('!'): where all compete, nobody looked.
static void print_name(const assay_choice_t* c, const assay_way_t* w, char mark, assay_str_t* out) {
  assay_str_printf_raw(out, "%s", w->name);
  if (!assay_ways_trust(c, w->tactic))
    assay_str_printf_raw(out, "%c%s", mark, w->numerics ? w->numerics : "");
}

static bool find(const assay_choice_t* c, const assay_way_t* w, char mark, const char* signature,
                 double* out_microseconds) {
  assay_str_t name = {0};
  print_name(c, w, mark, &name);
  const bool found = !name.failed && assay_timings_find(c->timings, assay_str_get(&name), signature,
                                                        out_microseconds);
  assay_str_deinit(&name);
  return found;
}

static assay_status_t add(const assay_choice_t* c, const assay_way_t* w, char mark,
                          const char* signature, double microseconds) {
  assay_str_t name = {0};
  print_name(c, w, mark, &name);
  assay_status_t st = assay_str_status(&name);
  if (!st) st = assay_timings_add(c->timings, assay_str_get(&name), signature, microseconds);
  assay_str_deinit(&name);
  return st;
}

bool assay_choice_knows(const assay_choice_t* c, const assay_way_t* w, const char* signature,
                        double* out_microseconds, bool* out_differs) {
  *out_differs = false;
  if (find(c, w, '=', signature, out_microseconds)) return true;
  *out_differs = !assay_ways_trust(c, w->tactic) && find(c, w, '!', signature, out_microseconds);
  if (*out_differs) *out_microseconds = (double)NAN;
  return *out_differs;
}

// ---- measured -----------------------------------------------------------------------------------

static assay_way_t way_of(const assay_kernel_t* k) {
  return (assay_way_t){.tactic = k->tactic, .name = k->name, .numerics = k->numerics};
}

// With what the layer behind loses by it.
static assay_status_t measure(const assay_choice_t* c, const assay_sized_layer_t* l,
                              assay_kernel_t* k, double* out_microseconds) {
  ASSAY_TRY(c->setting.time(c->setting.user, l, k, c->runs, out_microseconds));
  *out_microseconds += k->tactic->loses;
  return NULL;
}

static assay_status_t drop(assay_choice_t* c, const char* signature, assay_kernel_t** k,
                           assay_candidate_t* candidate) {
  const assay_way_t w = way_of(*k);
  candidate->differs = true;
  (*k)->destroy(*k);
  *k = NULL;
  c->measured = true;
  return add(c, &w, '!', signature, 0);
}

// Leaves out those of a library that do not give the bits of the first of ours.
static assay_status_t verify(assay_choice_t* c, const assay_sized_layer_t* l, const char* signature,
                             assay_kernel_t** kernels, assay_candidate_t* candidates, int n) {
  assay_kernel_t* compared[1 + ASSAY_MAX_CANDIDATES] = {NULL};
  bool same[1 + ASSAY_MAX_CANDIDATES] = {false};
  int at[1 + ASSAY_MAX_CANDIDATES], m = 1;
  for (int i = 0; i < n; i++) {
    if (assay_ways_trust(c, kernels[i]->tactic)) {
      if (!compared[0]) compared[0] = kernels[i];
    } else {
      compared[m] = kernels[i];
      at[m++] = i;
    }
  }
  if (m > 1 && compared[0] && c->setting.same_bits)
    ASSAY_TRY(c->setting.same_bits(c->setting.user, l, compared, m, same));
  for (int i = 1; i < m; i++)
    if (!same[i]) ASSAY_TRY(drop(c, signature, &kernels[at[i]], &candidates[at[i]]));
  return NULL;
}

assay_status_t assay_choice_time(assay_choice_t* c, const assay_sized_layer_t* l,
                                 const char* signature, assay_kernel_t** kernels,
                                 assay_candidate_t* candidates, int n, int* out_fastest) {
  int left = 0;
  *out_fastest = 0;
  ASSAY_TRY(verify(c, l, signature, kernels, candidates, n));
  for (int i = n - 1; i >= 0; i--)
    if (kernels[i]) left++, *out_fastest = i;
  for (int i = 0; left > 1 && i < n; i++) {
    if (!kernels[i]) continue;
    const assay_way_t w = way_of(kernels[i]);
    ASSAY_TRY(assay_cancel_check());
    ASSAY_TRY(measure(c, l, kernels[i], &candidates[i].microseconds));
    ASSAY_TRY(add(c, &w, '=', signature, candidates[i].microseconds));
    if (candidates[i].microseconds < candidates[*out_fastest].microseconds) *out_fastest = i;
    c->measured = true;
  }
  return NULL;
}

// ---- costs --------------------------------------------------------------------------------------

assay_status_t assay_choice_cost(assay_choice_t* c, const assay_sized_layer_t* l, assay_kernel_t* k,
                                 double* out_microseconds) {
  assay_str_t signature = {0};
  *out_microseconds = (double)NAN;
  assay_status_t st = assay_layer_signature(l, &signature);
  const char* text = assay_str_get(&signature);
  const assay_way_t way = way_of(k);
  bool differs;
  if (!st && !assay_choice_knows(c, &way, text, out_microseconds, &differs) && c->measure &&
      !c->rehearses) {
    st = measure(c, l, k, out_microseconds);
    // Of a library it would say that its bits are the layer's.
    if (!st && assay_ways_trust(c, k->tactic))
      st = assay_timings_add(c->timings, k->name, text, *out_microseconds);
    c->measured = true;
  }
  assay_str_deinit(&signature);
  return st;
}

assay_status_t assay_choice_move_cost(assay_choice_t* c, const assay_reformat_t* m,
                                      double* out_microseconds) {
  static const char name[] = "reorder";
  assay_str_t signature = {0};
  *out_microseconds = (double)NAN;
  assay_str_printf_raw(&signature, "%s[", assay_type_name(m->from.type));
  for (int d = 0; d < m->rank; d++)
    assay_str_printf_raw(&signature, "%s%lld", d ? "," : "", (long long)m->dims[d]);
  assay_str_printf_raw(&signature, "] %d to %d", (int)m->from.layout, (int)m->to.layout);
  assay_status_t st = assay_str_status(&signature);
  const char* text = assay_str_get(&signature);
  if (!st && !assay_timings_find(c->timings, name, text, out_microseconds) && c->measure &&
      !c->rehearses && c->setting.time_move) {
    st = c->setting.time_move(c->setting.user, m, out_microseconds);
    if (!st) st = assay_timings_add(c->timings, name, text, *out_microseconds);
    c->measured = true;
  }
  assay_str_deinit(&signature);
  return st;
}
