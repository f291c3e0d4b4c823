// A tensor as torch.save writes it: how Polygraphy keeps what NumPy has no type for.
//
// The file is a zip archive of a pickle and the bytes. Of the pickle's machine only what rebuilds
// one tensor is carried out; anything else is refused, and nothing is ever called.
#ifndef ASSAY_IO_TORCH_H_
#define ASSAY_IO_TORCH_H_

#include "tensor/tensor.h"

// Whether it is an archive of that kind, whatever it holds.
bool assay_torch_is(const uint8_t* data, size_t size);

// One reference goes to the caller; the bytes are copied. Errors: CORRUPT, UNSUPPORTED.
assay_status_t assay_torch_parse(const uint8_t* data, size_t size,
                                 assay_tensor_t** out) ASSAY_MUST_USE;

// The archive's pickle alone, with a storage of 64 zero bytes, for tests.
assay_status_t assay_torch_unpickle(const uint8_t* data, size_t size,
                                    assay_tensor_t** out) ASSAY_MUST_USE;

#endif  // ASSAY_IO_TORCH_H_
