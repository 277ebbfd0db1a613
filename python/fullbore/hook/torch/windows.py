"""What the device, or the CPU's operators, really did: short windows of torch's own profiler.

The clock of the host does not show it, and a profiler that is always on makes a step take twice as long. So a few whole
steps are recorded, all ranks at the same step number, and the trace goes to the recorder. These steps, and the one that
pays for the profiler's end, are marked: they count in no throughput.

A window never collides with a profiler of the script's own, with a graph capture, or with another window; one that
fails is the last one. The training never notices.
"""

from __future__ import annotations

import contextlib
import functools
import os
import sys
import threading
import time
import warnings
from collections.abc import Callable, Iterator
from typing import Any

from ..core import channel, steps
from ..core.interrupts import is_the_scripts
from ..core.runtime import Thread, guarded, hook, never_interrupted
from ..core.steps import state
from . import denormals
from .window_plan import Operators, Plan, PlanOnCpu

VARIABLE = "FULLBORE_WINDOWS"  # set by `fullbore run --windows`: "off", "N@STEP", or the seconds between two windows
TRIAL = "FULLBORE_TRIAL"  # is short, and measured: nobody reads its operators
LOG_LEVEL = "KINETO_LOG_LEVEL"
MAX_NS = 10_000_000_000  # a window that lasts longer ends early: its trace would be too large to read
EXPORT_S = 10.0  # how long the end of the process, or a fork, waits for a trace that is being written


@contextlib.contextmanager
def silent() -> Iterator[None]:
    """The profiler's library says on standard error that it starts and stops. It asks for this variable when it is used
    for the first time."""
    if LOG_LEVEL in os.environ:
        yield
        return
    os.environ[LOG_LEVEL] = "99"
    try:
        yield
    finally:
        os.environ.pop(LOG_LEVEL, None)


def calls_at_exit() -> Callable[[], None] | None:
    """What a forked child calls to end as it would if nobody had profiled in its parent. The profiler's library joins a
    thread when the process exits, which the child does not have: it would wait for ever (libkineto, seen with torch
    2.13). So its exit ends before that, with its status and with what C has yet to write. Made before the fork: to look
    for functions in a child of threads is not safe. None where C's library has no such functions."""
    import ctypes

    library = ctypes.CDLL(None)
    try:
        address = {name: ctypes.cast(library[name], ctypes.c_void_p) for name in ("_exit", "fflush")}
        on_exit, at_exit = library["on_exit"], library["__cxa_atexit"]
    except AttributeError as error:
        if is_the_scripts(error):
            raise
        return None
    on_exit.argtypes = [ctypes.c_void_p, ctypes.c_void_p]
    at_exit.argtypes = [ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p]

    def call() -> None:  # the last to be asked for is called first
        on_exit(address["_exit"], None)
        at_exit(address["fflush"], None, None)

    return call


