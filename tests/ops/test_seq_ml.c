// Operators of ai.onnx.ml. Values follow from the operators' texts; those of models agree with ONNX
// Runtime 1.31.1 where the texts leave no choice.
#include "ops/op_case.h"

#define ML(name) "ai.onnx.ml." name

static void test_features(void** state) {
  (void)state;
  static const op_case_t rows[] = {
      {ML("ArrayFeatureExtractor"), 1, NULL, {"float[2,3] iota", "int64[1,2] 2 0"},
       {"float[2,2] 2 0 5 3"}, NULL},
      {ML("ArrayFeatureExtractor"), 1, NULL, {"string[3] a b c", "int64[2] 2 2"},
       {"string[1,2] c c"}, NULL},
      {ML("ArrayFeatureExtractor"), 1, NULL, {"float[2,3] iota", "int64[1] 3"}, {NULL}, "index 3"},
      {ML("ArrayFeatureExtractor"), 1, NULL, {"float[2,3] iota", "int64[1] -1"}, {NULL}, "index -1"},
      {ML("Binarizer"), 1, "threshold=1.5", {"float[3] 1 2 nan"}, {"float[3] 0 1 0"}, NULL},
      {ML("Binarizer"), 1, NULL, {"int32[2] 0 7"}, {"int32[2] 0 1"}, NULL},
      {ML("Scaler"), 1, "offset=1,2 scale=10,100", {"int64[2,2] 1 2 3 4"}, {"float[2,2] 0 0 20 200"},
       NULL},
      {ML("Scaler"), 1, "offset=1 scale=10", {"float[] 3"}, {"float[] 20"}, NULL},
      {ML("Scaler"), 1, "offset=1,2,3 scale=1", {"float[2] 3 4"}, {NULL}, "'offset' has 3"},
      {ML("Scaler"), 1, NULL, {"float[2] 3 4"}, {NULL}, "'offset' has 0"},
      {ML("Imputer"), 1, "imputed_value_floats=7,8 replaced_value_float=nan",
       {"float[2,2] nan 1 2 nan"}, {"float[2,2] 7 1 2 8"}, NULL},
      {ML("Imputer"), 1, "imputed_value_int64s=9 replaced_value_int64=3", {"int32[3] 3 4 3"},
       {"int32[3] 9 4 9"}, NULL},
      {ML("Imputer"), 1, NULL, {"int32[3] 3 4 3"}, {NULL}, "imputed_value_int64s"},
      {ML("Normalizer"), 1, "norm=MAX", {"float[2,2] 1 -4 0 0"}, {"float[2,2] 1 -4 0 0"}, NULL},
      {ML("Normalizer"), 1, "norm=L1", {"int64[2] 1 -3"}, {"float[2] 0.25 -0.75"}, NULL},
      {ML("Normalizer"), 1, "norm=L2", {"float[1,2] 3 -4"}, {"float[1,2] 0.6 -0.8"}, NULL},
      {ML("Normalizer"), 1, "norm=L3", {"float[1,2] 3 -4"}, {NULL}, "norm is 'L3'"},
      {ML("FeatureVectorizer"), 1, "inputdimensions=1,3", {"int32[2,2] iota", "int32[2,2] iota"},
       {"float[2,4] 0 0 1 0 2 2 3 0"}, NULL},
      {ML("FeatureVectorizer"), 1, NULL, {"float[2] 1 2", "float[3,1] iota"}, {NULL}, "3 rows"},
      {ML("FeatureVectorizer"), 1, "inputdimensions=9223372036854775807", {"float[2] 1 2"}, {NULL},
       "more elements"},
      {ML("OneHotEncoder"), 1, "cats_int64s=1,-1,3", {"float[2,2] 1.7 -1 3 9"},
       {"float[2,2,3] 1 0 0 0 1 0 0 0 1 0 0 0"}, NULL},
      {ML("OneHotEncoder"), 1, "cats_strings=b,a", {"string[2] a b"}, {"float[2,2] 0 1 1 0"}, NULL},
      {ML("OneHotEncoder"), 1, "cats_strings=b,a zeros=0", {"string[1] c"}, {NULL}, "no category"},
      {ML("OneHotEncoder"), 1, NULL, {"string[1] c"}, {NULL}, "must be given"},
  };
  OP_CASE_RUN(rows);
}

