// The table of causes: what each row offers for a node. Offers are told by their texts, and each
// must either be evaluated or be refused with a reason.
#include "diagnose/causes/surroundings.h"
#include "diagnose/repair.h"
#include "eval/evaluator.h"
#include "passes/graph_case.h"

typedef struct proposal_row {
  const char* cause;
  const char* node;       // and those after it, by ';'
  const char* inputs[6];  // constants, but for the first
  int count;              // of offers; -1: any number of them
  const char* texts[4];   // some that must be among them
} proposal_row_t;

static const proposal_row_t rows[] = {
    {"epsilon",
     "BatchNormalization n x s o m v -> y | epsilon=0.1",
     {"x float[2,3,4]", "s float[3]", "o float[3]", "m float[3]", "v float[3] positive"},
     10,
     {"epsilon = 1e-05 instead of 0.1", "epsilon = 0.001 instead of 0.1"}},
    {"attribute",
     "Elu n x -> y | alpha=0.3",
     {"x float[5]"},
     6,
     {"alpha = 1 instead of 0.3", "alpha = 0.01 instead of 0.3"}},
    {"attribute", "Relu n x -> y", {"x float[5]"}, 0, {NULL}},
    {"fitted attribute", "Elu n x -> y | alpha=0.3", {"x float[5]"}, 1, {NULL}},
    {"axis",
     "Softmax n x -> y | axis=1",
     {"x float[2,3,4]"},
     2,
     {"axis = 0 instead of 1", "axis = 2 instead of 1"}},
    {"axis", "Softmax n x -> y | axis=-1", {"x float[2,3,4]"}, 2, {"axis = 0 instead of -1"}},
    {"mode",
     "Gelu n x -> y | approximate=tanh",
     {"x float[5]"},
     1,
     {"approximate = 'none' instead of 'tanh'"}},
    {"flag",
     "Gemm n x w -> y | transB=1",
     {"x float[3,3]", "w float[3,3]"},
     2,
     {"transA = 1 instead of 0", "transB = 0 instead of 1"}},
    {"permutation",
     "Transpose n x -> y",
     {"x float[2,3,4]"},
     5,
     {"perm = [0,2,1]", "perm = [1,2,0]"}},
    {"permutation",
     "Transpose n x -> y | perm=0,1,2,3,4,5",
     {"x float[1,2,1,2,1,2]"},
     15,
     {"perm = [0,1,2,4,3,5]"}},
    {"permutation", "Relu n x -> y", {"x float[2,3]"}, 0, {NULL}},
    {"swapped inputs",
     "Sub n x w -> y",
     {"x float[3]", "w float[3]"},
     1,
     {"inputs 'x' and 'w' exchanged"}},
    {"swapped inputs", "Gather n x i -> y", {"x float[3]", "i int64[1] 0"}, 0, {NULL}},
    {"exchanged outputs",
     "Split n x -> y z | axis=1, num_outputs=2",
     {"x float[2,4]"},
     1,
     {"outputs 'y' and 'z' exchanged"}},
    {"exchanged outputs", "TopK n x k -> y i", {"x float[3]", "k int64[1] 1"}, 0, {NULL}},
    {"numbers",
     "Conv n x w -> y | pads=2,1,0,1",
     {"x float[1,2,5,5]", "w float[2,2,3,3]"},
     -1,
     {"pads = [0,1,2,1]", "pads = [1,1,1,1]", "pads = [1,0,1,2]"}},
    {"dilation",
     "Conv n x w -> y | pads=1,1,1,1 kernel_shape=3,3",
     {"x float[1,2,9,9]", "w float[2,2,3,3]"},
     -1,
     {"dilations all 2, with pads = [2,2,2,2]"}},
    {"dilation",
     "Conv n x w -> y | pads=1,0 kernel_shape=2",
     {"x float[1,2,9]", "w float[2,2,2]"},
     -1,
     {"dilations all 4, with pads = [4,0]", "dilations all 2, with pads = [1,1]"}},
    {"statistics",
     "Reshape r x h -> a; InstanceNormalization n a s b -> y",
     {"x float[2,6,5]", "h int64[3] 0 3 -1", "s float[3] 1 1 1", "b float[3] 0 0 0"},
     0,
     {NULL}},
    {"statistics",
     "InstanceNormalization n x s b -> y",
     {"x float[2,3,5]", "s float[3]", "b float[3]", "m float[3]", "v float[3] positive"},
     -1,
     {"BatchNormalization in place of InstanceNormalization, with 'm' and 'v'"}},
    {"number within",
     "Softplus n x -> y",
     {"x float[4]"},
     8,
     {"Softplus of 2 times what it reads, divided by that"}},
    {"number within", "Sigmoid n x -> y", {"x float[4]"}, 5, {"Sigmoid of 1.702 times"}},
    {"recurrent bias",
     "GRU n x w r b -> y | hidden_size=2",
     {"x float[3,1,2]", "w float[1,6,2]", "r float[1,6,2]", "b float[1,12]"},
     6,
     {"the bias of the inputs alone", "the two biases exchanged"}},
    {"table by its formula",
     "Add n x t -> y",
     {"x float[3,4]",
      "t float[3,4] 0 0 1 1 0.841470957 0.099833414 0.540302277 0.995004177 0.909297407 "
      "0.198669329 -0.416146845 0.980066597"},
     -1,
     {"'t' with sines and cosines in turn", "'t' with base 10000",
      "'t' with exponents over one less", "'t' with positions from 1 on"}},
    {"table by its formula",
     "Mul n x t -> y",
     {"x float[4]", "t float[4] 1 0.100000001 0.00999999978 0.00100000005"},
     -1,
     {"'t' with base 500000", "'t' with exponents one more", "'t' with positions times 0.5"}},
    {"table by its formula", "Add n x t -> y", {"x float[3,4]", "t float[3,4]"}, 0, {NULL}},
    {"transposed blocks",
     "GRU n x w r -> y | hidden_size=2",
     {"x float[3,1,2]", "w float[1,6,2]", "r float[1,6,2]"},
     8,
     {"'r' with each of its 3 blocks of 2 by 2 transposed",
      "'w' with block 2 of its 3 transposed"}},
    {"transposed blocks",
     "MatMul n x w -> y",
     {"x float[2,3]", "w float[3,6]"},
     3,
     {"'w' with each of its 2 blocks of 3 by 3 transposed"}},
    {"transposed blocks", "MatMul n x w -> y", {"x float[2,3]", "w float[3,4]"}, 0, {NULL}},
    {"window",
     "Mul n x w -> y",
     {"x float[8]", "w float[8] 0 0.146446615 0.5 0.853553414 1 0.853553414 0.5 0.146446615"},
     -1,
     {"'w' with a Hann window that ends as it begins",
      "'w' with a Hamming window that goes on periodically"}},
    {"window", "Mul n x w -> y", {"x float[8]", "w float[8]"}, 0, {NULL}},
    {"order of peepholes",
     "LSTM n x w r _ _ _ _ p -> y | hidden_size=2",
     {"x float[3,1,2]", "w float[1,8,2]", "r float[1,8,2]", "p float[1,6]"},
     5,
     {"peepholes of i,f,o as those of i,o,f"}},
    {"bias of a gate",
     "GRU n x w r b -> y | hidden_size=2",
     {"x float[3,1,2]", "w float[1,6,2]", "r float[1,6,2]", "b float[1,12]"},
     6,
     {"the bias of gate z plus 1", "the bias of gate h less 1"}},
    {"mask",
     "Add n x m -> y",
     {"x float[3,3]", "m float[3,3] 0 -9 -9 0 0 -9 0 0 0"},
     4,
     {"the mask 'm' inverted", "the mask 'm' with its diagonal moved by +1",
      "the mask 'm' with its last two axes exchanged"}},
    {"mask", "Add n x m -> y", {"x float[4]", "m float[4] 0 1 2 3"}, 0, {NULL}},
    {"order of blocks",
     "Gemm n x w b -> y",
     {"x float[2,3]", "w float[3,6]", "b float[6]"},
     -1,
     {"'w' and the bias with its halves exchanged along axis 1",
      "'w' with each 6 counted as 3 times 2 along axis 1, not 2 times 3",
      "'w' with its thirds in the order 2,1,0 along axis 1"}},
    {"order of blocks",
     "Conv n x w -> y | group=3",
     {"x float[1,3,5]", "w float[3,1,2]"},
     0,
     {NULL}},
    {"reversed constant",
     "Conv n x w -> y",
     {"x float[1,1,5,5]", "w float[1,1,3,3]"},
     3,
     {"'w' reversed along axes 2 to 3"}},
    {"row of zeros",
     "Gather n t i -> y",
     {"x float[1]", "t float[4,2]", "i int64[3] 1 3 1"},
     2,
     {"'t' with row 1 of zeros", "'t' with row 3 of zeros"}},
    {"frozen value",
     "Sub n c x -> y; Mul o x k -> z",
     {"x float[4]", "c float[4]", "k float[] 2"},
     -1,
     {"reads 'x' instead of the constant 'c'", "Mul of 'x' and 'k' in place of 'c'"}},
    {"frozen value", "MatMul n x w -> y", {"x float[2,4]", "w float[4,4]"}, 0, {NULL}},
    {"lost update",
     "Relu n x -> y",
     {"x float[4,2]", "i int64[1,1] 2", "u float[1,2]"},
     2,
     {"ScatterND of 'u' at 'i' after it", "ScatterND of 'u' at 'i' before it"}},
    {"lost update", "Relu n x -> y", {"x float[4,2]", "u float[1,2]"}, 0, {NULL}},
    {"lost sign",
     "Concat n a x -> y | axis=0",
     {"x float[4]", "a float[4]"},
     3,
     {"Neg after it", "Neg before input 0 'a'"}},
    {"slice",
     "Slice n x starts ends axes -> y",
     {"x float[9]", "starts int64[1] 2", "ends int64[1] 6", "axes int64[1] 0"},
     4,
     {"the part from 1, not 2 (moved by -1)", "the part from 3, not 2 (moved by +1)"}},
    {"or equal",
     "Less n x w -> y",
     {"x float[3]", "w float[3]"},
     1,
     {"LessOrEqual in place of Less"}},
    {"or equal", "Add n x w -> y", {"x float[3]", "w float[3]"}, 0, {NULL}},
    {"other end",
     "Slice n x starts ends axes -> y",
     {"x float[9]", "starts int64[1] 7", "ends int64[1] 9", "axes int64[1] 0"},
     1,
     {"the part from 0 to 2, not from 7 to 9"}},
    {"other end",
     "Gather n x i -> y | axis=1",
     {"x float[2,8]", "i int64[1] 7"},
     4,
     {"element 0, not 7", "element 4, not 7"}},
    {"other end", "Gather n t i -> y", {"i int64[2] 0 1", "t float[8,2]"}, 0, {NULL}},
    {"filled border",
     "Pad n x p -> y",
     {"x float[4]", "p int64[2] 1 1"},
     9,
     {"filled with -3.4", "filled with 1"}},
    {"filled border", "Pad n x p -> y | mode=edge", {"x float[4]", "p int64[2] 1 1"}, 0, {NULL}},
    {"scale of sizes",
     "Resize n x _ k -> y",
     {"x float[1,1,16]", "k float[3] 1 1 1.4375"},
     -1,
     {"scales of 1.45 instead of 1.4375", "scales of 1.444444 instead of 1.4375"}},
    {"order of indices",
     "Gather n x i -> y",
     {"x float[9,2]", "i int64[9] 4 3 2 5 4 3 6 5 4"},
     2,
     {"'i', counted as 3 times 3, transposed", "'i' counted from the other end"}},
    {"moved classes or channels",
     "MatMul n x w -> y",
     {"x float[2,3]", "w float[3,5]"},
     3,
     {"'y' moved by -1 along axis 1", "'y' reversed along axis 1"}},
    {"place of epsilon", "Sqrt n x -> y", {"x float[4] positive"}, 0, {NULL}},
    {"normalization",
     "LayerNormalization n x w b -> y",
     {"x float[2,4]", "w float[4]", "b float[4]"},
     1,
     {"not less its mean"}},
    {"normalization", "Div n x w -> y", {"x float[4]", "w float[4]"}, 0, {NULL}},
    {"share",
     "Softmax n x -> y",
     {"x float[2,4]"},
     4,
     {"divided by its sum", "divided by its norm"}},
    {"share", "Softmax n x -> y", {"x float[4]"}, 0, {NULL}},
    {"mean of a mask", "ReduceMean n x axes -> y", {"x float[2,4]", "axes int64[1] 1"}, 0, {NULL}},
    {"order of operators", "Sub n x w -> y", {"x float[2,4]", "w float[4]"}, 0, {NULL}},
    {"order of elements",
     "Reshape n x shape -> y",
     {"x float[2,3,4,5]", "shape int64[3] 2 3 20"},
     1,
     {"'x' transpose:0,1,3,2"}},
    {"order of elements",
     "Reshape n x shape -> y",
     {"x float[2,12]", "shape int64[4] 2 3 2 2"},
     -1,
     {"'x' with dimension 1 counted as 2 times 3 times 2"}},
    {"order of elements",
     "Split n x -> y z | axis=1, num_outputs=2",
     {"x float[2,8]"},
     -1,
     {"'x' with dimension 1 counted as 4 times 2"}},
    {"lost factor",
     "Softmax n x -> y",
     {"x float[2,4]"},
     -1,
     {"what comes out of it times 1", "what comes out of it times 0.5"}},
    {"lost factor", "Transpose n x -> y", {"x float[2,3]"}, 0, {NULL}},
    {"lost summand", "Sigmoid n x -> y", {"x float[4]"}, 1, {"what comes out of it plus 1e-06"}},
    {"lost bound",
     "MatMul n x w -> y",
     {"x float[2,3]", "w float[3,5]"},
     -1,
     {"what comes out of it bounded by tanh: 30 tanh(x / 30)"}},
    {"constant numbers",
     "ReduceSum n x axes -> y",
     {"x float[2,3,4]", "axes int64[1] 1"},
     -1,
     {"axes = [0]", "axes = [2]", "axes = [0,2]"}},
    {"constant numbers",
     "Reshape n x shape -> y",
     {"x float[2,3,4]", "shape int64[2] 1 -1"},
     -1,
     {"shape = [0,-1]", "shape = [-1,-1]"}},
    {"squeezed axes", "Squeeze n x -> y", {"x float[1,3,1]"}, 1, {"left out: 'x' keeps its shape"}},
    {"broadcast",
     "Add n x b -> y",
     {"x float[3,3,3]", "b float[3]"},
     2,
     {"'b' of shape [3] broadcast along axis 0, not 2"}},
    {"usual number",
     "Mul n x k -> y",
     {"x float[3]", "k float[] 0.5"},
     -1,
     {"'k' = 1 instead of 0.5", "'k' = 0.25 instead of 0.5", "'k' = -0.5 instead of 0.5"}},
    {"usual number", "Mul n x k -> y", {"x float[3]", "k float[3]"}, 0, {NULL}},
    {"usual number", "Mul n x k -> y", {"x float[3]", "k float[] 0"}, 0, {NULL}},
    {"transposed weight",
     "MatMul n x w -> y",
     {"x float[2,4]", "w float[4,4]"},
     1,
     {"'w' with dims 0 and 1 exchanged"}},
    {"transposed weight", "MatMul n x w -> y", {"x float[2,4]", "w float[4,3]"}, 0, {NULL}},
    {"reversed constant",
     "MatMul n x w -> y",
     {"x float[2,4]", "w float[4,3]"},
     2,
     {"'w' reversed along axis 0", "'w' reversed along axis 1"}},
    {"scaled constant", "MatMul n x w -> y", {"x float[2,4]", "w float[4,3]"}, 1, {NULL}},
    {"another constant",
     "MatMul n x w -> y",
     {"x float[2,4]", "w float[4,3]", "other float[4,3]", "short float[3]"},
     1,
     {"'other' in place of 'w'"}},
    {"exchanged constants",
     "MatMul n x w -> y",
     {"x float[2,4]", "w float[4,3]", "other float[4,3]"},
     1,
     {"constants 'w' and 'other' exchanged"}},
    {"gate order",
     "LSTM n x w r b -> y | hidden_size=2",
     {"x float[3,1,2]", "w float[1,8,2]", "r float[1,8,2]", "b float[1,16]"},
     23,
     {"gates in the order 0,2,3,1"}},
    {"gate order",
     "GRU n x w r -> y | hidden_size=2",
     {"x float[3,1,2]", "w float[1,6,2]", "r float[1,6,2]"},
     5,
     {"gates in the order 1,0,2"}},
    {"exchanged directions",
     "LSTM n x w r b -> y | hidden_size=2, direction=bidirectional",
     {"x float[3,1,2]", "w float[2,8,2]", "r float[2,8,2]", "b float[2,16]"},
     1,
     {"the weights of the two directions exchanged"}},
    {"exchanged directions",
     "GRU n x w r -> y | hidden_size=2",
     {"x float[3,1,2]", "w float[1,6,2]", "r float[1,6,2]"},
     0,
     {NULL}},
    {"operator",
     "Tanh n x -> y",
     {"x float[3]"},
     -1,
     {"Sigmoid in place of Tanh", "Erf in place of Tanh"}},
    {"operator", "Identity n x -> y", {"x float[3]"}, -1, {"Relu in place of Identity"}},
    {"superfluous node",
     "Relu n x -> y",
     {"x float[3]"},
     1,
     {"left out: 'x' is handed on as it is"}},
    {"superfluous node", "ReduceSum n x -> y", {"x float[3]"}, 0, {NULL}},
    {"unlike its twins",
     "Softmax n x -> a | axis=0; Softmax m x -> b | axis=1; Add s a b -> y",
     {"x float[3,3]"},
     1,
     {"axis as in 'm'"}},
    {"unlike its twins",
     "Relu n x -> a; LeakyRelu m x -> b | alpha=0.3; Add s a b -> y",
     {"x float[3]"},
     1,
     {"LeakyRelu in place of Relu, as in 'm'"}},
    {"unlike its twins",
     "Mul n x k -> a; Mul m x l -> b; Add s a b -> y",
     {"x float[3]", "k float[] 2", "l float[] 3"},
     1,
     {"input 1 'k' as in 'm'"}},
    {"known number",
     "HardSigmoid n x -> y",
     {"x float[3]"},
     5,
     {"alpha = 0.1666667 instead of 0.2"}},
    {"known number",
     "Add n x e -> y",
     {"x float[3]", "e float[] 0.001"},
     9,
     {"'e' = 1e-05 instead of 0.001"}},
    {"known number",
     "Clip n x lo hi -> y",
     {"x float[3]", "lo float[] 0", "hi float[] 1"},
     14,
     {NULL}},
    {"form of GELU", "Erf n x -> y", {"x float[3]"}, 2, {"the tanh form of GELU in place of Erf"}},
    {"form of GELU", "Sigmoid n x -> y", {"x float[3]"}, 1, {NULL}},
    {"form of GELU", "Tanh n x -> y", {"x float[3]"}, 0, {NULL}},
    {"unbiased variance",
     "ReduceMean n x axes -> y",
     {"x float[3,5]", "axes int64[1] 1"},
     2,
     {"over 4 elements, not all: times 1.25"}},
    {"activations",
     "LSTM n x w r b -> y | hidden_size=2",
     {"x float[3,1,2]", "w float[1,8,2]", "r float[1,8,2]", "b float[1,16]"},
     16,
     {"activations of each direction: HardSigmoid, Tanh, Tanh"}},
    {"activations",
     "GRU n x w r -> y | hidden_size=2",
     {"x float[3,1,2]", "w float[1,6,2]", "r float[1,6,2]"},
     8,
     {"activations of each direction: Sigmoid, Softsign, Softsign"}},
    {"dropped input",
     "Conv n x w -> y",
     {"x float[1,2,5,5]", "w float[2,2,3,3]", "b float[2]"},
     1,
     {"input 2 is 'b', which is left out"}},
    {"moved constant",
     "Gather n x i -> y",
     {"x float[9]", "i int64[3] 1 2 4"},
     6,
     {"'i' moved by +1 along axis 0", "'i' with -1 in each element"}},
    {"flattened in another order",
     "Flatten n x -> a; MatMul m a w -> y",
     {"x float[1,2,3,2]", "w float[12,3]"},
     0,
     {NULL}},
    {"exchanged values",
     "Split n x s -> a b; Sub m a b -> y",
     {"x float[4]", "s int64[2] 2 2"},
     1,
     {"'a' and 'b' exchanged"}},
    {"another source",
     "Relu n x -> a; Exp m x -> b; Sub s a b -> y",
     {"x float[4]"},
     1,
     {"reads 'b' instead of 'x'"}},
    {"lost, as twins have it",
     "Mul n x k -> a; Mul m x k -> b; LeakyRelu r b -> c | alpha=0.3; Add s a c -> y",
     {"x float[3]", "k float[] 2"},
     1,
     {"LeakyRelu after it, as 'r' after 'm'"}},
    {"lost in attention",
     "MatMul n x w -> a; Softmax s a -> y",
     {"x float[2,4]", "w float[4,4]"},
     3,
     {"scores times 0.5, of a depth of 4"}},
    {"read by nobody",
     "MatMul n x w -> y",
     {"x float[2,4]", "w float[4,3]", "b float[3]"},
     3,
     {"Add with 'b' after it"}},
    {"lost activation",
     "MatMul n x w -> y",
     {"x float[2,4]", "w float[4,3]"},
     -1,
     {"Relu after it"}},
    {"lost activation", "Relu n x -> y", {"x float[2,4]"}, 0, {NULL}},
    {"table by its formula",
     "Mul n x t -> y",
     {"x float[3,4]",
      "t float[3,4] 1 1 1 1 -0.653643621 0.921060994 0.999200107 0.999992 -0.145500034 0.696706709 "
      "0.996801706 0.999968"},
     -1,
     {"'t' with positions divided, where they are multiplied",
      "'t' with positions as they are, not scaled"}},
    {"window",
     "Mul n x w -> y",
     {"x float[10]", "w float[10] 0 0.25 0.75 1 0.75 0.25 0 0 0 0"},
     -1,
     {"'w' with a Hann window that goes on periodically, from 2 to 8"}},
    {"exchanged outputs",
     "Split n x -> y a b | axis=1, num_outputs=3",
     {"x float[2,6]"},
     5,
     {"outputs in the order 1,2,0", "outputs 'y' and 'b' exchanged"}},
    {"integers",
     "Cast n x -> y | to=7",
     {"x float[3]"},
     3,
     {"'x' rounded", "'x' rounded down", "'x' rounded up"}},
    {"integers", "Cast n x -> y | to=10", {"x float[3]"}, 0, {NULL}},
    {"integers",
     "Gather n w x -> y",
     {"x int64[3]", "w float[5,2]"},
     5,
     {"'x' plus 1", "'x' less 2", "'x' counted from the other end"}},
    {"axes of a value",
     "MatMul n x w -> y",
     {"x float[2,3,3]", "w float[3,3]"},
     2,
     {"'x' with its axes 1 and 2 exchanged", "'y' with its axes 1 and 2 exchanged"}},
    {"axes of a value", "Relu n x -> y", {"x float[3,3]"}, 0, {NULL}},
    {"swapped inputs",
     "Concat n x a b -> y | axis=0",
     {"x float[2]", "a float[2]", "b float[2]"},
     5,
     {"inputs in the order 1,2,0", "inputs 'x' and 'b' exchanged"}},
    {"packed weight",
     "Cast n q -> y | to=1",
     {"x float[1]", "q uint8[16] 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 200"},
     -1,
     {"'q' with the halves of each byte exchanged",
      "'q' with each 8 numbers along axis 0 counted as 2 times 4, lower halves first",
      "'q' with the sign of each half turned"}},
    {"shared bias",
     "QLinearConv n x s z w s z s z b -> a; QLinearConv m a s z w t z s z b -> y",
     {"x uint8[1,1,2,2]", "s float[] 0.5", "z uint8[] 0", "w uint8[1,1,1,1] 3", "t float[] 0.25",
      "b int32[1] 100"},
     1,
     {"integers of its own: the bias 'b' is in units of 'm' (0.125), and is read in units of 0.25, "
      "2 times as large"}},
    {"shared bias",
     "QLinearConv n x s z w s z s z b -> a; QLinearConv m a s z w s z s z b -> y",
     {"x uint8[1,1,2,2]", "s float[] 0.5", "z uint8[] 0", "w uint8[1,1,1,1] 3", "b int32[1] 100"},
     0,
     {NULL}},
    {"packed weight", "Cast n q -> y | to=1", {"x float[1]", "q uint8[4] 1 2 3 4"}, 0, {NULL}},
    {"layout of a constant",
     "Conv n x w -> y",
     {"x float[1,2,9]", "w float[4,2,3]"},
     10,
     {"'w' whose numbers are counted as [3,4,2]",
      "'w' whose numbers should be counted as [3,2,4]"}},
    {"layout of a constant", "Add n x w -> y", {"x float[1,4]", "w float[4]"}, 0, {NULL}},
    {"lengths",
     "Slice n x b e o b -> y; Shape s x -> v | start=0 end=1",
     {"x float[5,1,4]", "b int64[1] -1", "e int64[1] -9223372036854775807", "o int64[1] 0"},
     1,
     {"the reverse of each sequence by its length, 'v'"}},
    {"lengths",
     "Slice n x b e -> y",
     {"x float[5,1,4]", "b int64[1] 0", "e int64[1] 3"},
     0,
     {NULL}},
    {"border",
     "Pad n x p -> y",
     {"x float[1,2,4]", "p int64[6] 0 0 1 0 0 1"},
     5,
     {"'x' goes on as a ring along axis 2", "'x' goes on as a mirror along axis 2"}},
    {"border",
     "Conv n x w -> y | pads=1,1",
     {"x float[1,2,5]", "w float[2,2,3]"},
     4,
     {"'x' goes on as a ring along axis 2"}},
    {"border", "Conv n x w -> y", {"x float[1,2,5]", "w float[2,2,3]"}, 0, {NULL}},
    {"axes of a border",
     "Concat n a x b -> y | axis=2",
     {"x float[1,2,4]", "a float[1,2,1]", "b float[1,2,1]"},
     5,
     {"'x' goes on as a ring along axis 2", "'x' goes on as nothing along axis 2"}},
    {"axes of a border", "Concat n x -> y | axis=2", {"x float[1,2,4]"}, 0, {NULL}},
    {"inputs that go together",
     "LSTM n x w r _ _ h c -> y | hidden_size=2",
     {"x float[3,1,2]", "w float[1,8,2]", "r float[1,8,2]", "h float[1,1,2]", "c float[1,1,2]",
      "d float[1,1,2]"},
     -1,
     {"reads 'd' and 'h' instead of 'h' and 'c'"}},
    {"inputs that go together", "Gemm n x w -> y", {"x float[2,3]", "w float[3,3]"}, 0, {NULL}},
    {"superfluous input",
     "Gemm n x w b -> y",
     {"x float[2,3]", "w float[3,3]", "b float[3]"},
     1,
     {"without the bias 'b'"}},
    {"superfluous input", "Gemm n x w -> y", {"x float[2,3]", "w float[3,3]"}, 0, {NULL}},
    {"what it begins from",
     "ScatterElements n o i x -> y | reduction=max",
     {"x float[2]", "o float[2] 0 0", "i int64[2] 0 1"},
     8,
     {"'o' of -3.403e+38, not of 0"}},
    {"what it begins from", "Max n x o -> y", {"x float[2]", "o float[2] 0 1"}, 0, {NULL}},
    {"quadrant", "Atan n x -> y", {"x float[3]"}, 0, {NULL}},
    {"attention to nothing",
     "Softmax n x -> y | axis=2",
     {"x float[1,2,3]", "z float[1,2,1]"},
     2,
     {"with one more score, of nothing: 'z'", "with one more score, of nothing: 0"}},
    {"attention to nothing", "Softmax n x -> y | axis=1", {"x float[2,3]"}, 0, {NULL}},
    {"taken for another", "Relu n x -> y", {"x float[2,3]", "w float[2,3]"}, 0, {NULL}},
    {"lost residual",
     "MatMul n x w -> y",
     {"x float[2,4]", "w float[4,4]"},
     1,
     {"Add with 'x' after it"}},
    {"evenly spaced",
     "Add n x t -> y",
     {"x float[4,2]", "t float[4,2] -1 -1 -0.5 -0.5 0 0 0.5 0.5"},
     -1,
     {"'t' from -1 to 1, both counted", "'t' middles from -1 to 1", "'t' from half a step on"}},
    {"evenly spaced", "Add n x t -> y", {"x float[5]", "t float[5] 0 1 2 4 5"}, 0, {NULL}},
    {"units",
     "Conv n x w -> y",
     {"x float[1,1,6]", "w float[2,1,3]"},
     20,
     {"'x' times 255", "'x' divided by 32768"}},
    {"rounded on the way", "Cast n x -> y | to=1", {"x float[3]"}, 0, {NULL}},
    {"function of a constant",
     "Mul n x t -> y",
     {"x float[2,3]", "t float[3] 0.5 2 3"},
     6,
     {"its root in place of 't'", "the reciprocal of its root", "its logarithm"}},
    {"function of a constant",
     "Mul n x t -> y",
     {"x float[2,3]", "t float[3] -0.5 2 3"},
     2,
     {"its square", "its exponential"}},
    {"scores that exclude each other",
     "Sigmoid n x -> y",
     {"x float[2,3]"},
     1,
     {"Softmax along axis 1 in place of it"}},
    {"scores that exclude each other", "Relu n x -> y", {"x float[2,3]"}, 0, {NULL}},
    {"lost product", "Sigmoid n x -> y", {"x float[2,3]"}, 1, {"times 'x' after it"}},
    {"lost product", "Neg n x -> y", {"x float[2,3]"}, 0, {NULL}},
    {"on the wrong side", "Relu n x -> y", {"x float[2,3]"}, 0, {NULL}},
    {"lost reduction",
     "Conv n x w -> y",
     {"x float[1,2,3,3]", "w float[4,2,1,1]"},
     3,
     {"the mean of 'x' over axes 2 and on", "the largest of 'x'"}},
    {"lost reduction", "Conv n x w -> y", {"x float[1,2,3,3]", "w float[4,2,3,3]"}, 0, {NULL}},
    {"part of an axis",
     "ReduceMean n x a -> y | keepdims=0",
     {"x float[2,5,3]", "a int64[1] 1"},
     -1,
     {"without the first 1 along axis 1", "without the last 2 along axis 1"}},
    {"part of an axis", "ReduceMean n x a -> y", {"x float[2,5,3]", "a int64[1] 2"}, 0, {NULL}},
    {"lost diagonal",
     "MatMul n x w -> y",
     {"x float[3,3] 0 1 0 1 0 1 0 1 0", "w float[3,2]"},
     1,
     {"'x' plus the identity"}},
    {"lost diagonal", "MatMul n x w -> y", {"x float[3,3]", "w float[3,2]"}, 0, {NULL}},
    {"lost function",
     "Mul n x x -> y",
     {"x float[4]"},
     -1,
     {"the square root after it", "log(1 + x) after it"}},
    {"axes of a value",
     "Unsqueeze n x a -> y",
     {"x float[2,5]", "a int64[2] 1 3"},
     2,
     {"'y' with its axes 2 and 3 exchanged"}},
};

