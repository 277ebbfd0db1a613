"""What the code blocks of the findings' pages assume, and what they and the text around them claim.

A block is a fragment, so GIVEN defines the names that it does not define itself (a model, a loader). CLAIMS are what a
block must have achieved, FACTS what the text says about PyTorch and related libraries: code that fails if that is not
true of the versions pinned in scripts/requirements-test.txt.
"""

# Replacements for what needs a GPU.
ON_CPU = {
    '"cuda"': '"cpu"',
    "torch.cuda.synchronize": "torch.cpu.synchronize",
    "torch.cuda.get_device_capability()": "CAPABILITY",
    ".pin_memory()": ".clone()",
    "256 << 20": "1 << 20",
}

# What a block assumes, by name; each may use the others.
GIVEN = {
    "contextlib": "import contextlib",
    "datetime": "import datetime",
    "gc": "import gc",
    "math": "import math",
    "threading": "import threading",
    "time": "import time",
    "torch": "import torch",
    "DataLoader": "from torch.utils.data import DataLoader",
    "Dataset": "from torch.utils.data import Dataset",
    "BatchSampler": "from torch.utils.data import BatchSampler",
    "RandomSampler": "from torch.utils.data import RandomSampler",
    "DistributedSampler": "from torch.utils.data import DistributedSampler\nprocess_group",
    "DDP": "from torch.nn.parallel import DistributedDataParallel as DDP\nprocess_group",
    "process_group": "torch.distributed.init_process_group('gloo', store=torch.distributed.HashStore(), rank=0, "
    "world_size=1)\nprocess_group = torch.distributed.group.WORLD",
    "dataset": "dataset = torch.utils.data.TensorDataset(torch.rand(100, 3, 8, 8), torch.arange(100) % 10)",
    "batch_size": "batch_size = 16",
    "loader": "loader = DataLoader(dataset, batch_size=16)",
    "batch": "batch = next(iter(loader))",
    "images": "images = batch[0]",
    "labels": "labels = batch[1]",
    "device": "device = torch.device('cpu')",
    "small_model": "small_model = torch.nn.Sequential(torch.nn.Conv2d(3, 4, 3), torch.nn.Flatten(), "
    "torch.nn.Linear(144, 10))",
    "model": "model = small_model",
    "backbone": "backbone = small_model",
    "criterion": "criterion = torch.nn.CrossEntropyLoss()",
    "optimizer": "optimizer = torch.optim.SGD(model.parameters(), lr=0.01)",
    "loss": "loss = criterion(model(images), labels)",
    "train_step": "def train_step(images, labels):\n"
    "    criterion(model(images), labels).backward()\n"
    "    optimizer.step()\n"
    "    optimizer.zero_grad()",
    "N": "N = 3",
    "steps": "steps = 3",
    "prompts": "prompts = iter(range(steps + 1))",
    "send": "def send(prompt):\n    return prompt",
    "receive": "def receive(coming):\n    return images, labels",
    "step": "step = 500",
    "rank": "rank = 0",
    "path": "path = 'checkpoint.pt'",
    "total": "total = torch.ones(())",
    "logged": "logged = []",
    "log": "def log(value):\n    logged.append(value)",
    "saved": "saved = []",
    "save_in_background": "def save_in_background(model):\n    saved.append(model)",
    "q": "q = torch.rand(1, 2, 4, 8)",
    "k": "k = torch.rand(1, 2, 4, 8)",
    "v": "v = torch.rand(1, 2, 4, 8)",
    "block": "block = torch.nn.Linear(8, 8)",
    "x": "x = torch.rand(2, 8, requires_grad=True)",
    "CAPABILITY": "CAPABILITY = (7, 5)",
    # A DDP model that counts the buckets it exchanges: the models here fit into one.
    "exchanges": "exchanges = []",
    "ddp_model": "from torch.distributed.algorithms.ddp_comm_hooks import default_hooks\n"
    "ddp_model = DDP(small_model)\n"
    "def count(state, bucket):\n"
    "    exchanges.append(bucket)\n"
    "    return default_hooks.allreduce_hook(state, bucket)\n"
    "ddp_model.register_comm_hook(None, count)",
    # fullbore.data
    "fullbore": "import fullbore.data",
    "function": "import pathlib, sys\n"
    "pathlib.Path('page_function.py').write_text('def function(sample):\\n    return sample\\n')\n"
    "sys.path.insert(0, '.')\n"
    "from page_function import function",
}