static void test_labels(void** state) {
  (void)state;
  static const op_case_t rows[] = {
      {ML("LabelEncoder"), 1, "classes_strings=p,q", {"string[2] q z"}, {"int64[2] 1 -1"}, NULL},
      {ML("LabelEncoder"), 1, "classes_strings=p,q default_string=?", {"int64[3] 0 1 2"},
       {"string[3] p q ?"}, NULL},
      {ML("LabelEncoder"), 2, "keys_strings=a,b values_int64s=5,6", {"string[2,2] a b c ''"},
       {"int64[2,2] 5 6 -1 -1"}, NULL},
      {ML("LabelEncoder"), 2, "keys_floats=nan,0.5 values_strings=n,h", {"float[3] 0.5 nan 1"},
       {"string[3] h n _Unused"}, NULL},
      {ML("LabelEncoder"), 2, "keys_floats=-0 values_int64s=7", {"float[2] 0 -0"}, {"int64[2] -1 7"},
       NULL},
      {ML("LabelEncoder"), 4, "keys_floats=-0 values_int64s=7", {"float[2] 0 -0"}, {"int64[2] 7 7"},
       NULL},
      {ML("LabelEncoder"), 4, "keys_int64s=1,1 values_floats=0.5,2 default_float=9", {"int64[2] 1 2"},
       {"float[2] 2 9"}, NULL},
      {ML("LabelEncoder"), 4,
       "keys_tensor=int16[2]:3:4 values_tensor=double[2]:0.5:1 default_tensor=double[1]:7",
       {"int16[2] 4 5"}, {"double[2] 1 7"}, NULL},
      {ML("LabelEncoder"), 4, "keys_int64s=1 values_floats=0.5,2", {"int64[1] 1"}, {NULL},
       "1 keys and 2 values"},
      {ML("LabelEncoder"), 4, "keys_int64s=1 values_floats=2", {"string[1] 1"}, {NULL}, "the keys are"},
      {ML("CategoryMapper"), 1, "cats_int64s=4,8 cats_strings=p,q", {"int64[2] 8 1"},
       {"string[2] q _Unused"}, NULL},
      {ML("CategoryMapper"), 1, "cats_int64s=4,8 cats_strings=p", {"int64[2] 8 1"}, {NULL},
       "has 2 entries"},
  };
  OP_CASE_RUN(rows);
}

static void test_linear(void** state) {
  (void)state;
  static const op_case_t rows[] = {
      {ML("LinearRegressor"), 1, "coefficients=1,2,3,4 intercepts=0.5,-0.5 targets=2",
       {"float[2,2] 1 0 0 1"}, {"float[2,2] 1.5 2.5 2.5 3.5"}, NULL},
      {ML("LinearRegressor"), 1, "coefficients=1,2,3 targets=2", {"float[2,2] 1 0 0 1"}, {NULL},
       "coefficients has 3"},
      {ML("LinearRegressor"), 1, "coefficients=1 targets=0", {"float[1,1] 1"}, {NULL}, "targets is 0"},
      {ML("LinearClassifier"), 1, "coefficients=1,0,0,1,-1,-1 classlabels_strings=a,b,c",
       {"float[3,2] 3 1 1 3 -1 -1"}, {"string[3] a b c", "float[3,3] 3 1 -4 1 3 -4 -1 -1 2"}, NULL},
      {ML("LinearClassifier"), 1,
       "coefficients=1,1 classlabels_ints=4,5 post_transform=LOGISTIC intercepts=-1",
       {"int64[2,2] 1 1 0 0"},
       {"int64[2] 5 4", "float[2,2] 0.26894142 0.73105858 0.73105858 0.26894142"}, NULL},
      {ML("LinearClassifier"), 1, "coefficients=1,1,1 classlabels_ints=4,5", {"float[1,1] 1"},
       {"int64[0]", "float[0]"}, "make 3 scores"},
      {ML("SVMRegressor"), 1,
       "coefficients=1,-1 rho=0.5 n_supports=2 support_vectors=1,0,0,1 kernel_type=LINEAR",
       {"float[2,2] 3 1 0 0"}, {"float[2,1] 2.5 0.5"}, NULL},
      {ML("SVMRegressor"), 1, "coefficients=2 rho=0 n_supports=1 support_vectors=1,1 kernel_type=POLY "
       "kernel_params=0.5,1,2", {"float[1,2] 1 1"}, {"float[1,1] 8"}, NULL},
      {ML("SVMRegressor"), 1, "coefficients=1,2 rho=-1 one_class=1", {"float[2,2] 1 1 0 0"},
       {"float[2,1] 1 -1"}, NULL},
      {ML("SVMRegressor"), 1, "coefficients=1 rho=0 n_supports=9223372036854775807 support_vectors=1",
       {"float[1,2] 1 1"}, {NULL}, "do not fit"},
      {ML("SVMClassifier"), 1,
       "classlabels_ints=5,7 coefficients=1,-1 support_vectors=1,0,0,1 vectors_per_class=1,1 rho=0",
       {"float[2,2] 2 1 1 3"}, {"int64[2] 5 7", "float[2,2] -1 1 2 -2"}, NULL},
      {ML("SVMClassifier"), 1,
       "classlabels_ints=5,7 coefficients=1 support_vectors=1,0,0,1 vectors_per_class=1,1 rho=0",
       {"float[2,2] 2 1 1 3"}, {"int64[0]", "float[0]"}, "need 2 coefficients"},
      {ML("SVMClassifier"), 1,
       "classlabels_ints=5,7 coefficients=1 vectors_per_class=-1,2 rho=0", {"float[2,2] 2 1 1 3"},
       {"int64[0]", "float[0]"}, "vectors_per_class[0] is -1"},
  };
  OP_CASE_RUN(rows);
}