typedef struct offers {
  char texts[64][240];
  int n, evaluated;
  const assay_suspect_t* suspect;
  assay_evaluator_t* evaluator;
} offers_t;

static assay_status_t take(void* user, const assay_repair_t* r, bool* stop) {
  offers_t* o = user;
  assay_tensor_t* out[4] = {NULL};
  *stop = false;
  assert_ptr_equal(r->node, o->suspect->node);
  assert_in_range(r->n_edits, 1, ASSAY_REPAIR_EDITS);
  assert_true(o->n < 64);
  strcpy(o->texts[o->n++], r->text);
  assay_status_t st = assay_repair_evaluate(o->evaluator, r, o->suspect->n_in, o->suspect->in,
                                            o->suspect->n_out, out);
  if (st)
    assert_true(strlen(assay_status_message(st)) > 0);
  else
    o->evaluated++;
  assay_status_free(st);
  for (size_t i = 0; i < o->suspect->n_out; i++) assay_tensor_release(out[i]);
  return NULL;
}

static void ask(const proposal_row_t* row, const assay_model_t* m, assay_tensor_t* const* inputs,
                offers_t* out) {
  const assay_node_t* n = m->graph->nodes[0];
  const assay_evaluator_config_t config = {.mode = ASSAY_MODE_TRUTH, .keep_all = true};
  assay_tensor_t *in[16] = {NULL}, *got[4] = {NULL};
  assert_true(n->n_inputs <= 16 && n->n_outputs <= 4);
  bool stop = false;
  op_case_ok(assay_evaluator_create_run(m, &config, inputs, &out->evaluator));
  for (size_t i = 0; i < n->n_inputs; i++)
    if (n->inputs[i])
      op_case_ok(assay_tensor_widen(assay_evaluator_get(out->evaluator, n->inputs[i]), &in[i]));
  for (size_t i = 0; i < n->n_outputs; i++)
    if (n->outputs[i])
      op_case_ok(assay_tensor_widen(assay_evaluator_get(out->evaluator, n->outputs[i]), &got[i]));
  assay_surroundings_t around;
  op_case_ok(assay_surroundings_init(m, out->evaluator, NULL, &around));
  const assay_suspect_t suspect = {m, n, n->n_inputs, n->n_outputs, in, got, &around};
  const assay_trial_t trial = {take, out};
  out->suspect = &suspect;
  for (size_t i = 0; i < assay_proposal_count(); i++) {
    const assay_proposal_t* p = assay_proposal_get(i);
    if (strcmp(p->cause, row->cause) == 0)
      op_case_ok(p->propose(&suspect, p->cause, &trial, &stop));
  }
  assay_surroundings_deinit(&around);
  for (size_t i = 0; i < sizeof in / sizeof *in; i++) assay_tensor_release(in[i]);
  for (size_t i = 0; i < 4; i++) assay_tensor_release(got[i]);
  assay_evaluator_destroy(out->evaluator);
}

