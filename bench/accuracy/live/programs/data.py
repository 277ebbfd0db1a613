"""Where programs get their samples from. `use` is the expression that makes the dataset; each sample is (x, y)."""

from __future__ import annotations

import random

from .pieces import Piece

SHAPES = {"flat": "784", "series": "48, 8", "image": "3, 64, 64"}


def in_memory(rng: random.Random, kind: str, samples: int = 4096) -> Piece:
    """Random tensors that are there before the first step."""
    if kind in ("tokens", "categories"):
        values = f"torch.randint(1, 5000, ({samples}, {16 if kind == 'categories' else rng.choice([32, 48, 64])}))"
    else:
        samples = samples // 4 if kind == "image" else samples
        values = f"torch.rand({samples}, {SHAPES[kind]})"
    use = f"TensorDataset({values}, torch.randint(0, 10, ({samples},)))"
    return Piece("", use, ("import torch", "from torch.utils.data import TensorDataset"))


def photos(rng: random.Random, kind: str = "image", scale: float = 1.0) -> Piece:
    """JPEG files, decoded on each access; `scale` below 1 decodes fewer of their pixels."""
    augment = rng.choice(
        [
            "",
            "        if random.random() < 0.5:\n            image = ImageOps.mirror(image)\n",
            "        image = ImageEnhance.Color(image).enhance(random.uniform(0.7, 1.3))\n",
        ]
    )
    draft = f"        image.draft('RGB', ({int(500 * scale)}, {int(375 * scale)}))\n" if scale < 1 else ""
    text = f"""
class PhotoDataset(Dataset):
    def __init__(self, root, size, length):
        self.paths = sorted(glob.glob(os.path.join(root, "*", "*.jpg")))
        self.classes = sorted({{p.split(os.sep)[-2] for p in self.paths}})
        self.size = size
        self.length = length

    def __len__(self):
        return self.length

    def __getitem__(self, i):
        path = self.paths[i % len(self.paths)]
        image = Image.open(path)
{draft}        image = image.convert("RGB").resize((self.size, self.size), Image.BILINEAR)
{augment}        array = np.asarray(image, dtype=np.float32) / 255.0
        return torch.from_numpy(array.transpose(2, 0, 1).copy()), self.classes.index(path.split(os.sep)[-2])
"""
    imports = ["import glob", "import os", "import numpy as np", "import torch", "from PIL import Image"]
    imports.append("from torch.utils.data import Dataset")
    if "random." in augment:
        imports.append("import random")
    if "ImageOps" in augment or "ImageEnhance" in augment:
        imports.append("from PIL import ImageEnhance, ImageOps")
    return Piece(text, "PhotoDataset($data, 64, $length)", tuple(imports))


def arrays(rng: random.Random, kind: str, rounds: int = 6) -> Piece:
    """Samples kept as uint8 or float arrays and augmented with numpy on each access."""
    if kind == "image":
        text = f"""
class AugmentedArrays(torch.utils.data.Dataset):
    def __init__(self, n, length):
        self.images = np.random.default_rng(0).integers(0, 256, (n, 96, 96, 3), dtype=np.uint8)
        self.labels = np.arange(n) % 10
        self.length = length

    def __len__(self):
        return self.length

    def augment(self, image):
        top, left = np.random.randint(0, 33, 2)
        image = image[top : top + 64, left : left + 64].astype(np.float32)
        for _ in range({rounds}):
            image = (image + np.roll(image, 1, axis=0) + np.roll(image, 1, axis=1)) / 3
        image += np.random.normal(0, 4, image.shape)
        return (image - image.mean()) / (image.std() + 1e-5)

    def __getitem__(self, index):
        image = self.augment(self.images[index % len(self.images)])
        label = int(self.labels[index % len(self.labels)])
        return torch.as_tensor(image.transpose(2, 0, 1), dtype=torch.float32), label
"""
    else:
        text = f"""
class Windows(torch.utils.data.Dataset):
    \"\"\"Windows of a long recording, detrended and smoothed.\"\"\"

    def __init__(self, n, length):
        self.signal = np.random.default_rng(1).standard_normal((n * 48, 8)).cumsum(axis=0)
        self.length = length

    def __len__(self):
        return self.length

    def __getitem__(self, index):
        begin = (index * 131) % (len(self.signal) - 48)
        window = self.signal[begin : begin + 48]
        for _ in range({rounds}):
            spectrum = np.fft.rfft(window, axis=0)
            spectrum[12:] *= 0.5
            window = np.fft.irfft(spectrum, n=48, axis=0)
        window = (window - window.mean(0)) / (window.std(0) + 1e-6)
        return torch.tensor(window, dtype=torch.float32), index % 10
"""
    name = "AugmentedArrays" if kind == "image" else "Windows"
    return Piece(text, f"{name}(256, $length)", ("import numpy as np", "import torch"))


TEXT_CORPUS = """
def make_corpus(lines, seed=0):
    rng = random.Random(seed)
    letters = "abcdefghijklmnopqrstuvwxyz"
    words = ["".join(rng.choices(letters, k=rng.randint(2, 9))) for _ in range(4000)]
    return [" ".join(rng.choices(words, k=rng.randint(20, $longest))) + "." for _ in range(lines)], words
"""

