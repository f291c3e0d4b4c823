// A multiplication of an image's channels, or of columns of a matrix, by numbers of a sample
// (squeeze-excite, channel attention), and the product that reads what that makes, in one launch
// (kernels/product/product_scaled.h): it is neither written nor read again.
#include "backends/cuda/product/scale.h"

#include <string.h>

#include "base/alloc.h"

extern const assay_tactic_t cuda_tactic_chain, cuda_tactic_product_bulk;

typedef struct scale_kernel {
  assay_kernel_t base;
  assay_kernel_t* product;  // of the second layer's operands, and behind them the first one's
  int first, second;        // how many of them there are
} scale_kernel_t;

static assay_status_t enqueue(assay_kernel_t* base, assay_queue_t* q, const assay_device_ptr_t* in,
                              const assay_device_ptr_t* out, assay_device_ptr_t scratch) {
  const scale_kernel_t* k = (const scale_kernel_t*)base;
  assay_device_ptr_t all[ASSAY_KERNEL_OPERANDS];
  memcpy(all, in + k->first, (size_t)k->second * sizeof *all);
  memcpy(all + k->second, in, (size_t)k->first * sizeof *all);
  return k->product->enqueue(k->product, q, all, out + 1, scratch);
}

static void destroy(assay_kernel_t* base) {
  scale_kernel_t* k = (scale_kernel_t*)base;
  if (k->product) k->product->destroy(k->product);
  assay_free(k);
}

// ---- what is multiplied -------------------------------------------------------------------------

static bool is_read(const pointwise_code_t* c, int operand, assay_type_t type) {
  if (operand < 0 || operand >= (int)c->n_streams) return false;
  const pointwise_stream_t* s = &c->streams[operand];
  return s->input >= 0 && !s->constant && !s->cut && s->type == type;
}

// How many rows of the output share one of a stream's, whose rows lie side by side; 0: they do not.
static int64_t rows_of(const pointwise_code_t* c, int operand) {
  const pointwise_walk_t* w = &c->walks[operand];
  if (w->block || w->access == POINTWISE_MOVED || w->strides[c->rank - 1] != 1) return 0;
  for (int d = 1; d < c->rank - 1; d++)
    if (w->strides[d]) return 0;
  if (c->rank == 1 || !w->strides[0]) return c->rows;
  return c->rank > 2 && w->strides[0] == c->columns ? c->rows / c->dims[0] : 0;
}

static bool read_code(const pointwise_code_t* c, assay_type_t type, cuda_scale_t* out) {
  const pointwise_instruction_t* code = &c->code[0];
  if (c->integers || c->n_code != 1 || code->function != POINTWISE_MUL) return false;
  for (int i = 0; i < 2; i++) {
    const int x = code->operand[i], numbers = code->operand[1 - i];
    if (!is_read(c, x, type) || !is_read(c, numbers, type) || x == numbers) return false;
    out->rows = rows_of(c, numbers);
    if (c->walks[x].access != POINTWISE_WHOLE || !out->rows) continue;
    out->x = c->streams[x].input;
    out->numbers = c->streams[numbers].input;
    return true;
  }
  return false;
}

// Of rows of `columns` elements, which lie so.
static assay_status_t read_scale(const assay_sized_layer_t* l, const assay_storage_t* form,
                                 int64_t columns, cuda_scale_t* out, bool* ok) {
  const pointwise_options_t options = {.layout = form->layout, .columns = columns};
  pointwise_code_t code;
  ASSAY_TRY(pointwise_compile(l, &options, &code, ok));
  if (!*ok) return NULL;
  *ok = read_code(&code, form->type, out);
  pointwise_deinit(&code);
  return NULL;
}

// ---- which kernel -------------------------------------------------------------------------------

// The tile that runs the product alone, or the one that is predicted to be fastest.
static assay_status_t choose(const assay_sized_layer_t* l, const assay_kernel_t* alone,
                             assay_variant_t* out, bool* ok) {
  assay_variant_t all[ASSAY_MAX_VARIANTS];
  const char* name = strchr(alone->name, '/');
  size_t n = 0, best = 0;
  ASSAY_TRY(cuda_tactic_product_bulk.variants(l, all, &n));
  for (size_t i = 1; i < n; i++)
    if (all[i].predicted < all[best].predicted) best = i;
  for (size_t i = 0; name && alone->tactic == &cuda_tactic_product_bulk && i < n; i++)
    if (strcmp(all[i].name, name + 1) == 0) best = i;
  *ok = n > 0;
  if (*ok) *out = all[best];
  return NULL;
}

// ---- entry --------------------------------------------------------------------------------------

static assay_status_t make(const assay_layer_pair_t* pair, scale_kernel_t* k) {
  const assay_sized_layer_t *first = pair->layers[0], *second = pair->layers[1];
  const assay_storage_t* form = &pair->kernels[0]->out[0];
  assay_sized_layer_t both = *second;
  cuda_product_t p;
  cuda_scale_t scale;
  assay_variant_t v;
  bool ok;
  ASSAY_TRY(cuda_product_read(second, &p, &ok));
  if (!ok || second->in[p.x].value != first->out[0].value || p.in == ASSAY_TYPE_FLOAT ||
      form->type != p.in || form->layout != p.layout)
    return NULL;
  ASSAY_TRY(read_scale(first, form, p.args.k, &scale, &ok));
  if (ok) ASSAY_TRY(choose(second, pair->kernels[1], &v, &ok));
  if (!ok) return NULL;
  memcpy(both.in + both.n_in, first->in, first->n_in * sizeof *first->in);
  both.n_in += first->n_in;
  k->first = (int)first->n_in;
  k->second = (int)second->n_in;
  scale.x += k->second;
  scale.numbers += k->second;
  return cuda_product_bulk_scaled(&both, &v, &scale, &k->product);
}

static assay_status_t make_pair(const assay_layer_pair_t* pair, assay_kernel_t** out) {
  scale_kernel_t* k = NULL;
  const char* numerics = pair->kernels[1]->numerics;
  if (!pair->hides || pair->kernels[0]->tactic != &cuda_tactic_chain || !numerics ||
      strcmp(numerics, "tensor") != 0)
    return NULL;
  ASSAY_TRY(ASSAY_NEW(&k));
  k->base = (assay_kernel_t){.in_place = -1, .enqueue = enqueue, .destroy = destroy};
  assay_status_t st = make(pair, k);
  if (st || !k->product) return destroy(&k->base), st;
  // Where numbers lie one by one, either layout is the same to the kernel.
  memcpy(k->base.in, pair->kernels[0]->in, (size_t)k->first * sizeof *k->base.in);
  memcpy(k->base.in + k->first, k->product->in, (size_t)k->second * sizeof *k->base.in);
  k->base.out[0] = pair->kernels[0]->out[0];
  k->base.out[1] = k->product->out[0];
  k->base.scratch = k->product->scratch;
  *out = &k->base;
  return NULL;
}

const assay_tactic_t cuda_tactic_scale = {
    .name = "scale",
    .source = "assay",
    .numerics = "tensor",
    .make_pair = make_pair,
    .rounding = CUDA_TENSOR_ROUNDING,
};
