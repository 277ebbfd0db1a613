"""fullbore.data in this process: batches, epochs, state, options, errors."""

from __future__ import annotations

import ast
import gc
import os
import pickle
import pty
import struct
import subprocess
import sys
import threading
import warnings

import pytest
from python_data import CLASSES, ROOT, environment, make_photos, require, run_script

require()
torch = pytest.importorskip("torch")
numpy = pytest.importorskip("numpy")

from fullbore import data as fb  # noqa: E402
from fullbore.data import deliver  # noqa: E402
from fullbore.data import transforms as T  # noqa: E402

SMALL = [T.Resize((16, 16))]


def ids_of(loader):
    ids = []
    for _ in loader:
        ids += loader.last_batch.ids
    return ids


def test_a_folder_gives_normalised_tensors_and_labels(photos):
    loader = fb.ImageFolder(
        photos,
        transforms=[T.RandomResizedCrop(20), T.RandomHorizontalFlip(), T.Normalize()],
        batch_size=10,
        seed=0,
    )
    assert loader.classes == list(CLASSES) and loader.samples == 24 and len(loader) == 3
    batches = list(loader)
    assert [tuple(images.shape) for images, _ in batches] == [(10, 3, 20, 20), (10, 3, 20, 20), (4, 3, 20, 20)]
    images, labels = batches[0]
    assert images.dtype == torch.float32 and labels.dtype == torch.int64
    assert sorted(torch.cat([labels for _, labels in batches]).tolist()) == [0] * 8 + [1] * 8 + [2] * 8
    # Each class's colour comes with its label.
    for image, label in zip(images, labels):
        assert int(image.mean(dim=(1, 2)).argmax()) == int(label)


def test_pixels_are_the_same_as_pillows(photos):
    from PIL import Image

    loader = fb.ImageFolder(photos, [T.Resize((24, 32))], 24, shuffle=False, dtype="uint8", layout="nhwc")
    images, labels = next(iter(loader))
    assert labels.tolist() == [0] * 8 + [1] * 8 + [2] * 8
    files = sorted(photos.glob("*/*.jpg"))
    expected = numpy.stack([numpy.asarray(Image.open(file).resize((32, 24), Image.BILINEAR)) for file in files])
    difference = abs(images.numpy().astype(int) - expected.astype(int))
    assert difference.mean() < 1.0


def test_batches_are_the_engines_own_memory(photos):
    loader = fb.ImageFolder(photos, SMALL, 8)
    batch = loader._core.next()
    array = dict(batch.fields())["image"]
    tensor = deliver.to_torch(array)
    assert tensor.data_ptr() == numpy.asarray(array).ctypes.data
    assert tensor.data_ptr() % 64 == 0


def test_memory_is_reused_once_a_tensor_is_gone(photos):
    loader = fb.ImageFolder(photos, SMALL, 4, prefetch_batches=2, threads=1)
    for _ in range(2):
        for _ in loader:
            pass
    settled = loader.stats()["pool_bytes"]
    for _ in range(20):
        for _ in loader:
            pass
    assert loader.stats()["pool_bytes"] <= 3 * settled  # 120 batches later: at most a few more slots
    kept = [batch for _ in range(8) for batch in loader]
    assert len({images.data_ptr() for images, _ in kept}) == len(kept) == 48
    assert loader.stats()["pool_bytes"] > 3 * settled


def test_tensors_outlive_the_loader(photos):
    loader = fb.ImageFolder(photos, SMALL, 24, shuffle=False)
    images, labels = next(iter(loader))
    before = images.clone()
    del loader
    gc.collect()
    assert torch.equal(images, before) and labels.tolist() == [0] * 8 + [1] * 8 + [2] * 8


def test_numpy_arrays_are_delivered_on_request(photos):
    images, labels = next(iter(fb.ImageFolder(photos, SMALL, 4, as_numpy=True, dtype="float16")))
    assert isinstance(images, numpy.ndarray) and images.dtype == numpy.float16 and images.flags.writeable
    assert labels.dtype == numpy.int64


