// Whether golden's values look like those of an arithmetic.
#include <math.h>

#include "base/functions.h"
#include "diagnose/kinds/arithmetic.h"

assay_status_t assay_golden_arithmetic_probe_add(assay_golden_arithmetic_probe_t* p,
                                                 const assay_value_t* v,
                                                 const assay_tensor_t* truth,
                                                 const assay_tensor_t* golden,
                                                 assay_tensor_t* emulated) {
  assay_tensor_t* wide = NULL;
  if (!emulated || v->id < 0 || (size_t)v->id >= p->n || !assay_tensor_alike(truth, golden) ||
      truth->kind != ASSAY_KIND_TENSOR || truth->store != ASSAY_STORE_F64)
    return NULL;
  ASSAY_TRY(assay_tensor_widen(emulated, &wide));
  assay_golden_arithmetic_sums_t* s = &p->at[v->id];
  s->value = v;
  for (int64_t i = 0; assay_tensor_alike(truth, wide) && i < truth->size; i++) {
    const double t = assay_f64(truth)[i], g = assay_f64(golden)[i];
    const double d = g - t, e = assay_f64(wide)[i] - t;
    if (!isfinite(d) || !isfinite(e)) continue;
    s->de += d * e;
    s->dd += d * d;
    s->ee += e * e;
    s->rr += (d - e) * (d - e);
    s->ref += g * g;
    s->n++;
  }
  assay_tensor_release(wide);
  return NULL;
}

// Squares: golden is so much nearer to the emulation than to truth. Numbers that know nothing of
// each other are so by a chance of 1 / NEARER to the power of half their number.
static const double NEARER = 16;
enum { LEAST = 8 };

// Roundings of float32, and sums of a few of them, are no evidence: parts of golden's square.
static const double NOISE = 0x1p-42;

// Arithmetics that miss truth by little more are shown by what is just above one rounding: golden's
// own roundings then keep errors from being alike, which is asked of them anyway.
static bool is_shown(const assay_golden_arithmetic_probe_t* p,
                     const assay_golden_arithmetic_sums_t* s) {
  static const double FAINT = 0x1p-48;
  return s->ee > 16 * (p->faint ? FAINT : NOISE) * s->ref;
}

static bool is_same(const assay_golden_arithmetic_sums_t* s) { return NEARER * s->rr < s->dd; }

// Through many layers the roundings of activations become others than the emulation's, as a bit in
// the last place decides which: those of weights stay. Then errors are alike in part, and about as
// large: LIKE is their least correlation, SIZE (squared) what they may differ in size by.
static const double LIKE = 0.5, SIZE = 6;

static double correlation_of(const assay_golden_arithmetic_sums_t* s) {
  return s->dd > 0 && s->ee > 0 ? s->de / sqrt(s->dd * s->ee) : 0;
}

// Where an engine rounds what two nodes give together once, a product with its bias, errors are
// alike in part, too. That of n numbers by chance is 1 / sqrt(n): BY_CHANCE times that is none.
static bool is_like(const assay_golden_arithmetic_sums_t* s) {
  static const double BY_CHANCE = 4;
  return s->dd <= SIZE * s->ee && s->ee <= SIZE * s->dd &&
         correlation_of(s) >= fmax(LIKE, BY_CHANCE / sqrt(s->n));
}

typedef struct counts {
  double same, like, against, other;
} counts_t;

static counts_t count(const assay_golden_arithmetic_probe_t* p) {
  counts_t c = {0, 0, 0, 0};
  for (size_t i = 0; i < p->n; i++) {
    const assay_golden_arithmetic_sums_t* s = &p->at[i];
    if (!s->value || s->n < LEAST) continue;
    if (!is_shown(p, s))
      c.other += s->dd > 1e3 * NOISE * s->ref;
    else if (is_same(s))
      c.same++;
    else if (NEARER * s->dd < s->ee)
      c.against++;
    else if (is_like(s))
      c.like++;
    else
      c.other++;
  }
  return c;
}

// Inner values: each product by itself, from golden's own operands.
static double judge_inner(const assay_golden_arithmetic_probe_t* p) {
  static const double MIXED = 3;
  const counts_t c = count(p);
  // Faults of the export may be among them, and products in float32: cuDNN has kernels of either
  // kind, and takes those of TF32 for large convolutions only. That one of several products alone
  // looks so says nothing of the network.
  if (c.against > MIXED * (c.same + c.like) || c.other > c.same + c.like) return 0;
  const bool several = c.same >= 2 || (c.same + c.like >= 3 && c.against < 1);
  return several || (c.same > 0 && c.against + c.other < 1)
             ? c.same + 0.5 * c.like - c.other - c.against
             : 0;
}

