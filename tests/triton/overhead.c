// What the backend for Triton costs beside the runs of the engine: its whole call against binding,
// running and reading by hand, one after the other, in turns. For bench/results/triton.md.
//
//   triton_overhead LIBRARY MODEL.onnx CHANNELS SIZE [ROUNDS]     an input [N, CHANNELS, SIZE,
//   SIZE]
#include <libgen.h>
#include <limits.h>
#include <time.h>

#include "server_case.h"

enum { MAX_REQUESTS = 8, MAX_ROUNDS = 100000 };

typedef struct bench {
  fake_model_t* model;
  assay_engine_t* engine;
  assay_context_t* context;
  int64_t shape[4];
  size_t row_bytes, out_bytes;
  float* rows;  // MAX_REQUESTS of them
  uint8_t* out;
} bench_t;

static double now_us(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec * 1e6 + (double)t.tv_nsec / 1e3;
}

static void need(assay_status_t status) {
  if (!status) return;
  fprintf(stderr, "%s\n", assay_status_message(status));
  exit(1);
}

static void need_no(const char* error) {
  if (!error) return;
  fprintf(stderr, "%s\n", error);
  exit(1);
}

// The run that a program of its own would make: n rows, output 0 read.
static double by_hand(bench_t* b, int64_t n) {
  const int64_t dims[4] = {n, b->shape[1], b->shape[2], b->shape[3]};
  const double start = now_us();
  need(assay_context_bind_input(b->context, 0, ASSAY_TYPE_FLOAT, 4, dims, b->rows,
                                b->row_bytes * (size_t)n));
  need(assay_context_run(b->context));
  assay_tensor_t* t = assay_context_output(b->context, 0);
  if (assay_tensor_bytes(t) > b->out_bytes) exit(1);
  need(assay_tensor_read(t, b->out, b->out_bytes));
  assay_tensor_release(t);
  return now_us() - start;
}

// The same rows as n requests, each in so many pieces.
static double by_backend(bench_t* b, const char* name, uint32_t n, uint32_t pieces) {
  TRITONBACKEND_Request* requests[MAX_REQUESTS];
  const int64_t dims[4] = {1, b->shape[1], b->shape[2], b->shape[3]};
  for (uint32_t k = 0; k < n; k++) {
    requests[k] = fake_request();
    fake_add_input(requests[k], name, TRITONSERVER_TYPE_FP32, 4, dims,
                   (uint8_t*)b->rows + k * b->row_bytes, b->row_bytes, pieces);
  }
  need_no(fake_execute(fake_instance(b->model, 0), requests, n));
  for (uint32_t k = 0; k < n; k++) need_no(fake_answer_error(requests[k]));
  fake_reset();
  return (double)fake_execute_ns() / 1e3;
}

static int compare(const void* a, const void* b) {
  const double x = *(const double*)a, y = *(const double*)b;
  return (x > y) - (x < y);
}

static double median(double* x, int n) {
  qsort(x, (size_t)n, sizeof *x, compare);
  return x[n / 2];
}

static void measure(bench_t* b, uint32_t n, uint32_t pieces, int rounds) {
  static double hand[MAX_ROUNDS], backend[MAX_ROUNDS], more[MAX_ROUNDS];
  const char* name = assay_io_name(assay_engine_input(b->engine, 0));
  for (int k = -5; k < rounds; k++) {
    const double x = by_hand(b, n), y = by_backend(b, name, n, pieces);
    if (k < 0) continue;
    hand[k] = x;
    backend[k] = y;
    more[k] = y - x;
  }
  const double difference = median(more, rounds);
  printf("| %u | %u | %.1f | %.1f | %.1f |\n", n, pieces, median(hand, rounds),
         median(backend, rounds), difference);
}

int main(int argc, char** argv) {
  bench_t b = {.out_bytes = 64 << 20};
  if (argc < 5) return fprintf(stderr, "triton_overhead LIBRARY MODEL CHANNELS SIZE [ROUNDS]\n"), 2;
  int rounds = argc > 5 ? atoi(argv[5]) : 1000;
  if (rounds < 1 || rounds > MAX_ROUNDS) rounds = MAX_ROUNDS;
  b.shape[1] = atoi(argv[3]);
  b.shape[2] = b.shape[3] = atoi(argv[4]);
  const size_t n = (size_t)(b.shape[1] * b.shape[2] * b.shape[3]);
  b.row_bytes = n * sizeof(float);
  b.rows = malloc(MAX_REQUESTS * b.row_bytes);
  b.out = malloc(b.out_bytes);
  for (size_t i = 0; i < MAX_REQUESTS * n; i++) b.rows[i] = number(1, i);
  char model[PATH_MAX], folder[PATH_MAX];
  if (!realpath(argv[2], model)) return perror(argv[2]), 1;
  snprintf(folder, sizeof folder, "%s", model);
  setenv("ASSAY_TEST_MODELS", dirname(folder), 1);
  fake_set_version(1, 19);
  need_no(fake_open(argv[1], NULL));
  need_no(fake_load(repository(basename(model)), "{\"max_batch_size\":8}", true, &b.model));
  assay_model_t* loaded = NULL;
  need(assay_model_load(argv[2], &loaded));
  need(assay_engine_build(loaded, NULL, &b.engine));
  need(assay_context_create(b.engine, NULL, &b.context));
  printf(
      "| requests | buffers each | by hand, us | backend, us | difference, us "
      "|\n|---|---|---|---|---|\n");
  measure(&b, 1, 1, rounds);
  measure(&b, 1, 3, rounds);
  measure(&b, 4, 1, rounds);
  measure(&b, 8, 1, rounds);
  fake_unload(b.model);
  fake_close();
  fake_reset();
  return fake_broken() ? fprintf(stderr, "%s\n", fake_first_broken()), 1 : 0;
}
