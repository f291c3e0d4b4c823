// Products of whose columns the two halves are put together.
#include "backends/cuda/product/halves.h"

#include <string.h>

#include "backends/cuda/product/constants.h"
#include "base/alloc.h"

assay_status_t cuda_halves_join(const assay_layer_pair_t* pair, cuda_joint_layer_t* out) {
  const assay_sized_layer_t *first = pair->layers[0], *second = pair->layers[1];
  const size_t n = first->layer->n_nodes, more = second->layer->n_nodes;
  *out = (cuda_joint_layer_t){.layer = *first->layer, .sized = *first};
  ASSAY_TRY(assay_new_array(n + more, sizeof *out->nodes, &out->nodes));
  memcpy(out->nodes, first->layer->nodes, n * sizeof *out->nodes);
  memcpy(out->nodes + n, second->layer->nodes, more * sizeof *out->nodes);
  out->layer.nodes = out->nodes;
  out->layer.n_nodes = n + more;
  out->sized.layer = &out->layer;
  out->sized.gates = NULL;
  memcpy(out->sized.in + first->n_in, second->in, second->n_in * sizeof *second->in);
  out->sized.n_in += second->n_in;
  out->sized.out[0] = second->out[0];
  return NULL;
}

int cuda_halves_input(const assay_sized_layer_t* l) {
  for (size_t i = 0; i < l->n_in; i++)
    for (size_t k = 0; k < l->layer->n_nodes; k++)
      if (l->in[i].value->producer == l->layer->nodes[k]) return (int)i;
  return -1;
}

const assay_operand_t* cuda_product_result(const assay_sized_layer_t* l) {
  const int halves = cuda_halves_input(l);
  return halves < 0 ? &l->out[0] : &l->in[halves];
}

// The constant weights of one matrix, whose elements are so far apart; false: they are none.
static bool find_weights(const assay_sized_layer_t* l, const cuda_product_t* p,
                         const assay_operand_t** out, cuda_halves_t* h) {
  enum { PIECE = 8 };
  const product_args_t* a = &p->args;
  const assay_operand_t* w = assay_sized_input(l, l->layer->nodes[0]->inputs[1]);
  if (!w || !w->constant || a->matrices != 1 || p->left == CUDA_LEFT_TRANSPOSED) return false;
  *out = w;
  *h = (cuda_halves_t){a->n / 2,    1, a->k,  (a->k + PIECE - 1) / PIECE * PIECE,
                       a->w_column, 0, a->w_k};
  if (p->layout != ASSAY_LAYOUT_CHANNELS_LAST) return true;
  h->tap_step = 1;
  h->channels = w->dims[1];
  h->taps = h->channel_step = a->k / w->dims[1];
  h->column_step = a->k;
  return true;
}

assay_status_t cuda_halves_take(const assay_sized_layer_t* l, bool direct, cuda_product_t* p,
                                bool* ok) {
  product_args_t* a = &p->args;
  const assay_operand_t* w;
  cuda_halves_t h;
  *ok = !p->ends && a->y_row % 2 == 0 &&
        l->layer->nodes[p->done - 1]->outputs[0] == l->in[p->halves].value;
  if (!*ok) return NULL;
  p->half_type = l->in[p->halves].type;
  *ok = direct || find_weights(l, p, &w, &h);
  a->y_row /= 2;
  if (!*ok || direct) return NULL;
  a->n = cuda_halves_columns(&h);
  a->w_k = 1;
  a->w_column = h.pitch;
  p->w = -1;
  return cuda_halves_get(l, w, &h, &a->w);
}

assay_status_t cuda_halves_program(const assay_sized_layer_t* l, const cuda_product_t* p,
                                   cuda_program_t** out) {
  const pointwise_options_t options = {
      .first = (size_t)p->done, .layout = p->layout, .columns = p->args.y_row};
  return cuda_program_make_of_halves(l, &options, p->halves, out);
}
