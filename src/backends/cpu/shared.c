// What contexts of a plan share on the CPU, and how its kernels are timed.
#include "backends/cpu/shared.h"

#include <math.h>
#include <omp.h>

#include "backends/cpu/data/move.h"
#include "backends/cpu/tactic.h"
#include "base/alloc.h"
#include "base/clock.h"
#include "exec/segment/memory_plan.h"

enum { MIN_RUNS = 3, MAX_RUNS = 20 };
static const double SECONDS = 2e-3;  // of measuring, once the runs are enough

typedef struct bench {
  const void* in[ASSAY_KERNEL_OPERANDS];
  void* out[ASSAY_KERNEL_OPERANDS];
  void* scratch;
  char* memory;
} bench_t;

static size_t aligned(size_t bytes) {
  return (bytes + ASSAY_BLOCK_ALIGNMENT - 1) / ASSAY_BLOCK_ALIGNMENT * ASSAY_BLOCK_ALIGNMENT;
}

// Zeros: valid as indices, and as fast as other numbers but for subnormal ones.
static assay_status_t prepare(const assay_sized_layer_t* l, const assay_kernel_t* k, bench_t* b) {
  size_t bytes = ASSAY_BLOCK_ALIGNMENT + aligned(k->scratch);
  for (size_t i = 0; i < l->n_in; i++)
    if (k->in[i].type) bytes += aligned(assay_operand_bytes(&l->in[i], k->in[i].type));
  for (size_t i = 0; i < l->n_out; i++)
    if (l->out[i].value) bytes += aligned(assay_operand_bytes(&l->out[i], k->out[i].type));
  ASSAY_TRY(assay_new_array(bytes, 1, &b->memory));
  char* at = b->memory + (aligned((uintptr_t)b->memory) - (uintptr_t)b->memory);
  b->scratch = at;
  at += aligned(k->scratch);
  for (size_t i = 0; i < l->n_in; i++) {
    if (!k->in[i].type) continue;
    b->in[i] = at;
    at += aligned(assay_operand_bytes(&l->in[i], k->in[i].type));
  }
  for (size_t i = 0; i < l->n_out; i++) {
    if (!l->out[i].value) continue;
    b->out[i] = at;
    at += aligned(assay_operand_bytes(&l->out[i], k->out[i].type));
  }
  return NULL;
}

// The mean of so many runs, after one that warms up; 0: the fastest of some.
static assay_status_t measure(void* user, const assay_sized_layer_t* l, assay_kernel_t* k, int runs,
                              double* out_microseconds) {
  (void)user;
  bench_t b = {0};
  *out_microseconds = 0;
  if (!k->run) return NULL;
  ASSAY_TRY(prepare(l, k, &b));
  assay_status_t st = k->run(k, b.in, b.out, b.scratch);
  const double start = assay_clock_seconds();
  double fastest = (double)INFINITY;
  for (int i = 0; !st && runs && i < runs; i++) st = k->run(k, b.in, b.out, b.scratch);
  const double mean = runs ? (assay_clock_seconds() - start) / runs : 0;
  for (int i = 0;
       !st && !runs && i < MAX_RUNS && (i < MIN_RUNS || assay_clock_seconds() - start < SECONDS);
       i++) {
    const double t = assay_clock_seconds();
    st = k->run(k, b.in, b.out, b.scratch);
    fastest = fmin(fastest, assay_clock_seconds() - t);
  }
  assay_free(b.memory);
  *out_microseconds = round(1e8 * (runs ? mean : fastest)) / 100;  // what the text keeps of it
  return st;
}

static assay_status_t measure_move(void* user, const assay_reformat_t* m,
                                   double* out_microseconds) {
  (void)user;
  const size_t from = aligned(assay_reformat_bytes(m, m->from.type));
  const size_t to = aligned(assay_reformat_bytes(m, m->to.type));
  char* memory = NULL;
  ASSAY_TRY(assay_new_array(ASSAY_BLOCK_ALIGNMENT + from + to + cpu_move_scratch(m), 1, &memory));
  char* at = memory + (aligned((uintptr_t)memory) - (uintptr_t)memory);
  cpu_move_run(m, at, at + from, at + from + to);
  double fastest = (double)INFINITY;
  for (int i = 0; i < MAX_RUNS; i++) {
    const double t = assay_clock_seconds();
    cpu_move_run(m, at, at + from, at + from + to);
    fastest = fmin(fastest, assay_clock_seconds() - t);
  }
  assay_free(memory);
  *out_microseconds = round(1e8 * fastest) / 100;
  return NULL;
}

assay_status_t cpu_choice_create(const assay_backend_options_t* options, assay_choice_t** out) {
  assay_str_t machine = {0};
  cpu_describe_machine(&machine);
  assay_str_printf(&machine, ", %d threads", omp_get_max_threads());
  const assay_choice_setting_t setting = {.tactics = cpu_tactics,
                                          .n_tactics = cpu_n_tactics,
                                          .machine = assay_str_get(&machine),
                                          .costs = cpu_costs(),
                                          .time = measure,
                                          .time_move = measure_move};
  assay_status_t st = assay_str_status(&machine);
  if (!st) st = assay_choice_create(&setting, options, out);
  assay_str_deinit(&machine);
  return st;
}
