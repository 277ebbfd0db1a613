"""tf.data: decode_and_crop_jpeg decodes the random crop only; antialiased resize; batches prefetched."""

from __future__ import annotations

import os

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")

import contender
import tensorflow as tf


class Loader:
    def __init__(self, options: contender.Options):
        self.check = options.check
        tf.config.threading.set_inter_op_parallelism_threads(options.threads)
        tf.config.threading.set_intra_op_parallelism_threads(1)
        paths = contender.files(options.data, options.kind)
        labels = contender.label_of(paths)
        data = tf.data.Dataset.from_tensor_slices(
            ([str(path) for path in paths], [labels[path.parent.name] for path in paths])
        )
        if not self.check:
            data = data.shuffle(len(paths))
        data = data.map(self.load, num_parallel_calls=options.threads, deterministic=self.check)
        data = data.batch(contender.BATCH).prefetch(2)
        settings = tf.data.Options()
        settings.threading.private_threadpool_size = options.threads
        self.data = data.with_options(settings)

    def load(self, path, label):
        side = contender.SIDE
        encoded = tf.io.read_file(path)
        if self.check:
            image = tf.image.decode_jpeg(encoded, channels=3, dct_method="INTEGER_ACCURATE")
        else:
            box, size, _ = tf.image.sample_distorted_bounding_box(
                tf.image.extract_jpeg_shape(encoded),
                bounding_boxes=tf.zeros([1, 0, 4]),
                aspect_ratio_range=(3 / 4, 4 / 3),
                area_range=(0.08, 1.0),
                use_image_if_no_bounding_boxes=True,
            )
            window = tf.stack([box[0], box[1], size[0], size[1]])
            image = tf.image.decode_and_crop_jpeg(encoded, window, channels=3, dct_method="INTEGER_ACCURATE")
        image = tf.image.resize(image, (side, side), antialias=True)
        if not self.check:
            image = tf.image.random_flip_left_right(image)
        image = (image / 255 - contender.MEAN) / contender.STD
        return tf.transpose(image, (2, 0, 1)), label

    def __iter__(self):
        return self.data.as_numpy_iterator()


if __name__ == "__main__":
    contender.run(Loader)
