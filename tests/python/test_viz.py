"""Pictures of layouts: that they tell the truth, and that they are documents.

Whole pictures are compared in test_golden_pictures.py.
"""

import itertools
import math
import re
import shutil
import subprocess
import sys
import xml.etree.ElementTree as ElementTree

import helve
import pytest
from helve import cute, viz
from helve.dist import distribution, redistribution
from helve.layout import R, S, bank_conflicts, laneid, reg, warpid, x, y

AXE = S[(8, 2, 4, 2) : (4 @ laneid, 1 @ warpid, 1 @ laneid, 1)] + R[2 : 4 @ warpid] + 5 @ warpid
MESH = helve.Mesh((2, 2))
ROWS, COLUMNS, TERMS = (distribution(text, (6, 7), MESH) for text in ("i j -> i *", "i j -> j i", "i j -> + j"))
PICTURES = {
    "ownership": lambda: viz.draw_layout(AXE, (8, 16)),
    "addresses": lambda: S[(4, 6) : (6, 1)].show(),
    "sharding": lambda: viz.draw_mesh(S[(2, 4, 8) : (1 @ x, 8, 1)] + R[2 : 1 @ y], (8, 8), {"x": 2, "y": 2}),
    "offsets": lambda: viz.draw_offsets(cute.Layout((4, (2, 2)), (2, (1, 8)))),
    "thread_values": lambda: viz.draw_tv(cute.Layout(((4, 8), (2, 2)), ((32, 1), (16, 8))), (16, 8)),
    "swizzle": lambda: viz.draw_swizzle(cute.Swizzle(2, 0, 3), cute.Layout((4, 8), (8, 1))),
    "redistribution": lambda: redistribution(TERMS, COLUMNS, 4).show(),
    "banks": lambda: viz.draw_banks(bank_conflicts(S[(8, 64) : (64, 1)], [row * 64 for row in range(8)], 4, 4)),
}


@pytest.mark.parametrize("name", PICTURES)
def test_pictures_are_documents(name):
    """Well-formed, and nothing is drawn outside the frame."""
    root = ElementTree.fromstring(PICTURES[name]().svg())
    width, height = int(root.get("width")), int(root.get("height"))
    for rect in root.iter("{http://www.w3.org/2000/svg}rect"):
        left, top = int(rect.get("x", 0)), int(rect.get("y", 0))
        assert left >= 0 and top >= 0
        assert left + int(rect.get("width")) <= width and top + int(rect.get("height")) <= height


def test_cells_tell_every_replica():
    (grid,) = viz.draw_layout(AXE, (8, 16)).grids[0]
    for row in range(8):
        for column in range(16):
            points = AXE.apply((row, column), (8, 16))
            cell = grid.cells[row][column]
            assert len(points) == 2
            for point in points:
                assert f"{point[laneid]}@laneid, {point[warpid]}@warpid" in cell.title
    assert grid.cells[3][9].lines == ("T12 W6|10", "1")


def test_many_replicas_are_counted():
    (grid,) = (S[2 : 1 @ reg] + R[8 : 1 @ laneid]).show().grids[0]
    assert grid.cells[0][1].lines == ("T0|1|+6", "R1")


def test_replicas_that_are_no_product_are_listed():
    (grid,) = (S[2:1] + R[(2, 2) : (1 @ laneid, 3 @ warpid)]).show().grids[0]
    assert grid.cells[0][0].lines == ("T0|1 W0|3", "0")


def test_large_layouts_are_cut_and_say_so():
    (grid,) = S[(100, 200) : (200, 1)].show().grids[0]
    assert (grid.rows, grid.columns) == (64, 64)
    assert grid.note == "the first 64 of 100 rows and 64 of 200 columns"


def test_the_shape_must_fit():
    with pytest.raises(helve.ShapeError):
        S[(4, 8) : (8, 1)].show((4, 9))


