"""ultralytics' own training loop on a few pictures of noise: it accumulates up to its nominal batch size, smooths the
weights, validates and saves after each epoch."""

import os

import numpy
import yaml
from PIL import Image
from ultralytics import YOLO
from ultralytics.models.yolo.detect import DetectionTrainer

PICTURES = {"train": 36, "val": 8}


class Counting(DetectionTrainer):
    """Drops, as ultralytics does, what has been accumulated since the last step."""

    steps = samples = accumulated = 0

    def preprocess_batch(self, batch):
        self.accumulated += len(batch["img"])
        return super().preprocess_batch(batch)

    def optimizer_step(self):
        super().optimizer_step()
        self.steps += 1
        self.samples += self.accumulated
        self.accumulated = 0


random = numpy.random.RandomState(0)
for part, count in PICTURES.items():
    os.makedirs(f"images/{part}")
    os.makedirs(f"labels/{part}")
    for i in range(count):
        Image.fromarray(random.randint(0, 255, (96, 96, 3), dtype="uint8")).save(f"images/{part}/{i}.jpg")
        with open(f"labels/{part}/{i}.txt", "w") as file:
            file.write(f"{i % 2} 0.3 0.3 0.2 0.2\n" * (1 + i % 3))
with open("noise.yaml", "w") as file:
    yaml.safe_dump({"path": os.getcwd(), "train": "images/train", "val": "images/val", "names": ["a", "b"]}, file)

model = YOLO("yolov8n.yaml")
model.train(trainer=Counting, data="noise.yaml", epochs=2, imgsz=32, batch=8, nbs=16, device="cpu", plots=False)
assert model.trainer.steps == model.trainer.ema.updates, "ultralytics' own count"
print("steps", model.trainer.steps, "samples", model.trainer.samples)
