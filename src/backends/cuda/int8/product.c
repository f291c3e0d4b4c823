// What products and convolutions on 8-bit integers multiply, and kernels of them.
#include "backends/cuda/int8/product.h"

#include "backends/cuda/kernels/int8_bulk_args.h"
#include "backends/cuda/product/read_conv.h"
#include "base/alloc.h"

// ---- reading ------------------------------------------------------------------------------------

// An operand's type and shape, as the functions of ops/ want them.
static void set_head(assay_tensor_t* t, int rank, const int64_t* dims, int64_t size) {
  *t = (assay_tensor_t){.kind = ASSAY_KIND_TENSOR, .rank = rank, .size = size};
  for (int i = 0; i < rank; i++) t->dims[i] = dims[i];
}

static assay_status_t read_conv(const assay_sized_layer_t* l, cuda_int8_t* p, bool* ok) {
  const int8_job_t* j = &p->job;
  assay_tensor_t x, w;
  cuda_conv_sizes_t s;
  *ok = j->weights && j->x->rank >= 3 && j->x->rank <= 5 && j->rank == j->x->rank;
  if (!*ok) return NULL;
  set_head(&x, j->x->rank, j->x->dims, j->x->size);
  set_head(&w, j->rank, j->dims, j->n_weights);
  p->p.layout = ASSAY_LAYOUT_CHANNELS_LAST;
  return cuda_conv_read_sizes(j->anchor, &x, &w, &l->out[0], &p->p, &s, ok);
}

static void read_product(cuda_int8_t* p, bool* ok) {
  const int8_job_t* j = &p->job;
  product_args_t* a = &p->p.args;
  int8_product_t s;
  *ok = int8_product_read(j, &s) && s.k <= INT32_MAX / (255 * 255) && s.n <= INT32_MAX;
  if (!*ok) return;
  *a = (product_args_t){.m = s.m, .n = s.n, .k = s.k, .matrices = s.batch, .n_dims = 1};
  a->dims[0] = s.batch;
  a->x_step[0] = s.m * s.k;
  a->w_step[0] = s.shared ? 0 : s.k * s.n;
  a->y_step[0] = s.m * s.n;
  a->x_row = s.k;
  a->x_k = 1;
  a->w_k = s.swapped ? 1 : s.n;
  a->w_column = s.swapped ? s.k : 1;
  a->y_row = s.n;
}

static assay_status_t read(const assay_sized_layer_t* l, cuda_int8_t* p, bool* ok) {
  const int8_job_t* j = &p->job;
  p->p.x = (int)(j->x - l->in);
  p->p.w = j->weights ? -1 : (int)(j->w - l->in);
  *ok = j->zero_input < 0 || j->zero_type == j->x_type;
  if (!*ok) return NULL;
  if (int8_is_product(j->anchor)) return read_product(p, ok), NULL;
  return read_conv(l, p, ok);
}

assay_status_t cuda_int8_open(const assay_sized_layer_t* l, cuda_int8_t* p, bool* ok) {
  *p = (cuda_int8_t){0};
  ASSAY_TRY(int8_job_open(l, NULL, &p->job, ok));
  if (!*ok) return NULL;
  assay_status_t st = read(l, p, ok);
  if (st || !*ok) int8_job_close(&p->job);
  return st;
}

bool cuda_int8_has_tiles(const cuda_int8_t* p) {
  enum { FEW = 8 };  // columns or channels of a group that a tile would waste
  const product_args_t* a = &p->p.args;
  return !p->p.left || a->matrices == 1 || a->n > FEW || a->channels > FEW;
}

void cuda_int8_close(cuda_int8_t* p) { int8_job_close(&p->job); }

// ---- kernels ------------------------------------------------------------------------------------

typedef struct int8_product_kernel {
  assay_kernel_t base;
  int x, w, zero;  // inputs; -1: none
  int8_product_args_t args;
  cuda_gather_t gather;
  bool has_maps;
  cuda_bulk_t bulk;
  bool has_end;
  cuda_int8_end_t end;
  assay_int8_t joined;   // what the end is read from where both outputs are stored
  assay_arena_t* arena;  // of what the end is read from; NULL: the layer's
  cuda_kernel_t kernel;
  cuda_grid_t grid;
} int8_product_kernel_t;

static assay_status_t launch_bulk(const int8_product_kernel_t* k, assay_queue_t* q,
                                  const int8_product_args_t* args) {
  int8_bulk_args_t all = {.of = *args};
  ASSAY_TRY(cuda_bulk_map(q, &k->bulk, args->product.x, args->product.w, &all.x, &all.w));
  return cuda_queue_launch(q, k->kernel, &k->grid, &all);
}

