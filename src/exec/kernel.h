// Kernels: ways to run a layer, on the host or on a device. Backends bring tactics, one row each; a
// source of tactics is a file with rows.
//
// A tactic looks at a layer whose sizes are all known and makes a kernel of it, or says that the
// layer is not for it. A kernel has those sizes until its tactic gives it others; it has packed its
// weights and says in which form it reads and writes each operand.
#ifndef ASSAY_EXEC_KERNEL_H_
#define ASSAY_EXEC_KERNEL_H_

#include "exec/backend.h"
#include "exec/choice/accuracy_gate.h"
#include "exec/device.h"
#include "exec/weights.h"

enum {
  ASSAY_KERNEL_RANK = 8,
  ASSAY_KERNEL_OPERANDS = 40,
  ASSAY_MAX_CANDIDATES = 14,  // of a layer: of ours, and of a library's ways
  ASSAY_MAX_LIBRARY_WAYS = 4,
  ASSAY_MAX_VARIANTS = 64,   // of a tactic
  ASSAY_VARIANT_BYTES = 32,  // of its name
};

typedef enum assay_layout {
  ASSAY_LAYOUT_PLAIN = 0,      // row-major in the order of the dimensions
  ASSAY_LAYOUT_CHANNELS_LAST,  // [N, C, D...] lies as [N, D..., C]; rank 3 and more
} assay_layout_t;

// How a value lies in memory. Its elements are those of ONNX's raw_data of that type.
typedef struct assay_storage {
  assay_type_t type;
  assay_layout_t layout;
} assay_storage_t;

// An operand that lies with room for more (append.h): in memory dimension `axis` has `size`
// elements.
typedef struct assay_capacity {
  int axis;
  int64_t size;  // 0: it lies as its dimensions say
} assay_capacity_t;

// One value that a layer reads or writes.
typedef struct assay_operand {
  const assay_value_t* value;
  int rank;
  int64_t dims[ASSAY_KERNEL_RANK];
  int64_t size;
  // The type in which the layer stores or takes it: FLOAT in a bf16 layer is BFLOAT16.
  assay_type_t type;
  assay_layout_t layout;  // inputs: how it lies now, where that is known
  assay_capacity_t capacity;
  const assay_tensor_t* constant;  // packed or canonical; NULL: not known before the run
  assay_weights_t* store;          // keeps what is made of the constants of the model
} assay_operand_t;

// A layer with all its sizes. Hidden values are not operands.
typedef struct assay_sized_layer {
  const assay_layers_t* layers;
  const assay_layer_t* layer;
  assay_operand_t in[ASSAY_KERNEL_OPERANDS];  // each value once, in the order in which nodes read
  size_t n_in;
  assay_operand_t out[ASSAY_KERNEL_OPERANDS];  // of the last node; value NULL: left out
  size_t n_out;
  struct assay_resident* resident;  // constants in the device's memory (resident.h); NULL: the host
  void* own;                        // a device's: what its share made (device_run.h); NULL: nothing
  bool grows;                       // sizes of activations grow from run to run
  assay_accuracy_gates_t* gates;    // what tactics were asked for it; NULL: nobody wants to know
} assay_sized_layer_t;

typedef struct assay_kernel assay_kernel_t;

// How a kernel makes rows of its output, which lie along the first spatial axis, out of rows of one
// of its inputs. Both lie channels last, so that a row is one piece of memory. What it makes of a
// row depends on neither the rows it is asked for at once nor where they lie.
typedef struct assay_by_rows {
  int input;                   // the operand that it reads by rows
  int64_t samples, rows;       // of the output
  int64_t in_rows;             // of the input; 0: that is read as a whole, in any form
  size_t row_bytes, in_bytes;  // of a row
  size_t weights;              // bytes that each call reads besides
  double work;                 // multiply-adds in a row of the output, or as much of other work
  size_t scratch;              // bytes that a call needs
  // The rows of the input, [*first, *last), under rows [row, end) of the output. NULL: the same.
  void (*reads)(const assay_kernel_t* k, int64_t row, int64_t end, int64_t* first, int64_t* last);
  // Makes rows [row, end) of a sample on the caller's thread. Operands are as in a run; but of the
  // rows of the input, and of the output, only those meant here need to be there.
  // NULL: it does not work by rows.
  void (*run)(const assay_kernel_t* k, const void* const* in, void* const* out, void* scratch,
              int64_t sample, int64_t row, int64_t end);
} assay_by_rows_t;

