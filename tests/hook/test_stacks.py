"""What a sample of the training thread's stack says it does: stacks made for real, in a thread that loops."""

from __future__ import annotations

import asyncio
import csv
import http.server
import io
import json
import logging
import multiprocessing
import os
import queue
import socket
import subprocess
import sys
import threading
import time
import urllib.request
from collections.abc import Callable, Iterator
from concurrent.futures import Future

import pytest
import requests
from hook_package import load
from sampled_training import Training, act, beside, does, most, needs_columns, needs_lock, stacks

pytestmark = needs_lock


# ---- waiting ----


def test_a_queue_is_waited_for_and_received_from():
    line: queue.Queue = queue.Queue()
    seen = beside(lambda: line.get(), lambda: line.put(1))
    assert (does(seen), most(seen, "feeds")) == (act.QUEUE, stacks.RECEIVES)
    assert most(seen, "file") == __file__ and most(seen, "library") == ""


def test_a_full_queue_is_waited_for_but_nothing_is_received():
    line: queue.Queue = queue.Queue(1)
    line.put(0)
    seen = beside(lambda: line.put(1), line.get)
    assert (does(seen), most(seen, "feeds")) == (act.QUEUE, stacks.NOTHING)


@needs_columns
def test_a_queue_written_in_c_is_known_by_the_instruction():
    line: queue.SimpleQueue = queue.SimpleQueue()

    def body() -> None:
        line.get()

    seen = beside(body, lambda: line.put(1))
    assert (does(seen), most(seen, "feeds")) == (act.QUEUE, stacks.RECEIVES)


@needs_columns
def test_another_get_is_no_queue():
    table = dict.fromkeys(range(10000), 1)

    def body() -> None:
        for key in range(10000):
            table.get(key)

    seen = beside(body)
    assert does(seen) == act.PYTHON and most(seen, "feeds") == stacks.NOTHING


def test_a_queue_of_processes_is_a_queue():
    line = multiprocessing.get_context("spawn").Queue()
    seen = beside(lambda: line.get(), lambda: line.put(1))
    assert (does(seen), most(seen, "feeds")) == (act.QUEUE, stacks.RECEIVES)
    line.close()
    line.join_thread()


def test_a_pipe_of_processes_is_a_queue():
    here, there = multiprocessing.Pipe()
    seen = beside(here.recv, lambda: there.send(1))
    assert (does(seen), most(seen, "feeds")) == (act.QUEUE, stacks.RECEIVES)


# ---- what another process makes ----


class Answers(http.server.BaseHTTPRequestHandler):
    """A server that takes its time: before it answers, or within its answer."""

    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        if self.path == "/slowly":
            return self.answer_in_pieces()
        time.sleep(0.05)
        self.send_response(200)
        self.send_header("Content-Length", "1")
        self.end_headers()
        self.wfile.write(b"1")

    def answer_in_pieces(self) -> None:
        self.send_response(200)
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        time.sleep(0.05)
        self.wfile.write(b"1\r\n1\r\n0\r\n\r\n")

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers["Content-Length"]))
        self.do_GET()

    def log_message(self, *_: object) -> None: ...


@pytest.fixture
def url() -> Iterator[str]:
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Answers) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}/generate"
        server.shutdown()


def before(body: Callable[[], object], release: Callable[[], object] = lambda: None) -> list:
    """Samples of a loop that calls `body`, from its second turn on, and then steps."""

    def train(training: Training) -> None:
        while not training.over:
            if training.steps:
                body()
            training.step()

    training = Training(train)
    seen = training.sampled()
    release()
    training.thread.join()
    return seen


def test_a_queue_that_another_process_fills_feeds_the_step():
    line = multiprocessing.get_context("spawn").Queue()
    seen = before(lambda: line.get(), lambda: line.put(1))
    assert (does(seen), most(seen, "feeds")) == (act.QUEUE, stacks.FROM_PROCESS)
    line.close()
    line.join_thread()


def test_a_queue_of_the_scripts_own_thread_is_no_other_process():
    line: queue.Queue = queue.Queue()
    assert most(before(lambda: line.get(), lambda: line.put(1)), "feeds") == stacks.RECEIVES


@pytest.mark.parametrize("data", [None, b"prompts"])
def test_the_answer_of_a_server_on_this_machine_feeds_the_step(url, data):
    seen = before(lambda: urllib.request.urlopen(url, data).read())
    assert (does(seen), most(seen, "feeds")) == (act.NETWORK, stacks.FROM_PROCESS)
    assert most(seen, "peer") == url.split("/")[2]


def test_an_answer_after_the_step_is_one_to_a_report_or_an_upload(url):
    seen = beside(lambda: urllib.request.urlopen(url, b"metrics").read())
    assert (does(seen), most(seen, "feeds")) == (act.NETWORK, stacks.NOTHING)


def in_lines(url: str) -> None:
    for _ in urllib.request.urlopen(url):
        pass


