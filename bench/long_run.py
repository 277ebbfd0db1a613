#!/usr/bin/env python3
"""What is left of a run of a day with eight ranks: its file, its page, and how long the page takes to open.

    bench/long_run.py [--hours 24] [--ranks 8] [--picture FILE.png]

The run is made (build/release/bench/run_size): eight GPUs, every series a random walk, steps of 50 ms, which is more
than a real run of that length holds. A page is open once it has drawn what it shows; the time is from the navigation to
the second frame after that, in a headless Chromium, the median of five. Targets: 2 MB and 1 s; a file of 2 MB an hour.
"""

from __future__ import annotations

import argparse
import json
import pathlib
import shutil
import statistics
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "tests" / "serve"))
from browser import Browser  # noqa: E402

RELEASE = ROOT / "build" / "release"
DRAWN = "new Promise(done => requestAnimationFrame(() => requestAnimationFrame(() => done(true))))"
OPENINGS = 5


class Server:
    """`fullbore serve` of a directory."""

    def __init__(self, directory: pathlib.Path) -> None:
        command = [RELEASE / "fullbore", "serve", "--listen", "127.0.0.1:0", "--dir", directory]
        self.process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
        self.address = self.process.stderr.readline().split("http://")[1].split("/")[0]

    def end(self) -> None:
        self.process.terminate()
        self.process.wait()


def seconds_to_open(browser: Browser, address: str) -> float:
    def once() -> float:
        begin = time.monotonic()
        browser.open(address)
        browser.value(DRAWN)
        return time.monotonic() - begin

    return statistics.median(once() for _ in range(OPENINGS))


def made(folder: pathlib.Path, hours: int, ranks: int) -> dict:
    command = [RELEASE / "bench" / "run_size", folder, str(hours), str(ranks)]
    return json.loads(subprocess.run(command, check=True, stdout=subprocess.PIPE).stdout)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--hours", type=int, default=24)
    parser.add_argument("--ranks", type=int, default=8)
    parser.add_argument("--picture", type=pathlib.Path, help="of the page, as a PNG file")
    given = parser.parse_args()
    chromium = shutil.which("chromium")
    if chromium is None:
        sys.exit("long_run: there is no chromium; scripts/setup.sh test installs it")
    with tempfile.TemporaryDirectory(prefix="fullbore-long-") as folder:
        directory = pathlib.Path(folder)
        size = made(directory, given.hours, given.ranks)
        print(f"run file        {size['bytes'] / 1e6:8.2f} MB  {size['bytes'] / 1e6 / given.hours:.2f} MB an hour")
        page = directory / "page.html"
        begin = time.monotonic()
        explain = [RELEASE / "fullbore", "explain", directory / "hours.fbr", "--quiet", "--html", page]
        subprocess.run([str(part) for part in explain], check=True)
        print(f"fullbore explain --html {time.monotonic() - begin:.2f} s")
        print(f"page            {page.stat().st_size / 1e6:8.2f} MB")
        browser, server = Browser(chromium, directory / "profile"), Server(directory)
        try:
            print(f"opens from file {seconds_to_open(browser, page.as_uri()):8.2f} s")
            if given.picture:
                browser.picture(given.picture)
            print(f"opens in serve  {seconds_to_open(browser, f'http://{server.address}/runs/hours'):8.2f} s")
        finally:
            browser.close()
            server.end()


if __name__ == "__main__":
    main()
