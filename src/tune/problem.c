// Which unit runs in which format: what each choice costs in time, and does to the outputs.
#include "tune/problem.h"

#include <math.h>
#include <string.h>

#include "base/alloc.h"

// ---- making -------------------------------------------------------------------------------------

static assay_status_t reserve(assay_tune_problem_t* p) {
  const size_t choices = p->n_units * p->n_formats;
  ASSAY_TRY(assay_new_array(choices, sizeof *p->time, &p->time));
  ASSAY_TRY(assay_new_array(choices, p->n_outputs * sizeof *p->energy, &p->energy));
  ASSAY_TRY(assay_new_array(choices, p->n_outputs * sizeof *p->common, &p->common));
  ASSAY_TRY(assay_new_array(p->n_outputs, sizeof *p->floor, &p->floor));
  ASSAY_TRY(assay_new_array(p->n_outputs, sizeof *p->scale, &p->scale));
  ASSAY_TRY(assay_new_array(p->n_outputs, sizeof *p->budget, &p->budget));
  ASSAY_TRY(assay_new_array(p->n_outputs, sizeof *p->weight, &p->weight));
  for (size_t o = 0; o < p->n_outputs; o++) {
    p->scale[o] = p->weight[o] = 1;
    p->budget[o] = (double)INFINITY;
  }
  return NULL;
}

assay_status_t assay_tune_problem_create(size_t n_units, size_t n_formats, size_t n_outputs,
                                         assay_tune_problem_t* out) {
  assay_tune_problem_t p = {
      .n_units = n_units, .n_formats = n_formats, .n_outputs = n_outputs, .cast_price = 1};
  if (n_units > SIZE_MAX / ASSAY_TUNE_FORMATS) return assay_status_no_memory();
  assay_status_t st = reserve(&p);
  if (st) return assay_tune_problem_deinit(&p), st;
  *out = p;
  return NULL;
}

void assay_tune_problem_deinit(assay_tune_problem_t* p) {
  for (size_t v = 0; v < p->n_values; v++) assay_free(p->values[v].cast);
  for (size_t l = 0; l < p->n_links; l++) assay_free(p->links[l].energy);
  assay_free(p->values);
  assay_free(p->links);
  assay_free(p->time);
  assay_free(p->energy);
  assay_free(p->common);
  assay_free(p->floor);
  assay_free(p->scale);
  assay_free(p->budget);
  assay_free(p->weight);
  assay_free(p->touching);
  assay_free(p->first_touching);
  *p = (assay_tune_problem_t){0};
}

static assay_status_t add_link(assay_tune_problem_t* p, size_t value, size_t reader) {
  assay_tune_link_t link = {.reader = reader, .value = value};
  ASSAY_TRY(assay_grow(&p->links, &p->cap_links, p->n_links + 1, sizeof *p->links));
  ASSAY_TRY(assay_new_array(p->n_formats, p->n_outputs * sizeof *link.energy, &link.energy));
  p->links[p->n_links++] = link;
  p->values[value].n++;
  return NULL;
}

assay_status_t assay_tune_add_value(assay_tune_problem_t* p, size_t maker, size_t n_readers,
                                    const size_t* readers) {
  assay_tune_value_t v = {.maker = maker, .first = p->n_links};
  ASSAY_TRY(assay_grow(&p->values, &p->cap_values, p->n_values + 1, sizeof *p->values));
  ASSAY_TRY(assay_new_array(p->n_formats * p->n_formats, sizeof *v.cast, &v.cast));
  p->values[p->n_values++] = v;
  for (size_t r = 0; r < n_readers; r++) ASSAY_TRY(add_link(p, p->n_values - 1, readers[r]));
  return NULL;
}

// A value that its maker reads, too, stands there twice; it is the last one then.
static void touch(assay_tune_problem_t* p, size_t unit, size_t value, size_t* ends) {
  if (unit == ASSAY_TUNE_OUTSIDE) return;
  if (p->touching) p->touching[ends[unit]] = value;
  ends[unit]++;
}

static void touch_all(assay_tune_problem_t* p, size_t* ends) {
  for (size_t v = 0; v < p->n_values; v++) {
    const assay_tune_value_t* value = &p->values[v];
    touch(p, value->maker, v, ends);
    for (size_t l = value->first; l < value->first + value->n; l++)
      if (p->links[l].reader != value->maker) touch(p, p->links[l].reader, v, ends);
  }
}

assay_status_t assay_tune_index(assay_tune_problem_t* p) {
  size_t *ends = NULL, sum = 0;
  ASSAY_TRY(assay_new_array(p->n_units + 1, sizeof *ends, &ends));
  assay_status_t st =
      assay_new_array(p->n_units + 1, sizeof *p->first_touching, &p->first_touching);
  if (!st) touch_all(p, ends);
  for (size_t u = 0; !st && u <= p->n_units; u++) {
    p->first_touching[u] = sum;
    sum += ends[u];
    ends[u] = p->first_touching[u];
  }
  if (!st) st = assay_new_array(sum, sizeof *p->touching, &p->touching);
  if (!st) touch_all(p, ends);
  assay_free(ends);
  return st;
}

// ---- states -------------------------------------------------------------------------------------

bool assay_tune_allowed(const assay_tune_problem_t* p, size_t unit, size_t format) {
  return isfinite(p->time[unit * p->n_formats + format]);
}

