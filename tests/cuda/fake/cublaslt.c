// cuBLASLt without a GPU, for tests: products in the order of the tensor cores' steps, done by a
// call of the host in the stream. ASSAY_FAKE_CUBLASLT says what it has, words with ',' between:
//
//   same     an algorithm that gives the bits of our kernels
//   turned   one that adds the terms from the last one on
//   parts    one that splits sums in two
//   fails    one that gives an error when it is run
//   older    it says another version
//
// Unset: it takes no product at all.
#include <dlfcn.h>
#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "backends/cuda/cublaslt_api.h"
#include "internal.h"

// What formats.h wants of a prelude.
#define DEVICE static inline
DEVICE float float_of(uint32_t bits) {
  float x;
  memcpy(&x, &bits, sizeof x);
  return x;
}
DEVICE uint32_t bits_of(float x) {
  uint32_t bits;
  memcpy(&bits, &x, sizeof bits);
  return bits;
}
#include "kernel/formats.h"

#define CUBLASLT_FUNCTION(result, name, parameters) EXPORT result name parameters;
#include "backends/cuda/cublaslt.inc"
#undef CUBLASLT_FUNCTION

enum { SUCCESS = 0, ALLOC_FAILED = 3, BAD_VALUE = 7, EXECUTION_FAILED = 13, STEP = 16 };
enum { SAME = 66, TURNED, PARTS, FAILS };  // algorithms

struct cublaslt_desc {
  int compute, turned[2];
  uint32_t epilogue;
  cuda_pointer_t bias;
};
struct cublaslt_layout {
  int type;
  int64_t rows, columns, row, matrices, step;  // of our matrix, whose rows are its columns
};
struct cublaslt_preference {
  uint64_t workspace;
};

// What a call multiplies; it lives as long as the handle, since captures call again.
typedef struct job {
  struct cublaslt_desc desc;
  struct cublaslt_layout x, w, y;
  cuda_pointer_t x_at, w_at, y_at;
  uint64_t algorithm;
  char* (*memory)(cuda_pointer_t p, size_t bytes);
  struct job* next;
} job_t;

struct cublaslt_handle {
  pthread_mutex_t lock;
  job_t* jobs;
  cuda_result_t (*call)(cuda_stream_t stream, void (*function)(void*), void* user);
  char* (*memory)(cuda_pointer_t p, size_t bytes);
};

static bool has(const char* word) {
  const char* all = getenv("ASSAY_FAKE_CUBLASLT");
  const size_t n = strlen(word);
  for (const char* at = all; at && *at; at += *at == ',') {
    const size_t len = strcspn(at, ",");
    if (len == n && strncmp(at, word, n) == 0) return true;
    at += len;
  }
  return false;
}

size_t cublasLtGetVersion(void) { return has("older") ? 130000 : 130100; }

const char* cublasLtGetStatusName(int status) {
  return status == EXECUTION_FAILED ? "CUBLAS_STATUS_EXECUTION_FAILED"
                                    : "CUBLAS_STATUS_OF_THE_FAKE";
}

// ---- handles ------------------------------------------------------------------------------------

// The driver beside it, which the process has opened.
static void* find_in_driver(const char* name) {
  const char* folder = getenv("ASSAY_CUDA_PATH");
  char path[1024];
  snprintf(path, sizeof path, "%s/libcuda.so.1", folder ? folder : ".");
  void* driver = dlopen(path, RTLD_NOW | RTLD_LOCAL);
  return driver ? dlsym(driver, name) : NULL;
}

int cublasLtCreate(cublaslt_handle_t* out) {
  union {
    void* symbol;
    cuda_result_t (*find)(const char*, void**, int, uint64_t, int*);
    cuda_result_t (*call)(cuda_stream_t, void (*)(void*), void*);
    char* (*memory)(cuda_pointer_t, size_t);
  } found = {find_in_driver("cuGetProcAddress_v2")};
  int status = 0;
  cublaslt_handle_t h = calloc(1, sizeof *h);
  if (!h || !found.symbol || found.find("cuLaunchHostFunc", &found.symbol, 12000, 0, &status))
    return free(h), ALLOC_FAILED;
  h->call = found.call;
  found.symbol = find_in_driver("fake_memory");
  h->memory = found.memory;
  pthread_mutex_init(&h->lock, NULL);
  *out = h;
  return 0;
}

