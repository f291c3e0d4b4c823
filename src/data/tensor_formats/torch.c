// What torch.save writes: named tensors, or one.

#include "io/torch.h"

#include "data/tensor_formats/tensor_format.h"

// Zip archives, too: they are told before npz.
static bool is_torch(const assay_tensor_file_t* f) { return assay_torch_is(f->data, f->size); }

static assay_status_t read_torch(const assay_tensor_file_t* f, assay_saved_t* out) {
  const assay_value_t* v;
  assay_set_t set = {0}, *run = NULL;
  bool named;
  ASSAY_TRY(assay_torch_read(f->data, f->size, &set, &named));
  assay_status_t st =
      named ? assay_saved_add_run(out, &run) : assay_tensor_file_value(f->request, &v);
  if (!st && named) {
    *run = set;
    return NULL;
  }
  if (!st) st = assay_tensor_file_add(f, v, assay_tensor_retain(set.tensors[0]), out);
  assay_set_deinit(&set);
  return st;
}

// Zip archives, too: told before npz.
const assay_tensor_format_t assay_tensor_format_torch = {.name = "tensors of torch.save",
                                                         .listed = ".pt",
                                                         .in_sample_folders = true,
                                                         .is = is_torch,
                                                         .read = read_torch};