static assay_status_t enqueue(assay_kernel_t* base, assay_queue_t* q, const assay_device_ptr_t* in,
                              const assay_device_ptr_t* out, assay_device_ptr_t scratch) {
  const int8_product_kernel_t* k = (const int8_product_kernel_t*)base;
  int8_product_args_t args = k->args;
  args.product.x = in[k->x];
  if (k->gather.args.rows) {
    ASSAY_TRY(cuda_gather_enqueue(&k->gather, q, in[k->x], scratch));
    args.product.x = scratch;
  }
  if (k->w >= 0) args.product.w = in[k->w];
  if (k->zero >= 0) args.zero_x_at = in[k->zero];
  args.product.y = out[k->end.both];
  if (k->has_end) cuda_int8_end_fill(&k->end, in, out[0], &args.end);
  if (k->has_maps) return launch_bulk(k, q, &args);
  return cuda_queue_launch(q, k->kernel, &k->grid, &args);
}

static void destroy(assay_kernel_t* base) {
  int8_product_kernel_t* k = (int8_product_kernel_t*)base;
  cuda_int8_end_close(&k->end);
  assay_arena_destroy(k->arena);
  assay_free(k);
}

static assay_status_t set_end(const assay_sized_layer_t* l, cuda_int8_t* p,
                              int8_product_kernel_t* k, bool* ok) {
  const assay_operand_t* y = &l->out[0];
  const bool last = p->p.layout == ASSAY_LAYOUT_CHANNELS_LAST, both = p->joined != NULL;
  *ok = true;
  k->has_end = p->job.q != NULL;
  if (!k->has_end) return NULL;
  if (both) k->joined = *p->joined;
  ASSAY_TRY(cuda_int8_end_open(l, both ? &k->joined : p->job.q, both,
                               y->dims[last ? 1 : y->rank - 1], p->p.layout, &k->end, ok));
  k->arena = p->job.arena;
  p->job.arena = NULL;
  *ok = *ok && cuda_int8_end_forms(&k->end, l, p->p.layout, &k->base);
  return NULL;
}

// The form of an input; false: it is read in another one already.
static bool set_form(assay_kernel_t* k, int input, assay_storage_t form) {
  assay_storage_t* at = &k->in[input];
  if (at->type && at->layout != form.layout) return false;
  *at = form;
  return true;
}

static bool set_forms(const assay_sized_layer_t* l, const cuda_int8_t* p,
                      int8_product_kernel_t* k) {
  const int8_job_t* j = &p->job;
  const assay_layout_t layout = p->p.layout;
  k->base.out[0] = (assay_storage_t){l->out[0].type, layout};
  if (p->joined) k->base.out[1] = (assay_storage_t){p->joined->type, layout};
  return set_form(&k->base, k->x, (assay_storage_t){j->x_type, layout}) &&
         (k->w < 0 || set_form(&k->base, k->w, (assay_storage_t){j->w_type, ASSAY_LAYOUT_PLAIN})) &&
         (k->zero < 0 ||
          set_form(&k->base, k->zero, (assay_storage_t){j->zero_type, ASSAY_LAYOUT_PLAIN}));
}

static assay_status_t load(const assay_sized_layer_t* l, const cuda_int8_t* p,
                           const cuda_source_t* source, int8_product_kernel_t* k) {
  assay_str_t options = {0};
  assay_str_printf(&options, "%s -DCONV=%d -DX_TYPE=%s -DZERO_READ=%d -DEND=%d", source->options,
                   (int)p->p.left, cuda_whole_name(p->job.x_type), k->zero >= 0, k->has_end);
  cuda_source_t whole = *source;
  whole.options = assay_str_get(&options);
  whole.program = k->has_end ? assay_str_get(&k->end.text) : NULL;
  assay_status_t st = assay_str_status(&options);
  if (!st) st = cuda_function_get(cuda_own_of(l)->functions, &whole, &k->kernel);
  assay_str_deinit(&options);
  return st;
}

assay_status_t cuda_int8_kernel(const assay_sized_layer_t* l, cuda_int8_t* p,
                                const int8_product_args_t* args, const cuda_bulk_t* bulk,
                                const cuda_source_t* source, const cuda_grid_t* grid,
                                assay_kernel_t** out) {
  int8_product_kernel_t* k = NULL;
  bool ok = false;
  ASSAY_TRY(ASSAY_NEW(&k));
  k->base = (assay_kernel_t){.in_place = -1, .enqueue = enqueue, .destroy = destroy};
  k->args = *args;
  k->grid = *grid;
  k->gather = p->p.gather;
  k->base.scratch = (size_t)(k->gather.args.rows * k->gather.args.pitch);
  k->has_maps = bulk != NULL;
  if (bulk) k->bulk = *bulk;
  k->x = p->p.x;
  k->w = p->p.w;
  k->zero = p->job.zero_input;
  assay_status_t st = set_end(l, p, k, &ok);
  ok = ok && set_forms(l, p, k);
  if (!st && ok) st = load(l, p, source, k);
  if (st || !ok) return destroy(&k->base), st;
  *out = &k->base;
  return NULL;
}
