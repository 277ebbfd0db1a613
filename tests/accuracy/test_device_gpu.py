"""The laws of streams, the launch queue, the link and collectives."""

from __future__ import annotations

import pytest
from device.gpu import COLLECTIVE
from device.hardware import COLLECTIVE_SLOWS, EVENT_NS, LAUNCH_QUEUE
from device.host import COMPUTE, COPIES, NCCL
from simulated import A100, kernel, played

MS = 1_000_000


def launches(count: int, ns: int, stream: int = COMPUTE, fill: float = 1.0):
    def part(host):
        for number in range(count):
            yield from host.launch(kernel(ns, fill, f"{number}"), stream, 0)

    return part


def test_a_kernel_on_an_idle_stream_begins_one_delay_after_its_launch():
    (host,) = played(launches(1, 1000))
    assert host.gpu.history[0].begin - host.calls[0].begin == A100.delay_ns


def test_kernels_of_a_stream_run_in_the_order_of_their_launches_with_the_gap_between_them():
    (host,) = played(launches(20, 50_000))
    works = host.gpu.history
    assert [work.name for work in works] == [f"{number}" for number in range(20)]
    assert {later.begin - earlier.end for earlier, later in zip(works, works[1:])} == {A100.gap_ns}


def test_a_launch_returns_while_its_kernel_has_yet_to_run():
    (host,) = played(launches(3, MS))
    assert all(call.end - call.begin == A100.call_ns for call in host.calls)


def test_a_full_launch_queue_holds_the_host_up():
    (host,) = played(launches(LAUNCH_QUEUE + 50, 10 * MS))
    calls, works = host.calls, host.gpu.history
    waited = [call for call in calls if call.end - call.begin > A100.call_ns]
    assert len(waited) == 50
    for number in range(LAUNCH_QUEUE, len(calls)):
        assert calls[number].end >= works[number - LAUNCH_QUEUE].end


def test_kernels_on_two_streams_share_a_device_that_each_would_fill():
    (host,) = played(lambda host: two_streams(host, 1.0))
    first, second = host.gpu.history
    assert first.end - first.begin > 1.8 * MS
    work_ns = 2 * MS
    assert max(first.end, second.end) - min(first.begin, second.begin) == pytest.approx(work_ns, rel=0.01)


def test_kernels_that_fill_half_a_device_do_not_hold_each_other_up():
    (host,) = played(lambda host: two_streams(host, 0.5))
    assert [work.end - work.begin for work in host.gpu.history] == [MS, MS]


def two_streams(host, fill):
    yield from host.launch(kernel(MS, fill), COMPUTE, 0)
    yield from host.launch(kernel(MS, fill), COPIES, 0)


def test_a_stream_that_waits_for_an_event_begins_after_what_it_stands_for():
    def part(host):
        yield from host.launch(kernel(MS), COMPUTE, 0)
        yield from host.record_event("done", COMPUTE)
        yield from host.wait_event("done", COPIES)
        yield from host.launch(kernel(MS), COPIES, 0)

    (host,) = played(part)
    first, second = host.gpu.history
    assert second.begin == first.end + EVENT_NS


def test_an_event_that_has_happened_holds_nobody_up():
    def part(host):
        yield from host.launch(kernel(1000), COMPUTE, 0)
        yield from host.record_event("done", COMPUTE)
        yield MS
        yield from host.wait_event("done", COPIES)
        yield from host.launch(kernel(1000), COPIES, 0)

    (host,) = played(part)
    launch = [call for call in host.calls if "Launch" in call.name][1]
    assert host.gpu.history[1].begin == launch.begin + A100.delay_ns


def copies(size: int, **how):
    def part(host):
        yield from host.copy("HtoD", size, how.get("pinned", True), how.get("blocking", False))
        yield from host.launch(kernel(1000), COMPUTE, 0)

    return part


def test_a_copy_from_pinned_memory_reaches_the_rate_of_the_link_and_does_not_block():
    (host,) = played(copies(252_000_000))
    copy = host.gpu.history[0]
    assert 252_000_000 / (copy.end - copy.begin) == pytest.approx(A100.link_bytes_per_s / 1e9, rel=0.001)
    assert host.calls[0].end < copy.begin + 10_000


