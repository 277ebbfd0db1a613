"""Training programs as people write them with other people's libraries, of kinds that programs.py does not have.

    programs.py bert-finetune read_loss=0 --seconds 8    trains one
    cures.py bert-finetune DIRECTORY                     measures what its cures bring

They are a test for what fullbore says of programs that it was not made with, and were written without looking at how
it judges. A program's options are its faults and their cures; as it is by default it has at least one fault. Data are
random and made in memory. Libraries are imported by the programs that need them: any may be missing.
"""

from __future__ import annotations

from typing import Any

from programs import Training

from strangers.generation import Diffusion, Gan
from strangers.language import BertFinetune, LstmLanguage
from strangers.recognition import Detection, SimClr, Video
from strangers.tables import Dlrm, Dqn, Gnn

PROGRAMS: dict[str, type[Training]] = {
    "bert-finetune": BertFinetune,
    "video": Video,
    "detection": Detection,
    "lstm-lm": LstmLanguage,
    "gnn": Gnn,
    "diffusion": Diffusion,
    "dqn": Dqn,
    "simclr": SimClr,
    "gan": Gan,
    "dlrm": Dlrm,
}

BF16, FUSED = ("precision", {"precision": "bf16"}), ("fused-optimizer", {"optimizer": "fused"})

# Options to begin with, and what would make it faster, as in cures.Group.
CURES: dict[str, tuple[Any, tuple[tuple[str, dict[str, Any]], ...]]] = {
    "bert-finetune": (BertFinetune.Options(), (BF16, FUSED, ("no-sync", {"read_loss": False}))),
    "video": (
        Video.Options(),
        (
            ("pin", {"pinned": True}),
            ("side-stream", {"side_stream": True}),
            ("bytes", {"as_bytes": True}),
        ),
    ),
    "detection": (
        Detection.Options(),
        (
            ("garbage-collection", {"collect": False}),
            ("allocator,garbage-collection", {"collect": False, "empty_cache": False}),
        ),
    ),
    "lstm-lm": (LstmLanguage.Options(), (("no-sync", {"log_norms": False, "read_loss": False}), FUSED)),
    "gnn": (Gnn.Options(), (("workers=4", {"workers": 4}), ("validation", {"validate_every": 0}))),
    "diffusion": (Diffusion.Options(), (("graphs", {"graphed": True}), BF16)),
    "dqn": (
        Dqn.Options(),
        (("bytes", {"as_bytes": True}), ("no-sync", {"read_errors": False}), ("compile", {"compiled": True})),
    ),
    "simclr": (
        SimClr.Options(),
        (("workers=2", {"workers": 2}), ("workers=8,pin", {"workers": 8, "pinned": True}), BF16),
    ),
    "gan": (Gan.Options(), (("no-sync", {"read_losses": False}), FUSED)),
    "dlrm": (Dlrm.Options(), (FUSED, BF16)),
}
