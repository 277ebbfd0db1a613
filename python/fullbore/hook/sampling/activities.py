"""What a thread is doing while it does not train: the table of what tells activities apart.

C functions have no frame. So three things are looked up, of which the first that is known decides:

    PURPOSES  the library that the user's line called into: what it is for
    WAITS     Python's own functions that block, by the frames around them
    CALLS     the function that the innermost line of Python is calling, from its instruction (instructions.py)

A purpose comes before a wait, because a logger that waits for its lock is logging. Whatever is in none of them is
UNKNOWN: a guess would be reported as a finding.
"""

from __future__ import annotations

from typing import Any, NamedTuple

# Activity of src/record/activity.h
UNKNOWN, QUEUE, LOCK, FUTURE, SUBPROCESS, NETWORK, FILE, SLEEP = range(8)
LOGGING, PLOTTING, METRICS, ENVIRONMENT, DATA_PREPARATION, TOKENISING, PYTHON = range(8, 15)

# Modules and what they are for; the longest name that matches counts.
PURPOSES: dict[int, str] = {
    LOGGING: """
        logging loguru structlog tqdm rich csv pprint json.encoder torch.utils.tensorboard tensorboard tensorboardX
        wandb mlflow comet_ml neptune clearml aim swanlab trackio dvclive codecarbon sacred visdom
        lightning.pytorch.loggers lightning.fabric.loggers pytorch_lightning.loggers torch._tensor_str
    """,
    PLOTTING: "matplotlib mpl_toolkits seaborn plotly bokeh altair pylab",
    METRICS: """
        sklearn.metrics torchmetrics torcheval evaluate ignite.metrics scipy.stats sacrebleu rouge_score bert_score
        jiwer seqeval pycocotools nltk.translate torch_fidelity lpips
    """,
    ENVIRONMENT: """
        gym gymnasium pettingzoo envpool dm_env dm_control mujoco mujoco_py ale_py procgen minigrid highway_env
        stable_baselines3.common.vec_env pufferlib brax torch.distributions torchrl.envs torchrl.collectors
    """,
    DATA_PREPARATION: """
        PIL cv2 imageio skimage torchvision.transforms torchvision.io torchvision.datasets torchvision.tv_tensors
        albumentations kornia.augmentation imgaug datasets librosa torchaudio soundfile pandas polars pyarrow h5py
        zarr tables lmdb webdataset decord av torchdata torch.utils.data torch_geometric.data torch_geometric.loader
        dgl monai.transforms json.decoder pickle numpy.lib.npyio numpy.lib._npyio_impl torch.serialization
    """,
    TOKENISING: """
        tokenizers sentencepiece tiktoken transformers.tokenization_utils transformers.tokenization_utils_base
        transformers.tokenization_utils_fast transformers.tokenization_utils_tokenizers
        transformers.tokenization_python spacy nltk.tokenize torchtext.data torchtext.transforms
    """,
}

# Functions of the standard library that block. The outermost one between the user's line and the innermost frame
# counts: a queue waits by means of a lock. Those marked with a star receive something from another thread or process.
WAITS: dict[int, str] = {
    QUEUE: """
        queue.get* queue.put queue.join multiprocessing.queues.get* multiprocessing.queues.put
        multiprocessing.connection.recv* multiprocessing.connection.recv_bytes*
        multiprocessing.connection.recv_bytes_into* multiprocessing.connection.poll* multiprocessing.connection.wait*
        multiprocessing.connection.send multiprocessing.managers._callmethod* torch.multiprocessing.queue.recv*
    """,
    LOCK: """
        threading.acquire threading.__enter__ threading.wait* threading.wait_for* threading.join
        threading._wait_for_tstate_lock multiprocessing.synchronize.wait multiprocessing.synchronize.__enter__
    """,
    FUTURE: """
        concurrent.futures._base.result* concurrent.futures._base.result_iterator* concurrent.futures._base.wait*
        concurrent.futures._base.as_completed* concurrent.futures._base.exception
        concurrent.futures._base._result_or_cancel* concurrent.futures.process._chain_from_iterable_of_lists*
        multiprocessing.pool.wait* multiprocessing.pool.get* multiprocessing.pool.next* multiprocessing.pool.__next__*
        asyncio.base_events._run_once* ray._private.worker.get*
    """,
    SUBPROCESS: """
        subprocess.wait subprocess._wait subprocess.communicate subprocess._communicate subprocess.run
        multiprocessing.process.join multiprocessing.popen_fork.wait
    """,
    NETWORK: """
        socket.* ssl.* http.client.* urllib.request.* urllib3.* requests.* botocore.* boto3.* aiohttp.* httpx.*
        httpcore.* s3fs.* gcsfs.* fsspec.* paramiko.* redis.* pymongo.* grpc.* zmq.* selectors.*
    """,
    FILE: "shutil.* tempfile.* gzip.* bz2.* lzma.* zipfile.* tarfile.* pathlib.*",
}

