"""from_torch: gives an equivalent loader or refuses, naming what stands in the way. Needs a Python with torchvision."""

from __future__ import annotations

import json

import pytest
from python_data import make_photos, require, run_script, torchvision_python

require()

PROLOGUE = """
    import json, sys, torch
    from torch.utils.data import DataLoader, Subset
    from torchvision import datasets, transforms as T
    from fullbore.data import NotTranslatable, check, from_torch, translate

    def folder(*steps, **options):
        return datasets.ImageFolder(sys.argv[1], T.Compose(steps), **options)

    def refused(loader):
        try:
            from_torch(loader)
        except NotTranslatable as error:
            return error.reasons
"""


@pytest.fixture(scope="module")
def python():
    return torchvision_python()


@pytest.fixture(scope="module")
def photos(tmp_path_factory):
    return make_photos(tmp_path_factory.mktemp("photos") / "train", per_class=6, size=(120, 90))


def run(python, tmp_path, photos, text):
    import textwrap

    whole = textwrap.dedent(PROLOGUE) + textwrap.dedent(text)
    done = run_script(whole, photos, python=python, directory=tmp_path)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.splitlines()[-1])


@pytest.mark.long
def test_deterministic_transforms_give_the_same_batches(python, tmp_path, photos):
    differences = run(
        python,
        tmp_path,
        photos,
        """
        bicubic, nearest = T.InterpolationMode.BICUBIC, T.InterpolationMode.NEAREST
        normalize = T.Normalize((0.5, 0.4, 0.3), (0.2, 0.3, 0.4))
        lists = [
            (T.Resize(40), T.CenterCrop(32), T.ToTensor(), normalize),
            (T.Resize((33, 44), bicubic), T.ToTensor()),
            (T.Resize((33, 44)), T.PILToTensor(), T.ConvertImageDtype(torch.float32)),
            (T.RandomHorizontalFlip(1.0), T.Resize((20, 30), nearest), T.ToTensor(), normalize),
            (T.Resize((33, 44)), T.PILToTensor()),
        ]
        found = []
        for steps in lists:
            loader = DataLoader(folder(*steps), batch_size=7)
            mine = from_torch(loader)
            assert len(mine) == len(loader) == 3 and mine.classes == loader.dataset.classes
            for (images, labels), (expected, expected_labels) in zip(mine, loader):
                assert images.shape == expected.shape and images.dtype == expected.dtype
                assert labels.tolist() == expected_labels.tolist() and labels.dtype == expected_labels.dtype
                scale = 1 if images.dtype == torch.uint8 else 255
                found.append(scale * float((images.double() - expected.double()).abs().mean()))
        print(json.dumps(found))
        """,
    )
    assert len(differences) == 15
    assert max(differences) < 5  # of 255, after a division by std as small as 0.2


@pytest.mark.long
def test_random_transforms_draw_from_the_same_distribution(python, tmp_path, photos):
    mine, theirs, compared, seeds = run(
        python,
        tmp_path,
        photos,
        """
        torch.manual_seed(1)
        steps = [T.RandomResizedCrop(24, scale=(0.3, 1.0)), T.RandomHorizontalFlip(), T.ColorJitter(0.4, 0.4, 0.4)]
        loader = DataLoader(folder(*steps, T.ToTensor()), batch_size=18, shuffle=True)
        mine = from_torch(loader)
        def spread(source):
            images = torch.cat([images for _ in range(30) for images, _ in source])
            return [float(images.mean()), float(images.std())]
        seeds = [translate.understand(loader).options["seed"] for _ in range(2)]
        print(json.dumps([spread(mine), spread(loader), check.compare(translate.understand(loader)), seeds]))
        """,
    )
    assert mine == pytest.approx(theirs, abs=0.02)
    assert "18 samples" not in compared and "same labels" in compared
    assert seeds == [1, 1]


@pytest.mark.long
def test_samplers_and_subsets_keep_their_samples(python, tmp_path, photos):
    said = run(
        python,
        tmp_path,
        photos,
        """
        from torch.utils.data import SubsetRandomSampler
        from torch.utils.data.distributed import DistributedSampler
        data = folder(T.Resize((8, 8)), T.ToTensor())
        labels = lambda source: [label for _, part in source for label in part.tolist()]
        said = {}
        subset = DataLoader(Subset(data, [17, 0, 5, 9]), batch_size=2)
        said["subset"] = [labels(from_torch(subset)), labels(subset)]
        chosen = DataLoader(data, batch_size=2, sampler=SubsetRandomSampler([0, 1, 17]))
        said["chosen"] = [sorted(labels(from_torch(chosen))), sorted(labels(chosen))]
        ranks = [DataLoader(data, batch_size=4, sampler=DistributedSampler(data, 2, rank)) for rank in range(2)]
        said["ranks"] = [sorted(sum([labels(from_torch(loader)) for loader in ranks], [])), sorted(data.targets)]
        drop = DataLoader(data, batch_size=5, shuffle=True, drop_last=True)
        said["drop"] = [[len(y) for _, y in from_torch(drop)], [len(y) for _, y in drop]]
        print(json.dumps(said))
        """,
    )
    for mine, theirs in said.values():
        assert mine == theirs


