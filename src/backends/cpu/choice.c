#include "backends/cpu/choice.h"

#include <math.h>
#include <string.h>
#include <time.h>

#include "backends/cpu/signature.h"
#include "backends/memory_plan.h"
#include "base/alloc.h"

enum { MIN_RUNS = 3, MAX_RUNS = 20 };
static const double SECONDS = 2e-3;  // of measuring, once the runs are enough

static double now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

// Whether a source is in the list of those that are allowed.
static bool is_allowed(const char* sources, const char* source) {
  const size_t n = strlen(source);
  for (const char* s = sources; s; s = strchr(s, ',')) {
    if (*s == ',') s++;
    if (strncmp(s, source, n) == 0 && (s[n] == ',' || !s[n])) return true;
  }
  return !sources;
}

// ---- timing ------------------------------------------------------------------------------------

typedef struct bench {
  const void* in[CPU_MAX_OPERANDS];
  void* out[CPU_MAX_OPERANDS];
  void* scratch;
  char* memory;
} bench_t;

static size_t aligned(size_t bytes) {
  return (bytes + ASSAY_BLOCK_ALIGNMENT - 1) / ASSAY_BLOCK_ALIGNMENT * ASSAY_BLOCK_ALIGNMENT;
}

// Zeros: valid as indices, and as fast as other numbers but for subnormal ones.
static assay_status_t prepare(const cpu_layer_t* l, const cpu_kernel_t* k, bench_t* b) {
  size_t bytes = ASSAY_BLOCK_ALIGNMENT + aligned(k->scratch);
  for (size_t i = 0; i < l->n_in; i++)
    if (k->in[i].type) bytes += aligned(cpu_operand_bytes(&l->in[i], k->in[i].type));
  for (size_t i = 0; i < l->n_out; i++)
    if (l->out[i].value) bytes += aligned(cpu_operand_bytes(&l->out[i], k->out[i].type));
  ASSAY_TRY(assay_new_array(bytes, 1, &b->memory));
  char* at = b->memory + (aligned((uintptr_t)b->memory) - (uintptr_t)b->memory);
  b->scratch = at;
  at += aligned(k->scratch);
  for (size_t i = 0; i < l->n_in; i++) {
    if (!k->in[i].type) continue;
    b->in[i] = at;
    at += aligned(cpu_operand_bytes(&l->in[i], k->in[i].type));
  }
  for (size_t i = 0; i < l->n_out; i++) {
    if (!l->out[i].value) continue;
    b->out[i] = at;
    at += aligned(cpu_operand_bytes(&l->out[i], k->out[i].type));
  }
  return NULL;
}

// The fastest of some runs, behind one that warms up.
static assay_status_t measure(const cpu_layer_t* l, cpu_kernel_t* k, double* out_microseconds) {
  bench_t b = {0};
  *out_microseconds = 0;
  if (!k->run) return NULL;
  ASSAY_TRY(prepare(l, k, &b));
  assay_status_t st = k->run(k, b.in, b.out, b.scratch);
  const double start = now();
  double fastest = (double)INFINITY;
  for (int i = 0; !st && i < MAX_RUNS && (i < MIN_RUNS || now() - start < SECONDS); i++) {
    const double t = now();
    st = k->run(k, b.in, b.out, b.scratch);
    fastest = fmin(fastest, now() - t);
  }
  assay_free(b.memory);
  *out_microseconds = round(1e8 * fastest) / 100;  // what the text keeps of it
  return st;
}

// ---- choosing ----------------------------------------------------------------------------------

static assay_status_t make_with(const cpu_tactic_t* tactic, const cpu_layer_t* l,
                                cpu_kernel_t** out) {
  *out = NULL;
  ASSAY_TRY(tactic->make(l, out));
  if (*out) (*out)->tactic = tactic;
  return NULL;
}

// What the timings know of the layer; only the fastest is made then.
static assay_status_t choose_known(const cpu_shared_t* shared, const cpu_layer_t* l,
                                   const char* signature, cpu_kernel_t** out, cpu_candidate_t* c,
                                   int* n) {
  int best = -1;
  for (size_t t = 0; t < cpu_n_tactics && *n < CPU_MAX_CANDIDATES; t++) {
    double us;
    if (!is_allowed(shared->sources, cpu_tactics[t]->source) ||
        !cpu_timings_find(shared->timings, cpu_tactics[t]->name, signature, &us))
      continue;
    c[*n] = (cpu_candidate_t){cpu_tactics[t], us};
    if (best < 0 || us < c[best].microseconds) best = *n;
    (*n)++;
  }
  return best < 0 ? NULL : make_with(c[best].tactic, l, out);
}

// Makes a kernel of every tactic that takes the layer, or of the first only.
static assay_status_t make_all(const cpu_shared_t* shared, const cpu_layer_t* l, bool first_only,
                               cpu_kernel_t** kernels, cpu_candidate_t* c, int* n) {
  const int most = first_only ? 1 : CPU_MAX_CANDIDATES;
  for (size_t t = 0; t < cpu_n_tactics && *n < most; t++) {
    if (!is_allowed(shared->sources, cpu_tactics[t]->source)) continue;
    ASSAY_TRY(make_with(cpu_tactics[t], l, &kernels[*n]));
    if (!kernels[*n]) continue;
    c[(*n)++] = (cpu_candidate_t){cpu_tactics[t], (double)NAN};
  }
  return NULL;
}

static assay_status_t time_all(cpu_shared_t* shared, const cpu_layer_t* l, const char* signature,
                               cpu_kernel_t* const* kernels, cpu_candidate_t* c, int n,
                               int* out_fastest) {
  *out_fastest = 0;
  for (int i = 0; i < n; i++) {
    ASSAY_TRY(measure(l, kernels[i], &c[i].microseconds));
    ASSAY_TRY(cpu_timings_add(shared->timings, c[i].tactic->name, signature, c[i].microseconds));
    if (c[i].microseconds < c[*out_fastest].microseconds) *out_fastest = i;
  }
  shared->measured = true;
  return NULL;
}

static assay_status_t choose(cpu_shared_t* shared, const cpu_layer_t* l, const char* signature,
                             cpu_kernel_t** out, cpu_candidate_t* c, int* n) {
  cpu_kernel_t* kernels[CPU_MAX_CANDIDATES] = {NULL};
  int fastest = 0;
  ASSAY_TRY(choose_known(shared, l, signature, out, c, n));
  if (*out) return NULL;
  *n = 0;
  assay_status_t st = make_all(shared, l, !shared->measure, kernels, c, n);
  if (!st && *n > 1) st = time_all(shared, l, signature, kernels, c, *n, &fastest);
  if (!st && *n) {
    *out = kernels[fastest];
    kernels[fastest] = NULL;
  }
  for (int i = 0; i < CPU_MAX_CANDIDATES; i++)
    if (kernels[i]) kernels[i]->destroy(kernels[i]);
  return st;
}

assay_status_t cpu_choose(cpu_shared_t* shared, const cpu_layer_t* l, cpu_kernel_t** out,
                          cpu_candidate_t* candidates, int* n_candidates) {
  assay_str_t signature = {0};
  *out = NULL;
  *n_candidates = 0;
  assay_status_t st = cpu_signature(l, &signature);
  if (!st) st = choose(shared, l, assay_str_get(&signature), out, candidates, n_candidates);
  assay_str_deinit(&signature);
  return st;
}