def test_bfloat16_reaches_torch_and_not_numpy(photos):
    images, _ = next(iter(fb.ImageFolder(photos, SMALL, 4, dtype=torch.bfloat16)))
    assert images.dtype == torch.bfloat16 and 0 < float(images.mean()) < 1
    with pytest.raises(ValueError, match="float32"):
        next(iter(fb.ImageFolder(photos, SMALL, 4, dtype="bfloat16", as_numpy=True)))


def test_each_iteration_is_the_next_epoch_also_after_a_break(photos):
    loader = fb.ImageFolder(photos, SMALL, 4, seed=3)
    first = ids_of(loader)
    assert sorted(first) == list(range(24)) and loader.last_batch.epoch == 0
    for _ in loader:
        break
    assert loader.last_batch.epoch == 1
    third = ids_of(loader)
    assert loader.last_batch.epoch == 2 and sorted(third) == list(range(24)) and third != first
    loader.set_epoch(0)
    assert ids_of(loader) == first


def test_an_older_iteration_says_that_it_was_ended(photos):
    loader = fb.ImageFolder(photos, SMALL, 4)
    older = iter(loader)
    next(older)
    next(iter(loader))
    with pytest.raises(fb.LoaderError, match="newer"):
        next(older)


def test_an_iteration_resumes_where_its_state_was_taken(photos):
    whole = ids_of(fb.ImageFolder(photos, SMALL, 4, seed=5))
    loader = fb.ImageFolder(photos, SMALL, 4, seed=5)
    iteration = iter(loader)
    seen = []
    for _ in range(2):
        next(iteration)
        seen += loader.last_batch.ids
    resumed = fb.ImageFolder(photos, SMALL, 4, seed=5)
    resumed.load_state_dict(loader.state_dict())
    assert seen + ids_of(resumed) == whole
    assert resumed.state_dict()["epoch"] == 1  # at the end: the next epoch
    unpickled = pickle.loads(pickle.dumps(loader))
    assert seen + ids_of(unpickled) == whole


def test_ranks_share_the_epoch(photos, monkeypatch):
    parts = [ids_of(fb.ImageFolder(photos, SMALL, 4, rank=rank, world_size=2)) for rank in range(2)]
    assert sorted(parts[0] + parts[1]) == list(range(24)) and len(parts[0]) == 12
    monkeypatch.setenv("RANK", "1")
    monkeypatch.setenv("WORLD_SIZE", "2")
    assert ids_of(fb.ImageFolder(photos, SMALL, 4)) == parts[1]


def test_the_last_batch_is_short_dropped_or_padded(photos):
    def sizes(**options):
        return [len(labels) for _, labels in fb.ImageFolder(photos, SMALL, 10, **options)]

    assert (sizes(), sizes(drop_last=True), sizes(pad_last=True)) == ([10, 10, 4], [10, 10], [10, 10, 10])
    loader = fb.ImageFolder(photos, SMALL, 10, pad_last=True)
    list(loader)
    assert loader.last_batch.valid == [True] * 4 + [False] * 6
    assert len(fb.ImageFolder(photos, SMALL, 10, drop_last=True)) == 2


def test_more_fields_come_as_a_named_tuple(photos, tmp_path):
    rows = "".join(f"{photos}/ant/{i:03}.jpg,{i},text {i}\n" for i in range(4))
    (tmp_path / "list.csv").write_text("path,label,caption\n" + rows)
    loader = fb.FileList(tmp_path / "list.csv", SMALL, 4, shuffle=False, fields=["path", "label", "caption"])
    batch = next(iter(loader))
    image, label, caption = batch
    assert batch.caption == caption == batch["caption"] == [f"text {i}" for i in range(4)]
    assert label.tolist() == [0, 1, 2, 3] and tuple(image.shape) == (4, 3, 16, 16)


def test_pairs_of_paths_and_labels_need_no_file(photos):
    pairs = [(photos / "cat" / "000.jpg", 7), (photos / "bee" / "001.jpg", 9)]
    loader = fb.FileList(pairs, SMALL, 2, shuffle=False)
    _, labels = next(iter(loader))
    assert labels.tolist() == [7, 9]
    assert [len(batch[1]) for batch in pickle.loads(pickle.dumps(loader))] == []  # like the pickled one: at the end