// Two trees: x0 <= 0 ? (x1 < 1 ? A : B) : C, and the leaf D alone.
#define TREES                                                                                    \
  "nodes_treeids=0,0,0,0,0,1 nodes_nodeids=0,1,2,3,4,0 nodes_featureids=0,1,0,0,0,0 "              \
  "nodes_values=0,1,0,0,0,0 nodes_modes=BRANCH_LEQ,BRANCH_LT,LEAF,LEAF,LEAF,LEAF "                 \
  "nodes_truenodeids=1,3,0,0,0,0 nodes_falsenodeids=2,4,0,0,0,0 "
#define VOTES "target_treeids=0,0,0,1 target_nodeids=3,4,2,0 target_ids=0,0,0,0 target_weights=1,2,4,8 "
#define CLASSES "class_treeids=0,0,0,1 class_nodeids=3,4,2,0 class_ids=0,1,2,1 class_weights=1,2,4,1 "
#define X "float[4,2] -1 0 -1 1 1 0 nan 0"
#define REGRESSOR ML("TreeEnsembleRegressor")

static void test_trees(void** state) {
  (void)state;
  static const op_case_t rows[] = {
      {REGRESSOR, 3, TREES VOTES "n_targets=1", {X}, {"float[4,1] 9 10 12 12"}, NULL},
      {REGRESSOR, 1, TREES VOTES "n_targets=1 aggregate_function=MIN base_values=0.5", {X},
       {"float[4,1] 1.5 2.5 4.5 4.5"}, NULL},
      {REGRESSOR, 1, TREES VOTES "n_targets=1 aggregate_function=AVERAGE", {X},
       {"float[4,1] 4.5 5 6 6"}, NULL},
      {REGRESSOR, 1,
       TREES VOTES "n_targets=2 aggregate_function=MAX nodes_missing_value_tracks_true=1,0,0,0,0,0", {X},
       {"float[4,2] 8 0 8 0 8 0 8 0"}, NULL},
      {ML("TreeEnsembleClassifier"), 3, TREES CLASSES "classlabels_strings=a,b,c", {X},
       {"string[4] a b c c", "float[4,3] 1 1 0 0 3 0 0 1 4 0 1 4"}, NULL},
      {ML("TreeEnsembleClassifier"), 1,
       TREES "class_treeids=0,0,0,1 class_nodeids=3,4,2,0 class_ids=0,0,0,0 "
             "class_weights=-1,2,4,-1 classlabels_int64s=3,9", {X},
       {"int64[4] 3 9 9 9", "float[4,2] 2 -2 -1 1 -3 3 -3 3"}, NULL},
      // Tables that make no sense.
      {REGRESSOR, 1, TREES VOTES "n_targets=0", {X}, {NULL}, "n_targets is 0"},
      {REGRESSOR, 1, TREES VOTES "n_targets=1", {"float[4,1] iota"}, {NULL}, "asks for feature 1"},
      {REGRESSOR, 1, TREES VOTES "n_targets=1 base_values=1,2", {X}, {NULL}, "2 base values"},
      {REGRESSOR, 1,
       "nodes_treeids=0,0 nodes_nodeids=0,1 nodes_featureids=0,0 nodes_values=0,0 "
       "nodes_modes=BRANCH_LEQ,BRANCH_LEQ nodes_truenodeids=1,0 nodes_falsenodeids=1,0 n_targets=1",
       {X}, {NULL}, "comes back"},
      {REGRESSOR, 1,
       "nodes_treeids=0 nodes_nodeids=0 nodes_featureids=0 nodes_values=0 nodes_modes=BRANCH_LEQ "
       "nodes_truenodeids=7 nodes_falsenodeids=0 n_targets=1",
       {X}, {NULL}, "not there"},
      {REGRESSOR, 1,
       "nodes_treeids=0,0 nodes_nodeids=0,0 nodes_featureids=0,0 nodes_values=0,0 "
       "nodes_modes=LEAF,LEAF nodes_truenodeids=0,0 nodes_falsenodeids=0,0 n_targets=1",
       {X}, {NULL}, "is there twice"},
      {REGRESSOR, 1,
       "nodes_treeids=0 nodes_nodeids=0 nodes_featureids=0 nodes_values=0,1 nodes_modes=LEAF "
       "nodes_truenodeids=0 nodes_falsenodeids=0 n_targets=1", {X}, {NULL}, "nodes_values"},
      {REGRESSOR, 1,
       "nodes_treeids=0 nodes_nodeids=0 nodes_featureids=0 nodes_values=0 nodes_modes=LEAF "
       "nodes_truenodeids=0 nodes_falsenodeids=0 n_targets=1 target_treeids=0 target_nodeids=0 "
       "target_ids=1 target_weights=1", {X}, {NULL}, "target 1"},
      {REGRESSOR, 1, TREES "n_targets=1 target_treeids=0 target_nodeids=9 target_ids=0 target_weights=1",
       {X}, {NULL}, "node 9 of tree 0"},
  };
  OP_CASE_RUN(rows);
}