@pytest.mark.parametrize("blocking", [False, True])
def test_a_copy_from_pageable_memory_blocks_the_host_whatever_was_asked_for(blocking):
    (host,) = played(copies(50_000_000, pinned=False, blocking=blocking))
    copy, after = host.gpu.history
    assert copy.end - copy.begin > 2 * 50_000_000 / A100.link_bytes_per_s * 1e9
    assert host.calls[0].end >= copy.end
    assert after.begin > copy.end + A100.delay_ns  # nothing could be launched meanwhile


def test_a_small_copy_from_pageable_memory_is_staged_and_returns():
    def part(host):
        yield from host.launch(kernel(MS), COMPUTE, 0)
        yield from host.copy("HtoD", 4096, pinned=False, blocking=False)

    (host,) = played(part)
    assert host.calls[1].end < host.gpu.history[0].end


def test_a_blocking_copy_from_pinned_memory_waits_for_all_of_its_stream():
    def part(host):
        yield from host.launch(kernel(MS), COMPUTE, 0)
        yield from host.copy("HtoD", 1024, pinned=True, blocking=True)

    (host,) = played(part)
    sync = next(call for call in host.calls if "Synchronize" in call.name)
    assert sync.end > host.gpu.history[1].end > MS


def test_copies_in_one_direction_take_turns_on_the_link_and_opposite_ones_do_not():
    def part(host):
        yield from host.copy("HtoD", 25_200_000, True, False, COMPUTE)
        yield from host.copy("HtoD", 25_200_000, True, False, COPIES)
        yield from host.copy("DtoH", 25_200_000, True, False, NCCL)

    (host,) = played(part)
    works = {work.stream: work for work in host.gpu.history}
    assert works[COPIES].begin >= works[COMPUTE].end
    assert works[NCCL].begin < works[COMPUTE].end
    assert all(work.end - work.begin == pytest.approx(MS, rel=0.01) for work in works.values())


def test_reading_a_value_waits_for_everything_that_was_queued_before():
    def part(host):
        yield from host.launch(kernel(5 * MS), COMPUTE, 0)
        yield from host.item()

    (host,) = played(part)
    assert host.engine.now > 5 * MS
    assert host.activities[0].tag == "blocked"


def test_a_synchronisation_of_the_device_waits_for_all_streams():
    def part(host):
        yield from host.launch(kernel(MS), COMPUTE, 0)
        yield from host.launch(kernel(3 * MS, 0.1), COPIES, 0)
        yield from host.device_sync()

    (host,) = played(part)
    assert host.calls[-1].end > max(work.end for work in host.gpu.history)


def rank_that_comes_at(ns: int, collective_ns: int = 2 * MS):
    def part(host):
        yield ns
        yield from host.collective("all", kernel(collective_ns, 0.0, "nccl"))
        yield from host.wait_event("after all", COMPUTE)
        yield from host.launch(kernel(1000), COMPUTE, 0)

    return part


def test_a_collective_moves_data_once_the_last_rank_has_come_and_ends_everywhere_at_once():
    made = played(rank_that_comes_at(0), rank_that_comes_at(7 * MS), rank_that_comes_at(3 * MS))
    collectives = [next(work for work in host.gpu.history if work.kind == COLLECTIVE) for host in made]
    last = max(work.begin for work in collectives)
    assert last == collectives[1].begin
    assert {work.end for work in collectives} == {last + 2 * MS}
    assert collectives[0].begin < 1 * MS  # its kernel runs, and waits, from when it was launched


def test_what_needs_the_collectives_result_runs_after_it():
    made = played(rank_that_comes_at(0), rank_that_comes_at(MS))
    for host in made:
        collective, after = host.gpu.history
        assert after.begin == collective.end + EVENT_NS


def test_computation_beside_a_collective_is_slowed_only_while_it_runs():
    def part(host):
        yield from host.collective("all", kernel(MS, 0.0, "nccl"))
        yield from host.launch(kernel(4 * MS), COMPUTE, 0)

    (host,) = played(part)
    collective, computed = host.gpu.history
    beside = collective.end - computed.begin
    lost = beside - beside / (1 + COLLECTIVE_SLOWS)
    assert computed.end - computed.begin == pytest.approx(4 * MS + lost, abs=2)


def test_a_graph_is_one_launch_with_its_kernels_close_together():
    def part(host):
        yield from host.graph([kernel(5_000)] * 40)

    (host,) = played(part)
    works = host.gpu.history
    assert len(host.calls) == 1
    assert {work.correlation for work in works} == {host.calls[0].correlation}
    assert max(later.begin - earlier.end for earlier, later in zip(works, works[1:])) < A100.gap_ns
