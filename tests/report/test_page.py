#!/usr/bin/env python3
"""The pages of checks and of models in headless Chromium: test_page.py ASSAY FOLDER...

FOLDERs hold models, by themselves or in folders of their own. Exits with 77 (skipped) where Chromium is not installed; scripts/setup full installs it.
"""
import json
import pathlib
import re
import subprocess
import sys
import tempfile

import browser
import deep

SKIPPED = 77
WIDE, NARROW = (1280, 900), (400, 860)
LOAD_MS = 2000

# The same of every report: rows that are drawn; the layer that is shown everywhere; where the graph stands.
ROWS = "[...document.querySelectorAll('#tbody .row')].sort((a, b) => a.offsetTop - b.offsetTop)"
CELLS = ROWS + ".map(r => r.querySelector('.c-{0}').textContent)"
LAYER = "Number(document.body.dataset.layer)"
ZOOM = "Number(document.getElementById('graph-view').dataset.zoom)"
PLACE = "document.getElementById('graph-view').dataset.place"
COUNT = "document.getElementById('count').textContent"


def report(assay, folder, model, *options):
    page = folder / "report.html"
    result = subprocess.run([assay, "check", str(model), "--report", str(page), "-o", str(folder), *options],
                            capture_output=True, text=True)
    assert result.returncode in (0, 1), result.stderr
    return page


def data_of(page):
    return json.loads(re.search(r'<script type="application/json" id="data">(.*?)</script>', page.read_text(), re.S)[1])


def check_alone(page, url):
    """Nothing was asked for but the file, and nothing complained about."""
    assert page.requests() == [url], page.requests()
    assert not page.complaints(), page.complaints()


def check_load(b, url, layers):
    """Loads in time: the best of three, since the machine may be busy."""
    times = []
    for _ in range(3):
        page = b.open(url, *WIDE)
        times.append(float(page.evaluate("document.body.dataset.ready")))
        if times[-1] < LOAD_MS:
            break
    assert min(times) < LOAD_MS, f"ready after {times} ms"
    assert page.evaluate(COUNT) == f"{layers:,}", page.evaluate(COUNT)
    drawn = page.evaluate(ROWS + ".length")
    assert 5 < drawn < 80, f"{drawn} rows are drawn, of {layers}"
    return page


def check_words(page, data):
    """The verdict is on top, with cause and fix; names are text, whatever is in them."""
    assert page.evaluate("document.getElementById('verdict').textContent") == data["verdict"]
    assert page.evaluate("document.getElementById('verdict').getBoundingClientRect().top") < 60
    cause = page.evaluate("document.getElementById('cause').textContent")
    assert data["culprits"][0]["nodes"][0] in cause and data["culprits"][0]["why"] in cause, cause
    fix = page.evaluate("document.getElementById('fix').textContent")
    assert "--layer-precision" in fix and "trtexec" in fix and "Verified" in fix, fix
    assert page.evaluate("document.querySelectorAll('script').length") == 2
    assert page.evaluate("document.querySelector('#way-steps').textContent").startswith("origin")


def check_sorting(page, data):
    for column, get in (("largest", lambda l: l["truth_max"] if l["total"] else None), ("name", lambda l: l["name"])):
        page.click(f"#thead .c-{column}")
        first = page.evaluate(CELLS.format(column))[0]
        descending = page.evaluate(f"document.querySelector('#thead .c-{column}').getAttribute('aria-sort')") == "descending"
        values = [get(l) for l in data["layers"] if get(l) is not None]
        want = max(values) if descending else min(values)
        if column == "largest":
            assert abs(float(first.replace("−", "-")) - want) <= 0.01 * want, (first, want)
        else:
            assert first == want, (first, want)
        page.click(f"#thead .c-{column}")
        assert page.evaluate(CELLS.format(column))[0] != first
    page.click("#thead .c-index")
    assert page.evaluate(CELLS.format("index"))[:3] == ["0", "1", "2"]
    # NaN that came in is not an error of the layer's own.
    page.key("l")
    page.key("End")
    page.settle()
    last = data["layers"][-1]
    cells = {kind: page.evaluate(CELLS.format(kind))[-1] for kind in ("index", "own", "total")}
    assert last["total"]["nan"] and cells == {"index": str(len(data["layers"]) - 1), "own": "0", "total": "NaN"}, cells


