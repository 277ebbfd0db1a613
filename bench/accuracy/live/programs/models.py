"""Model families, by the kind of batch they take: images, flat vectors, tokens, series or categories.

`use` is the statement that makes `loss` from `model`, `x` and `y`; `make` is the expression that creates the model.
"""

from __future__ import annotations

import random
from dataclasses import dataclass

from .pieces import Piece

IMPORTS = ("import torch", "from torch import nn", "import torch.nn.functional as F")


@dataclass(frozen=True)
class Model:
    kind: str
    family: str
    make: str
    piece: Piece  # use: the statements that make `loss`


def convnet(rng: random.Random, weight: float) -> Model:
    width = int(rng.choice([24, 32, 40]) * weight)
    text = """
class ConvNet(nn.Module):
    def __init__(self, width, classes=10):
        super().__init__()
        self.conv1 = nn.Conv2d(3, width, 3, stride=2, padding=1)
        self.conv2 = nn.Conv2d(width, 2 * width, 3, stride=2, padding=1)
        self.conv3 = nn.Conv2d(2 * width, 4 * width, 3, stride=2, padding=1)
        self.norm = nn.BatchNorm2d(2 * width)
        self.head = nn.Linear(4 * width, classes)

    def forward(self, x):
        x = F.relu(self.conv1(x))
        x = F.relu(self.norm(self.conv2(x)))
        x = F.relu(self.conv3(x))
        return self.head(x.mean(dim=(2, 3)))
"""
    return Model("image", "convnet", f"ConvNet({width})", Piece(text, "loss = F.cross_entropy(model(x), y)", IMPORTS))


def residual(rng: random.Random, weight: float) -> Model:
    width = int(rng.choice([16, 24]) * weight)
    text = """
def conv_bn(cin, cout, stride=1):
    return nn.Sequential(nn.Conv2d(cin, cout, 3, stride, 1, bias=False), nn.BatchNorm2d(cout))


class Block(nn.Module):
    def __init__(self, cin, cout, stride):
        super().__init__()
        self.a = conv_bn(cin, cout, stride)
        self.b = conv_bn(cout, cout)
        self.skip = nn.Identity() if cin == cout and stride == 1 else nn.Conv2d(cin, cout, 1, stride)

    def forward(self, x):
        return torch.relu(self.b(torch.relu(self.a(x))) + self.skip(x))


def small_resnet(width):
    stages = [conv_bn(3, width, 2), nn.ReLU(), Block(width, width, 1), Block(width, 2 * width, 2)]
    return nn.Sequential(*stages, Block(2 * width, 4 * width, 2), nn.AdaptiveAvgPool2d(1), nn.Flatten(),
                         nn.Linear(4 * width, 10))
"""
    statement = "output = model(x)\nloss = criterion(output, y)"
    return Model("image", "resnet", f"small_resnet({width})", Piece(text + CRITERION, statement, IMPORTS))


CRITERION = """

criterion = nn.CrossEntropyLoss()
"""


def conv_autoencoder(rng: random.Random, weight: float) -> Model:
    width = int(rng.choice([16, 24, 32]) * weight)
    text = """
class AutoEncoder(nn.Module):
    def __init__(self, w):
        super().__init__()
        self.encoder = nn.Sequential(
            nn.Conv2d(3, w, 4, 2, 1), nn.ReLU(True),
            nn.Conv2d(w, 2 * w, 4, 2, 1), nn.ReLU(True),
        )
        self.decoder = nn.Sequential(
            nn.ConvTranspose2d(2 * w, w, 4, 2, 1), nn.ReLU(True),
            nn.ConvTranspose2d(w, 3, 4, 2, 1),
        )

    def forward(self, x):
        return self.decoder(self.encoder(x))
"""
    use = "loss = F.mse_loss(model(x), x)"
    return Model("image", "autoencoder", f"AutoEncoder({width})", Piece(text, use, IMPORTS))


