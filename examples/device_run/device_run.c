// Runs a model on a GPU with inputs and outputs in the GPU's memory, one run's output copied to the
// host at the end only.
//
//   device_run MODEL [TARGET]     TARGET: "cuda" (default), "cuda:1"
//
// Memory here is the library's (device_memory.h). Memory of another one, such as cudaMalloc's, is
// bound in the same way; then assay_context_stream() says what has to wait for that library's work.
#include <assay/assay.h>
#include <stdio.h>
#include <stdlib.h>

enum { MAX_VALUES = 16, RUNS = 3 };

typedef struct values {
  assay_device_memory_t* at[MAX_VALUES];
  size_t n;
} values_t;

static void release(values_t* v) {
  for (size_t i = 0; i < v->n; i++) assay_device_memory_destroy(v->at[i]);
}

// Elements of a tensor of float, where open sizes are 1; 0: it is something else.
static size_t elements(const assay_io_t* io, int64_t* dims) {
  size_t n = 1;
  if (assay_io_elem(io) != ASSAY_TYPE_FLOAT || assay_io_rank(io) < 0) return 0;
  for (int d = 0; d < assay_io_rank(io); d++) {
    dims[d] = assay_io_dim(io, d) < 0 ? 1 : assay_io_dim(io, d);
    n *= (size_t)dims[d];
  }
  return n;
}

static assay_status_t make(const char* target, size_t n, values_t* v) {
  if (!n || v->n == MAX_VALUES)
    return assay_status_create(ASSAY_UNSUPPORTED, "this example takes a few tensors of float only");
  assay_status_t st = assay_device_memory_create(target, n * sizeof(float), &v->at[v->n]);
  v->n += !st;
  return st;
}

static assay_status_t bind_input(assay_context_t* c, size_t i, const assay_io_t* io,
                                 const char* target, values_t* v) {
  int64_t dims[32];
  const size_t n = elements(io, dims);
  assay_status_t st = make(target, n, v);
  if (st) return st;
  float* x = malloc(n * sizeof *x);
  if (!x) return assay_status_create(ASSAY_NO_MEMORY, "no memory for an input");
  for (size_t k = 0; k < n; k++) x[k] = (float)(k % 7) - 3;
  assay_device_memory_t* m = v->at[v->n - 1];
  st = assay_device_memory_write(m, 0, x, n * sizeof *x);
  free(x);
  if (st) return st;
  return assay_context_bind_input_on_device(c, i, ASSAY_TYPE_FLOAT, assay_io_rank(io), dims,
                                            assay_device_memory_address(m), n * sizeof *x);
}

static assay_status_t bind_output(assay_context_t* c, size_t i, const assay_io_t* io,
                                  const char* target, values_t* v) {
  int64_t dims[32];
  const size_t n = elements(io, dims);
  assay_status_t st = make(target, n, v);
  if (st) return st;
  const assay_device_memory_t* m = v->at[v->n - 1];
  return assay_context_bind_output_on_device(c, i, assay_device_memory_address(m),
                                             n * sizeof(float));
}

static assay_status_t print(const char* name, assay_device_memory_t* m) {
  float first = 0;
  assay_status_t st = assay_device_memory_read(m, 0, &first, sizeof first);
  if (!st) printf("%s: the first element is %.5g\n", name, (double)first);
  return st;
}

static assay_status_t run(assay_engine_t* engine, assay_context_t* c, const char* target) {
  values_t in = {0}, out = {0};
  assay_status_t st = NULL;
  for (size_t i = 0; !st && i < assay_engine_input_count(engine); i++)
    st = bind_input(c, i, assay_engine_input(engine, i), target, &in);
  for (size_t i = 0; !st && i < assay_engine_output_count(engine); i++)
    st = bind_output(c, i, assay_engine_output(engine, i), target, &out);
  for (int k = 0; !st && k < RUNS; k++) st = assay_context_run(c);
  for (size_t i = 0; !st && i < out.n; i++)
    st = print(assay_io_name(assay_engine_output(engine, i)), out.at[i]);
  release(&in);
  release(&out);
  return st;
}

int main(int argc, char** argv) {
  assay_model_t* model = NULL;
  assay_engine_t* engine = NULL;
  assay_context_t* context = NULL;
  if (argc < 2) return fprintf(stderr, "usage: device_run MODEL [TARGET]\n"), 2;
  assay_engine_options_t options = ASSAY_ENGINE_OPTIONS_INIT;
  options.target = argc > 2 ? argv[2] : "cuda";
  assay_status_t st = assay_model_load(argv[1], &model);
  if (!st) st = assay_engine_build(model, &options, &engine);
  if (!st) st = assay_context_create(engine, NULL, &context);
  if (!st) st = run(engine, context, options.target);
  assay_context_destroy(context);
  assay_engine_release(engine);
  assay_model_release(model);
  if (!st) return 0;
  // A machine without a GPU is not a failure of this program.
  const bool absent = assay_status_code(st) == ASSAY_DEVICE;
  fprintf(absent ? stdout : stderr, "device_run: %s\n", assay_status_message(st));
  assay_status_free(st);
  return absent ? 0 : 1;
}