class Windows:
    """At most one window at a time, on the thread that steps."""

    def __init__(self, torch: Any, plan: Plan, asked: bool, on_cpu: PlanOnCpu | None = None) -> None:
        self.torch = torch
        self.plan = self.own_plan = plan
        self.asked = asked
        self.on_cpu = on_cpu  # where nobody asked: the plan until a device is used; None: no windows until then
        self.profiler: Any = None
        self.closing = False  # the current step pays for the end of a window
        self.thread: Thread | None = None
        self.begin_step = self.begin_ns = 0
        self.exporting: threading.Thread | None = None
        self.end_child: Callable[[], None] | None = None  # once there was a window

    def look(self, optimizer: Any, thread: Thread, end: int) -> None:
        """After some steps: between windows, the others cost nothing."""
        if self.profiler is not None or self.closing:
            return
        plan = self.plan_for(optimizer)
        if plan is None:
            return
        plan.note_pace(end)
        if not plan.is_due(end, channel.env_int("WORLD_SIZE", 1) > 1):
            return
        self.plan = plan
        # Elsewhere its library complains on standard error, and nobody could switch it off when the interpreter ends.
        if threading.current_thread() is not threading.main_thread():
            self.have_none()
        elif self.may_begin():
            if not self.torch.cuda.is_initialized():
                denormals.look(self.torch, optimizer)
            self.begin(thread, end)
        else:
            steps.look_soon()

    def have_none(self) -> None:
        """The training runs in another thread than the main one, and will."""
        self.end_plans()
        if self.asked:
            text = "there are no device windows: the training runs in another thread than the main one"
            hook.say("message", severity="info", source="windows", text=text)

    def plan_for(self, optimizer: Any) -> Plan | None:
        if self.asked or self.torch.cuda.is_initialized():
            return self.own_plan
        if self.on_cpu is None or hook.facts.get("framework") != "torch":
            return None
        groups = getattr(optimizer, "param_groups", ())
        self.on_cpu.parameters = sum(len(group["params"]) for group in groups)
        return self.on_cpu

    def after_step(self, optimizer: Any, thread: Thread, end: int) -> None:
        """After each step of a window."""
        if self.profiler is not None:
            if thread is self.thread:
                self.go_on(end)
        elif self.closing:
            self.closing = False
            state.in_window = 0
            steps.after_step.remove(self.after_step)
            self.plan.ended(end, end - self.begin_ns)

    def may_begin(self) -> bool:
        cuda = self.torch.cuda
        if self.exporting is not None and self.exporting.is_alive():
            return False
        if self.torch.autograd._profiler_enabled():  # the script's own
            return False
        return not (cuda.is_initialized() and cuda.is_current_stream_capturing())

    def begin(self, thread: Thread, now: int) -> None:
        profiler = self.torch.profiler
        activities = [profiler.ProfilerActivity.CPU]
        if self.torch.cuda.is_initialized():
            activities.append(profiler.ProfilerActivity.CUDA)
        elif self.asked and has_device_support(self.torch) and "no device" not in hook.said:
            hook.said.add("no device")
            text = "the training uses no device: its windows hold the operators of the CPU only"
            hook.say("message", severity="info", source="windows", text=text)
        self.thread, self.begin_step, self.begin_ns = thread, hook.steps, now
        self.end_child = self.end_child or calls_at_exit()
        state.in_window = 1
        steps.after_step.append(self.after_step)
        self.profiler = profiler.profile(
            activities=activities,
            record_shapes=True,
            schedule=lambda step: profiler.ProfilerAction.RECORD,  # without a schedule it marks no steps
        )
        try:
            # Before torch 2.13 it warns that a second cycle would lose the events of the first. There is none, and what
            # it asks for instead, acc_events, makes the end of a window seven times as long.
            with silent(), warnings.catch_warnings():
                warnings.simplefilter("ignore")
                self.profiler.start()
        except Exception as error:
            if is_the_scripts(error):
                raise
            self.give_up(error)

    def go_on(self, now: int) -> None:
        try:
            if hook.steps - self.begin_step >= self.plan.steps or now - self.begin_ns > MAX_NS:
                self.end()
            else:
                self.profiler.step()
        except Exception as error:
            if is_the_scripts(error):
                raise
            self.give_up(error)

    def end(self) -> None:
        """Stops the profiler; its trace is written beside the training."""
        profiler, self.closing = self.profiler, True
        with silent():
            profiler.stop()
        self.profiler = None
        said = {"first_step": self.begin_step, "steps": hook.steps - self.begin_step}
        name = f"{os.getpid()}-window{self.begin_step}.json"
        if said["steps"] > 0:
            self.exporting = threading.Thread(
                target=self.export, args=(profiler, name, said), name="fullbore-window", daemon=True
            )
            self.exporting.start()

    def export(self, profiler: Any, name: str, said: dict[str, int]) -> None:
        path = os.path.join(channel.DISK or hook.directory, name)
        try:
            profiler.export_chrome_trace(path)
            hook.say("device_window", file=name, **said)
        except Exception as error:
            if is_the_scripts(error):
                raise
            self.give_up(error)

    def give_up(self, error: Exception) -> None:
        """The last window. What the profiler holds goes with it."""
        profiler, self.profiler = self.profiler, None
        self.closing = bool(state.in_window)
        self.end_plans()
        text = f"no more device windows: {type(error).__name__}: {error}"
        hook.say("message", severity="warning", source="windows", text=text)
        if profiler is not None:
            self.switch_off(profiler)

    def switch_off(self, profiler: Any) -> None:
        """Whatever state it is in: a profiler that is still on when the interpreter ends takes the process with it."""
        self.call(profiler.stop)  # it may not have started
        self.call(self.let_go)

    def let_go(self) -> None:
        """Drops what is recorded, without the profiler's own end, which waits for the device. It takes effect only on
        the thread that began."""
        autograd = self.torch._C._autograd
        if autograd._profiler_enabled():
            autograd._disable_profiler()

    @staticmethod
    def call(end: Callable[[], Any]) -> None:
        try:
            with silent():
                end()
        except Exception as error:
            if is_the_scripts(error):
                raise

    def end_plans(self) -> None:
        for plan in (self.own_plan, self.on_cpu):
            if plan is not None:
                plan.next_step = None

    def make_room(self) -> None:
        """The script starts a profiler of its own: ours ends first, and its trace is dropped."""
        profiler, self.profiler = self.profiler, None
        if profiler is not None:
            self.closing = True
            self.switch_off(profiler)

    def leave(self) -> None:
        """The interpreter ends. Torch's own destructors, which come later, take the process with them where they meet a
        profiler that is still on. The device may never finish: where another rank has failed, it waits for an exchange
        with that one. So nobody waits for it here (Kineto does by itself with ROCm, which cannot be helped)."""
        profiler, self.profiler = self.profiler, None
        if profiler is not None:
            self.closing = True
            if self.torch.cuda.is_initialized():
                self.call(self.let_go)
            else:
                self.switch_off(profiler)
        self.wait()

    def wait(self) -> None:
        """For the trace that is being written: at the end of the process, and before a fork, of which Python warns
        where there are threads."""
        if self.exporting is not None:
            self.exporting.join(EXPORT_S)

    def forget(self) -> None:
        """In a forked child."""
        if self.end_child is not None:
            self.end_child()
        self.profiler = self.exporting = None
        self.end_plans()
        self.let_steps_go()

    def let_steps_go(self) -> None:
        self.closing = False
        if self.after_step in steps.after_step:
            steps.after_step.remove(self.after_step)

    def begin_anew(self) -> None:
        """Another run in this process: its windows are its own."""
        self.plan = self.own_plan = Plan(os.environ.get(VARIABLE, ""))
        self.on_cpu = None if self.on_cpu is None else plan_on_cpu(self.torch)
        self.exporting = None
        self.let_steps_go()