bool assay_golden_arithmetic_is_whole(const assay_golden_arithmetic_probe_t* p) {
  const counts_t c = count(p);
  return c.same >= 2 && c.like + c.against + c.other < 1;
}

double assay_golden_arithmetic_trace(const assay_golden_arithmetic_probe_t* p) {
  double most = 0;
  for (size_t i = 0; i < p->n; i++)
    if (p->at[i].value && p->at[i].n >= LEAST) most = fmax(most, correlation_of(&p->at[i]));
  return most;
}

// All values together, each in units of its own error; false: one shows what the emulation has not.
static bool add_up(const assay_golden_arithmetic_probe_t* p, assay_golden_arithmetic_sums_t* all) {
  bool each = true;
  *all = (assay_golden_arithmetic_sums_t){.ref = 0};
  for (size_t i = 0; i < p->n; i++) {
    const assay_golden_arithmetic_sums_t* s = &p->at[i];
    if (!s->value || !(s->n > 0)) continue;
    if (!is_shown(p, s)) {
      each = each && s->dd <= 1e3 * NOISE * s->ref;
      continue;
    }
    const double unit = s->n / s->ee;
    all->de += unit * s->de;
    all->dd += unit * s->dd;
    all->ee += unit * s->ee;
    all->n += s->n;
    each = each && s->dd <= SIZE * s->ee && s->ee <= 4 * SIZE * s->dd;
  }
  return each;
}

double assay_golden_arithmetic_likeness(const assay_golden_arithmetic_probe_t* p,
                                        bool outputs_only) {
  if (outputs_only) return assay_golden_arithmetic_correlation(p);
  const counts_t c = count(p);
  return c.same + 0.5 * c.like;
}

double assay_golden_arithmetic_correlation(const assay_golden_arithmetic_probe_t* p) {
  assay_golden_arithmetic_sums_t all;
  add_up(p, &all);
  return correlation_of(&all);
}

double assay_golden_arithmetic_size(const assay_golden_arithmetic_probe_t* p) {
  assay_golden_arithmetic_sums_t all;
  add_up(p, &all);
  return all.dd > 0 && all.ee > 0 ? fabs(assay_log(all.dd / all.ee)) : assay_log(SIZE);
}

// Outputs have many numbers, and errors that go different ways about few: then any two errors are
// alike. In n dimensions two vectors have a correlation of at least c by a chance of about
// (1 - c^2)^((n - 1) / 2), and a mean square of 1 / n. That they are of the same size as well is
// another chance: sizes of errors are of all magnitudes, those that are asked about within SIZE;
// nearer to each other than their directions are, says no more.
// Source: distribution of the sample correlation of independent normal vectors (R. A. Fisher,
// 1915).
bool assay_golden_arithmetic_is_sure(double correlation, double size, double by_chance) {
  static const double CHANCE = 1e-7;  // of each arithmetic that is tried
  const double rest = fmax(1 - correlation * correlation, 0), n = 1 / fmax(by_chance, 1e-3);
  const double same_size = fmin(1, fmax(size, sqrt(rest)) / assay_log(SIZE));
  // Errors that go less than two ways show nothing by going one of them.
  const double alike = n < 2 ? 1 : rest > 0 ? assay_exp((n - 1) * assay_log(rest)) : 0;
  return same_size * same_size * alike <= CHANCE * CHANCE;  // chances' squares
}

static const double NEARLY = 0.9999;
enum { FEWEST = 3 };

static double judge_outputs(const assay_golden_arithmetic_probe_t* p) {
  assay_golden_arithmetic_sums_t all;
  const bool each = add_up(p, &all);
  const double c = correlation_of(&all);
  // A few numbers tell where they are as emulated to most of their digits: draws of others say how
  // likely that is by chance (assay_golden_arithmetic_is_sure).
  if (!each || all.n < (c >= NEARLY ? FEWEST : LEAST)) return 0;
  const bool alike = c >= LIKE && all.dd <= SIZE * all.ee && all.ee <= SIZE * all.dd;
  return alike ? c : 0;
}

double assay_golden_arithmetic_judge(const assay_golden_arithmetic_probe_t* p, bool outputs_only) {
  return outputs_only ? judge_outputs(p) : judge_inner(p);
}
