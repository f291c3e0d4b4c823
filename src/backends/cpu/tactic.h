// Tactics of the CPU: kernel.h says what a tactic and a kernel are. Here they go by shorter names.
#ifndef ASSAY_BACKENDS_CPU_TACTIC_H_
#define ASSAY_BACKENDS_CPU_TACTIC_H_

#include "backends/kernel.h"

#define CPU_MAX_RANK ASSAY_KERNEL_RANK
#define CPU_MAX_OPERANDS ASSAY_KERNEL_OPERANDS
#define CPU_PLAIN ASSAY_LAYOUT_PLAIN
#define CPU_CHANNELS_LAST ASSAY_LAYOUT_CHANNELS_LAST
typedef assay_layout_t cpu_layout_t;
typedef assay_form_t cpu_form_t;
typedef assay_operand_t cpu_operand_t;
typedef assay_sized_layer_t cpu_layer_t;
typedef assay_kernel_t cpu_kernel_t;
typedef assay_tactic_t cpu_tactic_t;
#define cpu_input assay_sized_input
#define cpu_input_index assay_sized_input_index
#define cpu_constant_floats assay_operand_floats
#define cpu_operand_bytes assay_operand_bytes
#define cpu_is_channels_last assay_operand_is_channels_last
#define cpu_is_float assay_type_is_kernel_float
#define cpu_store_get assay_weights_get
#define cpu_store_put assay_weights_put

// All tactics; of those that fit a layer the first one runs it.
extern const cpu_tactic_t* const cpu_tactics[];
extern const size_t cpu_n_tactics;

// Libraries, their versions and the instruction sets that kernels are made for.
void cpu_describe_machine(assay_str_t* out);

#endif  // ASSAY_BACKENDS_CPU_TACTIC_H_
