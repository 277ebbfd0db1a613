"""The tests of this folder share modules that lie beside them, and servers that the demo of a fleet starts, too."""

import pathlib
import sys

HERE = pathlib.Path(__file__).parent
sys.path[:0] = [str(HERE), str(HERE.parents[1] / "scripts")]
