// Programs of pointwise nodes: what is done to each element of an output, in float32.
//
// A program reads streams (inputs of the layer, whole or broadcast) and, as epilogue, the result of
// a contraction; it runs over tiles that stay in the first cache. Other types are widened as they
// are read, and results rounded once as they are written.
#ifndef ASSAY_BACKENDS_CPU_POINTWISE_PROGRAM_H_
#define ASSAY_BACKENDS_CPU_POINTWISE_PROGRAM_H_

#include "backends/cpu/tactic.h"
#include "backends/layers/pointwise.h"

enum { CPU_MAX_INSTRUCTIONS = POINTWISE_INSTRUCTIONS, CPU_MAX_STREAMS = POINTWISE_STREAMS };

typedef pointwise_stream_t cpu_stream_t;
typedef struct cpu_program cpu_program_t;

// Compiles nodes [first, end) of a layer. `result` is the value that the anchor before them makes
// (NULL: there is none), `layout` that of the output and of all streams of its size. *out stays
// NULL where a node is not a pointwise function that programs know. Without nodes it hands the
// result on, rounded.
assay_status_t cpu_program_make(const assay_sized_layer_t* l, size_t first,
                                const assay_value_t* result, assay_layout_t layout,
                                cpu_program_t** out);
void cpu_program_destroy(cpu_program_t* p);  // NULL is allowed
// Whether it reads this input of the layer.
bool cpu_program_reads(const cpu_program_t* p, int input);
// The first input of the layer that is read element by element, as the output; -1: none.
int cpu_program_first_whole(const cpu_program_t* p);
size_t cpu_program_n_streams(const cpu_program_t* p);
const cpu_stream_t* cpu_program_stream(const cpu_program_t* p, size_t i);

// The input over which an output of this type may be written: it is read element by element, and so
// are all others of that memory. -1: none.
int cpu_program_in_place(const cpu_program_t* p);

// All elements, shared out among the threads. in[]: by input of the layer; result: what stream -1
// reads, indexed like the output; out: of `type`, a float of at most 32 bits or bool; it may be
// `result` itself.
void cpu_program_run(const cpu_program_t* p, const void* const* in, const float* result,
                     assay_type_t type, void* out);

// Where a program does one thing to each element of the contraction's result: the link; else NULL.
const struct cpu_link* cpu_program_only_link(const cpu_program_t* p);

// What a layer does after its first node, as a program of a kernel's: with the forms in which it
// reads its streams. *program stays NULL where there is nothing; *ok becomes false where there is
// no such program, or where it would read an input in another form than the kernel does.
assay_status_t cpu_program_behind(const assay_sized_layer_t* l, assay_layout_t layout,
                                  assay_kernel_t* k, cpu_program_t** program,
                                  bool* ok) ASSAY_MUST_USE;

// The same after its first `first` nodes, at least one.
assay_status_t cpu_program_from(const assay_sized_layer_t* l, size_t first, assay_layout_t layout,
                                assay_kernel_t* k, cpu_program_t** program,
                                bool* ok) ASSAY_MUST_USE;

// A part of the output: `runs` runs of n elements, the first at element `from`, each `step`
// elements after the one before.
typedef struct cpu_program_part {
  int64_t from, n, runs, step;
  const float* result;  // the contraction's result of the first run; the next ones lie
  int64_t result_step;  // so many elements after
} cpu_program_part_t;

// The same for a part, by the calling thread alone.
void cpu_program_run_part(const cpu_program_t* p, const void* const* in, assay_type_t type,
                          void* out, const cpu_program_part_t* part);

#endif  // ASSAY_BACKENDS_CPU_POINTWISE_PROGRAM_H_