#define TREE5                                                                                    \
  "nodes_featureids=0,0 nodes_splits=float[2]:2:0 nodes_truenodeids=1,0 nodes_trueleafs=0,1 "       \
  "nodes_falsenodeids=2,1 nodes_falseleafs=1,1 leaf_targetids=0,1,0 leaf_weights=float[3]:10:20:30 "

static void test_trees5(void** state) {
  (void)state;
  static const op_case_t rows[] = {
      // x <= 2 ? (x in {1, 1.5} ? leaf 0 : leaf 1) : leaf 2
      {ML("TreeEnsemble"), 5,
       TREE5 "tree_roots=0 n_targets=2 nodes_modes=uint8[2]:0:6 membership_values=float[3]:1:1.5:nan",
       {"float[4,1] 1 1.5 2 3"}, {"float[4,2] 10 0 10 0 0 20 30 0"}, NULL},
      {ML("TreeEnsemble"), 5,
       TREE5 "tree_roots=0,1 n_targets=2 nodes_modes=uint8[2]:0:2 aggregate_function=3",
       {"float[1,1] 1"}, {"float[1,2] 10 0"}, NULL},
      {ML("TreeEnsemble"), 5, TREE5 "tree_roots=0 n_targets=2 nodes_modes=uint8[2]:0:6",
       {"float[1,1] 1"}, {NULL}, "no set for node 1"},
      {ML("TreeEnsemble"), 5, TREE5 "tree_roots=2 n_targets=2 nodes_modes=uint8[2]:0:0",
       {"float[1,1] 1"}, {NULL}, "tree_roots[0] is 2"},
      {ML("TreeEnsemble"), 5, TREE5 "tree_roots=0 n_targets=1 nodes_modes=uint8[2]:0:0",
       {"float[1,1] 1"}, {NULL}, "target 1"},
      {ML("TreeEnsemble"), 5, TREE5 "tree_roots=0 n_targets=2 nodes_modes=uint8[2]:0:7",
       {"float[1,1] 1"}, {NULL}, "nodes_modes[1] is 7"},
      {ML("TreeEnsemble"), 5, TREE5 "tree_roots=0 n_targets=2 nodes_modes=uint8[1]:0",
       {"float[1,1] 1"}, {NULL}, "1 modes"},
  };
  OP_CASE_RUN(rows);
}