def test_mesh_grids_hold_what_devices_hold():
    layout = S[(2, 3, 4) : (1 @ x, 4, 1)] + R[2 : 1 @ y]
    grids = viz.draw_mesh(layout, (6, 4), {"x": 2, "y": 2}).grids
    for device_row, row in enumerate(grids):
        for grid in row:
            held = [(r, c) for r in range(6) for c in range(4) if grid.cells[r][c].lines]
            assert held == [(r, c) for r in range(6) for c in range(4) if r // 3 == device_row]
    assert grids[1][0].cells[4][2].lines == ("6",)


@pytest.mark.parametrize("shape", [(0,), (-2, -4), (8, 0), (3, 3)])
def test_shapes_that_are_not_admitted_are_not_drawn(shape):
    with pytest.raises(helve.ShapeError):
        S[8:1].show(shape)
    if shape != (8, 0):
        with pytest.raises(helve.ShapeError):
            viz.draw_mesh(S[8:1], shape, {"x": 2})


def test_what_is_no_layout_is_not_drawn():
    for draw in (viz.draw_layout, lambda value: viz.draw_mesh(value, (8,), {"x": 2})):
        with pytest.raises(helve.LayoutError, match=r"HV0507.: Layout.8,1. is no helve.Layout"):
            draw(cute.Layout(8))
    for draw in (viz.draw_offsets, lambda value: viz.draw_tv(value, (4, 2)),
                 lambda value: viz.draw_swizzle(cute.Swizzle(1, 0, 1), value)):
        with pytest.raises(helve.LayoutError, match="HV0507.: S.8 : 1. is no layout of helve.cute"):
            draw(S[8:1])
    with pytest.raises(helve.LayoutError, match="8 is no list of integers"):
        S[8:1].show(8)
    with pytest.raises(helve.LayoutError, match="8.0 is no integer"):
        S[8:1].show((8.0,))
    for shape in ("x", ["x"], [None, 8]):
        with pytest.raises(helve.LayoutError, match="HV0507.: .* is no shape"):
            S[8:1].show(shape)


SCATTERED = distribution("ij -> i j", (7, 10), helve.Mesh((2, 3)))


@pytest.mark.parametrize("draw, message, help", [
    (lambda: viz.draw_swizzle(5, cute.Layout(8)), "5 is no helve.Swizzle",
     "write draw_swizzle(Swizzle(2, 0, 3), layout)"),
    (lambda: viz.draw_swizzle(cute.Swizzle(2, 0, 3), (8, 8)), "(8, 8) is no layout of helve.cute",
     "draw_swizzle draws one, as cute.Layout((8, 4), (4, 1)); layout.show() draws a helve.Layout"),
    (lambda: viz.draw_tv(cute.Layout((2, 4)), "x"), "'x' is no tile", "give rows and columns, as (8, 4)"),
    (lambda: viz.draw_banks(5), "5 is no report of bank conflicts", "pass what helve.layout.bank_conflicts returns"),
    (lambda: viz.draw_mesh(SCATTERED.mesh), f"{SCATTERED.mesh!r} is no helve.Layout",
     "write draw_mesh(layout, shape, mesh), or draw_mesh(distribution)"),
    (lambda: viz.draw_mesh(SCATTERED.layout, mesh=SCATTERED.mesh), "None is no shape",
     "give the tensor's extents, as (8, 12)"),
    (lambda: viz.draw_mesh(SCATTERED.layout, (8, 12), (2, 3)), "(2, 3) is no mesh",
     'pass a helve.Mesh, or extents by axis name, as {"x": 2, "y": 3}'),
])  # fmt: skip
def test_arguments_of_another_kind_are_refused(draw, message, help):
    with pytest.raises(helve.LayoutError) as refusal:
        draw()
    assert (refusal.value.code, refusal.value.message, refusal.value.help) == ("HV0507", message, help)


def test_a_distribution_knows_its_mesh():
    """The same picture as by hand, without the padding, which no device holds."""
    picture = viz.draw_mesh(SCATTERED)
    assert picture == SCATTERED.show()
    whole = viz.draw_mesh(SCATTERED.layout, SCATTERED.domain, SCATTERED.mesh)
    assert whole == viz.draw_mesh(SCATTERED.layout, SCATTERED.domain, {"x": 2, "y": 3})
    for device in itertools.product(range(2), range(3)):
        mine, all_of_block = (p.grids[device[0]][device[1]].cells for p in (picture, whole))
        for row, column in itertools.product(range(8), range(12)):
            inside = row < 7 and column < 10
            assert mine[row][column].lines == (all_of_block[row][column].lines if inside else ())
        (rows, columns), (row, column) = SCATTERED.local_shape(device), SCATTERED.local_begin(device)
        assert sum(bool(cell.lines) for line in mine for cell in line) == rows * columns
        assert mine[row][column].lines == ("0",)


def test_cells_of_a_redistribution_are_what_is_received():
    """Every element that a device receives is in the box of one cell of its column, and nothing else is."""
    devices = list(itertools.product(range(2), range(2)))
    for source, destination in itertools.product((ROWS, COLUMNS, TERMS), (ROWS, COLUMNS)):
        plan = redistribution(source, destination, 4)
        picture = plan.show()
        assert len(picture.grids) == max(1, len(plan.steps))
        for step, (grid,) in zip(plan.steps, picture.grids):
            assert grid.row_labels == grid.column_labels == ("0 0", "0 1", "1 0", "1 1")
            for (r, receiver), (s, sender) in itertools.product(enumerate(devices), enumerate(devices)):
                boxes = [box for box in step.received(receiver) if box[0] == sender and math.prod(box[2])]
                cell = grid.cells[s][r]
                assert bool(cell.lines) == bool(boxes)
                if boxes:
                    moved = 4 * sum(math.prod(size) for _, _, size in boxes)
                    assert f"{sender} to {receiver}" in cell.title and f"{moved} bytes" in cell.title
                    assert (cell.fill == "#eeeeee") == (sender == receiver)


def test_redistributions_of_many_devices_are_not_drawn():
    mesh = helve.Mesh((16, 16))
    plan = redistribution(distribution("i -> i *", (64,), mesh), distribution("i -> * i", (64,), mesh), 4)
    with pytest.raises(helve.LayoutError, match="a picture shows at most 64 devices"):
        plan.show()
    with pytest.raises(helve.LayoutError, match="no redistribution"):
        viz.draw_redistribution("plan")
    assert "nothing to do" in redistribution(ROWS, ROWS, 4).show().text()


def test_too_many_replicas_are_not_drawn():
    many = S[8:1] + R[1 << 20 : 1 @ x]
    text = "draw_layout of S.8 : 1. . R.1048576 : 1@x.: a picture shows at most 262144 points, 8 elements have 8388608"
    with pytest.raises(helve.UnsupportedError, match=text):
        many.show()
    assert many._repr_html_() is None
    with pytest.raises(helve.UnsupportedError, match="draw_mesh of .*: a picture shows at most 262144 points"):
        viz.draw_mesh(many, (8,), {"x": 2})


@pytest.mark.parametrize(
    "mesh, text",
    [
        ({}, "mesh {} has no device"),
        ({"x": 0}, "mesh {'x': 0} has no device"),
        ({"y": 2}, "mesh {'y': 2} has no axis x"),
        ({"x": 1}, "the device at x=1 is outside mesh {'x': 1}"),
    ],
)
def test_meshes_that_lack_a_device(mesh, text):
    with pytest.raises(helve.UnsupportedError, match=re.escape(text)) as refusal:
        viz.draw_mesh(S[(2, 4) : (1 @ x, 1)], (8,), mesh)
    assert refusal.value.help == "give the extent of every device axis of the layout"


@pytest.mark.parametrize("shape, mesh", [((2, 2, 2), {"x": 2}), ((8,), {"x": 65}), ((4097,), {"x": 2})])
def test_mesh_pictures_have_limits(shape, mesh):
    with pytest.raises(helve.UnsupportedError, match=r"draw_mesh of S.\d+ : 1.: a picture shows"):
        viz.draw_mesh(S[math.prod(shape) : 1], shape, mesh)


def test_a_tile_with_gaps_and_double_owners():
    (grid,) = viz.draw_tv(cute.Layout((2, 2), (1, 1)), (4, 1)).grids[0]
    assert [row[0].lines for row in grid.cells] == [("T0", "V0"), ("T1", "+1"), ("T1", "V1"), ()]
    with pytest.raises(helve.UnsupportedError, match="thread 0, value 1 is at 2, outside 2 x 1"):
        viz.draw_tv(cute.Layout((2, 2), (1, 2)), (2, 1))
    with pytest.raises(helve.ShapeError, match="draw_tv: 8:1 has 1 mode, a picture shows 2"):
        viz.draw_tv(cute.Layout(8), (8, 1))
    with pytest.raises(helve.ShapeError, match="draw_tv: tile .4,. has 1 mode, a picture shows 2"):
        viz.draw_tv(cute.Layout((2, 2)), (4,))
    huge = cute.Layout((1 << 20, 1 << 20))
    for draw in (viz.draw_offsets, lambda layout: viz.draw_tv(layout, (1 << 20, 1 << 20)),
                 lambda layout: viz.draw_swizzle(cute.Swizzle(1, 0, 1), layout)):
        with pytest.raises(helve.UnsupportedError, match="a picture has at most 65536 cells"):
            draw(huge)
    with pytest.raises(helve.UnsupportedError, match="a picture has at most 65536 cells\nhelp: give a smaller tile"):
        viz.draw_tv(cute.Layout((2, 2)), (1 << 20, 1 << 20))


def has_latex():
    if not shutil.which("pdflatex") or not shutil.which("kpsewhich"):
        return False
    return subprocess.run(["kpsewhich", "standalone.cls", "tikz.sty"], capture_output=True).returncode == 0


@pytest.mark.skipif(not has_latex(), reason="needs pdflatex with standalone and TikZ")
@pytest.mark.parametrize(
    "picture",
    [
        viz.draw_layout(S[(2, 2, 2) : (1@laneid, 2@laneid, 1)] + R[2 : 4@warpid], (2, 4)),  # fmt: skip
        viz.draw_mesh(S[(2, 3, 4) : (1 @ x, 4, 1)] + R[2 : 1 @ y], (6, 4), {"x": 2, "y": 2}),
        viz.draw_offsets(cute.composition(cute.Swizzle(2, 0, 3), cute.Layout((8, 8), (8, 1)))),
        viz.draw_banks(bank_conflicts(S[(32, 32) : (32, 1)], range(0, 1024, 32), 4)),
    ],
    ids=["layout", "mesh", "swizzle", "banks"],
)
def test_latex_compiles(picture, tmp_path):
    (tmp_path / "picture.tex").write_text(picture.latex())
    command = ["pdflatex", "-interaction=nonstopmode", "-halt-on-error", "picture.tex"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 0 and "LaTeX Warning" not in done.stdout, done.stdout


def test_bank_conflicts_are_red():
    (grid,) = viz.draw_banks(bank_conflicts(S[(8, 64) : (64, 1)], [row * 64 for row in range(8)], 4, 4)).grids[0]
    red = {column for row in grid.cells for column, cell in enumerate(row) if cell.fill == "#e06666"}
    assert red == {0, 1, 2, 3}


def test_notebooks_show_layouts():
    assert S[(2, 3) : (3, 1)]._repr_html_().startswith("<svg ")
    assert S[(2, 3) : (3, 1)].show()._repr_html_() == S[(2, 3) : (3, 1)].show().svg()


def helve_command(*arguments):
    command = [sys.executable, "-m", "helve", *arguments]
    return subprocess.run(command, capture_output=True, text=True, timeout=60)


def test_the_command_draws(tmp_path):
    target = tmp_path / "out.svg"
    done = helve_command("layout", str(AXE), "--shape", "8,16", "--svg", str(target))
    assert done.returncode == 0, done.stderr
    assert target.read_text() == viz.draw_layout(AXE, (8, 16)).svg()
    assert done.stdout.splitlines() == [
        str(AXE), "size       128", "span       32@laneid", "span       6@warpid", "span       2@m", "injective  yes",
    ]  # fmt: skip


def test_the_command_prints_tables():
    done = helve_command("layout", "S[(2, 2, 3) : (6, 3, 1)]", "--shape", "2,6")
    assert done.returncode == 0, done.stderr
    assert done.stdout == """\
S[(2, 2, 3) : (6, 3, 1)]
canonical  S[12 : 1]
size       12
span       12@m
injective  yes
S[(2, 2, 3) : (6, 3, 1)]

shape (2, 6)
    0    1    2    3    4    5
  +----+----+----+----+----+----+
0 |  0 |  1 |  2 |  3 |  4 |  5 |
  +----+----+----+----+----+----+
1 |  6 |  7 |  8 |  9 | 10 | 11 |
  +----+----+----+----+----+----+
"""


def test_the_command_explains_mistakes():
    wrong = helve_command("layout", "S[(2, 3) : (3")
    assert wrong.returncode == 2 and wrong.stderr.startswith("error[HV05")
    assert helve_command("layout", "S[6 : 1]", "--shape", "2,4").returncode == 2
    assert helve_command("layout", "S[6 : 1]", "--shape", "2,x").returncode == 2
    assert helve_command("layout", "S[6 : 1]", "--shape", "0,6").stderr.startswith("error[HV0512]")
    unwritable = helve_command("layout", "S[6 : 1]", "--svg", "/nowhere/out.svg")
    assert unwritable.returncode == 2 and "cannot write '/nowhere/out.svg'" in unwritable.stderr
    assert helve_command("--version").stdout.strip() == helve.__version__


def test_a_picture_is_saved_by_its_suffix(tmp_path):
    picture = PICTURES["offsets"]()
    for name in ("a.svg", "b.SVG"):
        picture.save(tmp_path / name)
        assert (tmp_path / name).read_text(encoding="utf-8") == picture.svg()
    picture.save(str(tmp_path / "c.svg"))
    for name in ("a.gif", "svg", "b", "c.svg.txt"):
        with pytest.raises(helve.Error) as caught:
            picture.save(tmp_path / name)
        assert caught.value.code == "HV0588" and not (tmp_path / name).exists()


@pytest.mark.parametrize("name", PICTURES)
def test_matplotlib_draws_the_same_picture(name, tmp_path):
    pytest.importorskip("matplotlib")
    picture = PICTURES[name]()
    for suffix, magic in ((".png", b"\x89PNG\r\n"), (".pdf", b"%PDF-")):
        files = [tmp_path / f"{turn}{suffix}" for turn in range(2)]
        for file in files:
            picture.save(file)
        assert files[0].read_bytes().startswith(magic) and files[0].read_bytes() == files[1].read_bytes()
    root = ElementTree.fromstring(picture.svg())
    import matplotlib.image

    image = matplotlib.image.imread(tmp_path / "0.png")
    assert image.shape[:2] == (2 * int(root.get("height")), 2 * int(root.get("width")))
    for rect in list(root.iter("{http://www.w3.org/2000/svg}rect"))[1:]:  # near a corner no text is in the way
        row, column = 2 * int(rect.get("y")) + 6, 2 * int(rect.get("x")) + 6
        fill = tuple(int(rect.get("fill")[k : k + 2], 16) for k in (1, 3, 5))
        assert tuple(round(255 * c) for c in image[row, column][:3]) == fill


def test_without_matplotlib_the_remedy_is_named(tmp_path, monkeypatch):
    for module in ("matplotlib", "matplotlib.figure", "matplotlib.backends.backend_agg"):
        monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(helve.Error) as caught:
        PICTURES["offsets"]().save(tmp_path / "a.pdf")
    assert caught.value.code == "HV0588" and "helve[plot]" in caught.value.help