struct assay_kernel {
  const struct assay_tactic* tactic;
  // Set by whoever chose it (ways.h), and as long-lived: the tactic's name, or "TACTIC/VARIANT";
  // and as assay_tactic_t's of the same name.
  const char *name, *numerics;
  // How it rounds, where that is not as its tactic does: as another one, or, emulated, as the
  // emulated engine computes the layer. NULL and false: as its tactic.
  const assay_rounding_t* rounding;
  bool emulated;
  assay_storage_t in[ASSAY_KERNEL_OPERANDS];  // UNDEFINED: this input is not read in a run
  assay_storage_t out[ASSAY_KERNEL_OPERANDS];
  // The output takes the memory of this input, which must be of as many bytes; -1: its own. A
  // kernel with neither `run` nor `enqueue` only gives it another shape.
  int in_place;
  bool rooms;  // it reads and writes operands with room as they lie
  // 1 + the input with which output 0 begins along the dimension in which both have room: where
  // they are the same memory, the kernel leaves that part as it is. 0: there is none.
  int extends;
  size_t scratch;  // bytes that a run needs besides
  // On the host. NULL: a kernel of a device.
  assay_status_t (*run)(assay_kernel_t* k, const void* const* in, void* const* out, void* scratch);
  assay_by_rows_t by_rows;
  // Puts it into a queue of the device that it was made for; 0 for operands that are left out. What
  // it notes may be captured: addresses stay as they are, and it is given others in another call.
  assay_status_t (*enqueue)(assay_kernel_t* k, assay_queue_t* q, const assay_device_ptr_t* in,
                            const assay_device_ptr_t* out, assay_device_ptr_t scratch);
  void (*destroy)(assay_kernel_t* k);
};

// What the layouts in which inputs are said to lie (assay_operand_t.layout) mean to a tactic. Which
// ones its kernels read and write in the end, they say themselves.
typedef enum assay_layout_use {
  ASSAY_LAYOUT_OWN = 0,      // nothing: it has one way
  ASSAY_LAYOUT_FOLLOWS,      // it works in that layout where it can, and gives the same bits in all
  ASSAY_LAYOUT_FOLLOWS_BITS  // so it does, but sums are made in another order: no time may decide
} assay_layout_use_t;

// One of several ways in which a tactic runs a layer: a tile, a split of sums, an algorithm of a
// library.
typedef struct assay_variant {
  char name[ASSAY_VARIANT_BYTES];  // "128x64": letters, digits, '_', '-', '.'
  const char* numerics;            // as assay_tactic_t's; outlives the kernel
  double predicted;                // microseconds by the tactic's own reckoning; NAN: none
} assay_variant_t;

// Two layers one after the other, the second of which reads what the first one makes, with the
// kernels that run them one by one. Between them there may be layers that only give it another
// shape.
typedef struct assay_layer_pair {
  const assay_sized_layer_t* layers[2];
  assay_kernel_t* kernels[2];
  int input;   // the second one's that is what the first one makes, as it lies
  bool views;  // in another shape, under the name of another value
  bool hides;  // only the second one reads what the first one makes: it need not be written
} assay_layer_pair_t;

