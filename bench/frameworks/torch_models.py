"""PyTorch modules of the kinds that people deploy, small: rows of (name, function that makes the module and its inputs)."""
import math

import torch
import torch.nn.functional as F
from torch import nn


class ConvNet(nn.Module):
    """A residual network: convolution, batch normalization, pooling, a linear head."""

    def __init__(self):
        super().__init__()
        self.stem = nn.Sequential(nn.Conv2d(3, 16, 7, 2, 3, bias=False), nn.BatchNorm2d(16), nn.ReLU(inplace=True), nn.MaxPool2d(3, 2, 1))
        self.conv1, self.norm1 = nn.Conv2d(16, 16, 3, padding=1, bias=False), nn.BatchNorm2d(16)
        self.conv2, self.norm2 = nn.Conv2d(16, 32, 3, 2, 1, bias=False), nn.BatchNorm2d(32)
        self.shortcut = nn.Sequential(nn.Conv2d(16, 32, 1, 2, bias=False), nn.BatchNorm2d(32))
        self.pool, self.fc = nn.AdaptiveAvgPool2d(1), nn.Linear(32, 10)
        for norm in (m for m in self.modules() if isinstance(m, nn.BatchNorm2d)):
            nn.init.uniform_(norm.running_mean, -0.5, 0.5)
            nn.init.uniform_(norm.running_var, 0.5, 2)

    def forward(self, image):
        x = self.stem(image)
        y = F.relu(self.norm1(self.conv1(x)), inplace=True)
        y = F.relu(self.norm2(self.conv2(y)) + self.shortcut(x))
        return self.fc(torch.flatten(self.pool(y), 1))


class Separable(nn.Module):
    """Depthwise convolutions with squeeze-and-excitation and SiLU."""

    def __init__(self):
        super().__init__()
        self.expand = nn.Sequential(nn.Conv2d(3, 24, 1, bias=False), nn.BatchNorm2d(24), nn.SiLU())
        self.depthwise = nn.Sequential(nn.Conv2d(24, 24, 3, 2, 1, groups=24, bias=False), nn.BatchNorm2d(24), nn.Hardswish())
        self.squeeze, self.excite = nn.Conv2d(24, 6, 1), nn.Conv2d(6, 24, 1)
        self.project = nn.Sequential(nn.Conv2d(24, 16, 1, bias=False), nn.BatchNorm2d(16))

    def forward(self, image):
        x = self.depthwise(self.expand(image))
        gate = torch.sigmoid(self.excite(F.relu(self.squeeze(x.mean((2, 3), keepdim=True)))))
        return self.project(x * gate)


class Recurrent(nn.Module):
    def __init__(self, kind, **options):
        super().__init__()
        self.embed, self.rnn, self.head = nn.Embedding(50, 16), kind(16, 24, batch_first=True, **options), nn.LazyLinear(7)
        self.head(self.rnn(self.embed(torch.zeros(1, 2, dtype=torch.long)))[0])

    def forward(self, tokens):
        out, state = self.rnn(self.embed(tokens))
        return {"logits": self.head(out), "state": state}


class UNet(nn.Module):
    def __init__(self):
        super().__init__()
        block = lambda i, o: nn.Sequential(nn.Conv2d(i, o, 3, padding=1), nn.GroupNorm(4, o), nn.LeakyReLU(0.1))
        self.down1, self.down2, self.middle = block(1, 8), block(8, 16), block(16, 32)
        self.up2, self.up1 = nn.ConvTranspose2d(32, 16, 2, 2), nn.Upsample(scale_factor=2, mode="bilinear", align_corners=False)
        self.out2, self.out1, self.head = block(32, 16), block(24, 8), nn.Conv2d(8, 2, 1)

    def forward(self, image):
        a = self.down1(image)
        b = self.down2(F.max_pool2d(a, 2))
        c = self.middle(F.avg_pool2d(b, 2))
        d = self.out2(torch.cat([self.up2(c), b], 1))
        return self.head(self.out1(torch.cat([self.up1(d), a], 1))).softmax(1)


class VisionTransformer(nn.Module):
    def __init__(self):
        super().__init__()
        self.patches = nn.Conv2d(3, 32, 8, 8)
        self.token, self.position = nn.Parameter(torch.randn(1, 1, 32)), nn.Parameter(torch.randn(1, 17, 32) * 0.1)
        layer = nn.TransformerEncoderLayer(32, 4, 64, batch_first=True, norm_first=True, activation="gelu")
        self.encoder = nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)
        self.norm, self.head = nn.LayerNorm(32), nn.Linear(32, 10)

    def forward(self, image):
        x = self.patches(image).flatten(2).transpose(1, 2)
        x = torch.cat([self.token.expand(x.shape[0], -1, -1), x], 1) + self.position
        return self.head(self.norm(self.encoder(x))[:, 0])


