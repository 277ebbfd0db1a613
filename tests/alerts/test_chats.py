"""Alerts in Slack, Teams and Discord: what those take, how they say "too many", and how they refuse."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterator

import pytest
from alert_runs import history, rules
from chats import SECRET, Chat, Discord, Slack, Teams, texts_in

RULES = '[[alert]]\nname = "it failed"\nrun = "failed"\nnotify = ["log", TARGETS]\n'


@contextlib.contextmanager
def of(*chats: Chat) -> Iterator[str]:
    """The rules that tell them all."""
    try:
        yield RULES.replace("TARGETS", ", ".join(f'"{chat.kind}:{chat.url}"' for chat in chats))
    finally:
        for chat in chats:
            chat.close()


def fails_under(fullbore, text: str):
    return fullbore.run("sh", "-c", "exit 3", flags=["--rules", rules(fullbore, text)])


def wait_until_heard(chat: Chat, asked: int = 1) -> None:
    until = time.monotonic() + 60
    while len(chat.asked_at) < asked:
        assert time.monotonic() < until, f"{chat.kind} was told nothing"
        time.sleep(0.05)


@pytest.mark.long
def test_each_chat_takes_an_alert_as_it_is(fullbore):
    chats = [Slack(), Teams(), Discord()]
    with of(*chats) as text:
        fails_under(fullbore, text)
        for chat in chats:
            wait_until_heard(chat)
    for chat in chats:
        assert len(chat.heard) == 1, chat.kind
        said = " ".join(texts_in(chat.heard[0]))
        assert "Firing" in said and "it failed" in said and "status 3" in said, said


@pytest.mark.long
@pytest.mark.parametrize("kind", [Slack, Teams, Discord])
def test_a_chat_that_says_too_many_is_left_alone_for_as_long_as_it_says(fullbore, kind):
    chat = kind(busy=1)
    with of(chat) as text:
        fails_under(fullbore, text)
        wait_until_heard(chat, asked=2)
    assert len(chat.heard) == 1
    assert chat.asked_at[1] - chat.asked_at[0] >= chat.wait_s - 0.01


@pytest.mark.long
@pytest.mark.parametrize(("kind", "says"), [(Slack, "no_service"), (Discord, "Unknown Webhook"), (Teams, "404")])
def test_a_chat_that_is_gone_is_asked_once_and_named_without_its_secret(fullbore, kind, says):
    chat = kind()
    chat.gone = True
    run_file = fullbore.run("sh", "-c", "exit 3").run_file
    # By a watcher that ends when all is said: `run` waits for its own no longer than five seconds.
    with of(chat) as text:
        watched = fullbore.call("alerts", "watch", run_file, "--rules", rules(fullbore, text))
    assert watched.code == 0, watched.stderr
    assert len(chat.asked_at) == 1
    said = watched.stdout.decode()
    assert f"could not be delivered to {chat.kind}:http://127.0.0.1:" in said
    assert "status 404" in said and says in said
    assert SECRET not in said + watched.stderr
    assert SECRET.encode() not in run_file.read_bytes()
    assert [each["alert"] for each in history(fullbore, run_file)] == ["it failed"], said
