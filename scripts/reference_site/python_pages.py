"""Pages of the Python packages, from their sources: nothing is imported, so that extras need not be installed."""
from __future__ import annotations

import ast
import html
import pathlib

from . import text


class Module:
    """A public module: its docstring and what it offers."""

    def __init__(self, name, path):
        self.name, self.path = name, path
        self.tree = ast.parse(path.read_text(encoding="utf-8"))
        self.doc = ast.get_docstring(self.tree) or ""
        self.place = f"python/{name}.html"
        self.own = [n for n in self.tree.body if isinstance(n, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef))]
        self.all = exported(self.tree)

    def imported(self):
        """name: (module, name there), of `from .module import name`, also below `if TYPE_CHECKING`."""
        found = {}
        package = self.name if self.path.name == "__init__.py" else self.name.rpartition(".")[0]
        for node in ast.walk(self.tree):
            if isinstance(node, ast.ImportFrom) and node.level:
                base = ".".join([*package.split(".")[:len(package.split(".")) - node.level + 1], *filter(None, [node.module])])
                found.update({a.asname or a.name: (base, a.name) for a in node.names})
        return found


def exported(tree):
    for node in tree.body:
        if isinstance(node, ast.Assign) and getattr(node.targets[0], "id", "") == "__all__":
            try:
                return list(ast.literal_eval(node.value))
            except ValueError:
                return None
    return None


def modules(folder):
    """All modules below a folder of packages, by name; those with a leading _ are for looking names up only."""
    found = {}
    for path in sorted(pathlib.Path(folder).rglob("*.py")):
        parts = path.relative_to(pathlib.Path(folder).parent).with_suffix("").parts
        name = ".".join(parts[:-1] if parts[-1] == "__init__" else parts)
        found[name] = Module(name, path)
    return found


def is_public(name):
    return not any(part.startswith("_") for part in name.split("."))


def resolve(every, module, name):
    """The definition of a name that a module offers, where it stands."""
    seen = set()
    while (module.name, name) not in seen:
        seen.add((module.name, name))
        for node in module.own:
            if node.name == name:
                return node
        base, there = module.imported().get(name, (None, None))
        if base not in every:
            return None
        module, name = every[base], there
    return None


def offered(every, module):
    """(name, definition) of what a public module documents."""
    if module.all is not None:
        pairs = [(n, resolve(every, module, n)) for n in module.all]
        return [(n, d) for n, d in pairs if d is not None]
    return [(n.name, n) for n in module.own if is_public(n.name)]


def signature(node):
    returns = f" -> {ast.unparse(node.returns)}" if node.returns else ""
    return f"{node.name}({ast.unparse(node.args)}){returns}"


def decorators(node):
    return {ast.unparse(d).split("(")[0].split(".")[-1] for d in node.decorator_list}


def public_members(node):
    """Methods and properties of a class, and fields of a dataclass or a NamedTuple."""
    for part in node.body:
        if isinstance(part, (ast.FunctionDef, ast.AsyncFunctionDef)) and is_public(part.name) and "setter" not in decorators(part):
            yield part


def fields(node):
    return [p for p in node.body if isinstance(p, ast.AnnAssign) and isinstance(p.target, ast.Name) and is_public(p.target.id)]


def member_html(node, owner, names, root):
    kind = decorators(node) & {"property", "cached_property", "classmethod", "staticmethod"}
    if kind & {"property", "cached_property"}:
        shown = node.name + (f": {ast.unparse(node.returns)}" if node.returns else "")
    else:
        shown = signature(node)
    prefix = "".join(f"@{k} " for k in sorted(kind & {"classmethod", "staticmethod"}))
    doc = text.rendered((ast.get_docstring(node) or "").split("\n"), names, root)
    return f'<div class="member" id="{owner}.{node.name}"><pre><code>{html.escape(prefix + shown, False)}</code></pre>{doc}</div>'


def item_html(name, node, names, root):
    out = [f'<section class="item" id="{name}">',
           f'<h3><a href="#{name}">{name}</a> <small>{"class" if isinstance(node, ast.ClassDef) else "function"}</small></h3>']
    doc = text.rendered((ast.get_docstring(node) or "").split("\n"), names, root)
    if isinstance(node, ast.ClassDef):
        bases = ", ".join(ast.unparse(b) for b in node.bases)
        init = next((p for p in node.body if isinstance(p, ast.FunctionDef) and p.name == "__init__"), None)
        head = f"class {name}({bases})" if bases else f"class {name}"
        if init is not None:
            head += f"\n{name}({ast.unparse(init.args).removeprefix('self').lstrip(', ')})"
        out += [f"<pre><code>{html.escape(head, False)}</code></pre>", doc]
        if init is not None:
            out.append(text.rendered((ast.get_docstring(init) or "").split("\n"), names, root))
        rows = "".join(f"<tr><td><code>{html.escape(ast.unparse(f), False)}</code></td></tr>" for f in fields(node))
        out.append(f'<table class="members">{rows}</table>' if rows else "")
        out += [member_html(part, name, names, root) for part in public_members(node)]
    else:
        out += [f"<pre><code>{html.escape(signature(node), False)}</code></pre>", doc]
    return "\n".join([*out, "</section>"])


def body(every, module, names):
    out = [f"<h1>{module.name}</h1>", text.rendered(module.doc.split("\n"), names, "../")]
    out += [item_html(name, node, names, "../") for name, node in offered(every, module)]
    return "\n".join(out)


def entries(every, module):
    yield (module.name, "module", module.place, module.doc.split("\n")[0])
    for name, node in offered(every, module):
        doc = (ast.get_docstring(node) or "").split("\n")[0]
        yield (f"{module.name}.{name}", "class" if isinstance(node, ast.ClassDef) else "function", f"{module.place}#{name}", doc[:120])
        if isinstance(node, ast.ClassDef):
            for part in public_members(node):
                about = (ast.get_docstring(part) or "").split("\n")[0]
                yield (f"{module.name}.{name}.{part.name}", "method", f"{module.place}#{name}.{part.name}", about[:120])


def undocumented(every, strict=("assay",)):
    """Public modules without a docstring; in the strict ones also functions, classes, methods and properties."""
    for module in every.values():
        if not is_public(module.name):
            continue
        if not module.doc:
            yield module.name
        if module.name not in strict:
            continue
        for name, node in offered(every, module):
            if not ast.get_docstring(node):
                yield f"{module.name}.{name}"
            if isinstance(node, ast.ClassDef):
                yield from (f"{module.name}.{name}.{p.name}" for p in public_members(node) if not ast.get_docstring(p))
