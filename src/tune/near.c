// Assignments near one, cheaper than it, those with the least error by the forecast first: what is
// worth running where runs cost little.
#include "tune/near.h"

#include <string.h>

#include "base/alloc.h"

enum { FEW = 20, DEPTH = 3, PAIRS = 256 };  // units up to which three, two changes are made

typedef struct job {
  const assay_tune_problem_t* p;
  const assay_tune_near_options_t* o;
  assay_tune_near_t* out;
  assay_tune_state_t s;
} job_t;

// Into its place among the best, the last of which falls out.
static void keep(job_t* j, double worst) {
  assay_tune_near_t* out = j->out;
  const size_t units = j->p->n_units;
  size_t at = out->n;
  while (at > 0 && out->worst[at - 1] > worst) at--;
  if (at == j->o->max) return;
  if (out->n < j->o->max) out->n++;
  for (size_t i = out->n - 1; i > at; i--) {
    out->worst[i] = out->worst[i - 1];
    memcpy(&out->formats[i * units], &out->formats[(i - 1) * units], units);
  }
  out->worst[at] = worst;
  memcpy(&out->formats[at * units], j->s.format, units);
}

static void inspect(job_t* j) {
  const double worst = assay_tune_worst(j->p, &j->s);
  const assay_tune_near_t* out = j->out;
  if (!(j->s.time < j->o->below) || !(worst <= j->o->within)) return;
  if (out->n == j->o->max && worst >= out->worst[out->n - 1]) return;
  if (!j->o->seen || !j->o->seen(j->o->user, j->s.format)) keep(j, worst);
}

// All with up to `depth` more changes, of units from `first` on.
static void change(job_t* j, size_t first, int depth) {
  const assay_tune_problem_t* p = j->p;
  for (size_t u = first; u < p->n_units; u++) {
    const uint8_t was = j->s.format[u];
    for (size_t f = 0; f < p->n_formats; f++) {
      if (f == was || !assay_tune_allowed(p, u, f)) continue;
      assay_tune_state_set(p, &j->s, u, (uint8_t)f);
      inspect(j);
      if (depth > 1) change(j, u + 1, depth - 1);
    }
    assay_tune_state_set(p, &j->s, u, was);
  }
}

static size_t count_free(const assay_tune_problem_t* p) {
  size_t n = 0;
  for (size_t u = 0; u < p->n_units; u++) {
    size_t choices = 0;
    for (size_t f = 0; f < p->n_formats; f++) choices += assay_tune_allowed(p, u, f);
    n += choices > 1;
  }
  return n;
}

assay_status_t assay_tune_near(const assay_tune_problem_t* p, const uint8_t* from,
                               const assay_tune_near_options_t* options, assay_tune_near_t* out) {
  assay_tune_near_t near = {0};
  job_t j = {.p = p, .o = options, .out = &near};
  const size_t n = count_free(p);
  ASSAY_TRY(assay_tune_state_create(p, 0, &j.s));
  memcpy(j.s.format, from, p->n_units);
  assay_tune_state_sum(p, &j.s);
  assay_status_t st = assay_new_array(options->max, p->n_units, &near.formats);
  if (!st) st = assay_new_array(options->max, sizeof *near.worst, &near.worst);
  if (!st) change(&j, 0, n <= FEW ? DEPTH : n <= PAIRS ? DEPTH - 1 : 1);
  assay_tune_state_deinit(&j.s);
  if (st) return assay_tune_near_deinit(&near), st;
  *out = near;
  return NULL;
}

void assay_tune_near_deinit(assay_tune_near_t* n) {
  assay_free(n->formats);
  assay_free(n->worst);
  *n = (assay_tune_near_t){0};
}