# Names that mean something else in one block than in the others.
INSTEAD = {
    "comm-bound 3": {"model": "model = ddp_model"},
    "input-bound 8": {
        "loader": "from torchvision import datasets, transforms\n"
        "loader = DataLoader(datasets.ImageFolder('photos/train', transforms.ToTensor()), batch_size=4)"
    },
}

# What a block must have achieved.
CLAIMS = {
    # 100 samples are 7 batches: only the gradients of the third and the sixth were exchanged.
    "comm-bound 3": "assert len(exchanges) == 2, len(exchanges)",
    "copy-bound 2": "assert loader.pin_memory and images.device == device",
    "hang 3": "backend = torch.distributed.group.WORLD._get_backend(torch.device('cpu'))\n"
    "assert backend.options._timeout == datetime.timedelta(minutes=5), backend.options._timeout",
    # The next step does not change the checkpoint, although the model is on the CPU.
    "host-other 2": "before = {name: value.clone() for name, value in state.items()}\n"
    "train_step(*batch)\n"
    "writer.join()\n"
    "assert all(torch.equal(value, before[name]) for name, value in torch.load(path).items())\n"
    "assert not all(torch.equal(value, before[name]) for name, value in model.state_dict().items())",
    "host-other 3": "assert best.shape == (8 * 16,) and best.dtype == torch.int64",
    "host-other 4": "assert gc.get_freeze_count() > 0 and not gc.isenabled()",
    "input-bound 4": "assert coming == steps and len(batch) == 2",
    "input-bound 6": "assert [tuple(x.shape) for x, y in loader] == [(64, 64)] * 64",
    "input-bound 8": "assert sum(len(labels) for images, labels in loader) == 24",
    "input-bound 9": "assert sum(len(labels) for images, labels in loader) == 24\nloader.close()",
    "input-bound 10": "assert sum(len(labels) for images, labels in loader) == 24\nloader.close()",
    "straggler 2": "assert saved == [model]",
    "sync-bound 2": "assert len(logged) == 1 and not total",
    "frozen-network 2": "assert not backbone.training and not any(p.requires_grad for p in backbone.parameters())",
    "uneven-last-batch 1": "assert world == process_group.size() and samples % batch_size == 4",
    "uneven-last-batch 2": "assert [len(labels) for images, labels in loader] == [64]",
}