REFUSED = {
    "DataLoader(folder(T.Lambda(abs), T.ToTensor()))": ["Lambda", "map="],
    "DataLoader(folder(T.ToTensor(), T.Resize((8, 8))))": ["Resize", "before ToTensor"],
    "DataLoader(folder(T.Resize((8, 8))))": ["ToTensor()"],
    "DataLoader(folder(T.RandomRotation(5, expand=True), T.ToTensor()))": ["RandomRotation", "expand"],
    "DataLoader(folder(T.ToTensor()), collate_fn=list)": ["collate_fn=list", "leave it out"],
    "DataLoader(folder(T.ToTensor()), sampler=torch.utils.data.WeightedRandomSampler([1.0], 1))": ["WeightedRandom"],
    "DataLoader(folder(T.ToTensor(), target_transform=abs))": ["target_transform=abs"],
    "DataLoader(folder(T.ToTensor(), loader=open))": ["loader=open"],
    "DataLoader(torch.arange(5))": ["Tensor", "ImageFolder"],
    "DataLoader(folder(T.ToTensor()), batch_size=None)": ["batch_size"],
    "[1, 2]": ["list", "DataLoader"],
}


@pytest.mark.long
def test_what_has_no_equivalent_is_refused_by_name(python, tmp_path, photos):
    listed = ", ".join(f"refused({loader})" for loader in REFUSED)
    for loader, reasons in zip(REFUSED, run(python, tmp_path, photos, f"print(json.dumps([{listed}]))")):
        assert len(reasons) == 1, (loader, reasons)
        assert all(word in reasons[0] for word in REFUSED[loader]), (loader, reasons)


def test_all_reasons_are_given_at_once(python, tmp_path, photos):
    reasons = run(
        python,
        tmp_path,
        photos,
        """
        class Own(datasets.ImageFolder):
            def __getitem__(self, index):
                return super().__getitem__(index)
        data = Own(sys.argv[1], T.Compose([T.RandomErasing(), T.ToTensor()]))
        print(json.dumps(refused(DataLoader(data, collate_fn=list))))
        """,
    )
    assert len(reasons) == 3 and "Own" in reasons[1] and "RandomErasing" in reasons[2]


@pytest.mark.long
def test_timms_transforms_are_translated_and_its_own_augmentations_are_refused(python, tmp_path, photos):
    # As created by timm 0.9's create_transform(): classes with these names in its modules.
    said = run(
        python,
        tmp_path,
        photos,
        """
        def timms(name, base=object, module="timm.data.transforms", **members):
            return type(name, (base,), {"__module__": module, **members})

        Crop = timms("RandomResizedCropAndInterpolation", T.RandomResizedCrop)
        ToTensor = timms("MaybeToTensor", T.ToTensor)
        Erasing = timms("RandomErasing", module="timm.data.random_erasing", __repr__=lambda self: "RandomErasing()")
        normalize = T.Normalize(torch.tensor([0.5, 0.4, 0.3]), torch.tensor([0.2, 0.3, 0.4]))
        bicubic = T.InterpolationMode.BICUBIC
        train = [Crop(24, interpolation=bicubic), T.RandomHorizontalFlip(), T.ColorJitter(0.4, 0.4, 0.4), ToTensor()]
        found = translate.understand(DataLoader(folder(*train, normalize), batch_size=6))
        both = Crop(24)
        both.interpolation = (T.InterpolationMode.BILINEAR, bicubic)
        said = {
            "names": [type(step).__name__ for step in found.transforms()],
            "crop": found.transforms()[0].describe()["interpolation"],
            "compared": check.compare(found),
            "drawn": refused(DataLoader(folder(both, ToTensor()))),
            "erasing": refused(DataLoader(folder(*train, normalize, Erasing()))),
        }
        print(json.dumps(said))
        """,
    )
    assert said["names"] == ["RandomResizedCrop", "RandomHorizontalFlip", "ColorJitter", "Normalize"]
    assert said["crop"] == "bicubic" and "same labels" in said["compared"]
    assert len(said["drawn"]) == 1 and "interpolation" in said["drawn"][0]
    assert len(said["erasing"]) == 1 and "RandomErasing" in said["erasing"][0]


@pytest.mark.long
def test_a_loader_that_differs_is_refused_with_the_difference(python, tmp_path, photos):
    said = run(
        python,
        tmp_path,
        photos,
        """
        from PIL import ImageOps
        from fullbore.data import transforms as ours

        def compared(change):
            steps = [T.Resize((24, 32)), T.ToTensor(), T.Normalize((0.5,) * 3, (0.25,) * 3)]
            found = translate.understand(DataLoader(folder(*steps), batch_size=6))
            change(found)
            try:
                return check.compare(found)
            except NotTranslatable as error:
                return str(error)

        def inverted(found):
            read = found.read
            found.read = lambda path: ImageOps.invert(read(path))

        def unnormalized(found):
            found.steps[-1] = (found.steps[-1][0], None)

        def smaller(found):
            found.steps[0] = (found.steps[0][0], ours.Resize((24, 24)))

        def of_another_type(found):
            found.options["dtype"] = "float16"

        def unreadable(found):
            found.read = open

        cases = (lambda found: None, inverted, unnormalized, smaller, of_another_type, unreadable)
        print(json.dumps([compared(case) for case in cases]))
        """,
    )
    same, *others = said
    assert "same labels" in same
    for text, words in zip(
        others, ["pixels differ by", "pixels differ by", "(8, 3, 24, 24)", "torch.float16", "cannot make its samples"]
    ):
        assert words in text
