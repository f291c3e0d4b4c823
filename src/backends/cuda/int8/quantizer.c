// Quantizers behind kernels that make floats.
#include "backends/cuda/int8/quantizer.h"

#include <math.h>
#include <string.h>

#include "backends/cuda/int8/end.h"
#include "exec/segment/layouts.h"

bool cuda_quantizer_read(const assay_sized_layer_t* l, assay_int8_t* out, int* x) {
  const assay_node_t* n = l->layer->nodes[0];
  const assay_operand_t* o = n->n_inputs >= 2 ? assay_sized_input(l, n->inputs[0]) : NULL;
  double scale, zero;
  if (l->layer->n_nodes != 1 || l->n_out != 1 || !o || o->type != ASSAY_TYPE_FLOAT ||
      !assay_int8_is_quantizer(n) || !int8_quantizer_read(l, n, &scale, &zero))
    return false;
  *out = (assay_int8_t){.n_sources = 1,
                        .simple = true,
                        .other = -1,
                        .low = -INFINITY,
                        .high = INFINITY,
                        .quantizes = true,
                        .type = l->out[0].type,
                        .scale = (float)scale,
                        .zero = (float)zero};
  out->sources[0] = (assay_int8_source_t){.kind = ASSAY_INT8_RESULT};
  *x = (int)(o - l->in);
  return true;
}

// Whether an operand's elements are in the same order in both layouts: what has one place a channel
// is in either, whichever a kernel calls it.
static bool lie_alike(const assay_operand_t* o, assay_layout_t a, assay_layout_t b) {
  return a == b || assay_layouts_are_same(o->rank, o->dims);
}

// Whether it reads the first one's output as it is made, and both outputs lie alike.
static bool is_next(const assay_layer_pair_t* p, int x) {
  const assay_operand_t *made = &p->layers[0]->out[0], *y = &p->layers[1]->out[0];
  const assay_kernel_t *first = p->kernels[0], *second = p->kernels[1];
  const assay_layout_t layout = first->out[0].layout;
  return p->layers[1]->in[x].value == made->value && made->type == ASSAY_TYPE_FLOAT &&
         first->out[0].type == ASSAY_TYPE_FLOAT && made->size == y->size && !first->emulated &&
         lie_alike(made, second->in[x].layout, layout) &&
         lie_alike(y, second->out[0].layout, layout) && second->out[0].type == y->type &&
         strcmp(second->tactic->name, "int8_pointwise") == 0;
}

void cuda_quantizer_numbers(const assay_int8_t* q, quantizer_args_t* out) {
  cuda_int8_end_t end = {0};
  cuda_int8_end_numbers(q, &end);
  const int8_end_args_t* e = &end.args;
  *out = (quantizer_args_t){.low = e->low,
                            .high = e->high,
                            .scale = e->scale,
                            .whole_zero = e->whole_zero,
                            .inverse = e->inverse,
                            .least = e->least,
                            .most = e->most};
}

bool cuda_quantizer_follows(const assay_layer_pair_t* p, quantizer_args_t* args,
                            assay_str_t* options) {
  const assay_sized_layer_t* l = p->layers[1];
  assay_int8_t q;
  int x;
  if (!cuda_quantizer_read(l, &q, &x) || !is_next(p, x)) return false;
  cuda_quantizer_numbers(&q, args);
  assay_str_printf(options, " -DQUANTIZED -DINT8_OUT=%s -DINT8_SIGNED=%d -DINT8_INVERSE=%d",
                   cuda_whole_name(q.type), q.type == ASSAY_TYPE_INT8, cuda_int8_has_inverse(&q));
  return true;
}

void cuda_quantizer_forms(const assay_layer_pair_t* p, assay_kernel_t* k) {
  const size_t n = p->layers[0]->n_in;
  memcpy(k->in, p->kernels[0]->in, n * sizeof *k->in);
  memset(k->in + n, 0, p->layers[1]->n_in * sizeof *k->in);
  for (int i = 0; i < 2; i++) k->out[i] = p->kernels[i]->out[0];
}
