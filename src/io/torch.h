// Tensors as torch.save writes them: how Polygraphy keeps what NumPy has no type for.
//
// The file is a zip archive of a pickle and the bytes. Of the pickle's machine only what rebuilds
// one tensor, or a dictionary of them, is carried out; anything else is refused, and nothing is
// ever called.
#ifndef ASSAY_IO_TORCH_H_
#define ASSAY_IO_TORCH_H_

#include "io/set.h"
#include "tensor/tensor.h"

// Whether it is an archive of that kind, whatever it holds.
bool assay_torch_is(const uint8_t* data, size_t size);

// The tensors by their names in a dictionary, or one named "". *out_named: which of both. The bytes
// are copied; out has been empty. Errors: CORRUPT, UNSUPPORTED.
assay_status_t assay_torch_read(const uint8_t* data, size_t size, assay_set_t* out,
                                bool* out_named) ASSAY_MUST_USE;

// A file of one tensor. One reference goes to the caller; the bytes are copied. Errors: CORRUPT,
// UNSUPPORTED.
assay_status_t assay_torch_parse(const uint8_t* data, size_t size,
                                 assay_tensor_t** out) ASSAY_MUST_USE;

// The archive's pickle alone, with a storage of 64 zero bytes, for tests.
assay_status_t assay_torch_unpickle(const uint8_t* data, size_t size,
                                    assay_tensor_t** out) ASSAY_MUST_USE;

#endif  // ASSAY_IO_TORCH_H_
