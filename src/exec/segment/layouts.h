// Which layout each layer reads and writes: the cheapest for the graph as a whole, reorders
// included.
//
// A layer has options: kernels that read and write its values in other layouts. A value lies in the
// layout in which its layer makes it, and is put into another one once, for all who read it so. The
// problem is one of states (assign.h): of layers, their options; of values, the sets of layouts in
// which they are had. Tables join a layer with each value that it reads or makes: what is read has
// to be in the set, and all of the set but what is made costs a reorder.
#ifndef ASSAY_EXEC_SEGMENT_LAYOUTS_H_
#define ASSAY_EXEC_SEGMENT_LAYOUTS_H_

#include "exec/segment/reformat.h"

enum { ASSAY_LAYOUTS = 2, ASSAY_LAYOUT_OPTIONS = ASSAY_LAYOUTS + 1 };

// Layouts as bits: 1 << ASSAY_LAYOUT_PLAIN and so on.
typedef struct assay_layout_value {
  int made, needed;                              // bits, whatever is chosen; 0: its layer makes it
  double reorder[ASSAY_LAYOUTS][ASSAY_LAYOUTS];  // microseconds, from one to another
  size_t last_use;                               // 1 + its place; 0: none yet
} assay_layout_value_t;

typedef struct assay_value_use {
  int value;
  assay_layout_t layout;
  bool makes;            // else: reads
  size_t layer, before;  // before: 1 + the place of the value's use before this one
  int option;
} assay_value_use_t;

typedef struct assay_layout_problem {
  assay_layout_value_t* values;
  size_t n_values, cap_values;
  struct assay_layout_choice {
    struct assay_layout_cost {
      double microseconds;
      size_t first, end;  // uses
    } options[ASSAY_LAYOUT_OPTIONS];
    int n_options;
  } * layers;
  size_t n_layers, cap_layers;
  assay_value_use_t* uses;
  size_t n_uses, cap_uses;
} assay_layout_problem_t;

void assay_layouts_deinit(assay_layout_problem_t* p);
// Adds to it; a layer gets its options one after the other, and each its uses.
assay_status_t assay_layouts_add_value(assay_layout_problem_t* p, const assay_layout_value_t* v,
                                       int* out) ASSAY_MUST_USE;
assay_status_t assay_layouts_add_layer(assay_layout_problem_t* p, int* out) ASSAY_MUST_USE;
assay_status_t assay_layouts_add_option(assay_layout_problem_t* p,
                                        double microseconds) ASSAY_MUST_USE;
assay_status_t assay_layouts_add_use(assay_layout_problem_t* p, int value, assay_layout_t layout,
                                     bool makes) ASSAY_MUST_USE;

// What an assignment costs: by layer the option.
double assay_layouts_cost(const assay_layout_problem_t* p, const int* options);
// The reorders of the values that a layer reads or makes, were it to take an option while the
// others take theirs.
double assay_layouts_reorders(const assay_layout_problem_t* p, const int* options, size_t layer,
                              int option);

// The cheapest; entries: ASSAY_ASSIGN_TABLE. Where no other is cheaper, each layer's first option
// (and never anything that costs more than these). *out_exact: that is proven.
assay_status_t assay_layouts_assign(const assay_layout_problem_t* p, size_t entries,
                                    int* out_options, bool* out_exact) ASSAY_MUST_USE;

// ---- costs where nothing is measured ------------------------------------------------------------

// By bytes, all of which pass through memory once.
double assay_layouts_model_kernel(const assay_sized_layer_t* l, const assay_kernel_t* k);
double assay_layouts_model_reorder(const assay_reformat_t* m);
// Whether both layouts of a shape are the same order of elements.
bool assay_layouts_are_same(int rank, const int64_t* dims);
const char* assay_layout_name(assay_layout_t layout);

#endif  // ASSAY_EXEC_SEGMENT_LAYOUTS_H_
