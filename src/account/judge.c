// Judging a layer: is what the engine did to the numbers rounding, or more than rounding explains?
#include "account/judge.h"

#include <math.h>
#include <string.h>

#include "base/alloc.h"
#include "formats/format.h"

enum { CHUNK = 1 << 15 };

// Half an ulp of s: of its binade, at least half the smallest subnormal.
typedef struct storage {
  assay_format_t format;
  double half_u;  // half an ulp of 1
  double half_tiny;
  double min_normal;
  double max;
  double end;   // limits below it are about the end of the arithmetic's range
  bool rounds;  // storing is a rounding of its own
  bool has_infinity, has_nan;
} storage_t;

static storage_t storage_of(assay_format_t format, assay_format_t compute) {
  const assay_format_info_t* f = assay_format_info(format);
  const double u = f->unit_roundoff;
  return (storage_t){.format = format,
                     .half_u = u,
                     .half_tiny = f->min_subnormal / 2,
                     .min_normal = f->min_normal,
                     .max = f->max,
                     .end = 0x1p10 * assay_format_info(compute)->min_normal,
                     .rounds = f->is_float && u > assay_bound_unit(compute),
                     .has_infinity = f->has_infinity,
                     .has_nan = f->has_nan};
}

static double half_ulp(const storage_t* s, double x) {
  uint64_t bits;
  double binade;
  memcpy(&bits, &x, sizeof bits);
  bits &= 0x7ff0000000000000U;
  memcpy(&binade, &bits, sizeof binade);
  return fmax(binade * s->half_u, s->half_tiny);
}

void assay_judgement_join(assay_judgement_t* to, const assay_judgement_t* more) {
  if (more->worst > to->worst) {
    to->worst = more->worst;
    to->worst_engine = more->worst_engine;
    to->worst_truth = more->worst_truth;
    to->worst_limit = more->worst_limit;
    to->worst_index = more->worst_index;
  }
  to->elements += more->elements;
  to->exact += more->exact;
  to->explained += more->explained;
  to->uncertain += more->uncertain;
  to->flipped += more->flipped;
  to->between += more->between;
  to->beyond += more->beyond;
  to->overflowed += more->overflowed;
  to->underflowed += more->underflowed;
  to->born_nan += more->born_nan;
  to->unbounded += more->unbounded;
  to->not_judged += more->not_judged;
  to->n_ratio += more->n_ratio;
  to->sum_ratio2 += more->sum_ratio2;
  to->sum_error2 += more->sum_error2;
  to->sum_limit2 += more->sum_limit2;
  to->sum_truth2 += more->sum_truth2;
  to->sum_error_truth += more->sum_error_truth;
  to->sum_whole2 += more->sum_whole2;
}

// ---- one element --------------------------------------------------------------------------------

typedef struct job {
  const assay_judge_input_t* in;
  const double *guaranteed, *probable;  // NULL: 0
  bool bounded;
  storage_t storage;
} job_t;

static void note_beyond(assay_judgement_t* j, double error, double limit, double s, double t,
                        int64_t i) {
  j->beyond++;
  if (!isfinite(limit)) limit = 0;
  const double ratio = limit > 0 ? error / limit : (double)INFINITY;
  if (ratio <= j->worst) return;
  j->worst = ratio;
  j->worst_engine = s;
  j->worst_truth = t;
  j->worst_limit = limit;
  j->worst_index = i;
}

// Whether truth is lost below a format's range where 0 is stored: it lies nearer to 0 than to the
// smallest number, or below the normal range where that is flushed. Where the arithmetic alone may
// be off by as much (g), it is a sum that cancels, unless g itself speaks of the end of the
// arithmetic's range. What vanishes is counted, but is not rounding: the sums over errors leave it
// out.
static bool vanishes(const job_t* job, double t, double g) {
  if (t == 0 || fabs(t) >= job->storage.min_normal) return false;
  return fabs(t) > g || g < job->storage.end;
}

