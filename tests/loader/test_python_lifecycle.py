"""Ctrl-C, forks, the interpreter's exit, and the processes of a map function."""

from __future__ import annotations

import os
import pathlib
import signal
import socket
import subprocess
import sys
import textwrap
import time

import pytest
from python_data import TIMEOUT_S, environment, require, run_script

require()

OPEN = """
    import os, signal, sys, time
    from fullbore.data import ImageFolder, LoaderError, transforms as T

    def opened(**options):
        return ImageFolder(sys.argv[1], [T.Resize((8, 8))], 4, as_numpy=True, **options)
"""


def started(tmp_path, photos, text):
    path = tmp_path / "script.py"
    path.write_text(textwrap.dedent(OPEN) + textwrap.dedent(text))
    return subprocess.Popen(
        [sys.executable, str(path), str(photos)],
        env=environment(),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,  # so that the signal reaches all its processes, as from a terminal
    )


def run(tmp_path, photos, text):
    return run_script(textwrap.dedent(OPEN) + textwrap.dedent(text), photos, directory=tmp_path)


def alive(pid):
    """Whether a process runs; an orphan's new parent may never reap it, so a zombie does not count."""
    try:
        return pathlib.Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def wait_for(seen):
    until = time.monotonic() + TIMEOUT_S
    while not seen():
        assert time.monotonic() < until
        time.sleep(0.01)


def test_control_c_ends_a_waiting_loop_at_once(tmp_path, photos):
    process = started(
        tmp_path,
        photos,
        f"""
        def slow(sample):
            open({str(tmp_path / "mapping")!r}, "w").close()
            time.sleep(0.4)

        if __name__ == "__main__":
            loader = opened(map=slow, threads=1)
            try:
                for _ in range(100):
                    for _ in loader:
                        pass
            except KeyboardInterrupt:
                print("interrupted", flush=True)
                loader.close()
                print("ended", flush=True)
        """,
    )
    wait_for((tmp_path / "mapping").exists)
    os.killpg(process.pid, signal.SIGINT)
    out, err = process.communicate(timeout=TIMEOUT_S)
    assert out == "interrupted\nended\n" and process.returncode == 0, err
    assert "Traceback" not in err


@pytest.mark.long
def test_control_c_ends_the_wait_for_a_server_that_does_not_answer(tmp_path, photos):
    with socket.create_server(("127.0.0.1", 0)) as server:
        url = f"http://127.0.0.1:{server.getsockname()[1]}/train.tar"
        process = started(
            tmp_path,
            photos,
            f"""
            from fullbore.data import WebDataset
            WebDataset({url!r}, cache_bytes=0, timeout_s=100_000)
            """,
        )
        asked, _ = server.accept()
        with asked:
            os.kill(process.pid, signal.SIGINT)
            _, err = process.communicate(timeout=TIMEOUT_S)
            assert process.returncode == -signal.SIGINT, err
            while asked.recv(4096):  # until the client has gone, too
                continue


@pytest.mark.parametrize("options", ["", "map=slow"])
def test_a_forked_child_gets_an_error_and_exits(tmp_path, photos, options):
    done = run(
        tmp_path,
        photos,
        f"""
        def slow(sample):
            time.sleep(0.01)  # so that the fork happens during a call, which the child would wait for

        loader = opened({options})
        iteration = iter(loader)
        batch = next(iteration)
        child = os.fork()
        if child == 0:
            try:
                next(iteration)
            except LoaderError as error:
                print(error, flush=True)
            del batch, iteration, loader
            sys.exit(7)  # with destructors and atexit
        _, status = os.waitpid(child, 0)
        print(os.WEXITSTATUS(status), len(list(iteration)), flush=True)
        """,
    )
    assert done.returncode == 0, done.stderr
    assert "is a fork" in done.stdout and "spawn" in done.stdout
    assert done.stdout.endswith("7 5\n")


def test_the_interpreter_exits_with_a_loader_running(tmp_path, photos):
    for ending in ("", "os.kill(os.getpid(), signal.SIGTERM)", "raise SystemExit(3)"):
        done = run(
            tmp_path,
            photos,
            f"""
            def count(sample):
                sample["label"] += 1

            if __name__ == "__main__":
                loader = opened(map=count)
                iteration = iter(loader)
                batch = next(iteration)
                {ending}
            """,
        )
        assert done.returncode == {"": 0, "raise SystemExit(3)": 3}.get(ending, -signal.SIGTERM), done.stderr
        assert done.stderr == ""


def test_the_interpreter_exits_with_a_daemon_thread_in_the_loader(tmp_path, photos):
    for _ in range(3):
        done = run(
            tmp_path,
            photos,
            """
            import threading

            def drain():
                for _ in range(1000):
                    for _ in loader:
                        pass

            loader = opened()
            threading.Thread(target=drain, daemon=True).start()
            time.sleep(0.05)
            """,
        )
        assert done.returncode == 0, done.stderr  # not aborted by a thread that asked for the GIL too late


@pytest.mark.long
def test_no_loader_is_opened_while_python_exits(tmp_path, photos):
    """The map functions of a loader opened now would be killed, even in the middle of a destructor."""
    done = run_script(
        """
        import atexit, sys

        def late():  # runs after what is registered later
            for attempt in (lambda: next(iteration), opened):
                try:
                    attempt()
                except LoaderError as error:
                    print(error)

        def count(sample):
            sample["label"] += 1

        def opened():
            return ImageFolder(sys.argv[1], map=count)

        atexit.register(late)
        from fullbore.data import ImageFolder, LoaderError

        if __name__ == "__main__":
            iteration = iter(opened())
            next(iteration)
        """,
        photos,
        directory=tmp_path,
    )
    ending = "Python is shutting down, and all loaders with it\n"
    assert done.stdout == "the loader is closed\n" + ending, done.stderr
    assert done.returncode == 0 and done.stderr == ""