@pytest.mark.parametrize(
    ("make", "kind", "text"),
    [
        (lambda p: fb.ImageFolder("/nowhere/at/all"), FileNotFoundError, "/nowhere/at/all"),
        (lambda p: fb.ImageFolder(p, SMALL, dtype="float31"), ValueError, "float31"),
        (lambda p: fb.ImageFolder(p, SMALL, batch_size=0), ValueError, "batch_size"),
        (lambda p: fb.ImageFolder(p, [T.Normalize(std=(1, 1, 0))]), ValueError, "std"),
        (lambda p: fb.ImageFolder(p, [abs]), ValueError, "map="),
        (lambda p: fb.ImageFolder(p, SMALL, drop_last=True, pad_last=True), ValueError, "contradict each other"),
        (lambda p: fb.ImageFolder(p, SMALL, layout="chwn"), ValueError, "nchw, nhwc"),
        (lambda p: fb.ImageFolder(p, SMALL, rank=1), ValueError, "world_size"),
        (lambda p: fb.ImageFolder(p, SMALL, on_bad_sample="cry"), ValueError, "skip, raise"),
        (lambda p: fb.ImageFolder(p, SMALL, map_processes=2), ValueError, "without map"),
        (lambda p: fb.ImageFolder(None), ValueError, "paths cannot be None"),
        (lambda p: fb.ImageFolder(p, SMALL, batch_size=2.5), ValueError, "whole number"),
        (lambda p: fb.ImageFolder(p, SMALL, seed=-1), ValueError, "seed cannot be -1"),
        (lambda p: fb.ImageFolder(p, SMALL, cache_bytes=-1), ValueError, "cache_bytes cannot be -1"),
        (lambda p: fb.ImageFolder(p, SMALL, threads=100_000), ValueError, "threads 100000"),
        (lambda p: fb.ImageFolder(p, SMALL, timeout_s="long"), ValueError, "timeout_s cannot be 'long'"),
        (lambda p: fb.ImageFolder(p, SMALL, bad_sample_budget=None), ValueError, "bad_sample_budget cannot be None"),
        (lambda p: fb.ImageFolder(p, SMALL, prefetch_batches=-1), ValueError, "prefetch_batches -1: none of them"),
        (lambda p: fb.ImageFolder(p, SMALL, device="gpu"), ValueError, "torch does not know device='gpu'"),
        (lambda p: fb.ImageFolder(p, abs), ValueError, "map="),
        (lambda p: fb.ImageFolder(p, [T.Resize("a")]), ValueError, "height, width"),
        (lambda p: fb.ImageFolder(p, [T.CenterCrop((8, 8.5))]), ValueError, "height, width"),
    ],
)
def test_wrong_arguments_are_reported_by_name(photos, make, kind, text):
    with pytest.raises(kind, match=text) as caught:
        make(photos)
    assert isinstance(caught.value, fb.LoaderError)


@pytest.mark.parametrize(("name", "hint"), [("num_workers", "threads=N"), ("transform", "transforms")])
def test_arguments_of_torchs_loader_get_a_hint_to_ours(photos, name, hint):
    with pytest.raises(TypeError, match=f"'{name}'(.|\n)*{hint}"):
        fb.ImageFolder(photos, SMALL, **{name: 4})


def test_transforms_read_arguments_as_torchvision_does():
    assert T.Resize(8).describe()["width"] == 0 and T.Resize([8, 9]).describe()["width"] == 9
    jitter = T.ColorJitter(0.4, (0.5, 1.5), 2, 0.1).describe()
    assert jitter["brightness"] == [0.6, 1.4] and jitter["contrast"] == [0.5, 1.5]
    assert jitter["saturation"] == [0.0, 3.0] and jitter["hue"] == [-0.1, 0.1]
    assert T.RandomRotation(15).describe()["degrees"] == [-15.0, 15.0]
    assert T.Resize(8, 3) == T.Resize(8, "bicubic") != T.Resize(8, "bilinear")
    with pytest.raises(ValueError, match="lanczos"):
        T.Resize(8, "lanczos")


