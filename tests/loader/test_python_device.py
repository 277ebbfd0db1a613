"""Batches on a device: the parts that need no real device, with a fake driver."""

from __future__ import annotations

import json

import pytest
from python_data import FAKE_CUDA, make_photos, require, run_script


def test_a_device_that_torch_cannot_see_is_an_error_that_says_so(tmp_path):
    require()
    torch = pytest.importorskip("torch")
    if torch.cuda.is_available():
        pytest.skip("this machine has one")
    from fullbore.data import ImageFolder, LoaderError, transforms

    with pytest.raises(LoaderError, match="torch sees no CUDA device"):
        ImageFolder(make_photos(tmp_path / "photos"), [transforms.Resize((8, 8))], device="cuda")


def test_arrays_of_a_device_say_whose_memory_they_are(tmp_path):
    require()
    if not FAKE_CUDA.exists():
        pytest.skip("the fake driver is not built")
    options = {
        "source": {"paths": [str(make_photos(tmp_path / "photos"))]},
        "transforms": [{"name": "Resize", "height": 8, "width": 8}],
        "batch_size": 4,
    }
    ran = run_script(
        f"""
        from fullbore.data import _core
        loader = _core.open({json.dumps(options)!r}, None, 0)
        loader.set_stream(0)
        batch = loader.next()
        (_, images), (_, labels) = batch.fields()
        print(images.__dlpack_device__(), labels.__dlpack_device__(), type(images.__dlpack__(stream=1)).__name__)
        print([stage["name"] for stage in loader.stats()["stages"]])
        """,
        env={"FULLBORE_CUDA": str(FAKE_CUDA)},
        directory=tmp_path,
    )
    assert ran.returncode == 0, ran.stderr
    assert "(2, 0) (2, 0) PyCapsule" in ran.stdout
    assert "'copy'" in ran.stdout


def test_without_a_driver_the_error_names_it(tmp_path):
    require()
    options = {"source": {"paths": [str(make_photos(tmp_path / "photos"))]}, "batch_size": 4}
    ran = run_script(
        f"""
        from fullbore.data import LoaderError, _core
        try:
            _core.open({json.dumps(options)!r}, None, 0)
        except LoaderError as error:
            print(error)
        """,
        env={"FULLBORE_CUDA": "libno-such-cuda.so"},
        directory=tmp_path,
    )
    assert "libno-such-cuda.so" in ran.stdout and "hint:" in ran.stdout
