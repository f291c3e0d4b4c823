"""Writes the files of this folder with the real torch.save and Polygraphy: make_samples.py, run in it.

Not part of the tests, which have no torch: the files are kept.
"""
import polygraphy
import torch
from polygraphy.json import save_json

BF16 = torch.bfloat16
TENSORS = {
    "float32": torch.tensor([[1.5, -2, 3.25], [0, 4, -0.5]]),
    "float16": torch.tensor([[1.5, -2], [65504, 0]], dtype=torch.float16),
    "bfloat16": torch.tensor([[1.5, -2, 3]], dtype=BF16),
    "float8": torch.tensor([0.5, -2, 448]).to(torch.float8_e4m3fn),
    "int64": torch.tensor([1, -2, 1 << 40]),
    "uint8": torch.tensor([[1, 255]], dtype=torch.uint8),
    "bool": torch.tensor([True, False, True]),
    "scalar": torch.tensor(2.5, dtype=BF16),
    "empty": torch.zeros(0, 3, dtype=BF16),
    "transposed": torch.arange(6, dtype=BF16).reshape(2, 3).t(),
    "view": torch.arange(24, dtype=BF16).reshape(4, 6)[1:3, 1::2],
    "channels_last": torch.arange(8, dtype=torch.float16).reshape(1, 2, 2, 2).to(memory_format=torch.channels_last),
    "expanded": torch.tensor([[1.0], [2.0]]).expand(2, 3),
    "parameter": torch.nn.Parameter(torch.tensor([[1.0, 2.0]], dtype=BF16)),
    "wants_gradient": torch.tensor([1.0, 2.0], requires_grad=True),
    "complex": torch.tensor([1 + 2j]),
}

print(f"torch {torch.__version__}, Polygraphy {polygraphy.__version__}")
for name, tensor in TENSORS.items():
    torch.save(tensor, f"{name}.pt")
torch.save({"x": TENSORS["float32"]}, "dictionary.pt")
linear = torch.nn.Linear(2, 1)
linear.weight.data, linear.bias.data = torch.tensor([[1.5, -2.0]]), torch.tensor([0.25])
torch.save(linear.state_dict(), "state_dict.pt")
torch.save({"x": TENSORS["int64"], "epoch": 3}, "checkpoint.pt")
save_json([{"x": TENSORS["bfloat16"], "y": TENSORS["transposed"]}], "inputs.json")