TOKENISER = """
class Tokeniser:
    def __init__(self, words):
        pieces = sorted({word[:3] for word in words} | {word[-2:] for word in words})[:4900]
        self.ids = {piece: i + 2 for i, piece in enumerate(pieces)}

    def __call__(self, line):
        out = []
        for word in re.findall(r"\\w+|[^\\w\\s]", line.lower()):
            begin = 0
            while begin < len(word):  # the longest known piece first
                for end in range(len(word), begin, -1):
                    if word[begin:end] in self.ids:
                        break
                out.append(self.ids.get(word[begin:end], 1))
                begin = end
        return out
"""

TEXT_IMPORTS = ("import random", "import re", "import torch", "from torch.utils.data import Dataset")


def text(rng: random.Random, kind: str = "tokens", longest: int = 300) -> Piece:
    """Lines of text, tokenised and cut to one length on each access."""
    source = """
class TextDataset(Dataset):
    def __init__(self, length, max_len=64):
        self.lines, words = make_corpus(512)
        self.tokenise = Tokeniser(words)
        self.length, self.max_len = length, max_len

    def __len__(self):
        return self.length

    def __getitem__(self, i):
        ids = self.tokenise(self.lines[i % len(self.lines)])
        ids = ids[: self.max_len] + [0] * (self.max_len - len(ids))
        return torch.tensor(ids), len(ids) % 10
"""
    whole = f"{TEXT_CORPUS}\n{TOKENISER}\n{source}"
    return Piece(whole, "TextDataset($length)", TEXT_IMPORTS, {"longest": longest}).filled()


def ragged_text(rng: random.Random) -> Piece:
    """Lines that are tokens already, of different lengths: the collate function has to pad them."""
    longest = rng.choice([300, 500])
    source = f"""
class Sentences(torch.utils.data.Dataset):
    def __init__(self, length):
        rng = random.Random(3)
        self.rows = [[rng.randrange(1, 5000) for _ in range(rng.randrange(40, {longest}))] for _ in range(300)]
        self.length = length

    def __len__(self):
        return self.length

    def __getitem__(self, index):
        return self.rows[index % 300], index % 10
"""
    return Piece(source, "Sentences($length)", ("import random", "import torch"))


def csv_rows(rng: random.Random, kind: str, effort: int = 1) -> Piece:
    """Lines of a CSV file, parsed on each access: numbers for `flat`, hashed words for `categories`."""
    if kind == "categories":
        columns = 16 * effort
        source = f"""
class ClickLog(Dataset):
    def __init__(self, length):
        rng = random.Random(5)
        self.lines = [",".join("%08x" % rng.getrandbits(32) for _ in range({columns})) for _ in range(2000)]
        self.length = length

    def __len__(self):
        return self.length

    def __getitem__(self, i):
        fields = self.lines[i % len(self.lines)].split(",")
        ids = [zlib.crc32(f"{{n}}={{value}}".encode()) % 5000 for n, value in enumerate(fields)]
        return torch.tensor(ids[:16]), ids[0] % 10
"""
        imports = ("import random", "import zlib", "import torch", "from torch.utils.data import Dataset")
        return Piece(source, "ClickLog($length)", imports)
    source = """
class CsvDigits(Dataset):
    \"\"\"One line per picture: the label, then 784 grey values.\"\"\"

    def __init__(self, length):
        values = np.random.default_rng(2).integers(0, 256, (256, 784))
        self.lines = [",".join(map(str, [i % 10, *row])) for i, row in enumerate(values)]
        self.length = length

    def __len__(self):
        return self.length

    def __getitem__(self, index):
        label, *pixels = self.lines[index % 256].split(",")
        return torch.tensor([float(p) / 255 for p in pixels]), int(label)
"""
    imports = ("import numpy as np", "import torch", "from torch.utils.data import Dataset")
    return Piece(source, "CsvDigits($length)", imports)


def costly(rng: random.Random, kind: str) -> Piece:
    """A dataset whose samples take CPU time, one or a few milliseconds."""
    if kind == "image":
        return arrays(rng, "image", rng.choice([20, 30])) if rng.random() < 0.3 else photos(rng)
    if kind == "series":
        return arrays(rng, "series", rng.choice([40, 60]))
    if kind == "tokens":
        return text(rng, "tokens", rng.choice([600, 900]))
    return csv_rows(rng, kind, 6)


def cheap(rng: random.Random, kind: str) -> Piece:
    """A map-style dataset of one's own that does hardly anything per sample."""
    values = f"torch.rand(1024, {SHAPES[kind]})" if kind in SHAPES else "torch.randint(1, 5000, (4096, 16))"
    source = f"""
class RandomSet(torch.utils.data.Dataset):
    def __init__(self, length):
        self.data = {values}
        self.length = length

    def __len__(self):
        return self.length

    def __getitem__(self, i):
        return self.data[i % len(self.data)], i % 10
"""
    return Piece(source, "RandomSet($length)", ("import torch",))