int cublasLtDestroy(cublaslt_handle_t h) {
  while (h->jobs) {
    job_t* next = h->jobs->next;
    free(h->jobs);
    h->jobs = next;
  }
  pthread_mutex_destroy(&h->lock);
  free(h);
  return 0;
}

// ---- descriptions -------------------------------------------------------------------------------

int cublasLtMatmulDescCreate(cublaslt_desc_t* out, int compute_type, int scale_type) {
  if (scale_type != CUBLASLT_R_32F) return BAD_VALUE;
  if (!(*out = calloc(1, sizeof **out))) return ALLOC_FAILED;
  (*out)->compute = compute_type;
  (*out)->epilogue = CUBLASLT_EPILOGUE_NONE;
  return 0;
}

int cublasLtMatmulDescDestroy(cublaslt_desc_t d) {
  free(d);
  return 0;
}

static int set(void* to, size_t size, const void* value, size_t bytes) {
  if (size != bytes) return BAD_VALUE;
  memcpy(to, value, bytes);
  return 0;
}

int cublasLtMatmulDescSetAttribute(cublaslt_desc_t d, int attribute, const void* value,
                                   size_t bytes) {
  switch (attribute) {
    case CUBLASLT_DESC_TRANSPOSE_A:
      return set(&d->turned[0], sizeof d->turned[0], value, bytes);
    case CUBLASLT_DESC_TRANSPOSE_B:
      return set(&d->turned[1], sizeof d->turned[1], value, bytes);
    case CUBLASLT_DESC_EPILOGUE:
      return set(&d->epilogue, sizeof d->epilogue, value, bytes);
    case CUBLASLT_DESC_BIAS_POINTER:
      return set(&d->bias, sizeof d->bias, value, bytes);
    default:
      return BAD_VALUE;
  }
}

int cublasLtMatrixLayoutCreate(cublaslt_layout_t* out, int type, uint64_t rows, uint64_t columns,
                               int64_t step) {
  if (step < (int64_t)rows) return BAD_VALUE;
  if (!(*out = calloc(1, sizeof **out))) return ALLOC_FAILED;
  **out = (struct cublaslt_layout){type, (int64_t)columns, (int64_t)rows, step, 1, 0};
  return 0;
}

int cublasLtMatrixLayoutDestroy(cublaslt_layout_t l) {
  free(l);
  return 0;
}

int cublasLtMatrixLayoutSetAttribute(cublaslt_layout_t l, int attribute, const void* value,
                                     size_t bytes) {
  int32_t n = 0;
  if (attribute == CUBLASLT_LAYOUT_BATCH_STEP) return set(&l->step, sizeof l->step, value, bytes);
  if (attribute != CUBLASLT_LAYOUT_BATCH || set(&n, sizeof n, value, bytes)) return BAD_VALUE;
  l->matrices = n;
  return 0;
}

int cublasLtMatmulPreferenceCreate(cublaslt_preference_t* out) {
  return (*out = calloc(1, sizeof **out)) ? SUCCESS : ALLOC_FAILED;
}

int cublasLtMatmulPreferenceDestroy(cublaslt_preference_t p) {
  free(p);
  return 0;
}

int cublasLtMatmulPreferenceSetAttribute(cublaslt_preference_t p, int attribute, const void* value,
                                         size_t bytes) {
  if (attribute != CUBLASLT_PREFERENCE_WORKSPACE) return BAD_VALUE;
  return set(&p->workspace, sizeof p->workspace, value, bytes);
}

// ---- algorithms ---------------------------------------------------------------------------------

int cublasLtMatmulAlgoGetHeuristic(cublaslt_handle_t handle, cublaslt_desc_t desc,
                                   cublaslt_layout_t a, cublaslt_layout_t b, cublaslt_layout_t c,
                                   cublaslt_layout_t d, cublaslt_preference_t preference,
                                   int wanted, cublaslt_result_t* out, int* out_n) {
  static const struct {
    const char* word;
    uint64_t algorithm;
  } rows[] = {{"fails", FAILS}, {"turned", TURNED}, {"same", SAME}, {"parts", PARTS}};
  (void)handle, (void)desc, (void)a, (void)b, (void)c, (void)d;
  *out_n = 0;
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
    const size_t workspace = rows[i].algorithm == PARTS ? 4096 : 0;
    if (!has(rows[i].word) || *out_n == wanted || workspace > preference->workspace) continue;
    out[(*out_n)++] =
        (cublaslt_result_t){.algorithm = {{rows[i].algorithm}}, .workspace = workspace};
  }
  return *out_n ? SUCCESS : CUBLASLT_NOT_SUPPORTED;
}

