// Compiles a model, or loads a plan file, and runs it in two contexts side by side, whose inputs
// and outputs lie in this program's memory.
//
//   run_engine MODEL|PLAN [SIZE]     SIZE: of dimensions that the model leaves open (1)
#include <assay/assay.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { CONTEXTS = 2, MAX_RANK = 8, MAX_INPUTS = 16 };

// A context, and the memory that its inputs are bound to.
typedef struct lane {
  assay_context_t* context;
  float* inputs[MAX_INPUTS];
} lane_t;

static int fail(assay_status_t status) {
  fprintf(stderr, "run_engine: %s\n", assay_status_message(status));
  assay_status_free(status);
  return 1;
}

static assay_status_t open_engine(const char* path, assay_engine_t** out) {
  const size_t n = strlen(path);
  assay_model_t* model = NULL;
  if (n > 5 && strcmp(path + n - 5, ".plan") == 0) return assay_engine_load(path, out);
  assay_status_t st = assay_model_load(path, &model);
  if (!st) st = assay_engine_build(model, NULL, out);
  assay_model_release(model);
  return st;
}

// Binds input i to values that differ from context to context; they set the open sizes.
static assay_status_t bind_input(const assay_engine_t* engine, lane_t* lane, size_t i, int64_t open,
                                 float value) {
  const assay_io_t* io = assay_engine_input(engine, i);
  const int rank = assay_io_rank(io);
  int64_t dims[MAX_RANK], size = 1;
  if (assay_io_elem(io) != ASSAY_TYPE_FLOAT || rank < 0 || rank > MAX_RANK)
    return assay_status_create(ASSAY_UNSUPPORTED, "this example gives tensors of float only");
  for (int d = 0; d < rank; d++) {
    dims[d] = assay_io_dim(io, d) < 0 ? open : assay_io_dim(io, d);
    size *= dims[d];
  }
  lane->inputs[i] = malloc((size_t)size * sizeof(float) + 1);
  if (!lane->inputs[i]) return assay_status_create(ASSAY_NO_MEMORY, "no memory for an input");
  for (int64_t k = 0; k < size; k++) lane->inputs[i][k] = value * (float)(k % 7 - 3);
  return assay_context_bind_input(lane->context, i, ASSAY_TYPE_FLOAT, rank, dims, lane->inputs[i],
                                  (size_t)size * sizeof(float));
}

static assay_status_t start(assay_engine_t* engine, lane_t* lane, int64_t open, float value) {
  assay_status_t st = assay_context_create(engine, NULL, &lane->context);
  for (size_t i = 0; !st && i < assay_engine_input_count(engine); i++)
    st = bind_input(engine, lane, i, open, value);
  return st ? st : assay_context_start(lane->context);
}

static assay_status_t print_output(const assay_engine_t* engine, const lane_t* lane, size_t i) {
  assay_tensor_t* t = assay_context_output(lane->context, i);
  if (!t || !assay_tensor_size(t)) return assay_tensor_release(t), NULL;
  double* x = calloc((size_t)assay_tensor_size(t), sizeof *x);
  assay_status_t st = assay_tensor_read_f64(t, x, (size_t)assay_tensor_size(t));
  if (!st)
    printf("  %s: %lld elements, the first is %.5g\n",
           assay_io_name(assay_engine_output(engine, i)), (long long)assay_tensor_size(t), x[0]);
  free(x);
  assay_tensor_release(t);
  return st;
}

static assay_status_t run(assay_engine_t* engine, lane_t* lanes, int64_t open) {
  assay_status_t st = NULL;
  for (int k = 0; !st && k < CONTEXTS; k++) st = start(engine, &lanes[k], open, (float)(k + 1) / 4);
  for (int k = 0; !st && k < CONTEXTS; k++) {
    st = assay_context_wait(lanes[k].context);
    if (!st) printf("context %d\n", k);
    for (size_t i = 0; !st && i < assay_engine_output_count(engine); i++)
      st = print_output(engine, &lanes[k], i);
  }
  return st;
}

int main(int argc, char** argv) {
  if (argc < 2 || argc > 3) return fprintf(stderr, "usage: run_engine MODEL|PLAN [SIZE]\n"), 2;
  assay_engine_t* engine = NULL;
  lane_t lanes[CONTEXTS] = {{0}};
  assay_status_t st = open_engine(argv[1], &engine);
  if (st) return fail(st);
  if (assay_engine_input_count(engine) > MAX_INPUTS)
    return fprintf(stderr, "run_engine: over %d inputs\n", MAX_INPUTS), 1;
  st = run(engine, lanes, argc > 2 ? strtoll(argv[2], NULL, 10) : 1);
  for (int k = 0; k < CONTEXTS; k++) {
    assay_context_destroy(lanes[k].context);  // ends what still runs
    for (int i = 0; i < MAX_INPUTS; i++) free(lanes[k].inputs[i]);
  }
  assay_engine_release(engine);
  return st ? fail(st) : 0;
}
