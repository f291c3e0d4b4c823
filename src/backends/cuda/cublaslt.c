// Products by cuBLASLt.
//
// Its matrices lie column by column, so that what is y = x w row by row is y^T = w^T x^T for it: w
// is its left side, x its right one, and no matrix moves. Biases are by row of y^T then, as it has
// them.
#include "backends/cuda/cublaslt.h"

#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "backends/cuda/driver_internal.h"
#include "base/alloc.h"

enum { PROPOSED = 16, KEPT = 3, WORKSPACE = 32 << 20 };  // KEPT: with splits, and without

// What a product consists of for the library.
typedef struct parts {
  cublaslt_desc_t desc;
  cublaslt_layout_t w, x, y;
} parts_t;

typedef struct proposals {
  cublaslt_product_t product;
  cublaslt_way_t ways[2 * KEPT];
  size_t n;
  struct proposals* next;
} proposals_t;

struct cublaslt {
  cuda_gpu_t* gpu;
  pthread_mutex_t lock;
  bool opened;                // it was tried
  const cublaslt_api_t* api;  // NULL: there is none
  cublaslt_handle_t handle;
  proposals_t* known;
};

struct cublaslt_call {
  const cublaslt_t* lt;
  parts_t parts;
  cublaslt_algorithm_t algorithm;
  size_t scratch;
};

assay_status_t cublaslt_create(assay_device_t* d, cublaslt_t** out) {
  ASSAY_TRY(ASSAY_NEW(out));
  (*out)->gpu = (cuda_gpu_t*)d;
  pthread_mutex_init(&(*out)->lock, NULL);
  return NULL;
}

void cublaslt_destroy(cublaslt_t* lt) {
  if (!lt) return;
  // Of a lost GPU nothing is left.
  assay_status_t outside = lt->handle ? cuda_enter(lt->gpu) : NULL;
  if (lt->handle && !outside) {
    (void)lt->api->cublasLtDestroy(lt->handle);
    cuda_leave(lt->gpu);
  }
  assay_status_free(outside);
  while (lt->known) {
    proposals_t* next = lt->known->next;
    assay_free(lt->known);
    lt->known = next;
  }
  pthread_mutex_destroy(&lt->lock);
  assay_free(lt);
}

static assay_status_t check(const cublaslt_api_t* api, int status, const char* function) {
  if (!status) return NULL;
  return ASSAY_ERROR(
      ASSAY_DEVICE,
      "%s of cuBLASLt %d.%d.%d gave %s (%d); --tactic-sources assay builds without it", function,
      api->major, api->minor, api->patch, api->cublasLtGetStatusName(status), status);
}