int cublasLtMatmulAlgoConfigGetAttribute(const cublaslt_algorithm_t* algorithm, int attribute,
                                         void* value, size_t bytes, size_t* out_bytes) {
  const bool narrow = attribute == CUBLASLT_ALGORITHM_CLUSTER;
  const bool parts = algorithm->words[0] == PARTS;
  const uint32_t x = attribute == CUBLASLT_ALGORITHM_ID          ? (uint32_t)algorithm->words[0]
                     : attribute == CUBLASLT_ALGORITHM_SPLITS    ? (parts ? 2 : 1)
                     : attribute == CUBLASLT_ALGORITHM_REDUCTION ? (parts ? 2 : 0)
                                                                 : 20;
  const uint16_t half = (uint16_t)x;
  *out_bytes = narrow ? sizeof half : sizeof x;
  if (bytes != *out_bytes) return BAD_VALUE;
  memcpy(value, narrow ? (const void*)&half : (const void*)&x, bytes);
  return 0;
}

// ---- products -----------------------------------------------------------------------------------

static size_t bytes_of(int type) { return type == CUBLASLT_R_32F ? 4 : 2; }

// Element (row, column) of a matrix that is given row by row.
static const char* element(const char* at, const struct cublaslt_layout* l, int64_t row,
                           int64_t column) {
  return at + (size_t)(row * l->row + column) * bytes_of(l->type);
}

static float widen(int type, const char* at) {
  uint16_t half = 0;
  float x;
  if (type == CUBLASLT_R_32F) return memcpy(&x, at, sizeof x), x;
  memcpy(&half, at, sizeof half);
  return type == CUBLASLT_R_16BF ? bf16_to_f32(half) : f16_to_f32(half);
}

static void narrow(int type, float x, char* to) {
  const uint16_t half = type == CUBLASLT_R_16BF ? f32_to_bf16(x) : f32_to_f16(x);
  if (type == CUBLASLT_R_32F)
    memcpy(to, &x, sizeof x);
  else
    memcpy(to, &half, sizeof half);
}

// Where the matrices of a job are on the host.
typedef struct sides {
  const char *x, *w;
} sides_t;

static const char* term_x(const job_t* j, const sides_t* s, int64_t row, int64_t i) {
  return j->desc.turned[1] ? element(s->x, &j->x, i, row) : element(s->x, &j->x, row, i);
}

static const char* term_w(const job_t* j, const sides_t* s, int64_t column, int64_t i) {
  return j->desc.turned[0] ? element(s->w, &j->w, column, i) : element(s->w, &j->w, i, column);
}

// Of float32 where that is rounded to tf32; not in the order of tensor cores.
static float term_of(const job_t* j, const char* at) {
  const float x = widen(CUBLASLT_R_32F, at);
  return j->desc.compute == CUBLASLT_COMPUTE_32F_FAST_TF32 ? float_of(f32_to_tf32(x)) : x;
}

static float sum_of(const job_t* j, const sides_t* s, int64_t row, int64_t column, int64_t from,
                    int64_t to) {
  float sum = 0;
  for (int64_t i = from; i < to; i += STEP) {
    const int n = to - i < STEP ? (int)(to - i) : STEP;
    uint16_t x[STEP], w[STEP];
    for (int t = 0; t < n; t++) {
      const int64_t at = j->algorithm == TURNED ? to - 1 - (i - from) - t : i + t;
      const char *a = term_x(j, s, row, at), *b = term_w(j, s, column, at);
      if (j->x.type == CUBLASLT_R_32F) {
        sum = fmaf(term_of(j, a), term_of(j, b), sum);
      } else {
        memcpy(&x[t], a, sizeof x[t]);
        memcpy(&w[t], b, sizeof w[t]);
      }
    }
    if (j->x.type != CUBLASLT_R_32F)
      sum =
          tensor_sum(j->x.type == CUBLASLT_R_16F ? FAKE_WGMMA_F16 : FAKE_WGMMA_BF16, x, w, n, sum);
  }
  return sum;
}

