// Chains: programs of which every instruction works on what the one before it has made. They run in
// registers, 64 elements at a time, where the CPU has AVX-512, with the bits that the functions of
// functions.h give one after the other.
#ifndef ASSAY_BACKENDS_CPU_POINTWISE_CHAIN_H_
#define ASSAY_BACKENDS_CPU_POINTWISE_CHAIN_H_

#include "backends/cpu/pointwise/functions.h"
#include "formats/format.h"

typedef enum cpu_link_kind {
  CPU_LINK_CALL = 0,  // a function of one operand, by way of memory
  CPU_LINK_IDENTITY,
  CPU_LINK_ADD,  // with a stream
  CPU_LINK_SUB,
  CPU_LINK_MUL,
  CPU_LINK_RELU,
  CPU_LINK_CLIP,
  CPU_LINK_HARD_SWISH,  // this and SWISH: the short ones
  CPU_LINK_HARD_SIGMOID,
  CPU_LINK_SIGMOID,
  CPU_LINK_SWISH,
  CPU_LINK_GELU,
  CPU_LINK_GELU_TANH,
} cpu_link_kind_t;

typedef struct cpu_link {
  cpu_link_kind_t kind;
  int stream;  // ADD, SUB, MUL: the other operand
  float param[2];
  cpu_function_t* call;
  cpu_vmath_use_t use;  // of what it makes
} cpu_link_t;

// A stream as a chain reads it: row r, column i lies at element r * row_step + i * step; step 0 or
// 1.
typedef struct cpu_chain_stream {
  const void* data;
  assay_type_t type;  // float32, float16 or bfloat16
  int64_t row_step;
  int step;
} cpu_chain_stream_t;

typedef struct cpu_chain_run {
  const cpu_link_t* links;
  int n_links;
  const cpu_chain_stream_t* streams;
  int first;  // the stream that the first link works on
  int64_t rows, columns;
  assay_type_t type;
  void* out;
  int64_t out_step;  // elements from one row of it to the next
} cpu_chain_run_t;

// What a function is as a link of chains whose result is narrowed as `use` says; CALL for others.
cpu_link_kind_t cpu_link_kind(cpu_function_t* f, cpu_vmath_use_t use);
bool cpu_has_chains(void);  // whether the CPU runs them
void cpu_chain_run(const cpu_chain_run_t* r);

#endif  // ASSAY_BACKENDS_CPU_POINTWISE_CHAIN_H_
