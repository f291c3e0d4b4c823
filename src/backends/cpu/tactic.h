// Tactics: ways to run a layer on the CPU. One row each; a source of tactics is a file with rows.
//
// A tactic looks at a layer whose sizes are all known and makes a kernel of it, or says that the
// layer is not for it. A kernel is fixed to those sizes; it has packed its weights and says in
// which form it reads and writes each operand.
#ifndef ASSAY_BACKENDS_CPU_TACTIC_H_
#define ASSAY_BACKENDS_CPU_TACTIC_H_

#include "backends/backend.h"
#include "backends/cpu/store.h"

enum { CPU_MAX_RANK = 8, CPU_MAX_OPERANDS = 40 };

typedef enum cpu_layout {
  CPU_PLAIN = 0,      // row-major in the order of the dimensions
  CPU_CHANNELS_LAST,  // [N, C, D...] lies as [N, D..., C]; rank 3 and more
} cpu_layout_t;

// How a value lies in memory. Its elements are those of ONNX's raw_data of that type.
typedef struct cpu_form {
  assay_type_t type;
  cpu_layout_t layout;
} cpu_form_t;

// One value that a layer reads or writes.
typedef struct cpu_operand {
  const assay_value_t* value;
  int rank;
  int64_t dims[CPU_MAX_RANK];
  int64_t size;
  // The type in which the layer stores or takes it: FLOAT in a bf16 layer is BFLOAT16.
  assay_type_t type;
  cpu_layout_t layout;             // inputs: how it lies now, where that is known
  const assay_tensor_t* constant;  // packed or canonical; NULL: not known before the run
  cpu_store_t* store;              // keeps what is made of the constants of the model
} cpu_operand_t;

// A layer with all its sizes. Hidden values are no operands.
typedef struct cpu_layer {
  const assay_layers_t* layers;
  const assay_layer_t* layer;
  cpu_operand_t in[CPU_MAX_OPERANDS];  // each value once, in the order in which nodes read them
  size_t n_in;
  cpu_operand_t out[CPU_MAX_OPERANDS];  // of the last node; value NULL: left out
  size_t n_out;
} cpu_layer_t;

typedef struct cpu_kernel cpu_kernel_t;
struct cpu_kernel {
  const struct cpu_tactic* tactic;
  cpu_form_t in[CPU_MAX_OPERANDS];  // UNDEFINED: this input is not read in a run
  cpu_form_t out[CPU_MAX_OPERANDS];
  // The output takes the memory of this input, which must be of as many bytes; -1: its own. A
  // kernel without `run` only gives it another shape.
  int in_place;
  size_t scratch;  // bytes that a run needs besides
  assay_status_t (*run)(cpu_kernel_t* k, const void* const* in, void* const* out, void* scratch);
  void (*destroy)(cpu_kernel_t* k);
};

typedef struct cpu_tactic {
  const char* name;    // "onednn_conv"
  const char* source;  // "onednn"; what --tactic-sources restricts
  // *out stays NULL where the layer is none for this tactic. Errors: NO_MEMORY, DEVICE.
  assay_status_t (*make)(const cpu_layer_t* l, cpu_kernel_t** out);
  // How its kernels round (ops/bound.h).
  assay_rounding_t rounding;
} cpu_tactic_t;

// All tactics; of those that fit a layer the first one runs it.
extern const cpu_tactic_t* const cpu_tactics[];
extern const size_t cpu_n_tactics;

// Libraries, their versions and the instruction sets that kernels are made for.
void cpu_describe_machine(assay_str_t* out);

// ---- for tactics --------------------------------------------------------------------------------

// The operand of a value; NULL: hidden, or not read.
const cpu_operand_t* cpu_input(const cpu_layer_t* l, const assay_value_t* v);
// Its place among l->in; -1.
int cpu_input_index(const cpu_layer_t* l, const assay_value_t* v);
// A constant's elements as float32, as the layer takes them (rounded to its format); *out is freed
// with assay_free.
assay_status_t cpu_constant_floats(const cpu_operand_t* o, float** out);
size_t cpu_operand_bytes(const cpu_operand_t* o, assay_type_t type);
bool cpu_is_channels_last(const cpu_operand_t* o);
bool cpu_is_float(assay_type_t type);  // float32, float16, bfloat16: what kernels compute with

#endif  // ASSAY_BACKENDS_CPU_TACTIC_H_
