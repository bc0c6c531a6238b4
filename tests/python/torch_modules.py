"""Small modules that torch_oracle.py compiles: layers, attention, control flow, element types, and
calls with structures. Each is (module, example arguments, example keyword arguments, dynamic shapes,
arguments of further calls)."""

import torch
import torch.nn.functional as F
from torch import nn

BATCH = torch.export.Dim("batch", max=1024)
TOKENS = torch.export.Dim("tokens", max=512)


def function(call):
    class Wrapped(nn.Module):
        def forward(self, *inputs):
            return call(*inputs)

    return Wrapped()


class Residual(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.first = nn.Conv2d(width, width, 3, padding=1, bias=False)
        self.norm = nn.BatchNorm2d(width)
        self.second = nn.Conv2d(width, width, 3, padding=1)

    def forward(self, x):
        return F.relu(x + self.second(F.relu(self.norm(self.first(x)))))


class SmallUNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.down = nn.Conv2d(3, 8, 3, padding=1)
        self.middle = nn.Conv2d(8, 8, 3, padding=1)
        self.up = nn.ConvTranspose2d(8, 8, 2, stride=2)
        self.last = nn.Conv2d(16, 2, 1)

    def forward(self, x):
        high = F.relu(self.down(x))
        low = F.relu(self.middle(F.max_pool2d(high, 2)))
        return self.last(torch.cat([high, self.up(low)], 1))


class SelfAttention(nn.Module):
    def __init__(self, causal):
        super().__init__()
        self.causal = causal
        self.qkv = nn.Linear(32, 96)
        self.out = nn.Linear(32, 32)

    def forward(self, x):
        q, k, v = (part.unflatten(-1, (4, 8)).transpose(1, 2) for part in self.qkv(x).chunk(3, -1))
        y = F.scaled_dot_product_attention(q, k, v, is_causal=self.causal)
        return self.out(y.transpose(1, 2).flatten(2))


class MaskedEncoder(nn.Module):
    def __init__(self):
        super().__init__()
        self.words = nn.Embedding(100, 32)
        self.places = nn.Embedding(512, 32)
        self.key = nn.Linear(32, 32)
        self.norm = nn.LayerNorm(32)

    def forward(self, ids, mask):
        x = self.words(ids) + self.places(torch.arange(ids.shape[1]))
        keys = self.key(x)
        scores = (x @ keys.transpose(1, 2)) / 32**0.5
        scores = scores.masked_fill(mask.unsqueeze(1) == 0, float("-inf"))
        x = self.norm(x + scores.softmax(-1) @ x)
        weights = mask.unsqueeze(-1).to(x.dtype)
        return {"tokens": x, "sentence": (x * weights).sum(1) / weights.sum(1)}


class Rotary(nn.Module):
    def __init__(self):
        super().__init__()
        self.q, self.k = nn.Linear(16, 16, bias=False), nn.Linear(16, 16, bias=False)
        self.gate, self.up, self.down = nn.Linear(16, 24), nn.Linear(16, 24), nn.Linear(24, 16)

    def turn(self, x):
        n = x.shape[1]
        angles = torch.arange(n)[:, None] * 10000 ** (-torch.arange(0, 8) / 8)
        first, second = x.chunk(2, -1)
        return torch.cat(
            [first * angles.cos() - second * angles.sin(), second * angles.cos() + first * angles.sin()], -1
        )

    def forward(self, x):
        scores = (self.turn(self.q(x)) @ self.turn(self.k(x)).transpose(1, 2)).softmax(-1)
        x = x + scores @ x
        return x + self.down(F.silu(self.gate(x)) * self.up(x))


class Choice(nn.Module):
    def __init__(self):
        super().__init__()
        self.a, self.b = nn.Linear(6, 6), nn.Linear(6, 6)

    def forward(self, x):
        return torch.cond(x.sum() > 0, lambda x: self.a(x).relu(), lambda x: self.b(x).sin(), (x,))


class Loop(nn.Module):
    def forward(self, x, n):
        from torch._higher_order_ops import while_loop

        def body(at, x):
            return at + 1, x * 1.5

        return while_loop(lambda at, _: at < n, body, (torch.zeros((), dtype=torch.int64), x))[1]


class Experts(nn.Module):
    def __init__(self):
        super().__init__()
        self.gate = nn.Linear(8, 4)
        self.weights = nn.Parameter(torch.randn(4, 8, 8))

    def forward(self, x):
        scores, chosen = self.gate(x).softmax(-1).topk(2)
        outputs = torch.einsum("bi,eij->bej", x, self.weights)
        picked = outputs.gather(1, chosen.unsqueeze(-1).expand(-1, -1, 8))
        return (picked * scores.unsqueeze(-1)).sum(1), chosen


class Structured(nn.Module):
    def __init__(self):
        super().__init__()
        self.inner = nn.Linear(8, 4)
        self.register_buffer("table", torch.arange(6.0))

    def forward(self, pair, *, scale):
        h = self.inner(pair[0]) * scale
        return {"h": h, "rest": (h.sum(1), pair[1]), "table": self.table}


class Mutating(nn.Module):
    def forward(self, x, y):
        x.add_(1)
        return x * y, y


class Recurrent(nn.Module):
    def __init__(self, kind):
        super().__init__()
        self.inner = kind(6, 10, batch_first=True)

    def forward(self, x):
        return self.inner(x)[0]


class Bag(nn.Module):
    def __init__(self):
        super().__init__()
        self.bag = nn.EmbeddingBag(40, 6, mode="mean")

    def forward(self, ids):
        return self.bag(ids)


def batched(module, *shapes, more=((1,), (5,))):
    """A module whose inputs are FP32 with the batch as their first dimension."""
    make = lambda rows: tuple(torch.randn(rows, *shape) for shape in shapes)
    dynamic = tuple({0: BATCH} for _ in shapes)
    return module, make(3), {}, dynamic, [(make(*rows), {}) for rows in more]


def fixed(module, *inputs):
    return module, inputs, {}, None, []


def tokens(module, width):
    make = lambda rows, n: (torch.randn(rows, n, width),)
    return module, make(3, 7), {}, ({0: BATCH, 1: TOKENS},), [(make(1, 4), {}), (make(4, 20), {})]


def encoder():
    def make(rows, n):
        mask = torch.ones(rows, n, dtype=torch.int64)
        mask[0, n // 2 :] = 0
        return torch.randint(100, (rows, n)), mask

    shape = {0: BATCH, 1: TOKENS}
    return MaskedEncoder(), make(3, 7), {}, (shape, shape), [(make(1, 3), {}), (make(4, 30), {})]


def structured():
    def make(rows):
        return ([torch.randn(rows, 8), torch.randint(9, (rows, 2))],), {"scale": torch.randn(rows, 4)}

    args, kwargs = make(3)
    return Structured(), args, kwargs, {"pair": [{0: BATCH}, {0: BATCH}], "scale": {0: BATCH}}, [make(1), make(6)]


def element_types():
    names = "float16 bfloat16 float32 float64 uint8 int8 int16 int32 int64".split()
    cases = {}
    for name in names:
        kind = getattr(torch, name)
        make = lambda rows, kind=kind: (torch.randint(0, 50, (rows, 5)).to(kind),)
        call = function(lambda x: (x + x, x > 7))
        cases[f"type_{name}"] = call, make(3), {}, (({0: BATCH},),), [(make(1), {})]
    make = lambda rows: (torch.rand(rows, 4) > 0.5,)
    cases["type_bool"] = function(lambda x: (~x, x.any(1))), make(3), {}, (({0: BATCH},),), [(make(1), {})]
    return cases


def modules():
    torch.manual_seed(7)
    picture = (3, 16, 16)
    n = nn
    cases = {
        "mlp": batched(n.Sequential(n.Linear(16, 32), n.GELU(), n.Linear(32, 4), n.Softmax(-1)), (16,)),
        "conv2d": batched(n.Sequential(n.Conv2d(3, 8, 3, 2), n.BatchNorm2d(8), n.ReLU(), n.MaxPool2d(2)), picture),
        "conv1d": batched(n.Sequential(n.Conv1d(4, 8, 5, padding=2), n.Tanh(), n.AvgPool1d(2)), (4, 20)),
        "conv3d": batched(n.Conv3d(2, 4, 3), (2, 6, 6, 6)),
        "depthwise": batched(n.Sequential(n.Conv2d(6, 6, 3, groups=6), n.Hardswish(), n.Conv2d(6, 4, 1)), (6, 9, 9)),
        "transposed": batched(n.ConvTranspose2d(3, 5, 3, stride=2), (3, 7, 7)),
        "residual": batched(n.Sequential(Residual(4), Residual(4), n.AdaptiveAvgPool2d(1), n.Flatten()), (4, 8, 8)),
        "unet": batched(SmallUNet(), picture),
        "pixels": batched(n.Sequential(n.PixelShuffle(2), n.Upsample(scale_factor=2, mode="bilinear")), (4, 5, 5)),
        "norms": batched(n.Sequential(n.GroupNorm(2, 4), n.SiLU(), n.InstanceNorm2d(4), n.LayerNorm([4, 6, 6])), (4, 6, 6)),
        "prelu_pools": batched(n.Sequential(n.PReLU(3), n.AdaptiveMaxPool2d(4), n.LPPool2d(2, 2)), picture),
        "attention": tokens(SelfAttention(False), 32),
        "causal_attention": tokens(SelfAttention(True), 32),
        "multihead": tokens(function_of_self(n.MultiheadAttention(16, 2, batch_first=True)), 16),
        "transformer": batched(n.TransformerEncoderLayer(16, 2, 32, batch_first=True, dropout=0.0), (6, 16)),
        "rotary": tokens(Rotary(), 16),
        "encoder": encoder(),
        "embedding_bag": (Bag(), (torch.randint(40, (3, 5)),), {}, ({0: BATCH},), [((torch.randint(40, (1, 5)),), {})]),
        "lstm": batched(Recurrent(n.LSTM), (5, 6)),
        "gru": batched(Recurrent(n.GRU), (5, 6)),
        "cond": (Choice(), (torch.ones(3, 6),), {}, ({0: BATCH},), [((-torch.ones(2, 6),), {}), ((torch.rand(1, 6),), {})]),
        "while_loop": (Loop(), (torch.randn(4), torch.tensor(3)), {}, None, [((torch.randn(4), torch.tensor(9)), {})]),
        "experts": batched(Experts(), (8,)),
        "structured": structured(),
        "mutating": batched(Mutating(), (8,), (8,)),
        "einsum": batched(function(lambda a, b: torch.einsum("bij,bkj->bik", a, b)), (4, 5), (3, 5)),
        "batched_product": batched(function(lambda a, b: torch.bmm(a, b) + a.mean()), (4, 4), (4, 4)),
        "order": batched(function(lambda x: (*x.sort(-1), *x.topk(3), x.argmax(-1))), (9,)),
        "sums": batched(function(lambda x: (x.cumsum(1), x.cumprod(1), x.logsumexp(1), x.var(1), x.norm(dim=1))), (7,)),
        "choices": batched(function(lambda x, y: (torch.where(x > y, x, y), x.clamp(-1, 1), x.masked_fill(y > 0, 3))), (7,), (7,)),
        "index": batched(function(lambda x: (x[:, [2, 0]], x.flip(1), x.roll(1, 1), F.pad(x, (1, 2)), x[:, ::2])), (6,)),
        "scatter": batched(function(lambda x: torch.zeros_like(x).scatter(1, x.argsort(1), x)), (6,)),
        "index_put": fixed(function(lambda x, at, v: x.index_put((at,), v)), torch.randn(6), torch.tensor([1, 4]), torch.randn(2)),
        "views": batched(function(lambda x: (x.transpose(1, 2), x.flatten(1), x, x[:, 0], x.permute(0, 2, 1).unsqueeze(1))), (4, 5)),
        "scalar": fixed(function(lambda x, s: (x * s, x.sum())), torch.randn(3, 4), torch.tensor(2.5)),
        "nonzero": fixed(function(lambda x: torch.nonzero(x > 0)), torch.randn(3, 4)),
        "spectrum": batched(function(lambda x: torch.fft.rfft(x).abs()), (16,)),
        "inverse": batched(function(lambda x: torch.linalg.inv(x @ x.transpose(1, 2) + 4 * torch.eye(4))), (4, 4)),
        "loss": batched(function(lambda x, y: F.smooth_l1_loss(x, y, reduction="none").sum(1)), (6,), (6,)),
        "distance": batched(function(lambda x, y: (F.cosine_similarity(x, y), F.pairwise_distance(x, y))), (6,), (6,)),
    }
    cases.update(element_types())
    return cases


def function_of_self(attention):
    class Wrapped(nn.Module):
        def __init__(self):
            super().__init__()
            self.inner = attention

        def forward(self, x):
            return self.inner(x, x, x)

    return Wrapped()