static uint8_t format_or_highest(const assay_tune_problem_t* p, size_t unit, size_t format) {
  size_t f = p->n_formats - 1;
  if (assay_tune_allowed(p, unit, format)) return (uint8_t)format;
  while (f > 0 && !assay_tune_allowed(p, unit, f)) f--;
  return (uint8_t)f;
}

assay_status_t assay_tune_state_create(const assay_tune_problem_t* p, size_t format,
                                       assay_tune_state_t* out) {
  assay_tune_state_t s = {0};
  assay_status_t st = assay_new_array(p->n_units, sizeof *s.format, &s.format);
  if (!st) st = assay_new_array(p->n_outputs, sizeof *s.energy, &s.energy);
  if (!st) st = assay_new_array(p->n_outputs, sizeof *s.common, &s.common);
  if (st) return assay_tune_state_deinit(&s), st;
  for (size_t u = 0; u < p->n_units; u++) s.format[u] = format_or_highest(p, u, format);
  assay_tune_state_sum(p, &s);
  *out = s;
  return NULL;
}

void assay_tune_state_deinit(assay_tune_state_t* s) {
  assay_free(s->format);
  assay_free(s->energy);
  assay_free(s->common);
  *s = (assay_tune_state_t){0};
}

void assay_tune_state_copy(const assay_tune_problem_t* p, const assay_tune_state_t* from,
                           assay_tune_state_t* to) {
  memcpy(to->format, from->format, p->n_units * sizeof *to->format);
  memcpy(to->energy, from->energy, p->n_outputs * sizeof *to->energy);
  memcpy(to->common, from->common, p->n_outputs * sizeof *to->common);
  to->time = from->time;
}

static uint8_t format_of(const assay_tune_problem_t* p, const assay_tune_state_t* s, size_t unit) {
  return unit == ASSAY_TUNE_OUTSIDE ? (uint8_t)(p->n_formats - 1) : s->format[unit];
}

// Adds what a value costs, `sign` times: casts, one for each format; what readers round.
static void add_value(const assay_tune_problem_t* p, assay_tune_state_t* s, size_t value,
                      double sign) {
  const assay_tune_value_t* v = &p->values[value];
  const uint8_t from = format_of(p, s, v->maker);
  bool cast[ASSAY_TUNE_FORMATS] = {false};
  for (size_t l = v->first; l < v->first + v->n; l++) {
    const uint8_t to = format_of(p, s, p->links[l].reader);
    if (to == from) continue;
    if (!cast[to]) s->time += sign * p->cast_price * v->cast[from * p->n_formats + to];
    cast[to] = true;
    if (p->bits[to] >= p->bits[from]) continue;
    for (size_t o = 0; o < p->n_outputs; o++)
      s->energy[o] += sign * p->links[l].energy[to * p->n_outputs + o];
  }
}

static void add_unit(const assay_tune_problem_t* p, assay_tune_state_t* s, size_t unit,
                     double sign) {
  const size_t at = unit * p->n_formats + s->format[unit];
  s->time += sign * p->time[at];
  for (size_t o = 0; o < p->n_outputs; o++) {
    s->energy[o] += sign * p->energy[at * p->n_outputs + o];
    s->common[o] += sign * p->common[at * p->n_outputs + o];
  }
}

static void add_around(const assay_tune_problem_t* p, assay_tune_state_t* s, size_t unit,
                       double sign) {
  add_unit(p, s, unit, sign);
  for (size_t t = p->first_touching[unit]; t < p->first_touching[unit + 1]; t++)
    add_value(p, s, p->touching[t], sign);
}

void assay_tune_state_set(const assay_tune_problem_t* p, assay_tune_state_t* s, size_t unit,
                          uint8_t format) {
  if (s->format[unit] == format) return;
  add_around(p, s, unit, -1);
  s->format[unit] = format;
  add_around(p, s, unit, 1);
}

void assay_tune_state_sum(const assay_tune_problem_t* p, assay_tune_state_t* s) {
  s->time = 0;
  for (size_t o = 0; o < p->n_outputs; o++) s->energy[o] = s->common[o] = 0;
  for (size_t u = 0; u < p->n_units; u++) add_unit(p, s, u, 1);
  for (size_t v = 0; v < p->n_values; v++) add_value(p, s, v, 1);
}

// ---- errors -------------------------------------------------------------------------------------

double assay_tune_error(const assay_tune_problem_t* p, const assay_tune_state_t* s, size_t output) {
  const double sum = fmax(0, s->energy[output]) + s->common[output] * s->common[output];
  return p->floor[output] + p->scale[output] * sum;
}

double assay_tune_sum(const assay_tune_problem_t* p, const assay_tune_state_t* s) {
  double sum = 0;
  for (size_t o = 0; o < p->n_outputs; o++) sum += p->weight[o] * assay_tune_error(p, s, o);
  return sum;
}

double assay_tune_worst(const assay_tune_problem_t* p, const assay_tune_state_t* s) {
  double worst = 0;
  for (size_t o = 0; o < p->n_outputs; o++)
    worst = fmax(worst, p->weight[o] * assay_tune_error(p, s, o));
  return worst;
}

double assay_tune_excess(const assay_tune_problem_t* p, const assay_tune_state_t* s) {
  double sum = 0;
  for (size_t o = 0; o < p->n_outputs; o++) {
    const double e = assay_tune_error(p, s, o), max = p->budget[o];
    if (e > max) sum += fmin(e / fmax(max, 1e-300) - 1, 1e100);
  }
  return sum;
}