class Encoder(nn.Module):
    """A transformer encoder with a padding mask."""

    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(100, 32, padding_idx=0)
        self.layers = nn.TransformerEncoder(nn.TransformerEncoderLayer(32, 4, 64, batch_first=True), 2, enable_nested_tensor=False)

    def forward(self, tokens):
        return self.layers(self.embed(tokens) * math.sqrt(32), src_key_padding_mask=tokens == 0)


class Detector(nn.Module):
    """Boxes and scores of a feature map, the best of each class, and suppression of what overlaps, in tensor operators."""

    def __init__(self):
        super().__init__()
        self.tower, self.boxes, self.scores = nn.Conv2d(3, 16, 3, 2, 1), nn.Conv2d(16, 4, 1), nn.Conv2d(16, 5, 1)
        self.register_buffer("centers", torch.stack(torch.meshgrid(torch.arange(8.0), torch.arange(8.0), indexing="xy"), -1).view(1, 64, 2))

    def forward(self, image):
        x = F.relu(self.tower(image))
        delta = self.boxes(x).flatten(2).transpose(1, 2)
        score, label = self.scores(x).flatten(2).transpose(1, 2).sigmoid().max(-1)
        middle, size = self.centers + delta[..., :2].tanh(), delta[..., 2:].exp().clamp(max=8)
        box = torch.cat([middle - size / 2, middle + size / 2], -1)
        score, order = score.topk(12, 1)
        box, label = box.gather(1, order.unsqueeze(-1).expand(-1, -1, 4)), label.gather(1, order)
        corner = torch.maximum(box[:, :, None, :2], box[:, None, :, :2]), torch.minimum(box[:, :, None, 2:], box[:, None, :, 2:])
        both = (corner[1] - corner[0]).clamp(min=0).prod(-1)
        area = (box[..., 2:] - box[..., :2]).prod(-1)
        overlap = both / (area[:, :, None] + area[:, None] - both)
        better = torch.triu(overlap, 1).amax(1)
        return {"boxes": box, "scores": score * (better < 0.5), "labels": label}


class DiffusionBlock(nn.Module):
    """A block of a diffusion network: a sinusoidal time embedding, scale and shift, attention over positions."""

    def __init__(self):
        super().__init__()
        self.norm1, self.conv1 = nn.GroupNorm(8, 32), nn.Conv2d(32, 32, 3, padding=1)
        self.time = nn.Sequential(nn.Linear(32, 64), nn.SiLU(), nn.Linear(64, 64))
        self.norm2, self.conv2, self.norm3 = nn.GroupNorm(8, 32), nn.Conv2d(32, 32, 3, padding=1), nn.GroupNorm(8, 32)
        self.attention = nn.MultiheadAttention(32, 4, batch_first=True)

    def forward(self, latent, timestep):
        angle = timestep[:, None].float() * torch.exp(torch.arange(16, device=latent.device) * (-math.log(10000) / 16))
        scale, shift = self.time(torch.cat([angle.sin(), angle.cos()], -1))[:, :, None, None].chunk(2, 1)
        x = self.conv1(F.silu(self.norm1(latent)))
        x = latent + self.conv2(F.silu(self.norm2(x) * (1 + scale) + shift))
        rows = self.norm3(x).flatten(2).transpose(1, 2)
        return x + self.attention(rows, rows, rows, need_weights=False)[0].transpose(1, 2).reshape(x.shape)


class Decoder(nn.Module):
    """A step of a GPT: keys and values of the past come in and go out, grown."""

    def __init__(self):
        super().__init__()
        self.embed, self.norm1, self.norm2 = nn.Embedding(64, 32), nn.LayerNorm(32), nn.LayerNorm(32)
        self.qkv, self.out = nn.Linear(32, 96), nn.Linear(32, 32)
        self.mlp = nn.Sequential(nn.Linear(32, 128), nn.GELU(approximate="tanh"), nn.Linear(128, 32))

    def forward(self, tokens, past):
        key, value = past
        x = self.embed(tokens)
        q, k, v = (t.unflatten(-1, (4, 8)).transpose(1, 2) for t in self.qkv(self.norm1(x)).chunk(3, -1))
        key, value = torch.cat([key, k], 2), torch.cat([value, v], 2)
        x = x + self.out(F.scaled_dot_product_attention(q, key, value).transpose(1, 2).flatten(2))
        x = x + self.mlp(self.norm2(x))
        return F.linear(x, self.embed.weight), (key, value)