static bool is_marked(const job_t* job, int64_t i, uint8_t mark) {
  return job->in->special && job->in->special[i] & mark;
}

// Whether the emulated layer was asked, and never has what the engine has.
static bool is_unseen(const job_t* job, int64_t i) {
  return job->in->rerun && !is_marked(job, i, ASSAY_SHOWN);
}

// NaN where truth is finite. What reaches the element may explain it, or the format (an infinity
// that begins inside the layer); where there are limits and neither does, it is in the wrong
// place.
static void nan_here(const job_t* job, assay_judgement_t* j, double s, double t, double g,
                     int64_t i) {
  const bool limited = job->bounded && g < (double)INFINITY;
  if (limited && is_unseen(job, i))
    note_beyond(j, (double)INFINITY, g, s, t, i);
  else if (is_marked(job, i, ASSAY_REACHED) && !job->in->moves)
    j->not_judged++;
  else
    j->born_nan++;
}

// The engine's is not finite, truth's is.
static void not_finite(const job_t* job, assay_judgement_t* j, double s, double t, double g,
                       int64_t i) {
  if (s != s) {
    nan_here(job, j, s, t, g, i);
    return;
  }
  // An infinity: rounding can take truth there, or it is wrong.
  const double reach = fabs(t) + g;
  const bool past =
      assay_format_round(job->storage.format, reach, ASSAY_OVERFLOW_IEEE) > job->storage.max ||
      reach > job->storage.max;
  const bool towards = (s > 0) == (t > 0) || g >= fabs(t);
  if (!job->bounded || !(g < (double)INFINITY) || (past && towards))
    j->overflowed++;
  else if (is_marked(job, i, ASSAY_REACHED) && !job->in->moves && !is_unseen(job, i))
    j->not_judged++;
  else if (job->in->rerun && !is_unseen(job, i))
    j->overflowed++;  // inside the layer: a sum that is divided afterwards, say
  else
    note_beyond(j, (double)INFINITY, g, s, t, i);
}

// Truth's is not finite: the same class of result is right. Another one is explained by what
// reaches the element, but not where nothing is computed, nor where the emulated layer never has
// it. Truth that is not finite of finite numbers (the root of a difference, say) says nothing.
static void not_finite_in_truth(const job_t* job, assay_judgement_t* j, double s, double t,
                                double g, int64_t i) {
  const bool kept = t != t ? job->storage.has_nan : job->storage.has_infinity;
  if ((s != s && t != t) || s == t)
    j->exact++;
  else if (kept && (job->in->moves || (is_marked(job, i, ASSAY_REACHED) && is_unseen(job, i))))
    note_beyond(j, (double)INFINITY, g, s, t, i);
  else
    j->not_judged++;
}

