// Sums of products of float32 numbers, made of products of tf32 parts: x = b + s, b = tf32(x),
// s = tf32(x - b). Of the products of parts s b, b s and b b are added up; what is left out is at
// most 3 2^-22 of a term's magnitude.
//
// Products of parts are exact. Tensor cores add eight of them and a sum in one step, aligned to the
// largest, cut towards zero behind its 25th bit, and cut what comes out to float32. Steps of 16
// terms make a unit, which begins from 0: the four of the smaller products, then two of b b. Sums
// of units are added by float32's additions, one after the other.
// Sources: S. Markidis et al., NVIDIA tensor core programmability, performance and precision,
// IPDPSW 2018; H. Ootomo and R. Yokota, Recovering single precision accuracy from tensor cores
// while surpassing the FP32 theoretical peak performance, IJHPCA 36 (2022).
#ifndef ASSAY_OPS_MATMUL_TF32_PRODUCTS_H_
#define ASSAY_OPS_MATMUL_TF32_PRODUCTS_H_

#include "ops/matmul/split_products.h"

// b, which is rounded towards zero where the nearest number would be infinite; and s.
float assay_tf32_part(float x);
float assay_tf32_rest(float x, float part);

// Of n terms: additions of units; and what steps cut off in a unit, in units of u, which has a
// sign.
double assay_tf32_roundings(double n);
double assay_tf32_cut(void);
// What is left out of a term, relative to its magnitude.
double assay_tf32_left_out(void);

// What the model says of products with these weights, in their worst column. max 0: some weights
// are not finite, 2^11 or more, or so small that parts lose bits of them.
assay_status_t assay_tf32_judge(const assay_split_weights_t* w,
                                assay_sum_account_t* out) ASSAY_MUST_USE;

#endif  // ASSAY_OPS_MATMUL_TF32_PRODUCTS_H_