@pytest.mark.long
def test_a_loader_that_fails_to_close_does_not_keep_others_open(tmp_path, photos):
    done = run_script(
        """
        import atexit, sys

        def late():  # runs after what is registered later
            print([loader.state_dict() for loader in kept if not is_closed(loader)])

        def is_closed(loader):
            try:
                loader.stats()
            except LoaderError as error:
                return "closed" in str(error)

        atexit.register(late)
        from fullbore.data import ImageFolder, LoaderError

        class Stubborn(ImageFolder):
            def close(self):
                raise RuntimeError("not now")

        stubborn = [Stubborn(sys.argv[1]) for _ in range(8)]
        kept = [ImageFolder(sys.argv[1]) for _ in range(8)]
        """,
        photos,
        directory=tmp_path,
    )
    assert done.stdout == "[]\n", done.stderr
    assert "not now" in done.stderr


@pytest.mark.long
def test_control_c_ends_python_even_if_a_map_function_never_returns(tmp_path, photos):
    pytest.importorskip("torch")
    process = started(
        tmp_path,
        photos,
        f"""
        import torch

        def endless(sample):
            open({str(tmp_path / "mapping")!r}, "w").close()
            while True:
                kept = [torch.empty(100) for _ in range(300)]  # torch releases the GIL to free them

        loader = opened(map=endless, threads=4)
        next(iter(loader))
        """,
    )
    wait_for((tmp_path / "mapping").exists)
    err = None
    while err is None:
        os.kill(process.pid, signal.SIGINT)
        try:
            _, err = process.communicate(timeout=0.2)
        except subprocess.TimeoutExpired:
            continue
    assert process.returncode == -signal.SIGINT, err  # not aborted inside a destructor
    assert "terminate" not in err


def test_a_loader_can_be_passed_to_a_spawned_process(tmp_path, photos):
    done = run(
        tmp_path,
        photos,
        """
        import multiprocessing

        def rest(loader):
            print(sorted(i for _ in loader for i in loader.last_batch.ids), flush=True)

        if __name__ == "__main__":
            loader = opened(shuffle=False)
            next(iter(loader))
            process = multiprocessing.get_context("spawn").Process(target=rest, args=(loader,))
            process.start()
            process.join()
        """,
    )
    assert done.stdout == f"{list(range(4, 24))}\n", done.stderr


def assert_ends_with_killed(parent, place):
    """Whoever leaves a file of its number there, once that is so."""
    wait_for(lambda: list(place.glob("*.pid")))
    parent.kill()
    parent.wait()
    wait_for(lambda: not any(alive(path.stem) for path in place.glob("*.pid")))


def test_map_processes_end_with_a_killed_parent_even_if_the_function_hangs(tmp_path, photos):
    process = started(
        tmp_path,
        photos,
        f"""
        def hang(sample):
            open(f"{tmp_path}/{{os.getpid()}}.pid", "w").close()
            time.sleep(100_000)

        if __name__ == "__main__":
            next(iter(opened(map=hang, map_processes=2)))
        """,
    )
    assert_ends_with_killed(process, tmp_path)


def test_map_processes_end_with_a_parent_that_is_killed_while_they_start(tmp_path, photos):
    process = started(
        tmp_path,
        photos,
        f"""
        def hang(sample):
            time.sleep(100_000)

        if __name__ == "__mp_main__":
            parent = os.getppid()
            open(f"{tmp_path}/{{os.getpid()}}.pid", "w").close()
            while os.getppid() == parent:
                time.sleep(0.01)
        if __name__ == "__main__":
            next(iter(opened(map=hang, map_processes=1)))
        """,
    )
    assert_ends_with_killed(process, tmp_path)


def test_a_forked_child_leaves_its_parents_map_processes_alone(tmp_path, photos):
    done = run(
        tmp_path,
        photos,
        """
        def count(sample):
            sample["label"] += 1

        if __name__ == "__main__":
            loader = opened(map=count, map_processes=2)
            iteration = iter(loader)
            next(iteration)
            pids = loader._pool.pids()
            child = os.fork()
            if child == 0:
                sys.exit(7)  # multiprocessing then ends all its processes
            print(os.WEXITSTATUS(os.waitpid(child, 0)[1]), len(list(iteration)), loader._pool.pids() == pids)
        """,
    )
    assert done.stdout == "7 5 True\n", done.stderr
    assert "Error" not in done.stderr


@pytest.mark.skipif("LD_PRELOAD" in os.environ, reason="sanitizers reserve the whole address space")
def test_a_source_too_large_for_memory_is_an_exception_not_a_crash(tmp_path):
    (tmp_path / "list.txt").write_text("cat/001.jpg 0\n" * 4_000_000)
    text = """
    import numpy, re, resource, sys
    from fullbore.data import FileList
    used = int(re.search(r"VmSize:\\s+(\\d+)", open("/proc/self/status").read())[1]) << 10
    resource.setrlimit(resource.RLIMIT_AS, (used + (80 << 20), resource.RLIM_INFINITY))
    try:
        FileList(sys.argv[1], as_numpy=True)
    except MemoryError:
        print("no memory")
    """
    done = run_script(text, tmp_path / "list.txt", directory=tmp_path)
    assert (done.returncode, done.stdout, done.stderr) == (0, "no memory\n", "")