def check_filters(page, data):
    overflows = sum(l["verdict"] == "overflow" for l in data["layers"])
    page.click("#chips .bad")
    assert page.evaluate(COUNT) == f"{overflows} of {len(data['layers']):,}"
    page.click("#chips .bad")
    page.key("/")
    assert page.evaluate("document.activeElement.id") == "search"
    page.type("op:conv block.12")
    found = [l["name"] for l in data["layers"] if l["op"] == "Conv" and "block.12" in l["name"]]
    assert page.evaluate(COUNT) == f"{len(found)} of {len(data['layers']):,}"
    assert set(page.evaluate(CELLS.format("name"))) == set(found)
    page.key("Enter")
    assert data["layers"][page.evaluate(LAYER)]["name"] in found
    page.key("Escape")
    assert page.evaluate(COUNT) == f"{len(data['layers']):,}"


def check_keys(page, data):
    page.key("l")
    assert page.evaluate("document.activeElement.id") == "tbody"
    page.key("Home")
    first = page.evaluate(LAYER)
    page.key("ArrowDown")
    page.key("ArrowDown")
    assert page.evaluate(LAYER) == first + 2
    page.key("End")
    page.settle()
    last = len(data["layers"]) - 1
    assert page.evaluate(LAYER) == last
    assert page.evaluate(f"document.getElementById('row-{last}') !== null"), "the chosen row is not in sight"
    page.key("Enter")
    assert page.evaluate("document.activeElement.id") == "detail"
    page.key("p")
    bad = page.evaluate(LAYER)
    assert data["layers"][bad]["verdict"] != "exact", data["layers"][bad]["verdict"]
    assert data["layers"][bad]["name"] in page.evaluate("document.getElementById('detail').textContent")
    # Along the edges of the graph, and back.
    page.key("g")
    page.key("ArrowDown")
    below = page.evaluate(LAYER)
    assert bad in data["layers"][below]["from"], (bad, below)
    page.key("ArrowUp")
    assert page.evaluate(LAYER) in data["layers"][below]["from"]
    page.key("?")
    assert page.evaluate("document.getElementById('help').open")
    page.key("Escape")
    assert not page.evaluate("document.getElementById('help').open")


def check_focus(page):
    """Tab comes by everything that can be used, in the order in which it stands."""
    page.evaluate("document.getElementById('search').focus()")
    seen = ["search"]
    for _ in range(90):
        page.key("Tab")
        seen.append(page.evaluate("document.activeElement.closest('[id]')?.id"))
    order = ["search", "theme", "help-open", "cause", "fix", "way-steps", "zoom-out", "graph-view", "chips", "thead", "tbody", "detail"]
    places = [seen.index(x) for x in order]
    assert places == sorted(places), list(zip(order, places))


def check_graph(page):
    zoom = page.evaluate(ZOOM)
    page.key("g")
    page.key("+")
    page.settle()
    assert page.evaluate(ZOOM) > zoom
    page.key("0")
    page.settle()
    assert page.evaluate(ZOOM) < zoom
    for _ in range(12):
        page.key("+")
    page.settle()
    near = page.evaluate(ZOOM)
    before = page.evaluate(PLACE)
    page.key("ArrowDown", modifiers=8)
    page.settle()
    assert page.evaluate(PLACE) != before, "shift and an arrow do not move the graph"
    x, y = page.place("#graph-view")
    before = page.evaluate(PLACE)
    page.mouse("mousePressed", x, y, button="left", buttons=1, clickCount=1)
    page.mouse("mouseMoved", x, y - 60, button="left", buttons=1)
    page.mouse("mouseReleased", x, y - 60, button="left")
    page.settle()
    assert page.evaluate(PLACE) != before, "dragging does not move the graph"
    page.mouse("mouseWheel", x, y, deltaX=0, deltaY=-300, modifiers=2)
    page.settle()
    assert page.evaluate(ZOOM) > near, "the wheel does not zoom"
    # A click on a node chooses its layer.
    page.key("n")
    page.settle()
    chosen = page.evaluate(LAYER)
    page.click("#graph-view")
    assert page.evaluate(LAYER) >= 0 and chosen >= 0


