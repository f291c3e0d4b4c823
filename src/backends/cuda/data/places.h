// What the indices of GatherElements, GatherND, ScatterElements and ScatterND name.
#ifndef ASSAY_BACKENDS_CUDA_DATA_PLACES_H_
#define ASSAY_BACKENDS_CUDA_DATA_PLACES_H_

#include "backends/cuda/kernels/places_args.h"
#include "backends/cuda/tactic.h"
#include "backends/cuda/watch.h"

typedef struct cuda_places {
  const assay_node_t* node;
  int data, indices;  // inputs of the layer
  assay_type_t index_type;
  int first;      // the data's dimension that the first index is of
  bool known;     // the indices, which are all in the data
  int64_t slice;  // elements
  places_t args;  // without an address
  cuda_watch_t watch;
} cuda_places_t;

// Of a node whose inputs 0 and 1 are the data and the indices: an index an element (`axis` as the
// attribute has it), or tuples of them. False: there are others; it has nothing to move; or types
// of indices that there are no kernels for.
bool cuda_places_of_elements(const assay_sized_layer_t* l, cuda_places_t* out);
bool cuda_places_of_tuples(const assay_sized_layer_t* l, int64_t batch_dims, cuda_places_t* out);
// Has the indices looked at, unless they are known.
assay_status_t cuda_places_watch(cuda_places_t* p, assay_queue_t* q,
                                 const assay_device_ptr_t* in) ASSAY_MUST_USE;
const char* cuda_places_index(const cuda_places_t* p);  // C's name of the type

#endif  // ASSAY_BACKENDS_CUDA_DATA_PLACES_H_
