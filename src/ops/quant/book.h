// Weights that are looked up in a book: a model that stores them as places in a short table of
// numbers (a palette, a codebook such as NF4's), Gather(table, places), and then scales them. Each
// weight is the number of the book that lay nearest, as a quantizer's is the nearest step, but for
// steps that need not be alike.
// Source: Han et al., Deep Compression, 2016 (weight sharing); Dettmers et al., QLoRA, 2023 (NF4).
#ifndef ASSAY_OPS_QUANT_BOOK_H_
#define ASSAY_OPS_QUANT_BOOK_H_

#include "ops/op.h"

// Whether a node is Gather of a constant table of one dimension, 2 to 256 floats, by more constant
// places than these, whose result, scaled by constants and moved at most, is what a product or a
// recurrent layer multiplies by.
bool assay_is_book(const assay_node_t* n);
// How many numbers its table has; *out_step: how far they are apart, on average.
int64_t assay_book_size(const assay_node_t* n, double* out_step);
bool assay_model_has_books(const assay_model_t* m);

// Moves each of the numbers that a book gave by up to half the way to the next one of the table, up
// or down by chance, each draw another way: what it may have been before. *t is replaced.
assay_status_t assay_book_move(const assay_node_t* n, uint64_t draw,
                               assay_tensor_t** t) ASSAY_MUST_USE;

#endif  // ASSAY_OPS_QUANT_BOOK_H_