static void test_contrib(void** state) {
  (void)state;
  static const op_case_t rows[] = {
      {"com.microsoft.Unique", 1, NULL, {"float[6] 2 1 nan 3 nan 1"},
       {"float[5] 2 1 nan 3 nan", "int64[6] 0 1 2 3 4 1", "int64[5] 1 2 1 1 1"}, NULL},
      {"com.microsoft.Unique", 1, NULL, {"string[3] b a b"},
       {"string[2] b a", "int64[3] 0 1 0", "int64[2] 2 1"}, NULL},
      {"com.microsoft.Unique", 1, NULL, {"int64[0]"}, {"int64[0]", "int64[0]", "int64[0]"}, NULL},
      {"com.microsoft.DynamicTimeWarping", 1, NULL, {"float[2,3] 0 1 1 1 0 0"},
       {"int32[2,3] 0 1 1 0 1 2"}, NULL},
      {"com.microsoft.DynamicTimeWarping", 1, NULL, {"float[1,2,2] nan inf inf nan"},
       {"int32[2,3] 0 1 1 0 0 1"}, NULL},
      {"com.microsoft.DynamicTimeWarping", 1, NULL, {"float[0,2]"}, {NULL}, "not empty"},
      {"com.microsoft.RemovePadding", 1, NULL, {"float[2,2,1] 1 2 3 4", "int32[2] 1 2"},
       {"float[3,1] 1 3 4", "int32[2,2] 0 2 3 1", "int32[3] 0 1 3", "int32[1] 2"}, NULL},
      {"com.microsoft.RemovePadding", 1, NULL, {"float[2,2,1] 1 2 3 4", "int32[2] 1 3"},
       {"float[0]", "int32[0]", "int32[0]", "int32[0]"}, "sequence_token_count[1] is 3"},
      {"com.microsoft.RestorePadding", 1, NULL, {"float[3,1] 1 3 4", "int32[2,2] 0 2 3 1"},
       {"float[2,2,1] 1 0 3 4"}, NULL},
      {"com.microsoft.RestorePadding", 1, NULL, {"float[1,1] 1", "int32[1,1] 1"}, {NULL},
       "token_offset 0 is 1"},
      {"com.microsoft.BitmaskDropout", 1, NULL, {"float[2] 1 2"}, {"float[2] 1 2", "uint32[1] 4294967295"},
       NULL},
      {"Dropout", 7, NULL, {"float[2] 1 2"}, {"float[2] 1 2", "float[2] 1 1"}, NULL},
      {"Dropout", 6, "is_test=1", {"float[2] 1 2"}, {"float[2] 1 2", "float[2] 1 1"}, NULL},
      {"Dropout", 10, NULL, {"float[2] 1 2"}, {"float[2] 1 2", "bool[2] 1 1"}, NULL},
      {"Dropout", 13, NULL, {"float[2] 1 2", "float[] 0.5", "bool[] 0"}, {"float[2] 1 2", "bool[2] 1 1"},
       NULL},
      {"Dropout", 13, NULL, {"float[2] 1 2", "float[] 1", "bool[] 1"}, {NULL}, "ratio is 1"},
      {"RandomNormal", 1, "shape=2,-1", {NULL}, {NULL}, "'shape' holds -1"},
      {"RandomUniform", 22, "shape=2 dtype=7", {NULL}, {NULL}, "dtype 7"},
      {"RandomUniform", 22, "shape=2 low=3 high=3", {NULL}, {"float[2] 3 3"}, NULL},
      {"RandomNormalLike", 22, "scale=0 mean=2", {"double[1,2] 0 0"}, {"double[1,2] 2 2"}, NULL},
      {"RandomUniformLike", 1, NULL, {"int32[1] 0"}, {NULL}, "must be one of"},
      {"Bernoulli", 15, "dtype=9", {"float[3] 0 1 1"}, {"bool[3] 0 1 1"}, NULL},
      {"Multinomial", 7, "sample_size=3", {"float[2,2] -inf 0 0 -inf"}, {"int32[2,3] 1 1 1 0 0 0"}, NULL},
      {"Multinomial", 7, NULL, {"float[1,2] -inf -inf"}, {NULL}, "no distribution"},
      {"Multinomial", 7, NULL, {"float[2] 1 1"}, {NULL}, "rank 2"},
  };
  OP_CASE_RUN(rows);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_features), cmocka_unit_test(test_labels), cmocka_unit_test(test_linear),
      cmocka_unit_test(test_trees),    cmocka_unit_test(test_trees5), cmocka_unit_test(test_contrib)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
