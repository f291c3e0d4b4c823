// Values that grow in place: how their elements lie.
#include "exec/append.h"

#include <string.h>

#include "formats/format.h"
#include "tensor/tensor.h"

// Runs of elements that lie side by side either way, and from one to the next with room.
typedef struct runs {
  int64_t n;
  size_t bytes, step;
} runs_t;

static runs_t runs_of(const assay_append_t* a, const int64_t* dims) {
  const assay_valtype_t* t = a->in->type;
  const size_t inner =
      (size_t)assay_dims_product(dims, a->axis + 1, t->rank) * (size_t)assay_type_bits(t->elem) / 8;
  return (runs_t){.n = assay_dims_product(dims, 0, a->axis),
                  .bytes = (size_t)dims[a->axis] * inner,
                  .step = (size_t)a->capacity * inner};
}

void assay_append_settle(assay_append_t* a, const int64_t* dims, bool with_capacity) {
  const runs_t r = runs_of(a, dims);
  char* memory = a->memory;
  const bool same = a->with_capacity == with_capacity;
  a->with_capacity = with_capacity;
  // Outwards from the last, inwards from the first: none is written over before it has moved.
  for (int64_t i = r.n - 1; !same && with_capacity && i > 0; i--)
    memmove(memory + (size_t)i * r.step, memory + (size_t)i * r.bytes, r.bytes);
  for (int64_t i = 1; !same && !with_capacity && i < r.n; i++)
    memmove(memory + (size_t)i * r.bytes, memory + (size_t)i * r.step, r.bytes);
}

assay_status_t assay_append_read(const assay_append_t* a, const int64_t* dims,
                                 assay_tensor_t** out) {
  const assay_valtype_t* t = a->in->type;
  const runs_t r = runs_of(a, dims);
  assay_tensor_t* made = NULL;
  ASSAY_TRY(assay_tensor_create_packed(t->elem, t->rank, dims, &made));
  const size_t step = a->with_capacity ? r.step : r.bytes;
  for (int64_t i = 0; r.bytes && i < r.n; i++)
    memcpy((char*)made->data + (size_t)i * r.bytes, (const char*)a->memory + (size_t)i * step,
           r.bytes);
  *out = made;
  return NULL;
}
