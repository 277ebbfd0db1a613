"""What torch.compile compiles is recorded inside the pass that it holds up, and counted by function."""

from __future__ import annotations

import pytest
from channel_reader import COMPILATION, FORWARD, OTHER

SCRIPT = """
    import torch
    from torch import nn

    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.layer, self.power = nn.Linear(4, 4), 1
        def forward(self, x):
            return self.layer(x) * self.power

    model = Net()
    compiled = torch.compile(model, backend="eager", dynamic=False)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for number in range(12):
        optimizer.zero_grad()
        compiled(torch.ones(2 + number // 3, 4)).sum().backward()
        optimizer.step()
"""


@pytest.mark.long
def test_each_compilation_is_recorded_in_its_pass_and_counted(newest):
    if newest.torch < (2, 7):
        pytest.skip("this torch does not tell when it compiles")
    channel, _ = newest.run(SCRIPT)
    trainer = channel.trainer
    compilations, passes = trainer.of(OTHER, COMPILATION), trainer.of(FORWARD)
    assert len(compilations) == 4, "one for each shape"
    for each in compilations:
        assert any(outer.begin <= each.begin < each.end <= outer.end for outer in passes)
    (said,) = trainer.facts["compilations"]
    assert (said["function"], said["count"]) == ("forward", 4)
    assert said["ns"] == sum(each.ns for each in compilations)
    assert said["file"].endswith("train.py") and said["line"] > 0


@pytest.mark.long
def test_why_a_function_is_compiled_again_is_told_by_the_guard_that_failed(newest):
    if newest.torch < (2, 7):
        pytest.skip("this torch does not tell when it compiles")
    (of_shapes,) = newest.run(SCRIPT)[0].trainer.facts["compilations"]
    assert of_shapes["why"] == "shapes" and "size mismatch" in of_shapes["example"]
    powers = SCRIPT.replace("2 + number // 3", "2").replace(
        "optimizer.zero_grad()", "model.power = number // 3; optimizer.zero_grad()"
    )
    (of_constants,) = newest.run(powers)[0].trainer.facts["compilations"]
    assert of_constants["why"] == "constants" and "power" in of_constants["example"]


@pytest.mark.long
def test_functions_that_are_given_up_and_graph_breaks_are_told(newest):
    if newest.torch < (2, 7):
        pytest.skip("this torch does not tell when it compiles")
    facts = newest.run(SCRIPT)[0].trainer.facts
    assert "compile_limit" not in facts and "graph_breaks" not in facts
    many = SCRIPT.replace("range(12)", "range(300)").replace("2 + number // 3", "2 + number % 20")
    facts = newest.run(many)[0].trainer.facts
    assert facts["compile_limit"] is True and facts["compilations"][0]["count"] >= 8
    breaking = SCRIPT.replace("2 + number // 3", "2").replace(
        "return self.layer(x) * self.power", "y = self.layer(x); torch._dynamo.graph_break(); return y * self.power"
    )
    breaks = newest.run(breaking)[0].trainer.facts["graph_breaks"]
    assert breaks["count"] >= 1 and "graph_break" in breaks["most"][0]["reason"]


def test_what_is_compiled_once_is_not_named(newest):
    channel, _ = newest.run(SCRIPT.replace("2 + number // 3", "2"))
    assert "compilations" not in channel.trainer.facts