def vit(rng: random.Random, weight: float) -> Model:
    dim = 16 * int(rng.choice([6, 8]) * weight)
    text = """
class TinyViT(nn.Module):
    def __init__(self, dim, depth=2, patch=8):
        super().__init__()
        self.patches = nn.Conv2d(3, dim, patch, patch)
        layer = nn.TransformerEncoderLayer(dim, 4, 2 * dim, dropout=0.0, batch_first=True)
        self.blocks = nn.TransformerEncoder(layer, depth)
        self.head = nn.Linear(dim, 10)

    def forward(self, images):
        tokens = self.patches(images).flatten(2).transpose(1, 2)
        return self.head(self.blocks(tokens).mean(1))
"""
    return Model("image", "vit", f"TinyViT({dim})", Piece(text, "loss = F.cross_entropy(model(x), y)", IMPORTS))


def mlp(rng: random.Random, weight: float) -> Model:
    hidden = int(rng.choice([512, 768, 1024]) * weight)
    text = """
def make_mlp(inputs, hidden, depth):
    layers = []
    for _ in range(depth):
        layers += [nn.Linear(inputs, hidden), nn.ReLU()]
        inputs = hidden
    return nn.Sequential(*layers, nn.Linear(hidden, 10))
"""
    use = "logits = model(x)\nloss = F.cross_entropy(logits, y)"
    return Model("flat", "mlp", f"make_mlp(784, {hidden}, {rng.choice([2, 3])})", Piece(text, use, IMPORTS))


def vae(rng: random.Random, weight: float) -> Model:
    text = """
class VAE(nn.Module):
    def __init__(self, hidden, latent=20):
        super().__init__()
        self.enc = nn.Linear(784, hidden)
        self.mean = nn.Linear(hidden, latent)
        self.logvar = nn.Linear(hidden, latent)
        self.dec1 = nn.Linear(latent, hidden)
        self.dec2 = nn.Linear(hidden, 784)

    def forward(self, x):
        h = torch.relu(self.enc(x))
        mu, logvar = self.mean(h), self.logvar(h)
        z = mu + torch.randn_like(mu) * torch.exp(0.5 * logvar)
        return torch.sigmoid(self.dec2(torch.relu(self.dec1(z)))), mu, logvar


def elbo(recon, x, mu, logvar):
    bce = F.binary_cross_entropy(recon, x.clamp(0, 1), reduction="sum")
    return (bce - 0.5 * torch.sum(1 + logvar - mu.pow(2) - logvar.exp())) / x.numel()
"""
    hidden = int(rng.choice([400, 600, 800]) * weight)
    use = "recon, mu, logvar = model(x)\nloss = elbo(recon, x, mu, logvar)"
    return Model("flat", "vae", f"VAE({hidden})", Piece(text, use, IMPORTS))


def transformer(rng: random.Random, weight: float) -> Model:
    dim = 16 * max(1, int(rng.choice([2, 3]) * weight))
    text = """
class TextClassifier(nn.Module):
    def __init__(self, vocabulary, dim, depth=1):
        super().__init__()
        self.embed = nn.Embedding(vocabulary, dim, padding_idx=0)
        self.position = nn.Parameter(torch.zeros(1, 512, dim))
        layer = nn.TransformerEncoderLayer(dim, 4, 4 * dim, batch_first=True, dropout=0.1)
        self.encoder = nn.TransformerEncoder(layer, depth, enable_nested_tensor=False)
        self.out = nn.Linear(dim, 10)

    def forward(self, tokens):
        hidden = self.embed(tokens) + self.position[:, : tokens.shape[1]]
        return self.out(self.encoder(hidden).mean(dim=1))
"""
    use = "loss = F.cross_entropy(model(x), y)"
    return Model("tokens", "transformer", f"TextClassifier(5000, {dim})", Piece(text, use, IMPORTS))


def rnn(rng: random.Random, weight: float) -> Model:
    cell = rng.choice(["LSTM", "GRU"])
    hidden = int(rng.choice([64, 96]) * weight)
    text = f"""
class SentenceRNN(nn.Module):
    def __init__(self, vocabulary, hidden):
        super().__init__()
        self.words = nn.Embedding(vocabulary, hidden)
        self.rnn = nn.{cell}(hidden, hidden, batch_first=True)
        self.classify = nn.Linear(hidden, 10)

    def forward(self, tokens):
        states, _ = self.rnn(self.words(tokens))
        return self.classify(states[:, -1])
"""
    use = "prediction = model(x)\nloss = nn.functional.cross_entropy(prediction, y)"
    return Model("tokens", "rnn", f"SentenceRNN(5000, {hidden})", Piece(text, use, IMPORTS))