#define CUBLASLT_TRY(api, function, ...) \
  ASSAY_TRY(check(api, (api)->function(__VA_ARGS__), #function))

// Locked. It stays without an API where the library is not there or does not take the GPU.
static void open_library(cublaslt_t* lt) {
  if (lt->opened) return;
  lt->opened = true;
  assay_status_t st = cublaslt_api_get(lt->gpu->api->version, &lt->api);
  if (!st) st = cuda_enter(lt->gpu);
  if (!st) {
    if (lt->api->cublasLtCreate(&lt->handle)) lt->handle = NULL;
    cuda_leave(lt->gpu);
  }
  if (!lt->handle) lt->api = NULL;
  assay_status_free(st);
}

// ---- products -----------------------------------------------------------------------------------

static int type_of(assay_type_t t) {
  return t == ASSAY_TYPE_FLOAT16    ? CUBLASLT_R_16F
         : t == ASSAY_TYPE_BFLOAT16 ? CUBLASLT_R_16BF
                                    : CUBLASLT_R_32F;
}

static int compute_of(const cublaslt_product_t* p) {
  if (p->in != ASSAY_TYPE_FLOAT) return CUBLASLT_COMPUTE_32F;
  return p->tf32 ? CUBLASLT_COMPUTE_32F_FAST_TF32 : CUBLASLT_COMPUTE_32F_PEDANTIC;
}

// A matrix of rows that lie `row` elements apart, turned for the library.
static assay_status_t make_layout(const cublaslt_api_t* api, assay_type_t type, int64_t rows,
                                  int64_t columns, int64_t row, int64_t matrices, int64_t step,
                                  cublaslt_layout_t* out) {
  const int32_t n = (int32_t)matrices;
  CUBLASLT_TRY(api, cublasLtMatrixLayoutCreate, out, type_of(type), (uint64_t)columns,
               (uint64_t)rows, row);
  if (n == 1) return NULL;
  CUBLASLT_TRY(api, cublasLtMatrixLayoutSetAttribute, *out, CUBLASLT_LAYOUT_BATCH, &n, sizeof n);
  CUBLASLT_TRY(api, cublasLtMatrixLayoutSetAttribute, *out, CUBLASLT_LAYOUT_BATCH_STEP, &step,
               sizeof step);
  return NULL;
}

static assay_status_t set_bias(const cublaslt_api_t* api, cublaslt_desc_t desc,
                               assay_device_ptr_t bias) {
  CUBLASLT_TRY(api, cublasLtMatmulDescSetAttribute, desc, CUBLASLT_DESC_BIAS_POINTER, &bias,
               sizeof bias);
  return NULL;
}

static assay_status_t make_desc(const cublaslt_api_t* api, const cublaslt_product_t* p,
                                assay_device_ptr_t bias, cublaslt_desc_t* out) {
  const int32_t turn_w = p->w_turned, turn_x = p->x_turned;
  const uint32_t end =
      (p->bias ? CUBLASLT_EPILOGUE_BIAS : 0U) | (p->relu ? CUBLASLT_EPILOGUE_RELU : 0U);
  const uint32_t epilogue = end ? end : CUBLASLT_EPILOGUE_NONE;
  CUBLASLT_TRY(api, cublasLtMatmulDescCreate, out, compute_of(p), CUBLASLT_R_32F);
  CUBLASLT_TRY(api, cublasLtMatmulDescSetAttribute, *out, CUBLASLT_DESC_TRANSPOSE_A, &turn_w,
               sizeof turn_w);
  CUBLASLT_TRY(api, cublasLtMatmulDescSetAttribute, *out, CUBLASLT_DESC_TRANSPOSE_B, &turn_x,
               sizeof turn_x);
  CUBLASLT_TRY(api, cublasLtMatmulDescSetAttribute, *out, CUBLASLT_DESC_EPILOGUE, &epilogue,
               sizeof epilogue);
  return p->bias ? set_bias(api, *out, bias) : NULL;
}

static void parts_deinit(const cublaslt_api_t* api, parts_t* p) {
  if (p->desc) (void)api->cublasLtMatmulDescDestroy(p->desc);
  if (p->w) (void)api->cublasLtMatrixLayoutDestroy(p->w);
  if (p->x) (void)api->cublasLtMatrixLayoutDestroy(p->x);
  if (p->y) (void)api->cublasLtMatrixLayoutDestroy(p->y);
  *p = (parts_t){0};
}

// Deinit it also where it fails.
static assay_status_t parts_init(const cublaslt_api_t* api, const cublaslt_product_t* p,
                                 assay_device_ptr_t bias, parts_t* out) {
  ASSAY_TRY(make_desc(api, p, bias, &out->desc));
  ASSAY_TRY(make_layout(api, p->in, p->w_turned ? p->n : p->k, p->w_turned ? p->k : p->n, p->w_row,
                        p->matrices, p->w_step, &out->w));
  ASSAY_TRY(make_layout(api, p->in, p->x_turned ? p->k : p->m, p->x_turned ? p->m : p->k, p->x_row,
                        p->matrices, p->x_step, &out->x));
  return make_layout(api, p->out, p->m, p->n, p->y_row, p->matrices, p->y_step, &out->y);
}

// ---- proposals ----------------------------------------------------------------------------------

static uint32_t attribute_of(const cublaslt_api_t* api, const cublaslt_algorithm_t* a,
                             int attribute) {
  uint32_t value = 0;
  uint16_t narrow = 0;
  size_t bytes = 0;
  if (attribute != CUBLASLT_ALGORITHM_CLUSTER) {
    if (api->cublasLtMatmulAlgoConfigGetAttribute(a, attribute, &value, sizeof value, &bytes))
      return 0;
    return value;
  }
  if (api->cublasLtMatmulAlgoConfigGetAttribute(a, attribute, &narrow, sizeof narrow, &bytes))
    return 0;
  return narrow;
}

// False: the name has no room.
static bool describe(const cublaslt_api_t* api, const cublaslt_result_t* r, cublaslt_way_t* w) {
  const cublaslt_algorithm_t* a = &r->algorithm;
  const uint32_t splits = attribute_of(api, a, CUBLASLT_ALGORITHM_SPLITS);
  const int n = snprintf(w->name, sizeof w->name, "%d.%d.%d-%u.%u.%u.%u.%u.%u", api->major,
                         api->minor, api->patch, attribute_of(api, a, CUBLASLT_ALGORITHM_ID),
                         attribute_of(api, a, CUBLASLT_ALGORITHM_TILE),
                         attribute_of(api, a, CUBLASLT_ALGORITHM_STAGES),
                         attribute_of(api, a, CUBLASLT_ALGORITHM_CLUSTER),
                         attribute_of(api, a, CUBLASLT_ALGORITHM_CUSTOM),
                         attribute_of(api, a, CUBLASLT_ALGORITHM_SWIZZLE));
  if (n < 0 || (size_t)n >= sizeof w->name) return false;
  w->algorithm = *a;
  w->scratch = r->workspace;
  w->splits = splits > 1 || attribute_of(api, a, CUBLASLT_ALGORITHM_REDUCTION);
  if (!w->splits) return true;
  const int more = snprintf(w->name + n, sizeof w->name - (size_t)n, "_%u", splits);
  return more > 0 && (size_t)(n + more) < sizeof w->name;
}

static void take(const cublaslt_api_t* api, const cublaslt_result_t* r, proposals_t* to) {
  cublaslt_way_t w;
  size_t alike = 0;
  if (r->status || r->workspace > WORKSPACE || !describe(api, r, &w)) return;
  for (size_t i = 0; i < to->n; i++) {
    if (strcmp(to->ways[i].name, w.name) == 0) return;
    alike += to->ways[i].splits == w.splits;
  }
  if (alike < KEPT) to->ways[to->n++] = w;
}

// What the library does not take it says by an error.
static void ask(const cublaslt_t* lt, const parts_t* parts, cublaslt_preference_t preference,
                proposals_t* to) {
  cublaslt_result_t results[PROPOSED] = {{.workspace = 0}};
  const uint64_t workspace = WORKSPACE;
  int n = 0;
  if (lt->api->cublasLtMatmulPreferenceSetAttribute(preference, CUBLASLT_PREFERENCE_WORKSPACE,
                                                    &workspace, sizeof workspace) ||
      lt->api->cublasLtMatmulAlgoGetHeuristic(lt->handle, parts->desc, parts->w, parts->x, parts->y,
                                              parts->y, preference, PROPOSED, results, &n))
    return;
  for (int i = 0; i < n && i < PROPOSED; i++) take(lt->api, &results[i], to);
}

static assay_status_t propose(const cublaslt_t* lt, proposals_t* to) {
  // A bias counts by the alignment of its address there.
  const assay_device_ptr_t bias = lt->gpu->base.alignment;
  cublaslt_preference_t preference = NULL;
  parts_t parts = {0};
  ASSAY_TRY(cuda_enter(lt->gpu));
  assay_status_t none = parts_init(lt->api, &to->product, bias, &parts);
  if (!none && !lt->api->cublasLtMatmulPreferenceCreate(&preference))
    ask(lt, &parts, preference, to);
  if (preference) (void)lt->api->cublasLtMatmulPreferenceDestroy(preference);
  parts_deinit(lt->api, &parts);
  cuda_leave(lt->gpu);
  assay_status_free(none);
  return NULL;
}

// Locked.
static assay_status_t find(cublaslt_t* lt, const cublaslt_product_t* p, const proposals_t** out) {
  proposals_t* made = NULL;
  for (*out = lt->known; *out; *out = (*out)->next)
    if (memcmp(&(*out)->product, p, sizeof *p) == 0) return NULL;
  ASSAY_TRY(ASSAY_NEW(&made));
  memcpy(&made->product, p, sizeof *p);
  assay_status_t st = propose(lt, made);
  if (st) return assay_free(made), st;
  made->next = lt->known;
  *out = lt->known = made;
  return NULL;
}

assay_status_t cublaslt_ways(cublaslt_t* lt, const cublaslt_product_t* p,
                             const cublaslt_way_t** out, size_t* out_n) {
  const proposals_t* found = NULL;
  assay_status_t st = NULL;
  pthread_mutex_lock(&lt->lock);
  open_library(lt);
  if (lt->api) st = find(lt, p, &found);
  pthread_mutex_unlock(&lt->lock);
  *out = found ? found->ways : NULL;
  *out_n = found ? found->n : 0;
  return st;
}

// ---- running ------------------------------------------------------------------------------------

assay_status_t cublaslt_call_create(cublaslt_t* lt, const cublaslt_product_t* p,
                                    const cublaslt_way_t* way, cublaslt_call_t** out) {
  cublaslt_call_t* c = NULL;
  ASSAY_TRY(ASSAY_NEW(&c));
  *c = (cublaslt_call_t){.lt = lt, .algorithm = way->algorithm, .scratch = way->scratch};
  assay_status_t st = parts_init(lt->api, p, 0, &c->parts);
  if (st) return cublaslt_call_destroy(c), st;
  *out = c;
  return NULL;
}

void cublaslt_call_destroy(cublaslt_call_t* c) {
  if (!c) return;
  parts_deinit(c->lt->api, &c->parts);
  assay_free(c);
}

assay_status_t cublaslt_enqueue(const cublaslt_call_t* c, assay_queue_t* base,
                                const cublaslt_operands_t* at) {
  static const float one = 1, zero = 0;
  const cuda_queue_t* q = (const cuda_queue_t*)base;
  const cublaslt_api_t* api = c->lt->api;
  const parts_t* p = &c->parts;
  if (at->bias) ASSAY_TRY(set_bias(api, p->desc, at->bias));
  ASSAY_TRY(cuda_enter(q->gpu));
  const int status =
      api->cublasLtMatmul(c->lt->handle, p->desc, &one, at->w, p->w, at->x, p->x, &zero, at->y,
                          p->y, at->y, p->y, &c->algorithm, at->scratch, c->scratch, q->stream);
  cuda_leave(q->gpu);
  return check(api, status, "cublasLtMatmul");
}