def check_pictures(page, data):
    """Histograms hold all elements, maps are drawn."""
    page.evaluate("document.querySelector('#cause .link').click()")
    page.settle()
    detail = page.evaluate("document.getElementById('detail').textContent")
    layer = data["layers"][page.evaluate(LAYER)]
    assert layer["name"] in detail and layer["op"] in detail
    assert page.evaluate("document.querySelectorAll('#detail .histogram svg').length") >= 1
    assert page.evaluate("document.querySelectorAll('#detail .maps canvas').length") == 3
    for value in layer["values"]:
        n = 1
        for d in value["shape"]:
            n *= d
        counted = value["zero"] + sum(value["positive"][1:]) + sum(value["negative"][1:]) + value["truth_unfinite"]
        assert counted == n, (counted, n)
        maps = value["maps"]
        assert maps["own"]["rows"] <= 64 and len(maps["truth"]["cells"]) in (1, maps["truth"]["rows"] * maps["truth"]["columns"])
        assert "_" in maps["own"]["cells"], "what overflowed is not in the map"
    # One with errors of its own and of those before.
    page.key("/")
    page.type("op:conv block.77")
    page.key("Enter")
    page.key("Escape")
    page.settle()
    assert page.evaluate("document.querySelectorAll('#detail .histogram svg').length") == 2
    for kind in ("pos", "neg", "own", "total"):
        assert page.evaluate(f"document.querySelectorAll('#detail .histogram rect.{kind}').length") > 3, kind


def check_narrow(b, url):
    for width, height in (NARROW, (640, 800), (1000, 800), WIDE, (2000, 1100)):
        page = b.open(url, width, height)
        over = page.evaluate("document.documentElement.scrollWidth") - width
        assert over <= 0, f"{width} pixels: the page is {over} wider"
        for id in ("verdict", "graph-view", "tbody", "detail", "way-chart"):
            box = page.evaluate(f"(b => [b.left, b.right, b.height])(document.getElementById('{id}').getBoundingClientRect())")
            assert box[0] >= 0 and box[1] <= width and box[2] > 10, (width, id, box)
        check_alone(page, url)


def check_themes(b, url):
    light, dark = b.open(url, *WIDE), b.open(url, *WIDE, dark=True)
    ground = "getComputedStyle(document.body.parentElement).backgroundColor"
    a, z = light.evaluate(ground), dark.evaluate(ground)
    assert a != z
    light.key("t")
    assert light.evaluate(ground) == z
    light.key("t")
    assert light.evaluate(ground) == a


def check_deep(assay, b, folder):
    count = deep.make(folder / "deep.onnx", 2000)
    path = report(assay, folder, folder / "deep.onnx", "--precision", "fp16")
    assert path.stat().st_size < 8 << 20, path.stat().st_size
    url, data = path.as_uri(), data_of(path)
    assert len(data["layers"]) == count
    page = check_load(b, url, count)
    check_words(page, data)
    check_sorting(page, data)
    check_filters(page, data)
    check_keys(page, data)
    check_graph(page)
    check_focus(page)
    check_pictures(page, data)
    check_alone(page, url)
    check_narrow(b, url)
    check_themes(b, url)


def check_small(assay, b, folder, model, *options):
    """Models of every kind show without complaint."""
    path = report(assay, folder, model, *options)
    page = b.open(path.as_uri(), *WIDE)
    data = data_of(path)
    assert page.evaluate("document.getElementById('verdict').textContent") == data["verdict"]
    check_alone(page, path.as_uri())
    for key in "nnpgwltd":
        page.key(key)
    for k in range(len(data["layers"])):
        page.key("l")
        page.key("Home" if k == 0 else "ArrowDown")
    page.click("#graph-all")
    check_alone(page, path.as_uri())


# ---- pages of models ------------------------------------------------------------------------------------------------

def model_page(assay, folder, what, model):
    page = folder / "model.html"
    result = subprocess.run([assay, "inspect", what, str(model), "--report", str(page)], capture_output=True, text=True)
    assert page.exists() and result.returncode in (0, 3), result.stderr
    return page