class GraphNet(nn.Module):
    """Messages along edges, added up where they arrive, and a mean over nodes."""

    def __init__(self):
        super().__init__()
        self.message, self.update, self.head = nn.Linear(20, 16), nn.GRUCell(16, 8), nn.Linear(8, 3)

    def forward(self, nodes, edges, weights):
        source, target = edges[0], edges[1]
        sent = F.relu(self.message(torch.cat([nodes[source], nodes[target], weights], -1)))
        arrived = torch.zeros(nodes.shape[0], 16).index_add(0, target, sent)
        count = torch.zeros(nodes.shape[0]).scatter_add(0, target, torch.ones(target.shape[0]))
        return self.head(self.update(arrived / count.clamp(min=1)[:, None], nodes).mean(0, keepdim=True))


class FakeQuantized(nn.Module):
    """Weights and activations through quantizers, as training for INT8 leaves them."""

    def __init__(self):
        super().__init__()
        self.conv1, self.conv2, self.fc = nn.Conv2d(3, 8, 3, padding=1), nn.Conv2d(8, 8, 3, padding=1), nn.Linear(8, 4)

    @staticmethod
    def quantize(x, step):
        return torch.fake_quantize_per_tensor_affine(x, step, 0, -128, 127)

    def layer(self, conv, x):
        scale = conv.weight.detach().abs().amax((1, 2, 3)) / 127
        weight = torch.fake_quantize_per_channel_affine(conv.weight, scale, torch.zeros(8, dtype=torch.int32), 0, -128, 127)
        return F.relu(F.conv2d(self.quantize(x, 0.03), weight, conv.bias, padding=1))

    def forward(self, image):
        x = self.layer(self.conv2, self.layer(self.conv1, image))
        return self.fc(self.quantize(x.mean((2, 3)), 0.01))


class Complex(nn.Module):
    """A spectrogram: windows of a signal through a Fourier transform."""

    def __init__(self):
        super().__init__()
        self.register_buffer("window", torch.hann_window(64))
        self.mel = nn.Linear(33, 20, bias=False)

    def forward(self, signal):
        frames = signal.unfold(-1, 64, 32) * self.window
        power = torch.view_as_real(torch.fft.rfft(frames)).square().sum(-1)
        return torch.log(self.mel(power).abs() + 1e-6)


def spread(module):
    """Statistics of batch normalizations as training leaves them."""
    for norm in (m for m in module.modules() if isinstance(m, nn.BatchNorm2d)):
        nn.init.uniform_(norm.running_mean, -0.5, 0.5)
        nn.init.uniform_(norm.running_var, 0.5, 2)
    return module


image = lambda *shape: torch.rand(*shape) * 2 - 1
tokens = lambda *shape: torch.randint(1, 50, shape)
MODELS = [
    ("residual CNN", lambda: (ConvNet(), image(2, 3, 64, 64))),
    ("depthwise, squeeze-excitation", lambda: (spread(Separable()), image(2, 3, 32, 32))),
    ("LSTM, two layers, both directions", lambda: (Recurrent(nn.LSTM, num_layers=2, bidirectional=True), tokens(2, 9))),
    ("GRU", lambda: (Recurrent(nn.GRU), tokens(2, 9))),
    ("U-Net", lambda: (UNet(), image(1, 1, 32, 32))),
    ("vision transformer", lambda: (VisionTransformer(), image(2, 3, 32, 32))),
    ("transformer encoder, padded", lambda: (Encoder(), torch.cat([tokens(2, 7), torch.zeros(2, 3, dtype=torch.long)], 1))),
    ("detection head with suppression", lambda: (Detector(), image(1, 3, 16, 16))),
    ("diffusion block", lambda: (DiffusionBlock(), (torch.randn(1, 32, 8, 8), torch.tensor([17])))),
    ("GPT step with keys and values", lambda: (Decoder(), (tokens(1, 1), (torch.randn(1, 4, 5, 8), torch.randn(1, 4, 5, 8))))),
    ("graph network with scatter", lambda: (GraphNet(), (torch.randn(6, 8), torch.randint(0, 6, (2, 15)), torch.rand(15, 4)))),
    ("fake-quantized CNN", lambda: (FakeQuantized(), image(2, 3, 16, 16))),
    ("spectrogram", lambda: (Complex(), torch.randn(2, 400))),
]
