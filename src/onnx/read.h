// What the files that read ONNX share.
#ifndef ASSAY_ONNX_READ_H_
#define ASSAY_ONNX_READ_H_

#include "base/alloc.h"
#include "base/beneath.h"
#include "base/file.h"
#include "ir/ir.h"
#include "onnx/onnx-data.pb-c.h"
#include "onnx/onnx-ml.pb-c.h"
#include "onnx/onnx.h"
#include "onnx/wire.h"

// A file of external data that is open.
typedef struct onnx_external {
  const char* location;
  assay_mapping_t* mapping;  // one reference is ours
} onnx_external_t;

// A file being read. All text and bytes of results live in the arena or in the file.
typedef struct onnx_reader {
  assay_arena_t* arena;
  assay_model_t* model;               // NULL: a standalone value is read
  const char* value;                  // whose type is read, for warnings; NULL: another type
  assay_mapping_t* file;              // borrowed
  const char* folder;                 // of external data; NULL: there is none
  assay_onnx_read_options_t options;  // hollow, undefined, stripped
  assay_folder_t* beneath;            // the same, held open; NULL: not asked for yet
  onnx_external_t* externals;
  size_t n_externals, cap_externals;
  bool data_given;  // the first of them: of a plan file
  bool may_narrow;  // what is read is an initializer, whose elements may lie there in 16 bits
} onnx_reader_t;

void onnx_reader_deinit(onnx_reader_t* r);

// Data that are open already, under this location.
assay_status_t onnx_give_external(onnx_reader_t* r, const char* location,
                                  assay_mapping_t* data) ASSAY_MUST_USE;

// ---- messages ---------------------------------------------------------------------------------

// Checks data, and unpacks it with the library's allocator. Freed with onnx_free_message.
assay_status_t onnx_unpack(const ProtobufCMessageDescriptor* kind, const uint8_t* data, size_t size,
                           ProtobufCMessage** out) ASSAY_MUST_USE;
void onnx_free_message(ProtobufCMessage* message);  // NULL is allowed

// A copy in the arena; "" for NULL.
assay_status_t onnx_text(onnx_reader_t* r, const char* text, const char** out) ASSAY_MUST_USE;
// The fields of a message that are carried along; in the file where they stand together, else
// copied. The spans hold whole fields.
assay_status_t onnx_carried(onnx_reader_t* r, const ProtobufCMessage* m,
                            assay_bytes_t* out) ASSAY_MUST_USE;
// Collects runs of bytes: in place while they follow each other in memory, copied otherwise.
typedef struct onnx_collector {
  assay_bytes_t run;
  assay_str_t spill;  // used once a run did not follow
} onnx_collector_t;
void onnx_collect(onnx_collector_t* c, const uint8_t* data, size_t len);
// What was collected; copies live in the arena. Frees the collector in any case.
assay_status_t onnx_collected(onnx_reader_t* r, onnx_collector_t* c,
                              assay_bytes_t* out) ASSAY_MUST_USE;
// Collects a message as a field of this number.
assay_status_t onnx_collect_message(onnx_collector_t* c, uint32_t number,
                                    const ProtobufCMessage* m) ASSAY_MUST_USE;
// The whole field that a tensor message stood in; empty for a file's top message.
assay_bytes_t onnx_self(const onnx_reader_t* r, const ProtobufCMessage* m);
assay_status_t onnx_read_props(onnx_reader_t* r, size_t n, Onnx__StringStringEntryProto** entries,
                               assay_prop_t** out, size_t* out_n) ASSAY_MUST_USE;

// ---- parts ------------------------------------------------------------------------------------

typedef struct onnx_tensor_info {
  assay_bytes_t extra;            // carried along
  const char* external_location;  // NULL: the data stood in the message
  bool is_stripped;               // there were none, which the documentation says
} onnx_tensor_info_t;

// One reference to the tensor goes to the caller. info may be NULL.
assay_status_t onnx_read_tensor(onnx_reader_t* r, const Onnx__TensorProto* p,
                                onnx_tensor_info_t* info, assay_tensor_t** out) ASSAY_MUST_USE;
assay_status_t onnx_read_sparse(onnx_reader_t* r, const Onnx__SparseTensorProto* p,
                                onnx_tensor_info_t* info, assay_tensor_t** out) ASSAY_MUST_USE;
// The data of a tensor whose data_location is EXTERNAL.
assay_status_t onnx_read_external(onnx_reader_t* r, const Onnx__TensorProto* p, assay_type_t type,
                                  int rank, const int64_t* dims, const char** out_location,
                                  assay_tensor_t** out) ASSAY_MUST_USE;
// Checks dims of a file: rank, signs, overflow of the number of elements and of their bytes.
assay_status_t onnx_check_dims(assay_type_t type, size_t n, const int64_t* dims,
                               int64_t* out_size) ASSAY_MUST_USE;
assay_status_t onnx_check_elem_type(int32_t type) ASSAY_MUST_USE;

// NULL for a type that says nothing, or is (or holds) opaque: *out_opaque tells.
assay_status_t onnx_read_type(onnx_reader_t* r, const Onnx__TypeProto* p, bool* out_opaque,
                              const assay_valtype_t** out) ASSAY_MUST_USE;

// The values that subgraphs of a graph's nodes capture, for sorting.
typedef struct onnx_capture {
  assay_node_t* node;  // of the graph; it holds the subgraph
  assay_value_t* value;
} onnx_capture_t;

// Puts each node after those whose outputs it reads; nodes in order keep it. CORRUPT: a cycle.
assay_status_t onnx_sort_nodes(assay_graph_t* g, const onnx_capture_t* captures,
                               size_t n_captures) ASSAY_MUST_USE;

assay_status_t onnx_read_graph(onnx_reader_t* r, const Onnx__GraphProto* p,
                               assay_graph_t** out) ASSAY_MUST_USE;
assay_status_t onnx_read_function(onnx_reader_t* r, const Onnx__FunctionProto* p,
                                  assay_function_t** out) ASSAY_MUST_USE;
// The content of a Constant node, so that inference sees it; other nodes are left alone.
assay_status_t onnx_set_constant(assay_model_t* m, const assay_node_t* n) ASSAY_MUST_USE;
assay_status_t onnx_read_opsets(onnx_reader_t* r, size_t n, Onnx__OperatorSetIdProto** p,
                                assay_opset_t** out) ASSAY_MUST_USE;

#endif  // ASSAY_ONNX_READ_H_
