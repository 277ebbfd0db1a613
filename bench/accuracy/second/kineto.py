"""Writes a recording as the PyTorch profiler's exporter (Kineto) does, in the manner of several of its versions."""

import json
import random
from math import prod
from pathlib import Path

from second.devices import Spec
from second.recording import Launch, Recorder

# CUPTI's callback numbers, as in public traces
CBID = {
    "cudaLaunchKernel": 211,
    "cudaLaunchKernelExC": 430,
    "cuLaunchKernel": 307,
    "cudaMemcpyAsync": 41,
    "cudaMemsetAsync": 51,
    "cudaStreamSynchronize": 131,
    "cudaDeviceSynchronize": 165,
    "cudaEventRecord": 135,
    "cudaEventQuery": 138,
    "cudaStreamWaitEvent": 147,
    "cudaGraphLaunch": 311,
    "cudaMalloc": 20,
}
CATEGORIES = {  # category names of the old exporter (PyTorch 1.8), by those of the later ones
    "cpu_op": "Operator",
    "user_annotation": "Operator",
    "cuda_runtime": "Runtime",
    "cuda_driver": "Runtime",
    "kernel": "Kernel",
    "gpu_memcpy": "Memcpy",
    "gpu_memset": "Memset",
    "ac2g": "async",
}
DTYPE = {"float": "Float", "c10::Half": "Half", "c10::BFloat16": "BFloat16"}
TYPES = {"half": "c10::Half"}


