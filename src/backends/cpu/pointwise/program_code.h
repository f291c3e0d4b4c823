// What the compiler of pointwise programs makes and what runs them reads.
#ifndef ASSAY_BACKENDS_CPU_POINTWISE_PROGRAM_CODE_H_
#define ASSAY_BACKENDS_CPU_POINTWISE_PROGRAM_CODE_H_

#include "backends/cpu/pointwise/chain.h"
#include "backends/cpu/pointwise/program.h"

enum { PROGRAM_SLOTS = 24, PROGRAM_TILE = 1024 };

// Where an operand or a result of an instruction is: a stream, or a slot (a tile of memory).
typedef struct program_place {
  bool slot;
  int index;  // -1: none
} program_place_t;

typedef struct program_instruction {
  cpu_function_t* function;
  program_place_t operand[3];
  int slot;  // that it writes; -1: the output itself, where that is float32
  float param[2];
} program_instruction_t;

typedef struct program_walk {
  pointwise_access_t access;
  int64_t strides[ASSAY_KERNEL_RANK];  // by dimension of the program; 0: broadcast
  int slot;                            // where its tiles are made; -1: read where they lie
} program_walk_t;

struct cpu_program {
  cpu_stream_t streams[CPU_MAX_STREAMS];
  program_walk_t walks[CPU_MAX_STREAMS];
  size_t n_streams;
  program_instruction_t code[CPU_MAX_INSTRUCTIONS];
  size_t n_code;
  int n_slots, out_slot;  // out_slot: where the last result is, for outputs that are not float32
  // The output's dimensions as they lie in memory, neighbours merged; the last one makes rows.
  int rank;
  int64_t dims[ASSAY_KERNEL_RANK], rows, columns;
  int64_t tile_rows, tile_columns;  // one of them is all, or 1
  int64_t cost;                     // operations on an element
  int first_whole, in_place;        // inputs; -1: none
  // The same as a chain; 0: it is none.
  cpu_link_t links[CPU_MAX_INSTRUCTIONS];
  int n_links, first_stream;
};

#endif  // ASSAY_BACKENDS_CPU_POINTWISE_PROGRAM_CODE_H_
