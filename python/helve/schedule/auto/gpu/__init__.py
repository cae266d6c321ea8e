"""The rules of auto for a GPU: tiles in shared memory and registers, blocks for all multiprocessors, loops for threads.

Loops stay loops of blocks; that their iterations are divided among threads is for the passes of the compiler.
"""

from helve.schedule.auto.gpu.columns import reduce_columns
from helve.schedule.auto.gpu.elements import order_elements, turn_tiles
from helve.schedule.auto.gpu.parts import reduce_parts
from helve.schedule.auto.gpu.products import multiply_tiles
from helve.schedule.auto.gpu.rows import reduce_rows

__all__ = ["multiply_tiles", "order_elements", "reduce_columns", "reduce_parts", "reduce_rows", "turn_tiles"]
