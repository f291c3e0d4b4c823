// What a layer of attention computes.
#include "backends/layers/attention.h"

assay_status_t attention_read(const assay_sized_layer_t* l, attention_layer_t* out, bool* ok) {
  *out = (attention_layer_t){0};
  *ok = l->n_out && l->out[0].value && l->out[0].size;
  if (!*ok) return NULL;
  if (l->layer->n_nodes > 1) return attention_read_nodes(l, out, ok);
  *ok = attention_read_operator(l, out);
  return NULL;
}
