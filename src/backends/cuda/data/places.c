// What indices name.
#include "backends/cuda/data/places.h"

#include "backends/constants.h"

// ---- checks -------------------------------------------------------------------------------------

static assay_status_t error_of(const cuda_places_t* p, int64_t index, int64_t at) {
  const int64_t size = p->args.sizes[at % p->args.k];
  return ASSAY_NODE_ERROR(p->node, ASSAY_INVALID_ARGUMENT,
                          "input 'indices' has index %lld at element %lld, dim %d of the data has "
                          "size %lld; expected %lld to %lld",
                          (long long)index, (long long)at, p->first + (int)(at % p->args.k),
                          (long long)size, (long long)-size, (long long)size - 1);
}

static assay_status_t look(const void* user, const void* indices) {
  const cuda_places_t* p = user;
  for (int64_t i = 0; i < p->args.n * p->args.k; i++) {
    const int64_t size = p->args.sizes[i % p->args.k];
    const int64_t index = p->index_type == ASSAY_TYPE_INT32 ? ((const int32_t*)indices)[i]
                                                            : ((const int64_t*)indices)[i];
    if (index < -size || index >= size) return error_of(p, index, i);
  }
  return NULL;
}

// Constants are looked at once; where one of them is out of the data, the run says so.
static bool are_there(const assay_operand_t* o, const cuda_places_t* p) {
  assay_tensor_t* wide = NULL;
  if (!o->constant) return false;
  assay_status_t st = assay_tensor_widen((assay_tensor_t*)(uintptr_t)o->constant, &wide);
  bool ok = !st && wide->store == ASSAY_STORE_I64;
  for (int64_t i = 0; ok && i < p->args.n * p->args.k; i++) {
    const int64_t size = p->args.sizes[i % p->args.k];
    ok = assay_i64(wide)[i] >= -size && assay_i64(wide)[i] < size;
  }
  assay_tensor_release(wide);
  assay_status_free(st);
  return ok;
}

assay_status_t cuda_places_watch(cuda_places_t* p, assay_queue_t* q, const assay_device_ptr_t* in) {
  const size_t bytes =
      (size_t)(p->args.n * p->args.k) * (p->index_type == ASSAY_TYPE_INT32 ? 4 : 8);
  p->watch.look = look;
  p->watch.user = p;
  return p->known || !bytes ? NULL : cuda_watch_enqueue(&p->watch, q, in[p->indices], bytes);
}

const char* cuda_places_index(const cuda_places_t* p) {
  return p->index_type == ASSAY_TYPE_INT32 ? "int32_t" : "int64_t";
}

// ---- reading ------------------------------------------------------------------------------------

static bool read(const assay_sized_layer_t* l, cuda_places_t* p) {
  const assay_node_t* n = l->layer->nodes[0];
  const assay_operand_t *x = n->n_inputs > 1 ? assay_sized_input(l, n->inputs[0]) : NULL,
                        *i = x ? assay_sized_input(l, n->inputs[1]) : NULL;
  if (!x || !i || x == i || !x->rank || !i->rank || !x->size || l->n_out != 1 || !l->out[0].value ||
      !l->out[0].size || (i->type != ASSAY_TYPE_INT32 && i->type != ASSAY_TYPE_INT64))
    return false;
  *p = (cuda_places_t){
      .node = n, .data = (int)(x - l->in), .indices = (int)(i - l->in), .index_type = i->type};
  return true;
}

// A dimension in front of those that there are, or one with the first of them: the last dimension
// is put first.
static void put_dim(places_t* a, int64_t size, int64_t step) {
  if (size == 1) return;
  if (a->rank) {
    const int first = PLACES_RANK - a->rank;
    if (a->steps[first] * a->dims[first] == step) {
      a->dims[first] *= size;
      return;
    }
  }
  a->rank++;
  a->dims[PLACES_RANK - a->rank] = size;
  a->steps[PLACES_RANK - a->rank] = step;
}

static void close_dims(places_t* a) {
  const int first = PLACES_RANK - a->rank;
  for (int d = 0; d < a->rank; d++) {
    a->dims[d] = a->dims[first + d];
    a->steps[d] = a->steps[first + d];
  }
}

bool cuda_places_of_elements(const assay_sized_layer_t* l, cuda_places_t* p) {
  if (!read(l, p)) return false;
  const assay_operand_t *x = &l->in[p->data], *i = &l->in[p->indices];
  const int axis = assay_known_axis(assay_attr_i64(p->node, "axis", 0), x->rank);
  places_t* a = &p->args;
  if (axis < 0 || i->rank != x->rank) return false;
  for (int d = 0; d < x->rank; d++)
    if (d != axis && i->dims[d] > x->dims[d]) return false;
  for (int d = x->rank - 1; d >= 0; d--)
    put_dim(a, i->dims[d], d == axis ? 0 : assay_dims_product(x->dims, d + 1, x->rank));
  close_dims(a);
  p->first = axis;
  p->slice = 1;
  a->n = i->size;
  a->count = x->size;
  a->k = 1;
  a->sizes[0] = x->dims[axis];
  a->strides[0] = assay_dims_product(x->dims, axis + 1, x->rank);
  p->known = are_there(i, p);
  return true;
}

bool cuda_places_of_tuples(const assay_sized_layer_t* l, int64_t batch_dims, cuda_places_t* p) {
  if (!read(l, p)) return false;
  const assay_operand_t *x = &l->in[p->data], *i = &l->in[p->indices];
  const int last = i->rank - 1, batch = (int)batch_dims;
  places_t* a = &p->args;
  if (batch_dims < 0 || batch_dims >= x->rank || batch_dims > last ||
      i->dims[last] > x->rank - batch)
    return false;
  for (int d = 0; d < batch; d++)
    if (x->dims[d] != i->dims[d]) return false;
  a->k = (int32_t)i->dims[last];
  a->n = assay_dims_product(i->dims, 0, last);
  p->first = batch;
  p->slice = assay_dims_product(x->dims, batch + a->k, x->rank);
  a->count = x->size / p->slice;
  for (int d = last - 1; d >= 0; d--)
    put_dim(a, i->dims[d], d >= batch ? 0 : assay_dims_product(x->dims, d + 1, x->rank) / p->slice);
  close_dims(a);
  for (int j = 0; j < a->k; j++) {
    a->sizes[j] = x->dims[batch + j];
    a->strides[j] = assay_dims_product(x->dims, batch + j + 1, x->rank) / p->slice;
  }
  p->known = are_there(i, p);
  return true;
}
