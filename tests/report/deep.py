"""A made model of as many nodes as asked for, with long and short ways around blocks, which passes fp16's range midway."""
import numpy as np
from onnx import TensorProto, helper, numpy_helper


def make(path, nodes=2000, side=12):
    """Blocks of eight nodes: convolutions, a residual sum, a rescaling; a skip over 20 blocks every 40. Names hold what
    a page has to escape."""
    rng = np.random.default_rng(7)
    weights = [numpy_helper.from_array(rng.normal(0, 0.3, (4, 4, 3, 3)).astype(np.float32), f"w{k}") for k in range(8)]
    numbers = {"half": 0.5, "small": 1e-3, "large": 4e4, "back": 1 / 4e4}
    constants = weights + [numpy_helper.from_array(np.float32(v), k) for k, v in numbers.items()]
    body, value, kept = [], "image", "image"

    def add(op, inputs, name, **attributes):
        body.append(helper.make_node(op, inputs, [f"{name}_out"], name=name, **attributes))
        return f"{name}_out"

    block = 0
    while len(body) + 8 <= nodes - 1:
        at = f"/stage.{block // 40}/block.{block}/</script>" if block == 3 else f"/stage.{block // 40}/block.{block}"
        past = block == nodes // 16
        start = value
        value = add("Conv", [value, f"w{block % 8}"], f"{at}/conv/Conv", pads=[1, 1, 1, 1])
        value = add("Relu", [value], f"{at}/act/Relu")
        side_way = add("Mul", [start, "half"], f"{at}/scale/Mul")
        value = add("Add", [value, side_way], f"{at}/Add")
        value = add("Tanh", [value], f"{at}/Tanh")
        value = add("Mul", [value, "large" if past else "half"], f"{at}/gain/Mul")
        value = add("Mul", [value, "large" if past else "half"], f"{at}/gain/Mul_1")
        value = add("Add", [value, kept if block % 40 == 39 else "small"], f"{at}/Add_1")
        if past:
            value = add("Mul", [value, "back"], f"{at}/back/Mul")
        if block % 20 == 19:
            kept = value
        block += 1
    while len(body) < nodes - 1:
        value = add("Tanh", [value], f"/tail/Tanh_{len(body)}")
    body.append(helper.make_node("Tanh", [value], ["scores"], name="/tail/last"))
    shape = [1, 4, side, side]
    graph = helper.make_graph(body, "deep", [helper.make_tensor_value_info("image", TensorProto.FLOAT, shape)],
                              [helper.make_tensor_value_info("scores", TensorProto.FLOAT, shape)], constants)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    with open(path, "wb") as f:
        f.write(model.SerializeToString())
    return len(body)