// Layers that one launch may compute: the last one to run, and behind it such as make what one of
// them reads and nobody else does.
enum { ASSAY_JOINT_LAYERS = 8 };
typedef struct assay_joint_layers assay_joint_layers_t;
struct assay_joint_layers {
  const assay_sized_layer_t* layers[ASSAY_JOINT_LAYERS];
  assay_kernel_t* kernels[ASSAY_JOINT_LAYERS];
  int n;
  bool finds;  // the layers are wanted alone: no kernel is made of them
  // Adds the layer that makes a value which layer `reader` of these reads. *out_added false: there
  // is none, or the value is wanted elsewhere.
  assay_status_t (*add)(assay_joint_layers_t* j, int reader, const assay_value_t* v,
                        bool* out_added);
};

// Layers that read the same, and of which none reads what another one makes, with the kernels that
// run them one by one: one launch may compute them.
enum { ASSAY_SIBLINGS = 6 };
typedef struct assay_siblings {
  const assay_sized_layer_t* layers[ASSAY_SIBLINGS];
  assay_kernel_t* kernels[ASSAY_SIBLINGS];
  int n;
} assay_siblings_t;

typedef struct assay_tactic {
  const char* name;    // "onednn_conv"
  const char* source;  // "onednn"; what --tactic-sources restricts
  // Tactics with the same name here give the same bits wherever they take the same layer, so that
  // only these compete by time; NULL: no other does. Were others chosen by time, a result would
  // depend on the batch and on the day.
  const char* numerics;
  // *out stays NULL where the layer is none for this tactic. Errors: NO_MEMORY, DEVICE.
  assay_status_t (*make)(const assay_sized_layer_t* l, assay_kernel_t** out);
  // Of a tactic with variants, which has no `make`: those for a layer, each named once; they
  // compete as tactics do, those that are predicted to be fastest first. The first one listed says
  // which bits the layer has: which it is may follow from constants, formats and operators, not
  // from sizes that can be open, so that all profiles of an engine have the same. out: room for
  // ASSAY_MAX_VARIANTS; *out_n 0: the layer is none for it.
  assay_status_t (*variants)(const assay_sized_layer_t* l, assay_variant_t* out, size_t* out_n);
  assay_status_t (*make_variant)(const assay_sized_layer_t* l, const assay_variant_t* v,
                                 assay_kernel_t** out);
  // Gives a kernel of this tactic other sizes: it is then what `make` makes of the layer, which is
  // the one that it was made for but for sizes and contents that follow from sizes. What it has
  // packed of constants stays. *out_ok false: the layer is none for this tactic in these sizes; the
  // kernel is given others, or destroyed, before it runs again. NULL: its kernels keep their sizes.
  // Errors: NO_MEMORY.
  assay_status_t (*resize)(const assay_sized_layer_t* l, assay_kernel_t* k, bool* out_ok);
  // Of a tactic that is for two layers at once, on a device, and has none of those above: a kernel
  // that gives both outputs the bits that the two kernels give them, but for what a pair hides. It
  // reads the inputs of the first layer, behind them those of the second, where what the first one
  // makes stays UNDEFINED, and writes output 0 of either. It may write before all is read; but
  // where the first kernel may write over an input (in_place), it says so as well, hides what that
  // makes, or does not run where that one does. Nor does it where the second one may write over
  // what the first one makes, unless it may, too, and says so. *out stays NULL where the pair is
  // none for it.
  assay_status_t (*make_pair)(const assay_layer_pair_t* p, assay_kernel_t** out);
  bool pairs_views;  // it is asked for pairs with views between them as well
  // Of a tactic that runs several layers in the launch of the last one, on a device, and has none
  // of those above: it is given that layer, one that `ends` such a launch, adds those that it
  // takes, and makes a kernel that gives the last one's output the bits that their kernels give it.
  // It reads the inputs of all of them, one layer's behind the other's in the order in which they
  // were added, where what they make themselves stays UNDEFINED, in the forms in which their
  // kernels do, and writes output 0 of the last one. *out stays NULL where it takes none. Where
  // layers are wanted alone (finds), it adds them, and leaves n at 1 where it takes none.
  bool (*ends)(const assay_layer_t* l);
  assay_status_t (*make_joint)(assay_joint_layers_t* j, assay_kernel_t** out);
  // Of a tactic that runs several layers in the launch of the first one, on a device, and has none
  // of those above: whether two layers, or one, may be among them; and a kernel that gives output 0
  // of each the bits that its kernel gives it. It reads the inputs of the first one, which are all
  // that any of them reads in a run, in the forms in which that one's kernel does, and says its
  // name. way: 0 and on, of those that compete by time, the likeliest to be fastest first; *out
  // stays NULL behind the last one, and where they are none for it.
  bool (*are_siblings)(const assay_layer_t* a, const assay_layer_t* b);
  assay_status_t (*make_siblings)(const assay_siblings_t* s, int way, assay_kernel_t** out);
  assay_layout_use_t layouts;
  // Its kernels are a library's, which promises no order of sums: where bits matter, one competes
  // only if it gave the bits of the layer's own kernels where it was timed (choice_times.h), and it
  // never decides which bits those are.
  bool verify;
  // Microseconds that the layer behind loses by such a kernel, beside what it takes itself: they
  // count as its own where it competes.
  double loses;
  // How its kernels round (ops/bound.h).
  assay_rounding_t rounding;
} assay_tactic_t;