def check_deep_model(assay, b, folder):
    """2,000 nodes load in time; search, keys, the graph and the panel."""
    path = model_page(assay, folder, "model", folder / "deep.onnx")
    url, data = path.as_uri(), data_of(path)
    page = check_load(b, url, len(data["layers"]))
    page.key("/")
    page.type("op:conv block.12/")
    found = [l["name"] for l in data["layers"] if l["op"] == "Conv" and "block.12/" in l["name"]]
    assert found and page.evaluate(COUNT) == f"{len(found)} of {len(data['layers']):,}"
    page.key("Enter")
    layer = data["layers"][page.evaluate(LAYER)]
    assert layer["name"] == found[0]
    detail = page.evaluate("document.getElementById('detail').textContent")
    value = data["values"][layer["makes"][0]]
    for text in (layer["name"], "Conv", "pads", "[1, 1, 1, 1]", value["name"], value["type"], "constant", "elements"):
        assert text in detail, (text, detail)
    page.key("Escape")
    assert page.evaluate(COUNT) == f"{len(data['layers']):,}"
    # Values are found, too; what reads one.
    page.key("/")
    page.type(f"reads:{value['name'].lower()}")
    readers = sum(layer["makes"][0] in l["reads"] for l in data["layers"])
    assert readers and page.evaluate(COUNT) == f"{readers} of {len(data['layers']):,}"
    page.key("Escape")
    before = page.evaluate(LAYER)
    page.key("g")
    page.key("ArrowDown")
    assert before != page.evaluate(LAYER), "an arrow does not follow the edge"
    page.key("ArrowUp")
    check_graph(page)
    page.key("l")
    page.key("End")
    assert page.evaluate(LAYER) == len(data["layers"]) - 1
    check_alone(page, url)
    for width, height in (NARROW, (640, 800), (1000, 800), WIDE, (2000, 1100)):
        page = b.open(url, width, height)
        over = page.evaluate("document.documentElement.scrollWidth") - width
        assert over <= 0, f"{width} pixels: the page is {over} wider"
        for id in ("graph-view", "tbody", "detail", "inputs"):
            box = page.evaluate(f"(b => [b.left, b.right, b.height])(document.getElementById('{id}').getBoundingClientRect())")
            assert box[0] >= 0 and box[1] <= width and box[2] > 10, (width, id, box)


COLOURS = "[...document.querySelectorAll('#chips .swatch')].map(e => e.style.background)"


def check_small_model(assay, b, folder, what, model):
    """Every layer, and every way of colouring, shows without complaint."""
    path = model_page(assay, folder, what, model)
    page, data = b.open(path.as_uri(), *WIDE), data_of(path)
    names = [data["values"][k]["name"] for k in data["inputs"] + data["outputs"]]
    ends = page.evaluate("document.getElementById('inputs').textContent + document.getElementById('outputs').textContent")
    assert all(name in ends for name in names), (names, ends)
    for key in "nnpgltl":
        page.key(key)
    for k, layer in enumerate(data["layers"]):
        page.key("Home" if k == 0 else "ArrowDown")
        detail = page.evaluate("document.getElementById('detail').textContent")
        assert layer["name"] in detail and all(b["name"] in detail for b in layer["bodies"]), (layer, detail)
    for kind in page.evaluate("[...document.querySelectorAll('#kind option')].map(o => o.value)"):
        page.evaluate(f"(s => {{ s.value = '{kind}'; s.dispatchEvent(new Event('change')); }})(document.getElementById('kind'))")
        assert len(page.evaluate(COLOURS)) or not data["layers"]
    page.click("#graph-all")
    check_alone(page, path.as_uri())


def check_models(assay, b, folder, models):
    check_deep_model(assay, b, folder)
    plan = folder / "small.plan"
    for model in models:
        check_small_model(assay, b, folder, "model", model)
        if subprocess.run([assay, "build", str(model), "-o", str(plan)], capture_output=True).returncode == 0:
            check_small_model(assay, b, folder, "plan", plan)


def main(assay, *folders):
    program = browser.find()
    if not program:
        print("skipped: chromium is not installed (scripts/setup full installs it)")
        return SKIPPED
    with tempfile.TemporaryDirectory() as temporary, browser.Browser(program) as b:
        folder = pathlib.Path(temporary)
        check_deep(assay, b, folder)
        models = [m for f in folders for pattern in ("*.onnx", "*/model.onnx") for m in sorted(pathlib.Path(f).glob(pattern))]
        assert len(models) > 5, folders
        check_models(assay, b, folder, models)
        for model in models:
            for options in (["--precision", "fp16"], ["--precision", "bf16", "--fused", "--shares"]):
                try:
                    check_small(assay, b, folder, model, *options)
                except Exception as e:
                    raise AssertionError(f"{model.name} {' '.join(options)}: {e}") from e
    return 0


sys.exit(main(*sys.argv[1:]))
