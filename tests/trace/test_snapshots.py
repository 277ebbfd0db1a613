"""explain on memory snapshots of PyTorch 2.9.1, written by its own allocator (bench/memory.py --keep). Beside each is
what PyTorch counted of it, and of the same program with another setting or batch."""

from __future__ import annotations

import json
import os
import pathlib
import pickle

import pytest

SNAPSHOTS = pathlib.Path(__file__).with_name("snapshots")
# torch.cuda.max_memory_allocated(), max_memory_reserved(); the latter with expandable segments; the first with a batch
# of twice the size.
COUNTED = {
    "varied-0": (689425408, 1218445312, 864026624, 1221169664),
    "perceptron-0": (153943040, 178257920, 174063616, 162110976),
    "requests-0": (390554112, 499122176, 488636416, None),
}


def device_of(fullbore, name: str, *flags: str) -> dict:
    said = fullbore.call("explain", SNAPSHOTS / f"{name}.pickle.zst", "--json", "-", *flags)
    assert said.code == 0, said.stderr
    (device,) = json.loads(said.stdout)["devices"]
    return device


@pytest.mark.parametrize("name", COUNTED)
def test_the_replay_is_what_pytorch_did_to_the_byte(fullbore, name):
    allocated, reserved, expandable, _ = COUNTED[name]
    device = device_of(fullbore, name)
    assert device["complete"] and device["limits"] == []
    assert device["peak_reserved"] == device["as_recorded"]["peak_reserved"] == reserved
    assert (device["as_recorded"]["off"], device["as_recorded"]["peak_allocated"]) == (0, allocated)
    (what_if,) = device["what_if"]
    assert (what_if["change"], what_if["peak_reserved"]) == ("expandable_segments", expandable)


@pytest.mark.parametrize("name", [name for name, counted in COUNTED.items() if counted[3]])
def test_a_larger_batch_takes_what_it_takes(fullbore, name):
    what_if = device_of(fullbore, name, "--what-if", "batch=2x")["what_if"]
    (larger,) = [each for each in what_if if each["change"] == "batch=2x"]
    assert larger["peak_allocated"] == pytest.approx(COUNTED[name][3], rel=0.05)


def test_it_says_who_found_no_room_and_what_would_have_fitted(fullbore):
    device = device_of(fullbore, "fixed-0-small")
    (refused,) = device["refused"]
    assert (refused["asked"], refused["place"]) == (102400000, "")  # by autograd's thread
    assert device["says"][0].startswith(
        "Out of memory: code without a line of Python, as in a backward pass, asked for "
    )
    # The same program on the same device with expandable segments ended well.
    assert device["says"][0].endswith("this request would have fitted: 690 MB reserved at most until then.")


def test_the_terminal_has_the_lines_that_filled_the_device(fullbore):
    said = fullbore.call("explain", SNAPSHOTS / "varied-0.pickle.zst", "--what-if", "batch=2x")
    text = said.stdout.decode()
    assert said.code == 0
    assert "In use when it was fullest" in text and "program.py:" in text
    assert "batch=2x" in text and "expandable_segments" in text


def test_nothing_in_a_pickle_is_run(fullbore):
    class Hostile:
        def __reduce__(self):
            return os.system, ("touch touched",)

    file = fullbore.directory / "snapshot.pickle"
    file.write_bytes(pickle.dumps({"segments": [Hostile()], "device_traces": []}))
    said = fullbore.call("explain", file)
    assert said.code == 1 and "imports a name" in said.stderr
    assert not (fullbore.directory / "touched").exists()


@pytest.mark.parametrize("part", [0.0, 0.3, 0.99])
def test_a_file_that_is_cut_short_says_where(fullbore, part):
    event = {"action": "alloc", "addr": 0, "size": 512, "stream": 0, "frames": []}
    whole = pickle.dumps({"segments": [], "device_traces": [[event] * 20]})
    file = fullbore.directory / "snapshot.pickle"
    file.write_bytes(whole[: 2 + int(part * (len(whole) - 2))])
    said = fullbore.call("explain", file)
    assert said.code == 1 and "ends in the middle" in said.stderr and "byte " in said.stderr


def test_another_pickle_is_none(fullbore):
    file = fullbore.directory / "weights.pkl"
    file.write_bytes(pickle.dumps({"weights": [1.0, 2.0]}))
    said = fullbore.call("explain", file)
    assert said.code == 1 and "none of a memory snapshot" in said.stderr


@pytest.mark.parametrize(
    ("flags", "says"),
    [
        (["--section", "kernels"], "--section is for traces"),
        (["--step-time", "3ms"], "--step-time is for traces"),
        (["--what-if", "graphs"], "not a change of a memory snapshot"),
        (["--what-if", "batch=0x"], "not a change of a memory snapshot"),
    ],
)
def test_what_is_for_traces_is_refused(fullbore, flags, says):
    said = fullbore.call("explain", SNAPSHOTS / "perceptron-0.pickle.zst", *flags)
    assert said.code == 2 and says in said.stderr


def test_a_file_that_says_one_thing_many_times_is_refused_at_once(fullbore):
    """References cost two bytes each: a segment with blocks of no size, again and again."""
    times = 20_000
    block = b"}\x94(\x8c\x04sizeK\x00\x8c\x05state\x8c\x08inactiveu" + b"h\x03" * times
    segment = b"}\x94(\x8c\x0atotal_sizeK\x00\x8c\x06blocks]\x94(" + block + b"eu" + b"h\x01" * times
    file = fullbore.directory / "snapshot.pickle"
    file.write_bytes(b"\x80\x04}(\x8c\x08segments]\x94(" + segment + b"e\x8c\x0ddevice_traces]u.")
    said = fullbore.call("explain", file, timeout=30)
    assert said.code == 0 and f"{times + 1} segments were left out" in said.stderr