static bool has_text(const offers_t* o, const char* text) {
  for (int i = 0; i < o->n; i++)
    if (strncmp(o->texts[i], text, strlen(text)) == 0) return true;
  return false;
}

static void check_row(const proposal_row_t* row) {
  assay_tensor_t* in[GRAPH_CASE_ROWS] = {NULL};
  graph_case_t g = {row->cause, 20, {row->inputs[0]}, {NULL}, {NULL}, "y"};
  static offers_t offers;
  offers = (offers_t){.n = 0};
  for (size_t i = 1; i < 6 && row->inputs[i]; i++) g.constants[i - 1] = row->inputs[i];
  char nodes[4][100];
  const char* rest = row->node;
  for (size_t i = 0; rest && i < 4; i++) {
    const size_t length = strcspn(rest, ";");
    snprintf(nodes[i], sizeof nodes[i], "%.*s", (int)length, rest);
    g.nodes[i] = nodes[i];
    rest = rest[length] ? rest + length + 2 : NULL;
  }
  assay_model_t* m = graph_case_model(&g, in);
  ask(row, m, in, &offers);
  if (row->count >= 0 && offers.n != row->count)
    fail_msg("%s of '%s': %d offers, not %d: %s", row->cause, row->node, offers.n, row->count,
             offers.n ? offers.texts[0] : "");
  for (size_t k = 0; k < 4 && row->texts[k]; k++)
    if (!has_text(&offers, row->texts[k]))
      fail_msg("%s of '%s': no '%s', but %s", row->cause, row->node, row->texts[k],
               offers.n ? offers.texts[0] : "nothing");
  if (offers.n && !offers.evaluated)
    fail_msg("%s of '%s': nothing can be evaluated", row->cause, row->node);
  assay_model_release(m);
  graph_case_release(in);
}