COUNTED = """
    exchanges.clear()
    for i, (images, labels) in enumerate(loader):
        synchronise = contextlib.nullcontext() if (i + 1) % 3 == 0 else ddp_model.no_sync()
"""
FACTS = {
    "no_sync around the backward pass alone saves no exchange": COUNTED
    + """
        loss = criterion(ddp_model(images), labels)
        with synchronise:
            loss.backward()
    assert len(exchanges) == len(loader) == 7, len(exchanges)
    """,
    "static_graph and no_sync do not go together": """
    frozen = DDP(model, static_graph=True)
    try:
        with frozen.no_sync():
            criterion(frozen(images), labels).backward()
    except RuntimeError as error:
        assert "expect_autograd_hooks_" in str(error), error
    else:
        raise AssertionError("they do by now: say so on the page comm-bound")
    """,
    "parameters without a gradient on all ranks alike end DDP with an error": """
    model.spare = torch.nn.Linear(2, 2)
    model.spare.forward = lambda x: x
    wrapped = DDP(model)
    try:
        for _ in range(2):
            wrapped(images).sum().backward()
    except RuntimeError as error:
        assert "find_unused_parameters=True" in str(error), error
    else:
        raise AssertionError("no error")
    """,
    "a bf16 exchange needs NCCL": """
    from torch.distributed.algorithms.ddp_comm_hooks import default_hooks
    try:
        DDP(model).register_comm_hook(None, default_hooks.bf16_compress_hook)
    except TypeError as error:
        assert "NCCL 2.10+" in str(error), error
    else:
        raise AssertionError("no error")
    """,
    "convolutions use TF32 by default, matrix products do not": """
    assert torch.backends.cudnn.allow_tf32 and torch.get_float32_matmul_precision() == "highest"
    """,
    "whether autocast is on is seen inside the forward pass only": """
    seen = []
    model[0].register_forward_pre_hook(lambda _, x: seen.append(torch.is_autocast_enabled("cpu")))
    with torch.autocast("cpu", dtype=torch.bfloat16):
        model(images)
    assert seen == [True] and not torch.is_autocast_enabled("cpu")
    """,
    "GradScaler reads a value in each step, unless the optimizer is fused": """
    reads = []
    original = torch.amp.GradScaler._maybe_opt_step
    def counting(self, *arguments, **more):
        reads.append(self)
        return original(self, *arguments, **more)
    torch.amp.GradScaler._maybe_opt_step = counting
    try:
        for fused in (True, False):
            scaler = torch.amp.GradScaler("cpu")
            fused_or_not = torch.optim.AdamW(model.parameters(), fused=fused)
            scaler.scale(criterion(model(images), labels)).backward()
            scaler.step(fused_or_not)
            scaler.update()
            assert len(reads) == (0 if fused else 1), (fused, reads)
    finally:
        torch.amp.GradScaler._maybe_opt_step = original
    import inspect
    assert ".item()" in inspect.getsource(original)
    """,
    "detach().cpu() of a CPU tensor is the same memory": """
    weight = model[0].weight
    assert weight.detach().cpu().data_ptr() == weight.data_ptr()
    assert weight.detach().to("cpu", copy=True).data_ptr() != weight.data_ptr()
    """,
    "batch normalisation refuses one value a channel": """
    try:
        torch.nn.BatchNorm1d(3)(torch.rand(1, 3))
    except ValueError as error:
        assert "Expected more than 1 value per channel when training" in str(error), error
    else:
        raise AssertionError("no error")
    torch.nn.BatchNorm2d(3)(torch.rand(1, 3, 2, 2))
    """,
    "an empty batch leaves the running statistics alone, and has a mean loss of NaN": """
    norm = torch.nn.BatchNorm2d(3)
    norm(torch.empty(0, 3, 4, 4))
    assert norm.running_mean.eq(0).all() and norm.running_var.eq(1).all()
    assert criterion(model(images[:0]), labels[:0]).isnan()
    """,
    "torch.compile compiles once more for a new shape, and then for none": """
    compiled_for = []
    def backend(graph, examples):
        compiled_for.append(examples)
        return graph.forward
    compiled = torch.compile(torch.nn.Linear(4, 4), backend=backend)
    for rows in (8, 8, 3, 5, 8, 7):
        compiled(torch.rand(rows, 4))
    assert len(compiled_for) == 2, len(compiled_for)
    assert torch._dynamo.config.recompile_limit
    """,
    "file_system sharing needs room in /dev/shm too": """
    import os, torch.multiprocessing as sharing
    before = sharing.get_sharing_strategy()
    sharing.set_sharing_strategy("file_system")
    try:
        shared = torch.rand(1 << 18).share_memory_()
        mine = [entry for entry in os.scandir("/dev/shm") if entry.name.startswith(f"torch_{os.getpid()}_")]
        assert any(entry.stat().st_size >= 1 << 20 for entry in mine), mine
    finally:
        sharing.set_sharing_strategy(before)
    """,
    "/proc/PID/schedstat is that of the main thread": """
    import os, pathlib
    own = pathlib.Path(f"/proc/{os.getpid()}/schedstat")
    if own.exists():
        done, may_end = threading.Event(), threading.Event()
        def work():
            torch.rand(300, 300).matmul(torch.rand(300, 300))
            done.set()
            may_end.wait()
        thread = threading.Thread(target=work)
        thread.start()
        done.wait()
        on_core = {}
        for task in pathlib.Path(f"/proc/{os.getpid()}/task").iterdir():
            on_core[task.name] = int((task / "schedstat").read_text().split()[0])
        whole = int(own.read_text().split()[0])
        main = int(pathlib.Path(f"/proc/{os.getpid()}/task/{os.getpid()}/schedstat").read_text().split()[0])
        may_end.set()
        thread.join()
        assert on_core[str(os.getpid())] <= whole <= main, (on_core, whole, main)
        assert on_core[str(thread.native_id)] > 0, on_core
    """,
    "the allocator's settings are read by both names, and its statistics have the names on the page": """
    import inspect, pathlib
    include = pathlib.Path(torch.__file__).parent / "include"
    config = (include / "c10/cuda/CUDAAllocatorConfig.h").read_text()
    assert '"PYTORCH_CUDA_ALLOC_CONF"' in config and '"PYTORCH_ALLOC_CONF"' in config
    source = inspect.getsource(torch.cuda.memory)
    for word in ("cudaMalloc retries", "num_alloc_retries", "reserved_bytes.all.peak", "allocated_bytes.all.peak"):
        assert word in source or word.replace("all.peak", "{all") in source, word
    """,
    "the flight recorder is sized by TORCH_FR_BUFFER_SIZE, or by its old name, and 2000 by default": """
    import pathlib
    header = "include/torch/csrc/distributed/c10d/FlightRecorder.hpp"
    text = (pathlib.Path(torch.__file__).parent / header).read_text()
    assert '{"TORCH_FR_BUFFER_SIZE", "TORCH_NCCL_TRACE_BUFFER_SIZE"}, 2000' in text
    """,
    "set_sync_debug_mode does not see everything": """
    assert "not all synchronizing operations" in torch.cuda.set_sync_debug_mode.__doc__
    """,
    "the Trainer puts all logits together, unless preprocess_logits_for_metrics is given, and compute_metrics with "
    "batch_eval_metrics sees one batch": """
        import inspect, transformers
        from transformers.trainer_pt_utils import EvalLoopContainer
        held = EvalLoopContainer()
        for _ in range(3):
            held.add(torch.zeros(2, 4))
        assert held.get_arrays().shape == (6, 4)
        loop = inspect.getsource(transformers.Trainer.evaluation_loop)
        assert "logits = self.preprocess_logits_for_metrics(logits, labels)" in loop
        assert "if not self.args.batch_eval_metrics or" in loop and "args.eval_accumulation_steps" in loop
    """,
    "the Trainer's copies block by default, and it pins": """
    import transformers
    arguments = transformers.TrainingArguments(output_dir="out")
    assert not arguments.accelerator_config.non_blocking and arguments.dataloader_pin_memory
    chosen = transformers.TrainingArguments(output_dir="out", accelerator_config={"non_blocking": True})
    assert chosen.accelerator_config.non_blocking
    """,
    "the Trainer's optimizer is fused by default, its time-out 30 minutes, as is Lightning's": """
    import transformers
    from lightning.pytorch.strategies import DDPStrategy
    assert DDPStrategy()._timeout == datetime.timedelta(minutes=30)
    arguments = transformers.TrainingArguments(output_dir="out")
    assert arguments.optim == "adamw_torch_fused" and arguments.ddp_timeout == 1800
    """,
    "auto_find_batch_size only shrinks the batch": """
    from accelerate.utils import find_executable_batch_size
    tried = []
    def train(batch_size):
        tried.append(batch_size)
        if batch_size > 40:
            raise RuntimeError("CUDA out of memory.")
    find_executable_batch_size(train, starting_batch_size=64)()
    assert tried[0] == 64 and tried == sorted(tried, reverse=True) and tried[-1] <= 40, tried
    tried.clear()
    find_executable_batch_size(train, starting_batch_size=16)()
    assert tried == [16], tried
    """,
    "Lightning copies without blocking": """
    import inspect
    from lightning.fabric.utilities import apply_func
    assert 'kwargs["non_blocking"] = True' in inspect.getsource(apply_func.move_data_to_device)
    """,
}

# Named after "Hugging Face" but not an argument of TrainingArguments.
NO_ARGUMENTS = {
    "attn_implementation": "of from_pretrained",
    "group_by_length": "before Transformers 5",
    "keep_in_memory": "of datasets.load_dataset",
    "pad_to_multiple_of": "of a collator",
}
