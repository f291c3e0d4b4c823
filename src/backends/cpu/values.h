// The values of a run on the CPU: each in the forms in which it has been made or asked for.
//
// A value is made in one form. Others are converted from it when a kernel, a tap or the caller
// asks, and kept until the value is let go of.
#ifndef ASSAY_BACKENDS_CPU_VALUES_H_
#define ASSAY_BACKENDS_CPU_VALUES_H_

#include "backends/cpu/tactic.h"

enum { CPU_FORMS = 3 };  // kept of one value besides the canonical one

typedef struct cpu_value {
  assay_tensor_t* canonical;  // NULL: not in this form
  // Packed tensors of the value's dimensions; under CHANNELS_LAST their elements lie in that order.
  assay_tensor_t* packed[CPU_FORMS];
  cpu_layout_t layout[CPU_FORMS];
  assay_type_t
      through[CPU_FORMS];  // elements were rounded to this type; its own: as they were made
  int n_packed;
  bool keep;  // a constant, which the next run reads again
} cpu_value_t;

void cpu_value_clear(cpu_value_t* v);
bool cpu_value_is_set(const cpu_value_t* v);
// What it holds, in any form, for its shape; NULL if nothing.
const assay_tensor_t* cpu_value_any(const cpu_value_t* v);
// In whichever layout it lies; PLAIN if it has several.
cpu_layout_t cpu_value_layout(const cpu_value_t* v);

// Empties the value and puts a tensor in: one reference is taken over.
void cpu_value_put(cpu_value_t* v, assay_tensor_t* take_tensor, cpu_layout_t layout);

// The elements in the canonical form with the declared type; borrowed.
assay_status_t cpu_value_canonical(cpu_value_t* v, assay_type_t declared, assay_tensor_t** out);
// The tensor in a form; borrowed. Float elements are rounded to `through`, and that is widened or
// rounded to the form's type. UNSUPPORTED for what is no tensor of numbers.
assay_status_t cpu_value_in_form(cpu_value_t* v, assay_type_t through, cpu_form_t form,
                                 assay_tensor_t** out);

// Copies a packed tensor's elements into another order. Element sizes of 1, 2, 4 and 8 bytes.
void cpu_reorder(const void* from, cpu_layout_t from_layout, int rank, const int64_t* dims,
                 size_t elem, void* to);

#endif  // ASSAY_BACKENDS_CPU_VALUES_H_