def in_pieces(url: str) -> None:
    for _ in requests.get(url, stream=True).iter_content(None):
        pass


@pytest.mark.parametrize("get", [lambda url: urllib.request.urlopen(url).read(), in_lines, in_pieces])
@pytest.mark.parametrize("path", ["/generate", "/slowly"])
def test_a_download_is_no_answer_of_a_process_that_works_for_us(url, monkeypatch, get, path):
    monkeypatch.setattr(stacks, "THIS_MACHINE", ("127.9.",))
    seen = before(lambda: get(url.replace("/generate", path)))
    assert (does(seen), most(seen, "feeds")) == (act.NETWORK, stacks.NOTHING)


def test_a_server_that_requests_asks_is_named(url):
    assert most(before(lambda: requests.post(url, b"prompts")), "peer") == url.split("/")[2]


def test_the_pieces_of_an_answer_on_this_machine_feed_the_step(url):
    seen = before(lambda: in_pieces(url.replace("/generate", "/slowly")))
    assert (does(seen), most(seen, "feeds")) == (act.NETWORK, stacks.FROM_PROCESS)


@needs_columns
def test_a_socket_is_received_from():
    here, there = socket.socketpair()
    seen = before(lambda: here.recv(1), lambda: there.send(b"1"))
    assert (does(seen), most(seen, "feeds")) == (act.NETWORK, stacks.FROM_PROCESS)
    here.close()
    there.close()


def test_an_event_loop_that_waits_for_a_socket_waits_for_another_process():
    async def answered() -> None:
        here, there = socket.socketpair()
        reader, writer = await asyncio.open_connection(sock=here)
        asyncio.get_running_loop().call_later(0.05, there.send, b"1")
        await reader.readexactly(1)
        writer.close()
        there.close()

    seen = before(lambda: asyncio.run(answered()))
    assert (does(seen), most(seen, "feeds")) == (act.FUTURE, stacks.FROM_PROCESS)


def test_an_event_loop_that_only_sleeps_waits_for_no_process():
    seen = before(lambda: asyncio.run(asyncio.sleep(0.05)))
    assert (does(seen), most(seen, "feeds")) == (act.FUTURE, stacks.RECEIVES)


def test_the_lines_that_wait_for_another_process_are_told_once_and_what_asks_there_counts_with_them(monkeypatch):
    lines, said = load("sampling.lines"), []
    monkeypatch.setattr(lines.hook, "fact", lambda key, value: said.append((key, value)))
    sampler = object.__new__(lines.Sampler)  # without its thread
    sampler.fed_by = {}
    answer = stacks.Sample("train.py", 3, "main", "", act.NETWORK, stacks.FROM_PROCESS, "127.0.0.1:8000")
    question = answer._replace(feeds=stacks.NOTHING, peer="")
    assert sampler.with_process(question) == question
    assert sampler.with_process(answer) == sampler.with_process(answer) == answer
    assert sampler.with_process(question).feeds == stacks.FROM_PROCESS
    assert sampler.with_process(question._replace(line=4)).feeds == stacks.NOTHING
    assert said == [("fed_by", [{"file": "train.py", "line": 3, "peer": "127.0.0.1:8000"}])]


def test_a_future_is_received():
    future: Future = Future()
    seen = beside(future.result, lambda: future.set_result(1))
    assert (does(seen), most(seen, "feeds")) == (act.FUTURE, stacks.RECEIVES)


def test_an_event_is_a_lock_that_may_stand_for_data():
    event = threading.Event()
    seen = beside(event.wait, event.set)
    assert (does(seen), most(seen, "feeds")) == (act.LOCK, stacks.RECEIVES)


@needs_columns
@pytest.mark.parametrize("entered", [False, True])
def test_a_lock_is_known_by_the_instruction(entered):
    lock = threading.Lock()
    lock.acquire()

    def take() -> None:
        lock.acquire()

    def enter() -> None:
        with lock:
            pass

    seen = beside(enter if entered else take, lock.release)
    assert (does(seen), most(seen, "feeds")) == (act.LOCK, stacks.NOTHING)


def test_a_program_is_waited_for():
    child = subprocess.Popen(["cat"], stdin=subprocess.PIPE)
    seen = beside(child.wait, child.stdin.close)
    assert does(seen) == act.SUBPROCESS


@needs_columns
def test_a_socket_is_the_network():
    here, there = socket.socketpair()

    def body() -> None:
        here.recv(1)

    seen = beside(body, there.close)
    assert does(seen) == act.NETWORK
    here.close()


@needs_columns
def test_a_read_of_a_file_descriptor_is_a_file():
    reading, writing = os.pipe()

    def body() -> None:
        os.read(reading, 1)

    seen = beside(body, lambda: os.close(writing))
    assert does(seen) == act.FILE
    os.close(reading)


