"""How many samples a batch holds. The batches consist of stand-ins that have a shape like tensors."""

from __future__ import annotations

import collections

import pytest
from hook_package import load

batch = load("core.batch")


class Tensor:
    def __init__(self, *shape):
        self.shape = shape

    def numel(self):
        count = 1
        for size in self.shape:
            count *= size
        return count


def counts(batch_size, *batches):
    counter = batch.BatchCounter(batch_size)
    return [counter.count(each)[0] for each in batches]


def sizes(batch_size, *batches):
    counter = batch.BatchCounter(batch_size)
    return [counter.count(each)[1] for each in batches]


IMAGES, LABELS = Tensor(8, 3, 32, 32), Tensor(8)


@pytest.mark.parametrize(
    "full, short",
    [
        (IMAGES, Tensor(3, 3, 32, 32)),
        ((IMAGES, LABELS), (Tensor(3, 3, 32, 32), Tensor(3))),
        ([IMAGES, LABELS], [Tensor(3, 3, 32, 32), Tensor(3)]),
        ({"image": IMAGES}, {"image": Tensor(3, 3, 32, 32)}),
        ({"meta": {"scale": Tensor()}, "image": IMAGES}, {"meta": {"scale": Tensor()}, "image": Tensor(3, 3, 9, 9)}),
        ((Tensor(5, 2), IMAGES), (Tensor(5, 2), Tensor(3, 3, 32, 32))),  # the first tensor does not count
        (([Tensor(3, 9, 9)] * 8, [{}] * 8), ([Tensor(3, 9, 9)] * 3, [{}] * 3)),  # detection: lists of images
        (collections.namedtuple("Pair", "x y")(IMAGES, LABELS), (Tensor(3, 1), Tensor(3))),
    ],
)
def test_samples_are_counted_on_full_and_short_batches(full, short):
    assert counts(8, full, full, short) == [8, 8, 3]


def test_without_a_batch_size_the_first_tensor_counts():
    assert counts(None, (Tensor(5, 4), Tensor(7)), (Tensor(6, 4), Tensor(7))) == [5, 6]


def test_images_count_where_there_are_as_many_boxes_by_chance():
    full = {"batch_idx": Tensor(8), "bboxes": Tensor(8, 4), "img": IMAGES}
    later = {"batch_idx": Tensor(11), "bboxes": Tensor(11, 4), "img": Tensor(3, 3, 32, 32)}
    assert counts(8, full, later) == [8, 3]


def test_uncountable_batches_fall_back_to_the_batch_size():
    assert counts(8, object(), "text", None) == [8] * 3
    assert counts(None, object()) == [-1]
    assert counts(8, (IMAGES, LABELS), None) == [8, 8]


def test_tokens_are_counted_where_there_are_input_ids():
    class BatchEncoding(collections.UserDict):
        """Like transformers' class: a mapping that is not a dict."""

    full = BatchEncoding(input_ids=Tensor(4, 16), attention_mask=Tensor(4, 16))
    short = BatchEncoding(input_ids=Tensor(2, 9))
    assert (counts(4, full, short), sizes(4, full, short)) == ([4, 2], [64, 18])


def test_the_elements_of_the_tensor_that_counts_are_counted():
    long = (Tensor(8, 3, 64, 32), LABELS)
    assert sizes(8, (IMAGES, LABELS), long, (Tensor(0, 3, 1, 1), LABELS)) == [8 * 3 * 32 * 32, 8 * 3 * 64 * 32, 0]


def test_the_size_of_a_list_of_images_is_not_known():
    assert sizes(8, ([Tensor(3, 9, 9)] * 8, [{}] * 8)) == [0]


class Unwilling:
    def keys(self):
        raise RuntimeError("not before the batch is on its device")

    def __getitem__(self, key):
        raise RuntimeError("nor this")


@pytest.mark.parametrize("refuses", [Unwilling(), (Unwilling(), LABELS)])
def test_a_batch_that_cannot_be_looked_through_holds_as_many_as_the_loader_says(refuses):
    assert (counts(8, refuses, refuses), sizes(8, refuses)) == ([8, 8], [0])
    assert counts(None, refuses) == [-1]


def test_what_stands_before_a_member_that_refuses_is_counted():
    assert counts(8, (IMAGES, LABELS, Unwilling()), (Tensor(3, 3, 32, 32), Tensor(3), Unwilling())) == [8, 3]


def test_the_shape_of_the_first_batch_is_kept():
    counter = batch.BatchCounter(8)
    counter.count((IMAGES, LABELS))
    assert counter.shape == [8, 3, 32, 32]