// once: t rounded to the storage format.
static void judge_element(const job_t* job, assay_judgement_t* j, double s, double t, double once,
                          int64_t i) {
  const double g = job->guaranteed ? job->guaranteed[i] : 0;
  const double p = job->probable ? job->probable[i] : g;
  if (!isfinite(t)) {
    not_finite_in_truth(job, j, s, t, g, i);
    return;
  }
  const double flips = job->in->flips ? job->in->flips[i] : 0;
  if (!isfinite(s)) {
    if (flips < (double)INFINITY)
      not_finite(job, j, s, t, g, i);
    else
      j->flipped++;
    return;
  }
  const double error = fabs(s - t);
  const bool limited = job->bounded && g < (double)INFINITY;
  if (s == 0 && vanishes(job, t, limited ? g : 0)) {
    j->underflowed++;
    return;
  }
  if (error == 0 || s == once) {
    j->exact++;
    j->sum_truth2 += t * t;
    j->sum_limit2 += isfinite(p) ? p * p : 0;
    j->n_ratio += p > 0;
    return;
  }
  // Truth itself is a float64 that stands for a real number.
  const double own = fabs(t) * 0x1p-52;
  double rest = error - own;
  if (job->storage.rounds) rest -= half_ulp(&job->storage, s);
  if (rest < 0) rest = 0;
  if (!limited) {
    j->unbounded++;
    return;
  }
  const double doubt = job->in->truth_error ? job->in->truth_error[i] : 0;
  const bool within = rest <= p;
  rest = rest > doubt ? rest - doubt : 0;
  if (!(rest <= g) && !(rest > flips)) {
    j->flipped++;
    return;
  }
  if (within)
    j->explained++;
  else if (rest <= p)
    j->uncertain++;
  else if (rest <= g)
    j->between++;
  else
    note_beyond(j, error, g, s, t, i);
  j->sum_error2 += rest * rest;
  j->sum_limit2 += p * p;
  j->sum_truth2 += t * t;
  j->sum_error_truth += (s - t) * t;
  j->sum_whole2 += (s - t) * (s - t);
  if (p > 0) {
    j->n_ratio++;
    j->sum_ratio2 += (rest / p) * (rest / p);
  }
}

// ---- an output ---------------------------------------------------------------------------------

static double element(const assay_tensor_t* t, int64_t i) {
  return t->store == ASSAY_STORE_F64 ? assay_f64(t)[i] : (double)assay_i64(t)[i];
}

static void judge_chunk(const job_t* job, int64_t first, int64_t n, assay_judgement_t* j) {
  enum { PART = 512 };
  const assay_tensor_t *e = job->in->engine, *t = job->in->truth;
  double truth[PART], once[PART];
  for (int64_t i = first; i < first + n; i += PART) {
    const int64_t some = first + n - i < PART ? first + n - i : PART;
    for (int64_t k = 0; k < some; k++) truth[k] = element(t, i + k);
    assay_format_round_n(job->storage.format, truth, once, (size_t)some, ASSAY_OVERFLOW_IEEE);
    for (int64_t k = 0; k < some; k++)
      judge_element(job, j, element(e, i + k), truth[k], once[k], i + k);
  }
  j->elements += n;
}

assay_status_t assay_judge(const assay_judge_input_t* in, assay_judgement_t* out) {
  job_t job = {.in = in, .bounded = in->limits != NULL};
  if (in->limits && in->limits->guaranteed) {
    job.guaranteed = assay_f64(in->limits->guaranteed);
    job.probable = in->limits->probable ? assay_f64(in->limits->probable) : NULL;
  }
  job.storage = storage_of(in->storage, in->compute);
  const int64_t size = in->truth->size, chunks = (size + CHUNK - 1) / CHUNK;
  assay_judgement_t* parts = NULL;
  ASSAY_TRY(assay_new_array((size_t)chunks, sizeof *parts, &parts));
#pragma omp parallel for schedule(static) if (chunks > 2)
  for (int64_t k = 0; k < chunks; k++) {
    const int64_t first = k * CHUNK;
    judge_chunk(&job, first, size - first < CHUNK ? size - first : CHUNK, &parts[k]);
  }
  for (int64_t k = 0; k < chunks; k++) assay_judgement_join(out, &parts[k]);
  assay_free(parts);
  return NULL;
}

double assay_judgement_ratio(const assay_judgement_t* j) {
  return j->n_ratio ? sqrt(j->sum_ratio2 / (double)j->n_ratio) : 0;
}

double assay_judgement_slope(const assay_judgement_t* j) {
  return j->sum_truth2 > 0 ? j->sum_error_truth / j->sum_truth2 : 0;
}

double assay_judgement_slope_sigmas(const assay_judgement_t* j) {
  const double variance = j->n_ratio ? j->sum_truth2 * j->sum_whole2 / (double)j->n_ratio : 0;
  return variance > 0 ? fabs(j->sum_error_truth) / sqrt(variance) : 0;
}
