// Programs of pointwise nodes for kernels: a text that they include as "program.h", and its
// arguments (kernels/program_args.h), which are part of the kernel's own.
//
// The text defines PROGRAM_OUT (the output's type), PROGRAM_VECTOR, PROGRAM_ROWS (whether there is
// more than one row), PROGRAM_IS_SHORT (a few operations, and no function of vmath), index_t,
// value_t, and
//
//   value_t program(float x, index_t row, index_t column, const program_args_t* p)
//       An element of the output, not rounded; x: the result that it works on, else 0.
//   void program_vector(const float* x, index_t row, index_t column, const program_args_t* p,
//                       value_t* y)
//       Where PROGRAM_VECTOR is more than 1: so many elements of a row, from a column on that it
//       divides; x: NULL where there is no result.
//
// Of halves (cuda_program_make_of_halves) they are program(float x, float second, ...), of an
// element of either, and x of a vector has those of the second half behind the first one's.
//
// What they give is stored by TO_WORD(PROGRAM_OUT)(value), or STORE_VECTOR (kernels/words.h).
#ifndef ASSAY_BACKENDS_CUDA_POINTWISE_PROGRAM_H_
#define ASSAY_BACKENDS_CUDA_POINTWISE_PROGRAM_H_

#include "backends/cuda/kernels/program_args.h"
#include "backends/cuda/tactic.h"
#include "backends/layers/pointwise.h"

typedef struct cuda_program cuda_program_t;

// The program of nodes [first, end) of a layer (options->first; the rest as there; constants of one
// element become arguments, other ones stay inputs). *out stays NULL where a node is not a function
// that programs know.
assay_status_t cuda_program_make(const assay_sized_layer_t* l, const pointwise_options_t* options,
                                 cuda_program_t** out) ASSAY_MUST_USE;
// The same of all nodes of a layer, one of whose inputs is not there: its rows are results of which
// each element of the output is given two, options->columns apart. *out also stays NULL where nodes
// read that input in another way. No result is open (PROGRAM_IS_ROUGH).
assay_status_t cuda_program_make_of_halves(const assay_sized_layer_t* l,
                                           const pointwise_options_t* options, int input,
                                           cuda_program_t** out) ASSAY_MUST_USE;
void cuda_program_destroy(cuda_program_t* p);  // NULL is allowed

const pointwise_code_t* cuda_program_code(const cuda_program_t* p);
const char* cuda_program_text(const cuda_program_t* p);
int cuda_program_vector(const cuda_program_t* p);  // PROGRAM_VECTOR

// Appends the text of a program that has both: p's, and an element of what comes before it, of the
// same type, as
//
//   value_t program_before(float x, index_t row, index_t column, const program_args_t* p)
//
// False, and nothing is appended: they do not go together.
bool cuda_program_text_with(const cuda_program_t* p, const cuda_program_t* before,
                            assay_str_t* out);

// Says in which form the kernel reads the program's streams; false: one of them is read in another
// form already.
bool cuda_program_forms(const cuda_program_t* p, assay_kernel_t* k);

// The arguments for a run; in: by input of the layer.
void cuda_program_fill(const cuda_program_t* p, const assay_device_ptr_t* in, program_args_t* out);

// ---- within this folder -------------------------------------------------------------------------

// Input of a stream: the second half of the result, whose first one is POINTWISE_RESULT.
enum { CUDA_PROGRAM_SECOND = -3 };

// How a text reads the elements.
typedef struct cuda_program_way {
  assay_type_t out;
  int vector;
  bool short_index;  // all positions fit 31 bits
} cuda_program_way_t;
void cuda_program_print(const pointwise_code_t* code, const cuda_program_way_t* way,
                        assay_str_t* out);
void cuda_program_print_before(const pointwise_code_t* code, assay_type_t out, assay_str_t* text);

#endif  // ASSAY_BACKENDS_CUDA_POINTWISE_PROGRAM_H_
