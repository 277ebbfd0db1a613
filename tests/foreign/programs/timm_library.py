"""A loop of one's own around the timm library: its dataset, transforms, mixup in the collate function, loaders (one
that keeps its iterator for all epochs), model, optimizer, schedule, smoothed weights and checkpoints."""

import os

import numpy
import timm
import torch
from PIL import Image
from timm.data import FastCollateMixup, create_dataset, create_loader
from timm.loss import SoftTargetCrossEntropy
from timm.optim import create_optimizer_v2
from timm.scheduler import create_scheduler_v2
from timm.utils import AverageMeter, CheckpointSaver, ModelEmaV3, accuracy, dispatch_clip_grad

EPOCHS, BATCH = 2, 8
SIZE = (3, 32, 32)
CPU = torch.device("cpu")


def draw():
    random = numpy.random.RandomState(0)
    for part, count in {"train": 35, "validation": 8}.items():
        for kind in ("cat", "dog"):
            os.makedirs(f"photos/{part}/{kind}")
            for i in range(count):
                picture = Image.fromarray(random.randint(0, 255, (48, 48, 3), dtype="uint8"))
                picture.save(f"photos/{part}/{kind}/{i}.jpg")


def loader(part, **how):
    dataset = create_dataset("", root="photos", split=part, is_training=part == "train")
    return create_loader(dataset, SIZE, BATCH, is_training=part == "train", num_workers=1, device=CPU, **how)


@torch.no_grad()
def validate(model, batches):
    top1 = AverageMeter()
    model.eval()
    for input, target in batches:
        top1.update(accuracy(model(input), target)[0].item(), len(input))
    return top1.avg


def main():
    draw()
    collate = FastCollateMixup(mixup_alpha=0.2, num_classes=2)
    train = loader("train", auto_augment="rand-m3", collate_fn=collate, use_multi_epochs_loader=True, re_prob=0.2)
    held_out = loader("validation")
    model = timm.create_model("test_resnet", num_classes=2)
    optimizer = create_optimizer_v2(model, opt="lamb", lr=1e-3)
    schedule, _ = create_scheduler_v2(optimizer, num_epochs=EPOCHS, updates_per_epoch=len(train))
    smoothed = ModelEmaV3(model, decay=0.99)
    saver = CheckpointSaver(model, optimizer, model_ema=smoothed, max_history=1)
    loss_fn = SoftTargetCrossEntropy()
    steps = samples = 0
    for epoch in range(EPOCHS):
        model.train()
        for input, target in train:
            optimizer.zero_grad()
            loss_fn(model(input), target).backward()
            dispatch_clip_grad(model.parameters(), 1.0)
            optimizer.step()
            steps += 1
            samples += len(input)
            smoothed.update(model, step=steps)
            schedule.step_update(steps)
        saver.save_checkpoint(epoch, validate(smoothed.module, held_out))
        schedule.step(epoch + 1)
    print("steps", steps, "samples", samples)


if __name__ == "__main__":
    main()
