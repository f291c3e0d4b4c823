// Runs a model on inputs of zeros, rounded as it declares and in float64, and prints how far apart
// the outputs are.
//
//   run_model MODEL [SIZE]     SIZE: of dimensions that the model leaves open (1)
#include <assay/assay.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_RANK = 8, MAX_VALUES = 64 };

static int fail(assay_status_t status) {
  fprintf(stderr, "run_model: %s\n", assay_status_message(status));
  assay_status_free(status);
  return 1;
}

// Reads the dims of a type such as "float[N, 3, 224]"; those with a name are `open`.
static int read_dims(const char* type, int64_t open, int64_t* dims) {
  int rank = 0;
  const char* p = strchr(type, '[');
  while (p && p[1] && p[1] != ']' && rank < MAX_RANK) {
    char* end = NULL;
    dims[rank] = strtoll(p + 1, &end, 10);
    if (end == p + 1) dims[rank] = open;
    rank++;
    p = strchr(end, ',');
  }
  return rank;
}

static size_t element_bytes(assay_type_t type) {
  switch (type) {
    case ASSAY_TYPE_DOUBLE:
    case ASSAY_TYPE_INT64:
    case ASSAY_TYPE_UINT64:
      return 8;
    case ASSAY_TYPE_FLOAT:
    case ASSAY_TYPE_INT32:
    case ASSAY_TYPE_UINT32:
      return 4;
    case ASSAY_TYPE_FLOAT16:
    case ASSAY_TYPE_BFLOAT16:
    case ASSAY_TYPE_INT16:
    case ASSAY_TYPE_UINT16:
      return 2;
    default:
      return 1;
  }
}

static assay_status_t make_zeros(const assay_model_t* model, size_t i, int64_t open,
                                 assay_tensor_t** out) {
  char type[256];
  int64_t dims[MAX_RANK], size = 1;
  assay_status_t st = assay_model_input_type(model, i, type, sizeof type);
  if (st) return st;
  int rank = read_dims(type, open, dims);
  for (int d = 0; d < rank; d++) size *= dims[d];
  size_t bytes = (size_t)size * element_bytes(assay_model_input_elem(model, i));
  char* zeros = calloc(bytes + 1, 1);
  printf("input   %s: %s\n", assay_model_input_name(model, i), type);
  st = assay_tensor_make(assay_model_input_elem(model, i), rank, dims, zeros, bytes, out);
  free(zeros);
  return st;
}

static assay_status_t run(assay_model_t* model, assay_run_mode_t mode, size_t n_in,
                          assay_tensor_t** in, size_t n_out, assay_tensor_t** out) {
  assay_session_options_t options = ASSAY_SESSION_OPTIONS_INIT;
  assay_session_t* session = NULL;
  options.mode = mode;
  assay_status_t st = assay_session_create(model, &options, &session);
  if (!st) st = assay_session_run(session, n_in, in, n_out, out);
  assay_session_destroy(session);
  return st;
}

// The largest difference between two tensors of floats, and the largest value of the second.
static assay_status_t compare(assay_tensor_t* a, assay_tensor_t* b, double* out_difference,
                              double* out_largest) {
  size_t n = (size_t)assay_tensor_size(a);
  double* x = calloc(n + 1, sizeof *x);
  double* y = calloc(n + 1, sizeof *y);
  assay_status_t st = assay_tensor_read_f64(a, x, n);
  if (!st) st = assay_tensor_read_f64(b, y, n);
  *out_difference = *out_largest = 0;
  for (size_t i = 0; !st && i < n; i++) {
    *out_difference = fmax(*out_difference, fabs(x[i] - y[i]));
    *out_largest = fmax(*out_largest, fabs(y[i]));
  }
  free(x);
  free(y);
  return st;
}

static assay_status_t run_both(assay_model_t* model, int64_t open) {
  assay_tensor_t *in[MAX_VALUES] = {0}, *native[MAX_VALUES] = {0}, *truth[MAX_VALUES] = {0};
  size_t n_in = assay_model_input_count(model), n_out = assay_model_output_count(model);
  assay_status_t st = NULL;
  for (size_t i = 0; !st && i < n_in; i++) st = make_zeros(model, i, open, &in[i]);
  if (!st) st = run(model, ASSAY_RUN_NATIVE, n_in, in, n_out, native);
  if (!st) st = run(model, ASSAY_RUN_TRUTH, n_in, in, n_out, truth);
  for (size_t i = 0; !st && i < n_out; i++) {
    double difference = 0, largest = 0;
    st = compare(native[i], truth[i], &difference, &largest);
    if (!st)
      printf("output  %s: %lld elements of %s, up to %.6g, off by %.2g\n",
             assay_model_output_name(model, i), (long long)assay_tensor_size(native[i]),
             assay_type_name(assay_tensor_type(native[i])), largest, difference);
  }
  for (size_t i = 0; i < n_in; i++) assay_tensor_release(in[i]);
  for (size_t i = 0; i < n_out; i++)
    assay_tensor_release(native[i]), assay_tensor_release(truth[i]);
  return st;
}

int main(int argc, char** argv) {
  if (argc < 2 || argc > 3) return fprintf(stderr, "usage: run_model MODEL [SIZE]\n"), 2;
  assay_model_t* model = NULL;
  assay_status_t st = assay_model_load(argv[1], &model);
  if (st) return fail(st);
  if (assay_model_input_count(model) > MAX_VALUES || assay_model_output_count(model) > MAX_VALUES)
    return fprintf(stderr, "run_model: over %d inputs or outputs\n", MAX_VALUES), 1;
  st = run_both(model, argc > 2 ? strtoll(argv[2], NULL, 10) : 1);
  assay_model_release(model);
  return st ? fail(st) : 0;
}
