// Layers as the kernels of a GPU compute them.
#include "backends/emu/like/layer.h"

#include <string.h>

#include "backends/emu/like/attention.h"
#include "backends/emu/like/product.h"
#include "backends/emu/like/program.h"
#include "base/alloc.h"
#include "exec/choice/describe.h"
#include "exec/segment/value_slot.h"

// ---- what is kept -------------------------------------------------------------------------------

static bool has_model(const assay_layer_t* l) {
  const bool known = l->format == ASSAY_FORMAT_FP32 || l->format == ASSAY_FORMAT_TF32 ||
                     l->format == ASSAY_FORMAT_FP16 || l->format == ASSAY_FORMAT_BF16 ||
                     l->format == ASSAY_FORMAT_FP64;
  for (size_t k = 0; !known && k < l->n_nodes; k++)
    if (l->nodes[k]->op && l->nodes[k]->op->flags & ASSAY_OP_CONTRACTS) return false;
  return true;
}

static assay_status_t want_models(const emu_gpu_t* gpu, const assay_layers_t* layers) {
  for (size_t i = 0; i < layers->n_all_layers; i++) {
    const assay_layer_t* l = &layers->layers[i];
    if (!has_model(l))
      return ASSAY_ERROR(ASSAY_UNSUPPORTED,
                         "layer '%s' multiplies in %s: how %s sums that is not known to the bit; "
                         "fp16, bf16, tf32, int8 and fp32 are",
                         l->name, assay_format_name(l->format), strchr(gpu->name, ':') + 1);
  }
  return NULL;
}

assay_status_t emu_like_create(int gpu, const assay_layers_t* layers, emu_like_t** out) {
  emu_like_t* k = NULL;
  ASSAY_TRY(want_models(&emu_gpus[gpu], layers));
  ASSAY_TRY(ASSAY_NEW(&k));
  k->gpu = &emu_gpus[gpu];
  assay_status_t st = assay_new_array(layers->n_layers, sizeof *k->ways, &k->ways);
  if (st) return emu_like_destroy(k), st;
  *out = k;
  return NULL;
}

void emu_like_destroy(emu_like_t* k) {
  if (!k) return;
  assay_sizes_deinit(&k->sizes);
  assay_free(k->ways);
  assay_free(k);
}

void emu_like_reset(emu_like_t* k) {
  assay_sizes_clear(&k->sizes);
  k->asked = false;
}

const char* emu_way_name(emu_way_t way) {
  static const char* const names[] = {"emu", "emu_product", "emu_attention", "emu_pointwise"};
  return names[way];
}

// ---- a layer with its sizes ---------------------------------------------------------------------

static assay_tensor_t* tensor_of(const assay_evaluator_t* values, const assay_value_t* v) {
  assay_tensor_t* t = assay_evaluator_get(values, v);
  return t && t->kind == ASSAY_KIND_TENSOR && t->rank <= ASSAY_KERNEL_RANK ? t : NULL;
}

static bool describe_value(void* user, const assay_value_t* v, assay_operand_t* o) {
  const assay_tensor_t* t = tensor_of(user, v);
  if (!t) return false;
  o->rank = t->rank;
  o->size = t->size;
  memcpy(o->dims, t->dims, sizeof o->dims);
  o->constant = assay_value_slot_constant(v);
  return true;
}

static assay_status_t describe(emu_like_t* k, const assay_layers_t* layers, size_t i,
                               const assay_evaluator_t* values, assay_sized_layer_t* l, bool* ok) {
  void* user = (void*)(uintptr_t)values;
  *ok = assay_describe_layer(layers, i, &k->sizes, describe_value, user, l);
  if (*ok || k->asked) return NULL;
  k->asked = true;
  ASSAY_TRY(assay_sizes_ask(&k->sizes, layers->model));
  *ok = assay_describe_layer(layers, i, &k->sizes, describe_value, user, l);
  return NULL;
}

// ---- ways ---------------------------------------------------------------------------------------

typedef struct made {
  float* y;  // room for the output, in the order of its layout
  assay_layout_t layout;
  bool ok;
} made_t;

// The nodes from the first one on, or behind a product whose sums are given.
static assay_status_t run_program(emu_operands_t* o, const pointwise_options_t* options,
                                  const float* result, made_t* m) {
  pointwise_code_t code;
  ASSAY_TRY(pointwise_compile(o->l, options, &code, &m->ok));
  if (!m->ok) return NULL;
  assay_status_t st = emu_program_run(o, &code, result, m->y);
  pointwise_deinit(&code);
  return st;
}

// Whether a program does what comes after the product, before it is multiplied.
static assay_status_t check_program(emu_operands_t* o, const pointwise_options_t* options,
                                    bool* ok) {
  pointwise_code_t code;
  ASSAY_TRY(pointwise_compile(o->l, options, &code, ok));
  if (*ok) pointwise_deinit(&code);
  return NULL;
}

