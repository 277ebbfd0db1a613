"""In a trial, nothing that the script writes reaches its real outputs, and the script does not notice."""

from __future__ import annotations

import hashlib
import pathlib
import tempfile

import pytest

# Prints what the script sees; run with and without a trial, both must print the same.
FILES = """
    import glob, io, os, pathlib, shutil, sqlite3, subprocess, sys, tempfile

    def tree(place):
        return sorted(
            os.path.relpath(os.path.join(folder, name), place) for folder, dirs, names in os.walk(place)
            for name in dirs + names
        )

    def told(call, *arguments):
        try:
            call(*arguments)
        except OSError as error:
            print(type(error).__name__, error.filename)

    # Made anew, over an old one, at the end of one, in the middle of one.
    pathlib.Path("new.txt").write_text("new")
    with open("kept.txt", "w") as file:
        file.write("other")
    with open("log.txt", "a") as file:
        file.write("line 2\\n")
    with open("log.txt", "r+") as file:
        file.write("LINE")
    print(open("new.txt").read(), open("kept.txt").read(), open("log.txt").read(), os.path.getsize("log.txt"))
    # Directories, moved, copied, linked and removed.
    os.makedirs("runs/first/deep")
    told(os.makedirs, "runs/first/deep")
    told(os.mkdir, "old")
    told(open, "missing/file", "w")
    told(open, "missing")
    pathlib.Path("runs/first/a.bin").write_bytes(b"a" * 100)
    os.rename("runs/first", "runs/second")
    os.replace("kept.txt", "old/moved.txt")
    shutil.move("old", "older")
    shutil.copytree("older", "copy")
    os.symlink("second", "runs/latest")
    with open("runs/latest/b.bin", "wb") as file:
        file.write(b"b")
    os.symlink(os.path.abspath("data"), "shortcut")
    with open("shortcut/sample", "w") as file:
        file.write("changed")
    print(open("data/sample").read(), os.readlink("runs/latest"), sorted(os.listdir("shortcut")))
    os.remove("log.txt")
    told(os.remove, "log.txt")
    told(os.rmdir, "older")
    shutil.rmtree("copy")
    shutil.rmtree("checkpoints")
    told(os.stat, "checkpoints/1/x")
    os.makedirs("checkpoints/2")
    os.chmod("data/sample", 0o600)
    os.truncate("data/sample", 3)
    os.utime("data/sample", (1, 1))
    print(oct(os.stat("data/sample").st_mode), os.stat("data/sample").st_mtime, open("data/sample").read())
    print(tree("."), sorted(glob.glob("*")), sorted(p.name for p in pathlib.Path(".").rglob("*.txt")))
    for find in (os.path.exists, os.path.isfile, os.path.isdir, os.path.islink, os.path.realpath):
        names = ("new.txt", "kept.txt", "old", "older", "runs/latest", "checkpoints/1", "checkpoints/2", "data")
        print([find(name) for name in names])
    with tempfile.TemporaryDirectory(dir=".") as place:
        open(place + "/x", "w").close()
        print(os.listdir(place))
    with tempfile.NamedTemporaryFile(dir="data") as file:
        file.write(b"x")
    # By a descriptor of the directory, without Python's open, by a library of its own.
    directory = os.open("data", os.O_RDONLY)
    os.close(os.open("fresh", os.O_WRONLY | os.O_CREAT, dir_fd=directory))
    os.unlink("sample", dir_fd=directory)
    print(sorted(os.listdir("data")))
"""

LIBRARIES = """
    import torch, numpy, json, logging, os, sqlite3, subprocess, sys
    import safetensors.torch
    from torch.utils.data import DataLoader, TensorDataset
    logging.basicConfig(filename="train.log", level="INFO")
    logging.info("begun")
    model = torch.nn.Linear(2, 1)
    torch.save(model.state_dict(), "model.pt")  # over the one that is there
    print(sorted(torch.load("model.pt")), [sorted(torch.load("model.pt", mmap=True))])
    safetensors.torch.save_file(model.state_dict(), "model.safetensors")
    print(sorted(safetensors.torch.load_file("model.safetensors")))
    torch.jit.save(torch.jit.script(model), "model.jit")
    numpy.save("x.npy", numpy.zeros(3))
    numpy.zeros(2).tofile("x.raw")
    print(numpy.load("x.npy").shape, os.path.getsize("x.raw"))
    base = sqlite3.connect("old.db")
    base.execute("insert into t values (2)")
    base.commit()
    print(base.execute("select sum(x) from t").fetchone())
    with torch.profiler.profile() as profiled:
        model(torch.ones(1, 2))
    profiled.export_chrome_trace("trace.json")
    print(os.path.exists("trace.json"), "traceEvents" in json.load(open("trace.json")))
    subprocess.run([sys.executable, "-c", "open('by_child.txt', 'w').write('x')"], check=True)
    class Writes(torch.utils.data.Dataset):
        def __len__(self):
            return 4
        def __getitem__(self, index):
            with open(f"worker{index}", "w") as file:
                file.write("x")
            return index
    print(sum(batch.sum().item() for batch in DataLoader(Writes(), num_workers=2)))
    print(sorted(name for name in os.listdir() if name.startswith(("worker", "by_"))))
"""


