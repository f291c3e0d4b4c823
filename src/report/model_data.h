// What is in a model or a plan, as the data of its page: "assay.page.model/1".
#ifndef ASSAY_REPORT_MODEL_DATA_H_
#define ASSAY_REPORT_MODEL_DATA_H_

#include <jansson.h>

#include "report/model_page.h"

// Layers and values as they are added. Memory that runs out shows in the lists: they are NULL then.
typedef struct assay_model_data {
  const assay_model_t* model;
  const assay_model_page_t* options;
  json_t *values, *layers;
  int n_values, n_layers;
  int* at;  // by value id: its place in `values`; -1: not there yet
} assay_model_data_t;

assay_status_t assay_model_data_init(const assay_model_t* m, const assay_model_page_t* options,
                                     assay_model_data_t* out) ASSAY_MUST_USE;
void assay_model_data_deinit(assay_model_data_t* d);

// The place of a value among the values, where it is added the first time; null for NULL.
json_t* assay_model_data_value(assay_model_data_t* d, const assay_value_t* v);
json_t* assay_model_data_values(assay_model_data_t* d, assay_value_t* const* values, size_t n);
// Adds a node after the nodes of its bodies.
void assay_model_data_node(assay_model_data_t* d, const assay_node_t* n);
// Adds a layer of which all is known but bodies and attributes: those of its nodes, which are added
// here.
void assay_model_data_layer(assay_model_data_t* d, const assay_node_t* const* nodes, size_t n_nodes,
                            json_t* take_layer);

// Appends what an attribute is, in a line; of a tensor the elements, too, where they are wanted.
// Nothing of graphs.
void assay_attr_text(const assay_attr_t* a, bool elements, assay_str_t* out);
// Appends the elements of a tensor, shortened in the middle.
void assay_elements_text(assay_tensor_t* t, assay_str_t* out);

#endif  // ASSAY_REPORT_MODEL_DATA_H_