// A tactic, or a variant of one, that could run a layer.
typedef struct assay_candidate {
  const assay_tactic_t* tactic;
  const char* name;     // as assay_kernel_t's
  double microseconds;  // NAN: not known
  double predicted;     // by the machine's costs (costs.h), of one sample on one thread; NAN: none
  bool forced;          // it was asked for, whatever the times
  bool differs;         // it was left out: its bits are not the layer's (assay_tactic_t.verify)
} assay_candidate_t;

// ---- for tactics (describe.c) -------------------------------------------------------------------

// The operand of a value; NULL: hidden, or not read.
const assay_operand_t* assay_sized_input(const assay_sized_layer_t* l, const assay_value_t* v);
// Its place among l->in; -1.
int assay_sized_input_index(const assay_sized_layer_t* l, const assay_value_t* v);
// Notes what a tactic was asked before it takes the layer.
void assay_sized_note_accuracy_gate(const assay_sized_layer_t* l,
                                    const assay_accuracy_gate_t* gate);
// A constant's elements as float32, as the layer takes them (rounded to its format); *out is freed
// with assay_free.
assay_status_t assay_operand_floats(const assay_operand_t* o, float** out);
// The same to be read only, without a copy where the constant lies in memory as float32; *made is
// what to free, or NULL.
assay_status_t assay_operand_view(const assay_operand_t* o, const float** out, float** made);
// The same as they lie in the 16 bits of the operand's type, to be released; *out stays NULL where
// the layer takes another type, or elements that not every engine rounds to it alike.
assay_status_t assay_operand_narrow(const assay_operand_t* o, assay_tensor_t** out);
// The same with zeros after them, up to `capacity` elements; *out stays NULL where o is.
assay_status_t assay_operand_padded_floats(const assay_operand_t* o, int64_t capacity, float** out);
size_t assay_operand_bytes(const assay_operand_t* o, assay_type_t type);  // with its room
// The dimensions that it has in memory, with its room.
void assay_operand_memory_dims(const assay_operand_t* o, int64_t* dims);
bool assay_operand_is_channels_last(const assay_operand_t* o);
// float32, float16, bfloat16: what kernels compute with; and the bytes of an element of these.
bool assay_type_is_kernel_float(assay_type_t type);
static inline size_t assay_kernel_float_bytes(assay_type_t type) {
  return type == ASSAY_TYPE_FLOAT ? 4 : 2;
}

#endif  // ASSAY_EXEC_KERNEL_H_