def test_a_bad_sample_is_skipped_and_reported_once(tmp_path):
    photos = make_photos(tmp_path / "train")
    (photos / "bee" / "003.jpg").write_bytes(b"not a picture")
    loader = fb.ImageFolder(photos, SMALL, 4, shuffle=False)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        rows = sum(len(labels) for _ in range(2) for _, labels in loader)
    assert rows == 2 * 23
    bad = loader.bad_samples
    assert bad[0].id == 11 and bad[0].name.endswith("bee/003.jpg")
    told = [str(w.message) for w in caught if issubclass(w.category, fb.LoaderWarning)]
    assert len(told) == len(set(told))
    with warnings.catch_warnings(), pytest.raises(fb.LoaderError, match='003.jpg(.|\n)*on_bad_sample "skip"'):
        warnings.simplefilter("error")  # the error says everything: no warning about skipped samples
        list(fb.ImageFolder(photos, SMALL, 4, shuffle=False, on_bad_sample="raise"))


def test_names_reach_neither_the_terminal_nor_the_decoder_as_they_are(tmp_path):
    hostile = b"x\x1b]0;owned\x07\xc2\x9b31m\xe2\x80\xae\nfullbore: all is well\x9b\xff"
    photos = make_photos(tmp_path / "train")
    folder = os.fsdecode(os.fsencode(photos) + b"/" + hostile)
    os.mkdir(folder)
    with open(os.path.join(folder, "a.jpg"), "wb") as damaged:
        damaged.write(b"not a picture")
    loader = fb.ImageFolder(photos, SMALL, 4, shuffle=False)
    assert os.path.basename(folder) in loader.classes, "as os.listdir has it"
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        list(loader)
    told = [str(w.message) for w in caught if issubclass(w.category, fb.LoaderWarning)]
    with pytest.raises(fb.LoaderError) as raised:
        list(fb.ImageFolder(photos, SMALL, 4, shuffle=False, on_bad_sample="raise"))
    (bad,) = loader.bad_samples
    told += [str(raised.value), bad.name]
    assert len(told) == 3 and all("owned" in text for text in told), told
    assert all(text.replace("\nhint: ", "").isprintable() for text in told), told
    with pytest.raises(fb.LoaderError) as missing:
        fb.ImageFolder("/" + hostile.decode(errors="ignore"))
    assert "owned" in str(missing.value) and str(missing.value).replace("\nhint: ", "").isprintable()


def test_records_are_read_from_a_tfrecord_file(photos, tmp_path):
    pictures = sorted(photos.glob("*/*.jpg"))[::4]
    write_tfrecord(tmp_path / "train.tfrecord", [(path.read_bytes(), i) for i, path in enumerate(pictures)])
    with fb.TFRecord(tmp_path / "train.tfrecord", SMALL, 6, shuffle=False) as loader:
        image, label = next(iter(loader))
    assert tuple(image.shape) == (6, 3, 16, 16) and label.tolist() == list(range(6))
    expected, _ = next(iter(fb.FileList([(path, 0) for path in pictures], SMALL, 6, shuffle=False)))
    assert torch.equal(image, expected)


def test_hdf5_files_that_h5py_wrote_and_still_has_open_are_read(photos, tmp_path):
    """Two copies of libhdf5 in one process, theirs and ours."""
    h5py = pytest.importorskip("h5py")
    pictures = sorted(photos.glob("*/*.jpg"))[::4]
    numbers = numpy.random.default_rng(0).normal(size=(len(pictures), 3, 2)).astype("float32")
    with h5py.File(tmp_path / "train.h5", "w") as file:
        file["label"] = numpy.arange(len(pictures))
        file.create_dataset("numbers", data=numbers, chunks=(4, 3, 2), compression="gzip")
        encoded = file.create_dataset("image", len(pictures), h5py.vlen_dtype(numpy.uint8))
        for i, path in enumerate(pictures):
            encoded[i] = numpy.frombuffer(path.read_bytes(), numpy.uint8)
    with h5py.File(tmp_path / "train.h5") as file:
        with fb.HDF5(tmp_path / "train.h5", SMALL, 6, shuffle=False) as loader:
            batch = next(iter(loader))
        assert file["label"][:6].tolist() == batch["label"].tolist() == list(range(6))
    assert numpy.array_equal(batch["numbers"].numpy(), numbers[:6])
    expected, _ = next(iter(fb.FileList([(path, 0) for path in pictures], SMALL, 6, shuffle=False)))
    assert torch.equal(batch["image"], expected)


