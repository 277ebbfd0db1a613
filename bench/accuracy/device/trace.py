"""Writes what a simulated rank did as the PyTorch profiler (Kineto) would have recorded it."""

from __future__ import annotations

import json
from math import ceil
from pathlib import Path

from .gpu import COPY, Work
from .host import Call, Host, Span
from .simulate import Run

BASE_NS = 4_803_000_000_000_000  # any moment: the profiler counts from a base time of its own
CALLBACKS = {"cudaLaunchKernel": 211, "cudaMemcpyAsync": 41, "cudaStreamSynchronize": 131, "cudaDeviceSynchronize": 165}
SYNC_KINDS = {
    "StreamSynchronize": "Stream Sync",
    "DeviceSynchronize": "Context Sync",
    "StreamWaitEvent": "Stream Wait Event",
}


def write_traces(run: Run, folder: Path) -> list[Path]:
    """One file for each rank."""
    paths = []
    for host in run.hosts:
        path = folder / f"rank{host.rank}.pt.trace.json"
        path.write_text(Recording(run, host).json())
        paths.append(path)
    return paths


class Recording:
    def __init__(self, run: Run, host: Host) -> None:
        self.run, self.host, self.program = run, host, run.program
        self.begin = host.step_begins[self.program.warmup]
        self.nvidia = self.program.device.vendor == "nvidia"
        self.recorded_on = {each.correlation: each.stream for each in host.calls if each.name.endswith("EventRecord")}

    def json(self) -> str:
        events = self._metadata()
        if self.program.host_events:
            spans = sorted(self.host.spans, key=lambda each: (each.begin, -each.end))
            events += [self._span(each) for each in spans if self._seen(each)]
        events += [self._call(each) for each in self.host.calls if each.begin >= self.begin]
        events += [self._work(each) for each in self.host.gpu.history if each.begin >= self.begin]
        if self.program.sync_events and self.nvidia:
            events += [text for each in self.host.calls if each.begin >= self.begin for text in self._sync(each)]
        if self.program.host_events:
            events += self._steps_on_device()
        head = json.dumps(self._properties())[1:-1]
        return "{" + head + ',\n"traceEvents": [\n' + ",\n".join(events) + '\n],\n"traceName": "trace.json"}\n'

    def _properties(self) -> dict:
        device, program = self.program.device, self.program
        each = {
            "name": device.name,
            "totalGlobalMem": device.memory_bytes,
            "computeMajor": device.capability[0],
            "computeMinor": device.capability[1],
            "maxThreadsPerBlock": 1024,
            "maxThreadsPerMultiprocessor": 2048,
            "warpSize": 32 if self.nvidia else 64,
            "numSms": device.units,
        }
        head: dict = {"schemaVersion": 1}
        head["deviceProperties"] = [{"id": rank, **each} for rank in range(program.ranks)]
        if program.ranks > 1:
            head["distributedInfo"] = {"backend": "nccl", "rank": self.host.rank, "world_size": program.ranks}
        head.update(record_shapes=int(program.shapes), with_stack=int(program.with_stack))
        if not program.whole_microseconds:
            head.update(displayTimeUnit="ms", baseTimeNanoseconds=1_751_410_836_000_000_000)
        return head

    def _metadata(self) -> list[str]:
        host = self.host
        label = {"pid": host.main, "tid": 0, "ph": "M", "ts": self._number(self.begin)}
        named = {**label, "name": "process_name", "args": {"name": "python3"}}
        labelled = {**label, "name": "process_labels", "args": {"labels": "CPU"}}
        return [json.dumps(named), json.dumps(labelled)]

    def _seen(self, span: Span) -> bool:
        return span.begin >= self.begin and (self.program.with_stack or span.category != "python_function")

    def _number(self, ns: int) -> float | int:
        ns += BASE_NS
        return ns // 1000 if self.program.whole_microseconds else ns / 1000

    def _times(self, begin: int, end: int) -> str:
        """Old profilers cut off everything below a microsecond."""
        ts, dur = begin + BASE_NS, end - begin
        if self.program.whole_microseconds:
            return f'"ts": {ts // 1000}, "dur": {dur // 1000}'
        return f'"ts": {ts // 1000}.{ts % 1000:03}, "dur": {dur // 1000}.{dur % 1000:03}'

    def _event(self, category: str, name: str, pid: int, tid: int, begin: int, end: int, args: str) -> str:
        times = self._times(begin, end)
        place = f'"pid": {pid}, "tid": {tid}'
        return f'{{"ph": "X", "cat": "{category}", "name": "{name}", {place}, {times}, "args": {{{args}}}}}'

    def _span(self, span: Span) -> str:
        args = f'"External id": {span.external}'
        if span.args and (self.program.shapes or "Collective name" in span.args):
            args += ", " + span.args
        if span.differentiated:
            args += f', "Sequence number": {span.external}, "Fwd thread id": 0'
        return self._event(span.category, span.name, self.host.main, span.thread, span.begin, span.end, args)

    def _call(self, call: Call) -> str:
        args = f'"cbid": {CALLBACKS.get(call.name, 0)}, "correlation": {call.correlation}'
        if call.external:
            args = f'"External id": {call.external}, ' + args
        return self._event("cuda_runtime", call.name, self.host.main, call.thread, call.begin, call.end, args)

    def _work(self, work: Work) -> str:
        device = self.host.rank
        args = f'"device": {device}, "context": 1, "stream": {work.stream}, "correlation": {work.correlation}'
        if work.kind == COPY:
            rate = work.bytes / max(1, work.end - work.begin)
            args += f', "bytes": {work.bytes}, "memory bandwidth (GB/s)": {rate:.6f}'
            return self._event("gpu_memcpy", work.name, device, work.stream, work.begin, work.end, args)
        blocks = ceil(work.fill * self.program.device.units * (8 if work.fill >= 1 else 1)) or 24
        args += f', "queued": 0, "grid": [{blocks}, 1, 1], "block": [256, 1, 1]'
        if work.detail.args and self.nvidia:
            args += ", " + work.detail.args
        return self._event("kernel", work.name, device, work.stream, work.begin, work.end, args)

    def _sync(self, call: Call) -> list[str]:
        """What `enable_cuda_sync_events` adds: which stream a call waited for, and behind which event."""
        kind = next((kind for ending, kind in SYNC_KINDS.items() if call.name.endswith(ending)), None)
        if kind is None:
            return []
        waits = ""
        if call.record >= 0:
            stream = self.recorded_on.get(call.record, -1)
            waits = f'"wait_on_stream": {stream}, "wait_on_cuda_event_record_corr_id": {call.record}, '
            waits += f'"wait_on_cuda_event_id": {call.record % 64}, '
        where = f'"stream": {call.stream}, "correlation": {call.correlation}, "device": {self.host.rank}, "context": 1'
        args = f'"cuda_sync_kind": "{kind}", {waits}{where}'
        end = call.begin + 1_000 if call.record >= 0 else call.end
        return [self._event("cuda_sync", kind, self.host.rank, call.stream, call.begin, end, args)]

    def _steps_on_device(self) -> list[str]:
        """The profiler draws each step beside the kernels, too."""
        spans: dict[int, tuple[int, int]] = {}
        for work in self.host.gpu.history:
            if work.step >= self.program.warmup and work.stream == 7:
                begin, end = spans.get(work.step, (work.begin, work.end))
                spans[work.step] = (min(begin, work.begin), max(end, work.end))
        return [
            self._event("gpu_user_annotation", f"ProfilerStep#{step}", self.host.rank, 7, begin, end, "")
            for step, (begin, end) in sorted(spans.items())
        ]