static void rows_offer_their_causes(void** state) {
  (void)state;
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) check_row(&rows[i]);
}

// Each row of the table is asked above.
static void every_cause_is_asked(void** state) {
  (void)state;
  for (size_t i = 0; i < assay_proposal_count(); i++) {
    bool asked = false;
    for (size_t k = 0; k < sizeof rows / sizeof *rows; k++)
      asked |= strcmp(rows[k].cause, assay_proposal_get(i)->cause) == 0;
    if (!asked) fail_msg("'%s' has no row in this test", assay_proposal_get(i)->cause);
  }
}

// A proposal stops when it is told to.
static assay_status_t stop_at_once(void* user, const assay_repair_t* r, bool* stop) {
  (void)r;
  ++*(int*)user;
  *stop = true;
  return NULL;
}

static void proposals_stop(void** state) {
  (void)state;
  assay_tensor_t* in[GRAPH_CASE_ROWS] = {NULL};
  const graph_case_t g = {"conv",
                          17,
                          {"x float[1,2,5,5]"},
                          {"w float[2,2,3,3]", "other float[2,2,3,3]", "b float[2]"},
                          {"Conv conv x w b -> y | pads=2,1,0,1"},
                          "y"};
  assay_model_t* m = graph_case_model(&g, in);
  const assay_node_t* n = m->graph->nodes[0];
  assay_tensor_t *inputs[3] = {NULL}, *outputs[1] = {NULL};
  for (size_t i = 0; i < 3; i++)
    op_case_ok(assay_tensor_widen(i ? n->inputs[i]->constant : in[0], &inputs[i]));
  op_case_ok(assay_tensor_copy(inputs[0], &outputs[0]));
  const assay_suspect_t suspect = {m, n, 3, 1, inputs, outputs, NULL};
  for (size_t i = 0; i < assay_proposal_count(); i++) {
    const assay_proposal_t* p = assay_proposal_get(i);
    int offers = 0;
    bool stop = false;
    const assay_trial_t trial = {stop_at_once, &offers};
    op_case_ok(p->propose(&suspect, p->cause, &trial, &stop));
    if (offers > 1) fail_msg("'%s' goes on though it was stopped: %d offers", p->cause, offers);
  }
  for (size_t i = 0; i < 3; i++) assay_tensor_release(inputs[i]);
  assay_tensor_release(outputs[0]);
  assay_model_release(m);
  graph_case_release(in);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(rows_offer_their_causes),
      cmocka_unit_test(every_cause_is_asked),
      cmocka_unit_test(proposals_stop),
  };
  return cmocka_run_group_tests_name("proposals", tests, NULL, NULL);
}