def write_tfrecord(path, samples):
    """Features image and label, as tf.train.Example."""

    def masked(data):
        value = 0xFFFFFFFF
        for byte in data:
            value ^= byte
            for _ in range(8):
                value = value >> 1 ^ (0x82F63B78 if value & 1 else 0)
        value ^= 0xFFFFFFFF
        return struct.pack("<I", ((value >> 15 | value << 17) + 0xA282EAD8) & 0xFFFFFFFF)

    def message(number, data):
        length, size = b"", len(data)
        while size > 127:
            length, size = length + bytes([size & 127 | 128]), size >> 7
        return bytes([number << 3 | 2]) + length + bytes([size]) + data

    with open(path, "wb") as file:
        for image, label in samples:
            features = {b"image": message(1, message(1, image)), b"label": message(3, b"\x08" + bytes([label]))}
            entries = [message(1, message(1, name) + message(2, value)) for name, value in features.items()]
            record = message(1, b"".join(entries))
            length = struct.pack("<Q", len(record))
            file.write(length + masked(length) + record + masked(record))


def test_the_type_hints_match_the_extension():
    tree = ast.parse((ROOT / "python" / "fullbore" / "data" / "_core.pyi").read_text())
    core = fb._core
    for node in tree.body:
        if isinstance(node, ast.ClassDef):
            hinted = {part.name for part in node.body if isinstance(part, ast.FunctionDef)}
            hinted |= {part.target.id for part in node.body if isinstance(part, ast.AnnAssign)}
            real = {name for name in vars(getattr(core, node.name)) if not name.startswith("_")}
            assert {name for name in hinted if not name.startswith("_")} == real, node.name
    functions = {node.name for node in tree.body if isinstance(node, ast.FunctionDef)}
    assert functions == {name for name in dir(core) if callable(getattr(core, name)) and name[0].islower()}


def test_threads_that_share_an_iteration_stop_at_its_end(photos):
    loader = fb.ImageFolder(photos, SMALL, 4)
    rows = []

    def share(iteration):
        for _, labels in iteration:
            rows.append(len(labels))

    for _ in range(5):
        iteration = iter(loader)
        threads = [threading.Thread(target=share, args=(iteration,)) for _ in range(3)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(20)
    assert sum(rows) == 5 * 24  # none from the next epoch


def test_nothing_heavy_is_imported_before_it_is_needed(tmp_path):
    done = run_script("import sys, fullbore.data; print({'torch', 'numpy'} & set(sys.modules))", directory=tmp_path)
    assert done.stdout == "set()\n", done.stderr


def test_a_progress_line_is_for_terminals_only(photos, tmp_path):
    script = """
        import sys
        from fullbore.data import ImageFolder, transforms as T
        list(ImageFolder(sys.argv[1], [T.Resize((8, 8))], 4, as_numpy=True, progress=True))
    """
    assert run_script(script, photos, directory=tmp_path).stderr == ""
    outer, inner = pty.openpty()
    subprocess.run([sys.executable, str(tmp_path / "script.py"), str(photos)], stderr=inner, env=environment())
    os.close(inner)
    shown = ""
    try:
        while part := os.read(outer, 65536):
            shown += part.decode()
    except OSError:  # EIO: all of it was read
        pass
    os.close(outer)
    assert "6/6 batches" in shown and shown.endswith("\n")


def test_no_text_reveals_the_secrets_of_a_url(photos):
    url = "https://me:secret@127.0.0.1:1/{}?X-Amz-Signature=secret"
    for paths in (url.format("x.odd"), url.format("x.tar"), [url.format("x.tar"), 7]):
        with pytest.raises(fb.LoaderError) as raised:
            fb.Loader(paths, batch_size=2, retries=0)
        assert "secret" not in str(raised.value) and "secret" not in str(raised.value.hint)
        assert "***" in str(raised.value)
    loader = fb.ImageFolder(photos, batch_size=2)
    loader._arguments["paths"] = url.format("x.tar")
    assert "secret" not in repr(loader) and "***@127.0.0.1:1/x.tar" in repr(loader)