@needs_columns
def test_a_sleep_is_known_by_what_is_called_not_by_its_name():
    def body() -> None:
        time.sleep(0.01)

    assert does(beside(body)) == act.SLEEP

    class Bed:
        def sleep(self) -> None:
            sum(range(10000))

    bed = Bed()

    def mine() -> None:
        bed.sleep()

    assert act.SLEEP not in {sample.activity for sample in beside(mine)}


# ---- work ----


@needs_columns
def test_printing_is_logging(capfd):
    def body() -> None:
        for _ in range(100):
            print("loss", 0.1)

    assert does(beside(body)) == act.LOGGING


def test_a_logger_that_waits_for_its_lock_is_logging():
    handler = logging.StreamHandler(io.StringIO())
    logger = logging.Logger("mine")
    logger.addHandler(handler)
    handler.acquire()  # by the thread of the test
    seen = beside(lambda: logger.info("loss %f", 0.1), handler.release)
    assert (does(seen), most(seen, "feeds")) == (act.LOGGING, stacks.NOTHING)


@needs_columns
def test_text_formats_are_logging():
    writer = csv.writer(io.StringIO())
    rows = [[0.1] * 100] * 100

    def table() -> None:
        writer.writerows(rows)

    assert does(beside(table)) == act.LOGGING
    assert does(beside(lambda: json.dumps(rows, indent=1))) == act.LOGGING


def test_a_progress_bar_is_not_what_it_goes_around():
    tqdm = pytest.importorskip("tqdm")
    line: queue.Queue = queue.Queue()

    def items() -> Iterator[int]:
        while True:
            yield line.get()

    def train(training: Training) -> None:
        for _ in tqdm.tqdm(items(), file=io.StringIO()):
            if training.over:
                return
            training.step()

    training = Training(train)
    line.put(0)
    seen = training.sampled()
    line.put(1)
    assert (does(seen), most(seen, "feeds")) == (act.QUEUE, stacks.ITERATOR)


def test_images_are_data():
    image = pytest.importorskip("PIL.Image").new("RGB", (640, 640))
    assert does(beside(lambda: image.resize((200, 200), 2))) == act.DATA_PREPARATION


@needs_columns
def test_arrays_are_data_and_their_means_are_metrics():
    numpy = pytest.importorskip("numpy")
    rows = [numpy.zeros(50000)] * 16
    assert does(beside(lambda: numpy.stack(rows))) == act.DATA_PREPARATION

    def mean() -> None:
        numpy.mean(rows[0])

    assert does(beside(mean)) == act.METRICS


@pytest.mark.long
def test_metrics_are_told_by_their_library():
    torchmetrics = pytest.importorskip("torchmetrics")
    torch = pytest.importorskip("torch")
    metric = torchmetrics.MeanMetric()
    values = torch.zeros(100)
    assert does(beside(lambda: metric(values))) == act.METRICS


@needs_columns
def test_words_become_tokens():
    tokenizers = pytest.importorskip("tokenizers")
    tokenizer = tokenizers.Tokenizer(tokenizers.models.WordLevel({"a": 0}, unk_token="a"))
    tokenizer.pre_tokenizer = tokenizers.pre_tokenizers.Whitespace()
    text = "a b c " * 5000

    def body() -> None:
        tokenizer.encode(text)

    assert does(beside(body)) == act.TOKENISING


class Pole:
    """What gym calls an environment."""

    def reset(self) -> float:
        return 0.0

    def step(self, action: float) -> float:
        return sum(i * action for i in range(5000))


class Clock:
    """Steps, too, but is no environment."""

    def step(self, action: float) -> float:
        return sum(i * action for i in range(5000))


def test_what_one_steps_and_resets_is_an_environment():
    pole, clock = Pole(), Clock()
    assert does(beside(lambda: pole.step(0.1))) == act.ENVIRONMENT
    assert act.ENVIRONMENT not in {sample.activity for sample in beside(lambda: clock.step(0.1))}


def test_reading_an_environments_self_keeps_nothing_alive():
    seen = []

    class Heavy:
        pass

    class Game(Pole):
        def step(self, action: float) -> float:
            import weakref

            ballast = Heavy()
            gone = weakref.ref(ballast)
            super().step(action)
            ballast = None
            seen.append(gone())
            return 0.0

    game = Game()
    beside(lambda: game.step(0.1))
    assert seen and not any(seen)


@needs_columns
def test_the_interpreters_own_work_is_pythons():
    def body() -> None:
        total = 0
        for value in range(20000):
            total += value

    assert does(beside(body)) == act.PYTHON


@needs_columns
def test_a_call_that_is_in_no_table_is_unknown():
    import zlib

    text = bytes(1 << 20)

    def body() -> None:
        zlib.compress(text)

    assert does(beside(body)) == act.UNKNOWN


def test_an_import_is_not_what_the_module_is_for():
    def body() -> None:
        for name in [name for name in sys.modules if name.partition(".")[0] == "PIL"]:
            del sys.modules[name]
        import PIL.Image  # noqa: F401

    pytest.importorskip("PIL.Image")
    assert does(beside(body)) == act.UNKNOWN
