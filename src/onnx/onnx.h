// ONNX files: models in and out, values of test data in and out, the checker, model functions.
#ifndef ASSAY_ONNX_ONNX_H_
#define ASSAY_ONNX_ONNX_H_

#include "ir/ir.h"

// Reads a model. Weights stay in the mapped file (and its external data) as long as the model
// lives; the file must not change meanwhile. Nodes know the model's functions that they call;
// operators are not looked up: assay_onnx_check does.
// Errors: NOT_FOUND no such file; CORRUPT not valid ONNX; UNSUPPORTED past our limits.
assay_status_t assay_onnx_read(const char* path, assay_model_t** out) ASSAY_MUST_USE;
// The same, with less asked of the file, for tools that look into models which cannot be run.
// options may be NULL.
typedef struct assay_onnx_read_options {
  const char* folder;  // of external data; NULL: the model's
  bool hollow;         // external data are not read: zeros stand for them, files need not exist
  // Names that nothing defines become values that nothing makes. Such a model can be cloned, and is
  // not to be prepared or written.
  bool undefined;
  bool stripped;  // zeros stand for weights whose data were stripped (ASSAY_ONNX_STRIPPED)
} assay_onnx_read_options_t;
assay_status_t assay_onnx_read_with(const char* path, const assay_onnx_read_options_t* options,
                                    assay_model_t** out) ASSAY_MUST_USE;
// Whether files of external data may have several names (hard links), for all reading of this
// process; at first they may not, since a name inside the model's folder can be that of any file of
// the same disk. Symbolic links are never followed.
void assay_onnx_allow_hard_links(bool allow);
// How the documentation of an initializer begins whose data were stripped; "SPARSE_2_4" follows
// where two of every four weights were zero. The model's own ends with the same word.
#define ASSAY_ONNX_STRIPPED "TRT_WEIGHTLESS"
// The same for bytes in memory, which are copied. folder: of external data; NULL: refuse those.
assay_status_t assay_onnx_read_bytes(const void* data, size_t size, const char* folder,
                                     assay_model_t** out) ASSAY_MUST_USE;

// Looks up what every node stands for (node->schema, node->op), by the operator sets that the
// model, or within its functions the function, imports. Errors: CORRUPT against the standard;
// UNSUPPORTED operators and operator sets that Assay does not know.
assay_status_t assay_onnx_check(assay_model_t* model) ASSAY_MUST_USE;
// The same of the operators that are known in some version; nodes of others stay without schema and
// op. Such a model can be looked at, changed and written, and not run.
assay_status_t assay_onnx_check_known(assay_model_t* model) ASSAY_MUST_USE;

// The same of a model without functions whose nodes' versions are known one by one, whatever it
// imports (plan files): every node of the graph in order, each before those of its own graphs.
// Errors: CORRUPT, too, versions of other nodes.
typedef struct assay_onnx_version {
  const char* op_type;
  int64_t version;
} assay_onnx_version_t;
assay_status_t assay_onnx_check_versions(assay_model_t* model, const assay_onnx_version_t* versions,
                                         size_t n) ASSAY_MUST_USE;

// Puts the nodes of every graph into an order in which each finds its inputs made; those that are
// in order keep it. CORRUPT: a cycle.
assay_status_t assay_onnx_sort(assay_model_t* model) ASSAY_MUST_USE;

// A copy of a checked model with the calls of its functions replaced by their bodies, and without
// functions. Names of nodes and values within start with the call's label and a '/'. What the
// checker found stays: a body may be of another operator set than the model.
assay_status_t assay_onnx_inline_functions(const assay_model_t* model,
                                           assay_model_t** out) ASSAY_MUST_USE;

// Where initializers go when a model is written.
typedef enum assay_onnx_external {
  ASSAY_ONNX_EXTERNAL_KEEP = 0,  // as they were read; all if the file would pass 2 GB
  ASSAY_ONNX_EXTERNAL_NONE,      // into the model's file
  ASSAY_ONNX_EXTERNAL_ALL,       // into one file beside it, from min_bytes on
} assay_onnx_external_t;

typedef struct assay_onnx_write_options {
  assay_onnx_external_t external;
  int64_t min_bytes;      // 0: 1024
  const char* data_name;  // file of external data; NULL: the model's name and ".data"
  bool apart;             // external data in a file for each tensor, NAME.data
} assay_onnx_write_options_t;

// Writes a model; options may be NULL. What was read and not changed comes out the same. Readers of
// the files see the old ones or the new ones.
assay_status_t assay_onnx_write(const assay_model_t* model, const char* path,
                                const assay_onnx_write_options_t* options) ASSAY_MUST_USE;
// The same into memory (assay_free it), without external data.
assay_status_t assay_onnx_write_bytes(const assay_model_t* model, uint8_t** out,
                                      size_t* out_size) ASSAY_MUST_USE;

// The location that the message gives for elements that lie apart from it, and the key under which
// it says the type as which those of a float32 tensor lie there that 16 bits hold.
#define ASSAY_ONNX_BESIDE "data"
#define ASSAY_ONNX_NARROW "narrow"
enum { ASSAY_ONNX_BESIDE_BYTES = 1024 };  // as float32: smaller ones are in the message

// For files of other formats that hold a model: the message, and apart from it the elements of
// larger initializers, each at an offset (a multiple of 4096) from where the data begin.
typedef struct assay_onnx_part {
  assay_tensor_t* tensor;  // borrowed from the model
  uint64_t offset;
} assay_onnx_part_t;
typedef struct assay_onnx_parts {
  uint8_t* message;
  size_t message_bytes;
  assay_onnx_part_t* parts;  // by offset
  size_t n;
  uint64_t data_bytes;
} assay_onnx_parts_t;
// beside: of another model whose data lie before these; elements that both have are there already.
// NULL: there is none. chosen: by value id, the constants whose elements lie apart, which may be
// those of Constant nodes, too (tensors of numbers, in their attribute `value`); NULL: the larger
// initializers.
assay_status_t assay_onnx_split(const assay_model_t* model, const assay_onnx_parts_t* beside,
                                const bool* chosen, assay_onnx_parts_t* out) ASSAY_MUST_USE;
void assay_onnx_parts_deinit(assay_onnx_parts_t* p);
// Reads it again from where the two lie in a file; the file stays mapped as long as the model
// lives.
assay_status_t assay_onnx_join(assay_mapping_t* message, assay_mapping_t* data,
                               assay_model_t** out) ASSAY_MUST_USE;

// A file of test data (input_0.pb): TensorProto, SequenceProto, OptionalProto or MapProto. The type
// says which; NULL: TensorProto. One reference goes to the caller.
assay_status_t assay_onnx_read_value(const char* path, const assay_valtype_t* type_or_null,
                                     assay_tensor_t** out) ASSAY_MUST_USE;
// name may be NULL.
assay_status_t assay_onnx_write_value(const char* path, assay_tensor_t* value,
                                      const char* name) ASSAY_MUST_USE;

#endif  // ASSAY_ONNX_ONNX_H_