def bag_of_words(rng: random.Random, weight: float) -> Model:
    dim = int(rng.choice([64, 128]) * weight)
    text = """
class BagOfWords(nn.Module):
    def __init__(self, vocabulary, dim):
        super().__init__()
        self.words = nn.Embedding(vocabulary, dim, padding_idx=0)
        self.head = nn.Sequential(nn.Linear(dim, 256), nn.ReLU(), nn.Linear(256, 10))

    def forward(self, tokens):
        return self.head(self.words(tokens).mean(1))
"""
    use = "loss = F.cross_entropy(model(x), y)"
    return Model("tokens", "bag", f"BagOfWords(5000, {dim})", Piece(text, use, IMPORTS))


def forecaster(rng: random.Random, weight: float) -> Model:
    hidden = int(rng.choice([48, 64]) * weight)
    text = """
class Forecaster(nn.Module):
    def __init__(self, features, hidden):
        super().__init__()
        self.lstm = nn.LSTM(features, hidden, num_layers=2, batch_first=True)
        self.head = nn.Linear(hidden, features)

    def forward(self, window):
        out, _ = self.lstm(window[:, :-1])
        return self.head(out)
"""
    use = "loss = F.smooth_l1_loss(model(x), x[:, 1:])"
    return Model("series", "lstm", f"Forecaster(8, {hidden})", Piece(text, use, IMPORTS))


def temporal_conv(rng: random.Random, weight: float) -> Model:
    width = int(rng.choice([48, 64]) * weight)
    text = """
class TCN(nn.Module):
    def __init__(self, features, width):
        super().__init__()
        self.layers = nn.Sequential(
            nn.Conv1d(features, width, 5, padding=2), nn.GELU(),
            nn.Conv1d(width, width, 5, padding=4, dilation=2), nn.GELU(),
            nn.Conv1d(width, width, 5, padding=8, dilation=4), nn.GELU(),
        )
        self.head = nn.Linear(width, 10)

    def forward(self, series):
        return self.head(self.layers(series.transpose(1, 2)).mean(-1))
"""
    return Model("series", "tcn", f"TCN(8, {width})", Piece(text, "loss = F.cross_entropy(model(x), y)", IMPORTS))


def recommender(rng: random.Random, weight: float) -> Model:
    dim = int(rng.choice([16, 32]) * weight)
    text = """
class Recommender(nn.Module):
    \"\"\"One embedding table per categorical column, pairwise products, a small MLP on top.\"\"\"

    def __init__(self, columns, rows, dim):
        super().__init__()
        self.tables = nn.ModuleList(nn.Embedding(rows, dim) for _ in range(columns))
        pairs = columns * (columns - 1) // 2
        self.register_buffer("pairs", torch.tril_indices(columns, columns, -1))
        self.top = nn.Sequential(nn.Linear(pairs + columns * dim, 256), nn.ReLU(), nn.Linear(256, 10))

    def forward(self, ids):
        v = torch.stack([table(ids[:, i]) for i, table in enumerate(self.tables)], dim=1)
        products = torch.bmm(v, v.transpose(1, 2))[:, self.pairs[0], self.pairs[1]]
        return self.top(torch.cat([products, v.flatten(1)], dim=1))
"""
    use = "scores = model(x)\nloss = F.cross_entropy(scores, y)"
    return Model("categories", "recsys", f"Recommender(16, 5000, {dim})", Piece(text, use, IMPORTS))


FAMILIES = {
    "image": (convnet, residual, conv_autoencoder, vit),
    "flat": (mlp, vae),
    "tokens": (transformer, rnn, bag_of_words),
    "series": (forecaster, temporal_conv),
    "categories": (recommender,),
}


def any_model(rng: random.Random, kind: str, weight: float = 1.0) -> Model:
    return rng.choice(FAMILIES[kind])(rng, weight)
