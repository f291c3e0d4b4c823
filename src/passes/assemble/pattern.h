// Patterns: what a piece of a graph looks like, as text. A new form of a function is a new text.
//
//   x                a value; the same name is the same value everywhere in the pattern
//   $eps             a constant of one element; the same name is the same number
//   %w               any constant
//   2  ~0.70710678   a constant of one element: exactly this number; ~: this number as its type,
//                    float32 or float64, has it, to one unit in the last place
//   Op(a, b)         the first output of a node of ai.onnx with just these inputs, and no other
//                    output; of Add, Mul, Max and Min in either order
//   Op(a, ...)       with these inputs and maybe more
//   Op?(a, b)        such a node, or just `a`
//   Op[axis=-1](a)   with this attribute (or that default)
//   d=Op(a)          the node's output gets a name
//   Form(a, b)       one of the alternatives of a form (the table in pattern.c): Square, Times ...
//
// All ways are tried. Limits of Clip count as inputs in the operator sets where they are
// attributes.
#ifndef ASSAY_PASSES_ASSEMBLE_PATTERN_H_
#define ASSAY_PASSES_ASSEMBLE_PATTERN_H_

#include "passes/pass.h"

enum { ASSAY_MATCH_NODES = 32, ASSAY_MATCH_NAMES = 16 };

typedef struct assay_pattern assay_pattern_t;

typedef struct assay_match {
  const assay_pattern_t* pattern;
  assay_value_t* named[ASSAY_MATCH_NAMES];  // by name; NULL: that part is not there
  assay_node_t* nodes[ASSAY_MATCH_NODES];   // the root first
  size_t n_nodes;
} assay_match_t;

// Errors: INTERNAL a text that is not a pattern.
assay_status_t assay_pattern_create(const char* text, assay_pattern_t** out) ASSAY_MUST_USE;
void assay_pattern_destroy(assay_pattern_t* p);  // NULL is allowed

// The first way in which the pattern fits the node's output, with all nodes in one graph and
// nothing but the root's output read outside of them, that `accept` takes (NULL: any).
bool assay_pattern_match(const assay_pattern_t* p, const assay_uses_t* uses, assay_node_t* root,
                         bool (*accept)(const assay_match_t* m, void* user), void* user,
                         assay_match_t* out);

// What a name stands for; NULL if it is not there.
assay_value_t* assay_match_value(const assay_match_t* m, const char* name);
// The number after $name; false if it is not there.
bool assay_match_number(const assay_match_t* m, const char* name, double* out);

#endif  // ASSAY_PASSES_ASSEMBLE_PATTERN_H_
