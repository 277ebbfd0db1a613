"""The recording that a profiler would have made: what is in it is what happened."""

from __future__ import annotations

import json

import pytest
from device.simulate import simulate
from device.trace import BASE_NS, write_traces
from simulated import program


def recording(folder, **settings) -> tuple[list[dict], dict, object]:
    run = simulate(program(**settings), "trace")
    text = write_traces(run, folder)[0].read_text()
    head = json.loads(text)
    return head.pop("traceEvents"), head, run


def of_category(events: list[dict], category: str) -> list[dict]:
    return [event for event in events if event.get("cat") == category]


def begin_ns(event: dict) -> int:
    return round(event["ts"] * 1000) - BASE_NS


def test_every_kernel_has_its_call_and_its_time_to_the_nanosecond(tmp_path):
    events, _, run = recording(tmp_path)
    calls = {event["args"]["correlation"] for event in of_category(events, "cuda_runtime")}
    kernels = of_category(events, "kernel")
    began = {work.correlation: work for work in run.hosts[0].gpu.history}
    assert len(kernels) > 200
    for kernel in kernels:
        work = began[kernel["args"]["correlation"]]
        assert kernel["args"]["correlation"] in calls
        # floating point holds microseconds since the base time to a fraction of one
        assert abs(begin_ns(kernel) - work.begin) < 1000
        assert round(kernel["dur"] * 1000) == work.end - work.begin


def test_numbers_are_written_to_the_nanosecond(tmp_path):
    run = simulate(program(), "trace")
    text = write_traces(run, tmp_path)[0].read_text()
    work = max(run.hosts[0].gpu.history, key=lambda work: work.begin)
    moment = work.begin + BASE_NS
    assert f'"ts": {moment // 1000}.{moment % 1000:03}, "dur"' in text


def test_steps_are_marked_on_the_host_and_on_the_device(tmp_path):
    events, _, run = recording(tmp_path)
    marked = [event["name"] for event in of_category(events, "user_annotation") if "ProfilerStep" in event["name"]]
    assert marked == [f"ProfilerStep#{number}" for number in range(3, 7)]
    assert len([e for e in of_category(events, "gpu_user_annotation") if "ProfilerStep" in e["name"]]) == 4


def test_copies_say_between_which_memories_and_how_many_bytes(tmp_path):
    events, _, run = recording(tmp_path, pinned=False)
    copies = of_category(events, "gpu_memcpy")
    assert {copy["name"] for copy in copies} == {"Memcpy HtoD (Pageable -> Device)"}
    assert run.program.batch_bytes in {copy["args"]["bytes"] for copy in copies}


def test_operators_carry_shapes_if_they_were_asked_for(tmp_path):
    shaped, _, _ = recording(tmp_path)
    bare, _, _ = recording(tmp_path, shapes=False)
    product = next(event for event in shaped if event["name"] == "aten::addmm")
    assert product["args"]["Input Dims"][1:3] == [[1024, 256], [256, 768]]
    assert product["args"]["Input type"][1] == "c10::BFloat16"
    assert not any("Input Dims" in event["args"] for event in of_category(bare, "cpu_op"))


def test_operators_of_a_thread_nest(tmp_path):
    events, _, _ = recording(tmp_path)
    for thread in {event["tid"] for event in of_category(events, "cpu_op")}:
        spans = [event for event in of_category(events, "cpu_op") if event["tid"] == thread]
        spans = sorted((begin_ns(e), -round(e["dur"] * 1000)) for e in spans)
        open_until: list[int] = []
        for begin, minus in spans:
            while open_until and open_until[-1] <= begin:
                open_until.pop()
            assert not open_until or begin - minus <= open_until[-1] + 1000  # of rounding, as above
            open_until.append(begin - minus)


def test_ranks_say_who_they_are_and_what_they_exchange(tmp_path):
    events, head, run = recording(tmp_path, ranks=2)
    assert head["distributedInfo"] == {"backend": "nccl", "rank": 0, "world_size": 2}
    assert len(list(tmp_path.iterdir())) == 2
    kernels = [event for event in of_category(events, "kernel") if event["name"].startswith("nccl")]
    assert kernels and all(kernel["args"]["Collective name"] == "allreduce" for kernel in kernels)


def test_events_between_streams_are_recorded_if_they_were_asked_for(tmp_path):
    events, _, _ = recording(tmp_path, side_stream=True, sync_events=True)
    waits = [event for event in of_category(events, "cuda_sync") if event["name"] == "Stream Wait Event"]
    assert len(waits) == 4
    assert {wait["args"]["wait_on_stream"] for wait in waits} == {20}
    assert {wait["args"]["stream"] for wait in waits} == {7}
    plain, _, _ = recording(tmp_path, side_stream=True)
    assert not of_category(plain, "cuda_sync")


def test_amd_has_its_own_names(tmp_path):
    events, head, _ = recording(tmp_path, device_key="mi300x", pinned=False, non_blocking=False)
    assert head["deviceProperties"][0]["name"] == "AMD Instinct MI300X"
    called = {event["name"] for event in of_category(events, "cuda_runtime")}
    assert {"hipLaunchKernel", "hipExtModuleLaunchKernel", "hipMemcpyWithStream"} <= called
    assert not any(name.startswith("cuda") for name in called)


def test_old_profilers_count_whole_microseconds(tmp_path):
    events, _, _ = recording(tmp_path, whole_microseconds=True)
    assert all(isinstance(event["ts"], int) for event in events)


@pytest.mark.parametrize("cold", [True, False])
def test_what_ran_before_the_recording_is_not_in_it(tmp_path, cold):
    events, _, run = recording(tmp_path, cold=cold, batch=128)
    begin = run.hosts[0].step_begins[3]
    assert all(begin_ns(event) >= begin - 1000 for event in events)


def test_a_recording_without_host_events_has_calls_and_kernels_only(tmp_path):
    events, _, _ = recording(tmp_path, host_events=False)
    assert {event["cat"] for event in events if "cat" in event} == {"cuda_runtime", "kernel", "gpu_memcpy"}
