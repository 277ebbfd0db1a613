#!/usr/bin/env python3
"""Writes a trace N times into one file, each copy shifted in time to follow the previous one.

    repeat_trace.py TRACE.json[.gz] N OUT.json

Correlation ids, flow ids and step numbers are shifted too, so that the copies look like one long recording. The text is
edited, not parsed and reserialised: it stays as the profiler wrote it.
"""

import gzip
import re
import sys


def main() -> None:
    source, copies, target = sys.argv[1], int(sys.argv[2]), sys.argv[3]
    opener = gzip.open if source.endswith(".gz") else open
    with opener(source, "rb") as f:
        text = f.read()
    begin = text.index(b'"traceEvents"')
    begin = text.index(b"[", begin) + 1
    end = text.rindex(b"]")
    events = text[begin:end]
    times = [int(t) for t in re.findall(rb'"ts": (\d+)', events)]
    times = [t for t in times if t > 0]
    length = max(times) - min(times) + 1_000_000
    ids = max(int(i) for i in re.findall(rb'"(?:correlation|id|External id)": (\d+)', events)) + 1
    steps = len(set(re.findall(rb"ProfilerStep#\d+", events)))

    field = re.compile(rb'("ts": |"correlation": |"id": |"External id": |ProfilerStep#)(\d+)')
    with open(target, "wb") as out:
        out.write(text[:begin])
        for copy in range(copies):
            by = {b'"ts": ': copy * length, b"ProfilerStep#": copy * steps}

            def shifted(match: re.Match, by: dict = by, copy: int = copy) -> bytes:
                name, number = match.group(1), int(match.group(2))
                return name + b"%d" % (number + by.get(name, copy * ids))

            out.write(b"," if copy else b"")
            out.write(field.sub(shifted, events))
        out.write(text[end:])


if __name__ == "__main__":
    main()
