"""A receiver behind TLS, with a certificate that no authority knows."""

from __future__ import annotations

import pathlib
import time
from collections.abc import Iterator

import pytest
from alert_runs import rules, running, wait_until_owed
from receiver import Receiver

RULES = '[[alert]]\nname = "used"\nseries = "memory_used"\nabove = 1\nfor = "1s"\nnotify = ["webhook:URL"]'


@pytest.fixture
def secure_receiver(certificate: pathlib.Path) -> Iterator[Receiver]:
    made = Receiver(certificate)
    yield made
    made.close()


@pytest.mark.long
def test_a_receiver_is_told_only_if_its_certificate_is_trusted(fullbore, secure_receiver, certificate):
    _, runs = fullbore.start("sleep", "300")
    run_file = running(runs)
    serve = [fullbore.binary, "serve", "--dir", runs, "--listen", "127.0.0.1:0"]
    serve += ["--rules", rules(fullbore, RULES, secure_receiver.url)]
    distrusting = fullbore.begin(*serve)
    wait_until_owed(run_file, "firing")
    time.sleep(4)  # some attempts
    assert secure_receiver.heard == []
    distrusting.kill()
    distrusting.communicate()
    fullbore.begin(*serve, env={"SSL_CERT_FILE": str(certificate)})
    secure_receiver.wait_for("used", "firing")
