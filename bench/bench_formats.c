// Speed of src/formats against the machine's memory: bench_formats [MILLIONS] [FILTER].
//
// Every line is a job over arrays that do not fit into the caches: its GB/s (bytes read and
// written), the GB/s of a plain loop that moves the same bytes (memcpy where the job writes, a sum
// where it only reads), and how many times longer the job takes: by the clock, and by the time that
// the CPUs spent, which other programs disturb less (with OMP_WAIT_POLICY=passive, so that waiting
// does not count). Best of several runs; all of OpenMP's threads.
#include <math.h>
#include <omp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "formats/format.h"
#include "formats/stats.h"

#ifdef __clang__
#pragma clang diagnostic ignored "-Wpass-failed"  // it does not vectorize plain_sum()
#endif

enum { RUNS = 25 };  // the best counts: other programs run as well

typedef struct bench {
  int64_t n;
  double *x, *y, *z;  // ordinary values, the same with errors, room for results
  unsigned char *packed, *also_packed;
  assay_format_t format;
  assay_type_t type;
  assay_overflow_t overflow;
} bench_t;

static double now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static double cpu_now(void) {
  struct timespec t;
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
  return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static volatile double sink;

// ---- what memory can do -------------------------------------------------------------------------

static void plain_copy(unsigned char* to, const unsigned char* from, int64_t bytes) {
#pragma omp parallel
  {
    int64_t k = omp_get_thread_num(), threads = omp_get_num_threads();
    int64_t first = bytes / threads * k, end = k + 1 == threads ? bytes : bytes / threads * (k + 1);
    memcpy(to + first, from + first, (size_t)(end - first));
  }
}

static void plain_sum(const uint64_t* x, int64_t n) {
  uint64_t s = 0;
#pragma omp parallel for simd schedule(static) reduction(+ : s)
  for (int64_t i = 0; i < n; i++) s += x[i];
  sink = (double)s;
}

// ---- jobs -----------------------------------------------------------------------------------

static void job_round(bench_t* b) {
  assay_format_round_n(b->format, b->x, b->z, (size_t)b->n, b->overflow);
}

enum { PIECE = 1 << 16 };  // as src/tensor cuts

static void job_unpack(bench_t* b) {
#pragma omp parallel for schedule(static)
  for (int64_t i = 0; i < b->n; i += PIECE)
    assay_unpack(b->type, b->packed, i, b->n - i < PIECE ? b->n - i : PIECE, b->z + i);
}

static void job_pack(bench_t* b) {
#pragma omp parallel for schedule(static)
  for (int64_t i = 0; i < b->n; i += PIECE) {
    int64_t offset = 0;
    (void)assay_type_packed_bytes(b->type, i, &offset);
    assay_pack(b->type, b->x + i, b->n - i < PIECE ? b->n - i : PIECE, b->also_packed + offset,
               b->overflow);
  }
}

static void errors(bench_t* b, assay_type_t type, const void* engine, bool no_kl) {
  assay_error_options_t options = ASSAY_ERROR_OPTIONS_INIT;
  options.ulp_format = b->format;
  options.no_kl = no_kl;
  assay_error_stats_t* s = NULL;
  assay_error_summary_t r;
  assay_status_t st = assay_error_stats_create(&options, &s);
  if (!st) assay_error_stats_add(s, type, engine, ASSAY_TYPE_DOUBLE, b->x, b->n);
  if (!st) st = assay_error_stats_summary(s, &r);
  if (st) exit(1);
  sink = r.rms;
  assay_error_stats_destroy(s);
}
static void job_errors(bench_t* b) { errors(b, ASSAY_TYPE_DOUBLE, b->y, false); }
static void job_errors_no_kl(bench_t* b) { errors(b, ASSAY_TYPE_DOUBLE, b->y, true); }
static void job_errors_packed(bench_t* b) { errors(b, b->type, b->packed, false); }

static void job_values(bench_t* b) {
  assay_value_stats_t* s = NULL;
  assay_value_summary_t r;
  assay_status_t st = assay_value_stats_create(b->format, &s);
  if (!st) assay_value_stats_add(s, ASSAY_TYPE_DOUBLE, b->x, b->n);
  if (!st) st = assay_value_stats_summary(s, &r);
  if (st) exit(1);
  sink = r.std;
  assay_value_stats_destroy(s);
}

static const struct row {
  const char* name;
  void (*run)(bench_t*);
  assay_format_t format;
  bool reads_x, reads_y, reads_packed, writes_z, writes_packed;
  assay_overflow_t overflow;
} rows[] = {
    {"round fp32", job_round, ASSAY_FORMAT_FP32, .reads_x = true, .writes_z = true},
    {"round tf32", job_round, ASSAY_FORMAT_TF32, .reads_x = true, .writes_z = true},
    {"round bf16", job_round, ASSAY_FORMAT_BF16, .reads_x = true, .writes_z = true},
    {"round fp16", job_round, ASSAY_FORMAT_FP16, .reads_x = true, .writes_z = true},
    {"round fp8e4m3", job_round, ASSAY_FORMAT_FP8E4M3, .reads_x = true, .writes_z = true},
    {"round int8", job_round, ASSAY_FORMAT_INT8, .reads_x = true, .writes_z = true},
    {"unpack fp32", job_unpack, ASSAY_FORMAT_FP32, .reads_packed = true, .writes_z = true},
    {"unpack bf16", job_unpack, ASSAY_FORMAT_BF16, .reads_packed = true, .writes_z = true},
    {"unpack fp16", job_unpack, ASSAY_FORMAT_FP16, .reads_packed = true, .writes_z = true},
    {"unpack fp8e4m3", job_unpack, ASSAY_FORMAT_FP8E4M3, .reads_packed = true, .writes_z = true},
    {"unpack fp6e2m3", job_unpack, ASSAY_FORMAT_FP6E2M3, .reads_packed = true, .writes_z = true},
    {"unpack fp4e2m1", job_unpack, ASSAY_FORMAT_FP4E2M1, .reads_packed = true, .writes_z = true},
    {"unpack int8", job_unpack, ASSAY_FORMAT_INT8, .reads_packed = true, .writes_z = true},
    {"unpack int4", job_unpack, ASSAY_FORMAT_INT4, .reads_packed = true, .writes_z = true},
    {"pack fp32", job_pack, ASSAY_FORMAT_FP32, .reads_x = true, .writes_packed = true},
    {"pack bf16", job_pack, ASSAY_FORMAT_BF16, .reads_x = true, .writes_packed = true},
    {"pack fp16", job_pack, ASSAY_FORMAT_FP16, .reads_x = true, .writes_packed = true},
    {"pack fp8e4m3", job_pack, ASSAY_FORMAT_FP8E4M3, .reads_x = true, .writes_packed = true},
    {"pack fp4e2m1", job_pack, ASSAY_FORMAT_FP4E2M1, .reads_x = true, .writes_packed = true},
    {"errors", job_errors, ASSAY_FORMAT_NONE, .reads_x = true, .reads_y = true},
    {"errors without KL", job_errors_no_kl, ASSAY_FORMAT_NONE, .reads_x = true, .reads_y = true},
    {"errors, ulps of fp32", job_errors, ASSAY_FORMAT_FP32, .reads_x = true, .reads_y = true},
    {"errors, ulps of fp16", job_errors, ASSAY_FORMAT_FP16, .reads_x = true, .reads_y = true},
    {"errors of packed fp16", job_errors_packed, ASSAY_FORMAT_FP16, .reads_x = true,
     .reads_packed = true},
    {"values", job_values, ASSAY_FORMAT_FP16, .reads_x = true},
};

static double uniform(uint64_t* state) {  // splitmix64
  uint64_t z = (*state += UINT64_C(0x9e3779b97f4a7c15));
  z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
  z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
  return (double)((z ^ z >> 31) >> 11) * 0x1p-53;
}

int main(int argc, char** argv) {
  bench_t b = {.n = (argc > 1 ? atoll(argv[1]) : 16) * 1000000};
  size_t bytes = (size_t)b.n * 8;
  b.x = malloc(bytes);
  b.y = malloc(bytes);
  b.z = malloc(bytes);
  b.packed = malloc(bytes);
  b.also_packed = malloc(bytes);
  if (b.n <= 0 || !b.x || !b.y || !b.z || !b.packed || !b.also_packed) return 1;
  uint64_t state = 1;
  for (int64_t i = 0; i < b.n; i++) {
    double g = 0;
    for (int k = 0; k < 4; k++) g += uniform(&state) - 0.5;
    b.x[i] = i % 3 ? g : fmax(g, 0);  // some zeros, as behind a ReLU
    b.y[i] = assay_format_round(ASSAY_FORMAT_FP16, b.x[i] * (1 + 0x1p-12 * (uniform(&state) - 0.5)),
                                ASSAY_OVERFLOW_IEEE);
  }
  memset(b.z, 1, bytes);
  memset(b.also_packed, 1, bytes);
  printf("%lld elements, %d threads\n%-24s %9s %9s %7s %7s\n", (long long)b.n,
         omp_get_max_threads(), "job", "GB/s", "plain", "times", "of CPU");
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
    const struct row* r = &rows[i];
    if (argc > 2 && !strstr(r->name, argv[2])) continue;
    b.format = r->format;
    b.overflow = r->overflow;
    b.type = assay_format_info(r->format)->type;
    int64_t packed_bytes = 0;
    if (b.type && !assay_type_packed_bytes(b.type, b.n, &packed_bytes)) return 1;
    if (r->reads_packed && assay_type_is_float(b.type))
      assay_pack(b.type, b.y, b.n, b.packed, ASSAY_OVERFLOW_IEEE);
    int64_t read = (r->reads_x ? 8 * b.n : 0) + (r->reads_y ? 8 * b.n : 0) +
                   (r->reads_packed ? packed_bytes : 0);
    int64_t written = (r->writes_z ? 8 * b.n : 0) + (r->writes_packed ? packed_bytes : 0);
    double best = 1e9, plain = 1e9, cpu_best = 1e9, cpu_plain = 1e9;
    for (int run = 0; run < RUNS; run++) {
      double start = now(), cpu_start = cpu_now();
      r->run(&b);
      double mid = now(), cpu_mid = cpu_now();
      if (written)
        plain_copy((unsigned char*)b.z, (unsigned char*)b.y, (read + written) / 2);
      else
        plain_sum((const uint64_t*)b.x, read / 8 < b.n ? read / 8 : b.n);
      double more = !written && read / 8 > b.n ? (double)read / 8 / (double)b.n : 1;
      plain = fmin(plain, (now() - mid) * more);
      cpu_plain = fmin(cpu_plain, (cpu_now() - cpu_mid) * more);
      best = fmin(best, mid - start);
      cpu_best = fmin(cpu_best, cpu_mid - cpu_start);
    }
    double moved = (double)(read + written) * 1e-9;
    printf("%-24s %9.2f %9.2f %7.2f %7.2f\n", r->name, moved / best, moved / plain, best / plain,
           cpu_best / cpu_plain);
    fflush(stdout);
  }
  free(b.x);
  free(b.y);
  free(b.z);
  free(b.packed);
  free(b.also_packed);
  return 0;
}
