"""Only the user can read what a run leaves, and links that others put in its way are not followed."""

from __future__ import annotations

import pathlib
import stat

TRAIN = ["sh", "-c", "sleep 0.1"]


def mode_of(path: pathlib.Path) -> int:
    return stat.S_IMODE(path.lstat().st_mode)


def test_a_report_follows_no_link_to_what_somebody_else_wrote(fullbore):
    victim = fullbore.directory / "victim"
    victim.write_text("precious")
    for name in ("page.html", "other.html.part"):
        (fullbore.directory / name).symlink_to(victim)
    done = fullbore.run(*TRAIN, flags=["--html", "page.html"])
    assert (done.code, done.report) == (2, None), done.stderr
    done = fullbore.run(*TRAIN, flags=["--html", "other.html"])
    assert done.code == 0, done.stderr
    assert victim.read_text() == "precious"


def test_recordings_are_readable_by_their_user_only(fullbore):
    done = fullbore.call("run", "-q", "-o", "new/runs", "--", *TRAIN)
    assert done.code == 0, done.stderr
    runs = fullbore.directory / "new" / "runs"
    assert {mode_of(runs), mode_of(runs.parent)} == {0o700}
    files = list(runs.iterdir())
    assert {file.suffix for file in files} == {".fbr", ".html"}
    assert {mode_of(file) for file in files} == {0o600}


def test_a_run_is_readable_by_its_user_only_while_being_recorded(fullbore):
    command = 'stat -c %a "$FULLBORE_CHANNEL" "$FULLBORE_CHANNEL"/* runs/*.fbr*'
    done = fullbore.call("run", "-q", "-o", "runs", "--", "sh", "-c", command)
    modes = set(done.stdout.decode().split())
    assert modes == {"700", "600"}, done.stderr


SECRET = "tGh9-correct-horse"


def stored_and_shown(fullbore, runs: pathlib.Path) -> str:
    """All files that a run left and everything printed about it, as one text."""
    (file,) = runs.glob("*.fbr")
    texts = [path.read_bytes().decode("latin-1") for path in runs.iterdir() if path.is_file()]
    for arguments in (["explain", file], ["explain", file, "--json", "-"], ["runs", "-o", runs, "--json", "-"]):
        said = fullbore.call(*arguments)
        texts += [said.stdout.decode(), said.stderr]
    return "\n".join(texts)


def test_secrets_of_command_lines_are_masked_before_they_are_stored(fullbore):
    # A child with its own secret, which lives until the probes have seen it.
    child = f'exec env HF_TOKEN={SECRET} sh -c "sleep 2.5" child --api-key {SECRET} --url https://me:{SECRET}@host/'
    done = fullbore.run(
        "sh", "-c", f"({child}) & wait", "train", f"--wandb-key={SECRET}", "--password", SECRET, "--tokenizer", "bert",
        f"https://host/a.tar?X-Amz-Signature={SECRET}",
    )  # fmt: skip
    assert done.code == 0, done.stderr
    text = stored_and_shown(fullbore, done.runs)
    assert SECRET not in text and SECRET not in done.stderr
    assert "--wandb-key=***" in text and "--tokenizer" in text and "bert" in text
    assert "child --api-key ***" in text, "the child was not seen"


def test_no_command_keeps_no_command_line(fullbore):
    done = fullbore.run("sh", "-c", "sleep 2.5 & wait", "login", SECRET, flags=["--no-command"])
    assert done.code == 0, done.stderr
    text = stored_and_shown(fullbore, done.runs)
    assert SECRET not in text and "login" not in text and "sleep 2.5" not in text


def test_a_command_that_cannot_run_is_named_without_its_secret(fullbore):
    done = fullbore.run(f"HF_TOKEN={SECRET}", "python", "train.py")
    assert done.code == 127
    assert SECRET not in done.stderr and "HF_TOKEN=***" in done.stderr