def attach_profiler(module: Any, windows: Windows) -> None:
    """Patches torch.autograd.profiler, on which torch.profiler is built."""
    prepare = getattr(module.profile, "_prepare_trace", None)
    if prepare is None:
        return

    @functools.wraps(prepare)
    def _prepare_trace(self: Any) -> None:
        if windows.profiler is not None and self is not getattr(windows.profiler, "profiler", None):
            guarded(windows.make_room)()
        prepare(self)

    module.profile._prepare_trace = _prepare_trace


def has_device_support(torch: Any) -> bool:
    return bool(torch.version.cuda or getattr(torch.version, "hip", None))


def busy_ns() -> int:
    """How long this thread has run, or wanted to: beside other programs a training that computes waits for a core."""
    try:
        file = os.open("/proc/thread-self/schedstat", os.O_RDONLY | os.O_CLOEXEC)
        try:
            ran, queued = os.read(file, 128).split()[:2]
        finally:
            os.close(file)
        return int(ran) + int(queued)
    except (OSError, ValueError) as error:
        if is_the_scripts(error):
            raise
        return time.process_time_ns()


def plan_on_cpu(torch: Any) -> PlanOnCpu | None:
    """None where a run on a CPU has windows by request only: before torch 2.1, which does not say how many nodes of
    autograd there are, nobody knows what one would cost."""
    sequence = getattr(torch._C._autograd, "_get_sequence_nr", None)
    if sequence is None or os.environ.get(TRIAL):
        return None
    return PlanOnCpu(Operators(sequence, busy_ns))


def attach(autograd_profiler: Any) -> None:
    """On by default, where a device is used or the CPU computes."""
    torch = sys.modules["torch"]
    asked = os.environ.get(VARIABLE, "")
    on_cpu = None if asked else plan_on_cpu(torch)
    if asked == "off" or (not asked and on_cpu is None and not has_device_support(torch)):
        return
    windows = Windows(torch, Plan(asked), bool(asked), on_cpu)
    attach_profiler(autograd_profiler, windows)
    steps.now_and_then.append(windows.look)
    os.register_at_fork(before=never_interrupted(windows.wait))
    hook.in_child.append(windows.forget)
    hook.at_new_run.append(windows.begin_anew)
    hook.at_end(never_interrupted(windows.leave))