# What an instruction calls. A type stands for all its methods; a package's name with a star for all that it has.
CALLS: dict[int, str] = {
    QUEUE: "_queue.SimpleQueue.get",
    LOCK: "_thread.lock.acquire _thread.lock.__enter__ _thread.RLock _multiprocessing.SemLock",
    SUBPROCESS: "posix.waitpid posix.system os.waitpid os.system",
    NETWORK: "socket.socket _socket.socket select.select select.poll select.epoll ssl.SSLSocket _ssl._SSLSocket",
    FILE: """
        builtins.open io.open _io.TextIOWrapper.read _io.TextIOWrapper.readline _io.BufferedReader _io.BufferedWriter
        _io.BufferedRandom _io.FileIO os.read os.write os.fsync os.listdir os.stat os.replace os.rename os.remove
        os.sync posix.read posix.write posix.fsync mmap.mmap
    """,
    SLEEP: "time.sleep",
    LOGGING: "builtins.print _csv.writer _csv.Writer _io.TextIOWrapper",  # text that a loop writes is a log
    METRICS: """
        numpy.mean numpy.std numpy.var numpy.median numpy.percentile numpy.quantile numpy.average numpy.histogram
        numpy.corrcoef numpy.cov
    """,
    ENVIRONMENT: "torch.multinomial",
    DATA_PREPARATION: """
        torch.from_numpy torch.tensor torch.as_tensor torch.stack torch.frombuffer torch.FloatTensor torch.LongTensor
        numpy.array numpy.asarray numpy.ascontiguousarray numpy.stack numpy.concatenate numpy.vstack numpy.hstack
        numpy.frombuffer numpy.fromfile numpy.load numpy.loadtxt numpy.pad numpy.memmap numpy.ndarray.astype cv2.*
        PIL.*
    """,
    TOKENISING: "tokenizers.* sentencepiece.* tiktoken.* _tiktoken.*",
    PYTHON: "builtins.* builtins.list builtins.dict builtins.str builtins.set builtins.tuple math.* collections.* re.*",
}


class Module(NamedTuple):
    """What the table says of one module."""

    purpose: int
    waits: dict[str, tuple[int, bool]]  # function: activity, and whether it receives something; "*" for all


def _pairs(table: dict[int, str]) -> list[tuple[int, str]]:
    return [(activity, name) for activity, names in table.items() for name in names.split()]


_purposes = {name: activity for activity, name in _pairs(PURPOSES)}
_calls = {name: activity for activity, name in _pairs(CALLS)}
_waits: dict[str, dict[str, tuple[int, bool]]] = {}
for _activity, _name in _pairs(WAITS):
    _module, _, _function = _name.rpartition(".")
    _starred = _function.endswith("*") and _function != "*"
    _waits.setdefault(_module, {})[_function.rstrip("*") if _starred else _function] = (_activity, _starred)

NOTHING = Module(UNKNOWN, {})
PROCESS_WIDE = 4096  # entries of a cache, before it starts anew
_modules: dict[str, Module] = {}


def _longest(table: dict[str, Any], dotted: str) -> Any:
    """The value under the longest prefix, of whole words, that the table has."""
    while dotted:
        if dotted in table:
            return table[dotted]
        dotted = dotted.rpartition(".")[0]
    return None


def of_module(name: str) -> Module:
    known = _modules.get(name)
    if known is None:
        if len(_modules) >= PROCESS_WIDE:
            _modules.clear()
        purpose, waits = _longest(_purposes, name), _waits.get(name)
        if waits is None:
            every = _longest({m: w for m, w in _waits.items() if "*" in w}, name)
            waits = every or {}
        known = _modules[name] = Module(purpose or UNKNOWN, waits) if purpose or waits else NOTHING
    return known


def of_wait(module: Module, function: str) -> tuple[int, bool] | None:
    return module.waits.get(function) or module.waits.get("*")


def of_call(dotted: str) -> int:
    """The activity of a call of "time.sleep", "_io.TextIOWrapper.write", "numpy.ndarray.astype"."""
    found = _longest(_calls, dotted)
    while found is None and dotted:
        dotted = dotted.rpartition(".")[0]
        found = _calls.get(dotted + ".*")
    return found or UNKNOWN