def fill(place: pathlib.Path) -> None:
    place.mkdir()
    for name, text in {
        **{"kept.txt": "kept", "log.txt": "line 1\n", "old/a": "a", "old/b/c": "c", "data/sample": "sample"},
        **{"checkpoints/1/x": "x", "checkpoints/1/y": "y"},
    }.items():
        (place / name).parent.mkdir(parents=True, exist_ok=True)
        (place / name).write_text(text)


def content(place: pathlib.Path) -> str:
    """A hash of all names, modes, times and contents below it."""
    hashed = hashlib.sha256()
    for path in sorted(place.rglob("*")):
        known = path.lstat()
        hashed.update(f"{path.relative_to(place)} {known.st_mode} {known.st_mtime_ns} {known.st_size}".encode())
        if path.is_file():
            hashed.update(path.read_bytes())
    return hashed.hexdigest()


@pytest.fixture
def trial(tmp_path):
    """The environment of a trial, as src/tune/trial/trial_places.cc makes it."""
    with tempfile.TemporaryDirectory(prefix="fullbore-") as temporary:  # pytest's own is too long for sockets
        kept = ["/dev", "/proc", "/sys", temporary, str(tmp_path / "cache")]
        own = {"FULLBORE_TRIAL_FILES": str(tmp_path / "trial"), "FULLBORE_TRIAL_KEPT": "\n".join(kept)}
        yield {"FULLBORE_TRIAL": "1", **own, "TMPDIR": temporary}


def in_trial_and_alone(runner, trial, text, prepare):
    """What the script printed in a trial, where its directory stays as it is, and by itself."""
    script = runner.script(text)
    outputs = []
    for name in ("protected", "alone"):
        place = runner.directory / name / "work"
        place.parent.mkdir()
        fill(place)
        prepare(place)
        before = content(place)
        environment = trial if name == "protected" else {}
        command = ["bash", "-c", f"cd {place} && exec {runner.python} {script}"]
        result, _ = runner.start(command, {"PYTHONDONTWRITEBYTECODE": "1", **environment})
        assert result.returncode == 0, result.stderr
        assert (content(place) == before) == (name == "protected"), "whether its directory is as it was"
        outputs.append(result.stdout.replace(str(place), ""))
    return outputs


def test_files_of_the_user_stay_as_they_are_and_the_script_sees_its_own(bare, trial):
    protected, alone = in_trial_and_alone(bare, trial, FILES, lambda place: None)
    assert protected.splitlines() == alone.splitlines()


@pytest.mark.long
def test_libraries_workers_and_children_write_into_the_trial_too(newest, trial):
    newest.needs("safetensors")

    def prepare(place):
        import sqlite3

        (place / "model.pt").write_bytes(b"the user's")
        base = sqlite3.connect(place / "old.db")
        base.execute("create table t (x)")
        base.execute("insert into t values (1)")
        base.commit()
        base.close()

    protected, alone = in_trial_and_alone(newest, trial, LIBRARIES, prepare)
    assert protected.splitlines() == alone.splitlines()


def test_a_cache_is_filled_where_it_is(bare, trial):
    weights = bare.directory / "cache" / "weights"
    weights.parent.mkdir()
    script = bare.script(f"open({str(weights)!r}, 'w').write('downloaded')")
    result, _ = bare.start([bare.python, script], trial)
    assert result.returncode == 0, result.stderr
    assert weights.read_text() == "downloaded"


def test_a_script_whose_outputs_cannot_be_protected_does_not_run(bare):
    (bare.directory / "file").write_text("no directory")
    command = [bare.python, bare.script("open('written', 'w')")]
    result, _ = bare.start(command, {"FULLBORE_TRIAL_FILES": str(bare.directory / "file" / "trial")})
    assert result.returncode == 125 and "cannot be protected" in result.stderr
    assert not (bare.directory / "written").exists()