class Writer:
    """One file."""

    def __init__(self, recorder: Recorder, spec: Spec, rank: int, ranks: int, marks: list, key: str):
        self.recorder, self.spec, self.rank, self.ranks, self.marks = recorder, spec, rank, ranks, marks
        self.style, self.draw = recorder.profile.style, random.Random(f"{key}:file{rank}")
        self.whole = self.style != "new"  # whole microseconds
        self.start = marks[recorder.profile.first][0]
        self.base = self.draw.randrange(10**14, 10**15) if self.style == "new" else 1_650_000_000_000_000_000
        self.pid = self.draw.randrange(2000, 900000)
        self.threads = (self.pid, self.pid + self.draw.randrange(30, 2000), self.pid + 2100)
        self.drop_flow = 0.002 if self.draw.random() < 0.3 else 0.0  # an oddity: some flows lack an end
        self.events = []
        self.amd = spec.arch == "cdna"

    # Forms

    def time(self, at: float):
        """A moment in the file's microseconds."""
        ns = self.base + int(at)
        return ns // 1000 if self.whole else round(ns / 1000, 3)

    def span(self, start: float, end: float):
        """A duration in the file's microseconds."""
        ns = max(0, int(end) - int(start))
        return ns // 1000 if self.whole else round(ns / 1000, 3)

    def category(self, name: str) -> str:
        """A category in this version's words."""
        return CATEGORIES.get(name, name) if self.style == "old" else name

    def lane(self, number: int, device: bool):
        """A thread or stream as this version writes it."""
        if self.style != "old":
            return number
        return f"stream {number}" if device else str(number)

    def add(self, category: str, name: str, pid, tid, start: float, end: float, args: dict):
        """A complete event."""
        head = {"ph": "X", "cat": self.category(category), "name": name, "pid": pid, "tid": tid}
        self.events.append({**head, "ts": self.time(start), "dur": self.span(start, end), "args": args})

    # Parts of the file

    def host_events(self):
        """Operators, annotations, Python functions."""
        for index, entry in enumerate(self.recorder.operators):
            self._operator(index, *entry)
        for index, (name, thread, start, end, external) in enumerate(self.recorder.annotations):
            args = {"External id": external, "Record function id": 0, "Ev Idx": len(self.recorder.operators) + index}
            if self.style == "old":
                args = {
                    "Device": self.pid,
                    "External id": external,
                    "Trace name": "PyTorch Profiler",
                    "Trace iteration": 0,
                }
            self.add("user_annotation", name, self.pid, self.lane(self.threads[thread], False), start, end, args)
        self._functions()

    def _operator(self, index, name, thread, start, end, external, shapes, dtype, sequence):
        args = {"External id": external}
        if self.style == "new":
            args["Record function id"] = 0
        if sequence is not None:
            args["Sequence number"], args["Fwd thread id"] = sequence, int(thread > 0)
        if self.style == "old":
            args = {"Device": self.pid, **args, "Trace name": "PyTorch Profiler", "Trace iteration": 0}
        if self.recorder.profile.shapes and shapes:
            args["Input Dims"] = [list(shape) for shape in shapes]
            args["Input type"] = [TYPES.get(dtype, dtype) if shape else "Scalar" for shape in shapes]
        name, _, kind = name.partition(":") if name.startswith("record_param_comms") else (name, "", "")
        if kind and self.style == "new":
            args.update(self._collective(kind, shapes[0][0], dtype))
        args["Ev Idx"] = index
        self.add("cpu_op", name, self.pid, self.lane(self.threads[thread], False), start, end, args)

    def _collective(self, kind: str, count: int, dtype: str) -> dict:
        """What newer versions say about a collective."""
        return {
            "Collective name": kind,
            "In msg nelems": count,
            "Out msg nelems": count,
            "Group size": self.ranks,
            "dtype": DTYPE[dtype],
            "Process Group Name": "0",
            "Process Group Description": "default_pg",
            "Process Group Ranks": str(list(range(self.ranks))),
        }

    def _functions(self):
        if not self.recorder.profile.stack:
            return
        end = self.marks[-1][1]
        frames = [
            ("train.py(112): <module>", 0, self.start, end),
            ("train.py(61): train_epoch", 0, self.start + 100, end - 100),
        ]
        for number, (name, thread, start, stop) in enumerate(frames + self.recorder.functions):
            args = {"Python id": number + 1, "Python parent id": min(number, 2) or None, "Ev Idx": number}
            if name.startswith("nn.Module"):
                args["Python module id"] = number % 40
            self.add("python_function", name, self.pid, self.threads[thread], start, stop, args)

    def memory(self):
        """The allocator's events: a tensor comes with each operator, another goes."""
        held = 2**30
        for name, thread, _, end, external, shapes, *_ in self.recorder.operators:
            if not name.startswith("aten::") or not shapes:
                continue
            size = 512 * max(1, prod(shapes[0]) * 4 // 512)
            held = max(0, held + (size if external % 2 else -size))
            args = {
                "Ev Idx": external,
                "Device Type": 1,
                "Device Id": self.rank,
                "Addr": 139926520725504 + external * 512,
            }
            args.update({"Bytes": size if external % 2 else -size, "Total Allocated": held, "Total Reserved": 2**34})
            tid = self.lane(self.threads[thread], False)
            event = {"ph": "i", "cat": "cpu_instant_event", "s": "t", "name": "[memory]", "pid": self.pid, "tid": tid}
            self.events.append({**event, "ts": self.time(end), "args": args})

    def calls(self):
        """Runtime calls and the beginnings of flows."""
        launched = {task.launch.correlation for task in self.recorder.tasks if task.launch is not None}
        for call in self.recorder.calls:
            driver = call.name.startswith("cuLaunch")
            args = {"External id": call.external, "cbid": CBID.get(call.name, 0), "correlation": call.correlation}
            if self.amd:
                args = {"External id": call.external, "cid": 1, "correlation": call.correlation}
            if self.style == "old":
                stamp = self.time(call.start)
                args = {"cbid": args["cbid"], "correlation": call.correlation, "external id": call.external}
                args["external ts"] = stamp
            name = "INVALID" if self.style == "middle" and call.name == "cudaLaunchKernelExC" else call.name
            tid = self.lane(self.threads[call.thread], False)
            self.add("cuda_driver" if driver else "cuda_runtime", name, self.pid, tid, call.start, call.end, args)
            if call.correlation in launched and self.draw.random() >= self.drop_flow:
                self._flow("s", call.correlation, self.pid, self.threads[call.thread], call.start)

    def _flow(self, phase: str, number: int, pid, tid, at: float):
        name = "launch" if self.style == "old" else "ac2g"
        event = {"ph": phase, "id": number, "pid": pid, "tid": tid, "ts": self.time(at), "cat": self.category("ac2g")}
        self.events.append({**event, "name": name, **({"bp": "e"} if phase == "f" else {})})

    def tasks(self):
        """Work of the device and the ends of flows; work launched before the window has no flow."""
        orphan = 3000
        for task in self.recorder.tasks:
            if task.end <= self.start:
                continue
            launch = task.launch
            if launch is None:
                orphan -= 2
                launch = Launch("", 0, 0.0, 0.0, orphan, 0)
            stream = task.stream.number
            name, category, args = self._device_args(task, launch)
            self.add(category, name, self.rank, self.lane(stream, True), task.start, task.end, args)
            if task.launch is not None:
                self._flow("f", launch.correlation, self.rank, self.lane(stream, True), task.start)

    def _device_args(self, task, launch: Launch) -> tuple:
        stream = task.stream.number
        ids = {"External id": launch.external} if self.style != "old" else {}
        ids.update({"device": self.rank, "context": 1, "stream": stream, "correlation": launch.correlation})
        if self.style == "old":
            ids["external id"] = launch.external
        if task.kind == "copy":
            rate = task.bytes / max(task.end - task.start, 1.0)
            return task.name, "gpu_memcpy", {**ids, "bytes": task.bytes, "memory bandwidth (GB/s)": round(rate, 6)}
        blocks, threads = (task.kernel.blocks, task.kernel.threads) if task.kernel else (16, 544)
        if self.amd:
            args = {
                "External id": launch.external,
                "device": self.rank,
                "stream": stream,
                "correlation": launch.correlation,
            }
            args.update({"kind": "Dispatch Kernel", "grid": [blocks * threads, 1, 1], "block": [threads, 1, 1]})
        else:
            args = {**ids, "queued": 0, **self._occupancy(blocks, threads)}
        if task.kind == "collective" and self.style == "new":
            size = 2 if "f16" in task.name else 4
            args.update(
                self._collective(task.collective.kind, task.bytes // size, "c10::Half" if size == 2 else "float")
            )
        return task.name, "kernel", args

    def _occupancy(self, blocks: int, threads: int) -> dict:
        per_sm = round(blocks / self.spec.sms, 6)
        warps = per_sm * -(-threads // 32)
        return {
            "registers per thread": 32 if threads < 256 else 96,
            "shared memory": 0,
            "blocks per SM": per_sm,
            "warps per SM": round(warps, 6),
            "grid": [blocks, 1, 1],
            "block": [threads, 1, 1],
            "est. achieved occupancy %": min(100, int(warps * 100 / 64)),
        }

    def annotations_on_device(self):
        """gpu_user_annotation of each step, in newer versions."""
        if self.style != "new":
            return
        for step in range(self.recorder.profile.first, len(self.marks)):
            tasks = [task for task in self.recorder.tasks if task.step == step and task.stream.number in (0, 7)]
            if tasks:
                args = {"External id": 0}
                lane = tasks[0].stream.number
                name, start, end = f"ProfilerStep#{step}", tasks[0].start, tasks[-1].end
                self.add("gpu_user_annotation", name, self.rank, lane, max(start, self.start), end, args)

    def watchdog(self):
        """NCCL's watchdog asks for events from a thread of its own (seen in shared/traces/ddp-v100)."""
        if self.ranks == 1 or self.amd or self.draw.random() < 0.4:
            return
        at, number = self.start + 2e6, 900000
        while at < self.marks[-1][1]:
            args = {"External id": 0, "cbid": 138, "correlation": number}
            self.add("cuda_runtime", "cudaEventQuery", self.pid, self.lane(self.threads[2], False), at, at + 2500, args)
            number += 1
            at += 1e8 if self.draw.random() < 0.1 else 2e6

    def metadata(self):
        """Names of processes and threads, and the frame of the recording."""
        stamp, end = self.time(self.start), max([self.marks[-1][1], *(task.end for task in self.recorder.tasks)])
        for pid, label in ((self.pid, "CPU"), *((device, f"GPU {device}") for device in range(8))):
            order = self.pid if label == "CPU" else 5000000 + pid
            for name, args in (
                ("process_name", {"name": "python3"}),
                ("process_labels", {"labels": label}),
                ("process_sort_index", {"sort_index": order}),
            ):
                self.events.append({"name": name, "ph": "M", "ts": stamp, "pid": pid, "tid": 0, "args": args})
        for thread in self.threads[:2]:
            args = {"name": f"thread {thread} (python3)"}
            tid = self.lane(thread, False)
            self.events.append(
                {"name": "thread_name", "ph": "M", "ts": stamp, "pid": self.pid, "tid": tid, "args": args}
            )
        self.add(
            "Trace", "PyTorch Profiler (0)", "Spans", "PyTorch Profiler", self.start - 5e4, end + 5e4, {"Op count": 0}
        )
        marks = (("Iteration Start: PyTorch Profiler", self.start - 5e4), ("Record Window End", end + 4e6))
        for name, at in marks:
            self.events.append({"name": name, "ph": "i", "s": "g", "pid": "", "tid": "", "ts": self.time(at)})

    def head(self) -> dict:
        """Everything but the events."""
        head = {"schemaVersion": 1, "deviceProperties": [self._device(number) for number in range(max(self.ranks, 1))]}
        if self.ranks > 1:
            head["distributedInfo"] = {"backend": "nccl", "rank": self.rank, "world_size": self.ranks}
        if self.recorder.profile.memory:
            head["profile_memory"] = 1
        if self.style == "new":
            head["hip_runtime_version" if self.amd else "cuda_runtime_version"] = 60443483 if self.amd else 12040
            head.update(
                {"record_shapes": int(self.recorder.profile.shapes), "with_stack": int(self.recorder.profile.stack)}
            )
            head.update({"displayTimeUnit": "ms", "baseTimeNanoseconds": 1751410836000000000})
        head["traceName"] = f"./rank{self.rank}.pt.trace.json"
        return head

    def _device(self, number: int) -> dict:
        spec = self.spec
        return {
            "id": number,
            "name": spec.name,
            "totalGlobalMem": int(spec.gib * 2**30 * 0.99),
            "computeMajor": spec.capability[0],
            "computeMinor": spec.capability[1],
            "maxThreadsPerBlock": 1024,
            "maxThreadsPerMultiprocessor": 2048,
            "regsPerBlock": 65536,
            "warpSize": 64 if self.amd else 32,
            "sharedMemPerBlock": 65536 if self.amd else 49152,
            "numSms": spec.sms,
            "sharedMemPerMultiprocessor": spec.shared,
        }

    def write(self, path: Path):
        """The file."""
        self.metadata()
        self.host_events()
        if self.recorder.profile.memory:
            self.memory()
        self.calls()
        self.tasks()
        self.annotations_on_device()
        self.watchdog()
        head = json.dumps(self.head())[:-1]
        with path.open("w", encoding="utf-8") as out:
            out.write(f'{head}, "traceEvents": [\n')
            out.write(",\n".join(map(json.dumps, self.events)))
            out.write("\n]}\n")