static assay_status_t run_product(emu_operands_t* o, const emu_gpu_t* gpu, made_t* m) {
  const assay_layer_t* layer = o->l->layer;
  emu_product_t p;
  float* sums = NULL;
  ASSAY_TRY(emu_product_read(o, gpu, &p, &m->ok));
  if (!m->ok) ASSAY_TRY(emu_conv_read(o, gpu, &p, &m->ok));
  if (!m->ok) return NULL;
  const pointwise_options_t options = {.first = p.ends ? 0 : 1,
                                       .result = layer->nodes[0]->outputs[0],
                                       .layout = p.layout,
                                       .columns = p.y_row,
                                       .max_copied = 1};
  m->layout = p.layout;
  if (layer->n_nodes == 1 && !p.ends) return emu_product_run(&p, m->y);
  ASSAY_TRY(check_program(o, &options, &m->ok));
  if (!m->ok) return NULL;
  ASSAY_TRY(assay_new_array((size_t)o->l->out[0].size, sizeof *sums, &sums));
  assay_status_t st = emu_product_run(&p, sums);
  if (!st) st = run_program(o, &options, sums, m);
  assay_free(sums);
  return st;
}

static assay_status_t run_any(emu_operands_t* o, const emu_gpu_t* gpu, made_t* m, emu_way_t* way) {
  *way = EMU_WAY_ATTENTION;
  ASSAY_TRY(emu_attention_run(o, gpu, m->y, &m->ok));
  if (m->ok) return NULL;
  *way = EMU_WAY_PRODUCT;
  ASSAY_TRY(run_product(o, gpu, m));
  if (m->ok) return NULL;
  *way = EMU_WAY_POINTWISE;
  m->layout = ASSAY_LAYOUT_PLAIN;
  ASSAY_TRY(run_program(o, &(pointwise_options_t){.max_copied = 1}, NULL, m));
  if (!m->ok) *way = EMU_WAY_OWN;
  return NULL;
}

// The elements as the layer stores them.
static assay_status_t store(const assay_operand_t* y, const made_t* m, assay_tensor_t** out) {
  const bool turned = m->layout == ASSAY_LAYOUT_CHANNELS_LAST && y->rank >= 3;
  assay_tensor_t* t = NULL;
  float* plain = m->y;
  if (turned) ASSAY_TRY(assay_new_array((size_t)y->size, sizeof *plain, &plain));
  if (turned) emu_relayout(y->rank, y->dims, m->layout, m->y, plain);
  const assay_type_t declared = y->value->type->elem;
  assay_status_t st = assay_tensor_create(declared, y->rank, y->dims, &t);
  for (int64_t i = 0; !st && i < y->size; i++) {
    if (t->store == ASSAY_STORE_F64)
      assay_f64(t)[i] = (double)plain[i];
    else
      assay_i64(t)[i] = plain[i] != 0;
  }
  if (turned) assay_free(plain);
  if (!st && t->store == ASSAY_STORE_F64) st = assay_round_replace(&t, assay_type_format(y->type));
  if (st) return assay_tensor_release(t), st;
  *out = t;
  return NULL;
}

// One output, which is floats or truths; no layer that is computed on integers.
static bool may_be(const assay_layer_t* layer, const assay_sized_layer_t* l) {
  if (layer->int8 || layer->accumulator != ASSAY_FORMAT_FP32 || l->n_out < 1 || !l->out[0].value)
    return false;
  for (size_t k = 1; k < l->n_out; k++)
    if (l->out[k].value) return false;
  return assay_type_is_kernel_float(l->out[0].type) || l->out[0].type == ASSAY_TYPE_BOOL;
}

assay_status_t emu_like_run(emu_like_t* k, const assay_layers_t* layers, size_t i,
                            const assay_evaluator_t* values, assay_tensor_t** out) {
  assay_sized_layer_t l;
  emu_operands_t o = {.l = &l};
  made_t m = {0};
  *out = NULL;
  k->ways[i] = EMU_WAY_OWN;
  ASSAY_TRY(describe(k, layers, i, values, &l, &m.ok));
  if (!m.ok || !may_be(&layers->layers[i], &l) || !l.out[0].size) return NULL;
  for (size_t n = 0; n < l.n_in; n++) o.tensors[n] = tensor_of(values, l.in[n].value);
  assay_status_t st = assay_new_array((size_t)l.out[0].size, sizeof *m.y, &m.y);
  if (!st) st = run_any(&o, k->gpu, &m, &k->ways[i]);
  if (!st && m.ok) st = store(&l.out[0], &m, out);
  emu_operands_deinit(&o);
  assay_free(m.y);
  return st;
}