static void multiply(const job_t* j, const sides_t* s, const char* bias, char* y) {
  const int64_t k = j->desc.turned[1] ? j->x.rows : j->x.columns, half = k / 2;
  for (int64_t row = 0; row < j->y.rows; row++)
    for (int64_t column = 0; column < j->y.columns; column++) {
      float sum = j->algorithm == PARTS
                      ? sum_of(j, s, row, column, 0, half) + sum_of(j, s, row, column, half, k)
                      : sum_of(j, s, row, column, 0, k);
      if (bias) sum += widen(j->y.type, bias + (size_t)column * bytes_of(j->y.type));
      if (j->desc.epilogue & CUBLASLT_EPILOGUE_RELU && sum < 0) sum = 0;
      narrow(j->y.type, sum, (char*)(uintptr_t)element(y, &j->y, row, column));
    }
}

static char* memory_of(const job_t* j, const struct cublaslt_layout* l, cuda_pointer_t at) {
  const int64_t n = (l->matrices - 1) * l->step + (l->rows - 1) * l->row + l->columns;
  return j->memory(at, (size_t)n * bytes_of(l->type));
}

// In the stream's thread.
static void run(void* user) {
  const job_t* j = user;
  const char *x = memory_of(j, &j->x, j->x_at), *w = memory_of(j, &j->w, j->w_at);
  const char* bias = NULL;
  char* y = memory_of(j, &j->y, j->y_at);
  if (j->desc.epilogue & CUBLASLT_EPILOGUE_BIAS)
    bias = j->memory(j->desc.bias, (size_t)j->y.columns * bytes_of(j->y.type));
  if (!x || !w || !y || (j->desc.epilogue & CUBLASLT_EPILOGUE_BIAS && !bias)) {
    fprintf(stderr, "cuBLASLt of the tests was given memory that is not there\n");
    abort();
  }
  for (int64_t i = 0; i < j->y.matrices; i++) {
    const sides_t s = {x + (size_t)(i * j->x.step) * bytes_of(j->x.type),
                       w + (size_t)(i * j->w.step) * bytes_of(j->w.type)};
    multiply(j, &s, bias, y + (size_t)(i * j->y.step) * bytes_of(j->y.type));
  }
}

int cublasLtMatmul(cublaslt_handle_t handle, cublaslt_desc_t desc, const void* alpha,
                   cuda_pointer_t a_at, cublaslt_layout_t a, cuda_pointer_t b_at,
                   cublaslt_layout_t b, const void* beta, cuda_pointer_t c_at, cublaslt_layout_t c,
                   cuda_pointer_t d_at, cublaslt_layout_t d, const cublaslt_algorithm_t* algorithm,
                   cuda_pointer_t workspace, size_t workspace_bytes, cuda_stream_t stream) {
  float factors[2];
  memcpy(&factors[0], alpha, sizeof *factors);
  memcpy(&factors[1], beta, sizeof *factors);
  if (factors[0] != 1 || factors[1] != 0 || c_at != d_at || c != d) return BAD_VALUE;
  if (algorithm->words[0] == FAILS) return EXECUTION_FAILED;
  if (algorithm->words[0] == PARTS && (workspace_bytes < 4096 || !handle->memory(workspace, 4096)))
    return BAD_VALUE;
  job_t* j = calloc(1, sizeof *j);
  if (!j) return ALLOC_FAILED;
  *j = (job_t){.desc = *desc,
               .x = *b,
               .w = *a,
               .y = *d,
               .x_at = b_at,
               .w_at = a_at,
               .y_at = d_at,
               .algorithm = algorithm->words[0],
               .memory = handle->memory};
  pthread_mutex_lock(&handle->lock);
  j->next = handle->jobs;
  handle->jobs = j;
  pthread_mutex_unlock(&handle->lock);
  return handle->call(stream, run, j) ? EXECUTION_FAILED : SUCCESS;
}
