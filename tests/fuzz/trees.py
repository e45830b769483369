"""Recipes: a set of valid files by name, and edits of them, as one line of JSON.

    {"base": name, "edits": [[verb, path, ...], ...]}

An edit that cannot be made, as its file or place is gone, is left out, so that every part of a
recipe is one. `a.zip!b` is a member of an archive.
"""

import io
import json
import os
import struct
import zipfile
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from random import Random
from typing import Any

from tests.fuzz import texts

Tree = dict[str, "bytes | Odd"]
Edit = list[Any]


class Odd:
    """What stands where a file should: a directory, a pipe, or a link."""

    def __init__(self, kind: str, target: str = "") -> None:
        self.kind = kind
        self.target = target


_UNREADABLE = (
    zipfile.BadZipFile,
    zlib.error,
    struct.error,
    NotImplementedError,
    RuntimeError,
    EOFError,
    ValueError,
    ArithmeticError,
    OSError,
)
LINKS = ("../victim/precious", "../victim", ".", "/dev/zero", "/nonexistent", "loop")


def encode(base: str, edits: Sequence[Edit]) -> bytes:
    """Write a recipe."""
    return json.dumps({"base": base, "edits": edits}, separators=(",", ":")).encode()


def decode(recipe: bytes) -> tuple[str, list[Edit]]:
    """Read a recipe."""
    value = json.loads(recipe)
    return value["base"], value["edits"]


def reduced(recipe: bytes) -> Iterator[bytes]:
    """The same with fewer edits."""
    base, edits = decode(recipe)
    half = len(edits) // 2
    if half > 1:
        yield encode(base, edits[:half])
        yield encode(base, edits[half:])
    for index in range(len(edits)):
        yield encode(base, [*edits[:index], *edits[index + 1 :]])


def edited(tree: Mapping[str, Any], edit: Edit) -> Tree:
    """Make one edit."""
    new: Tree = dict(tree)
    verb, path, *rest = edit
    outer, inside, inner = path.partition("!")
    if inside:
        new[outer] = _in_archive(new.get(outer), [verb, inner, *rest])
        return {name: data for name, data in new.items() if data is not None}
    match verb, rest:
        case "drop", []:
            new.pop(path, None)
        case "odd", [kind, target]:
            new[path] = Odd(kind, target)
        case "copy", [other] if path in new:
            new[other] = new[path]
        case "new", [spec]:
            new[path] = texts.expand(spec).encode("utf-8", "surrogatepass")
        case _ if isinstance(held := new.get(path), bytes):
            new[path] = _content(held, verb, rest)
    return new


def _content(data: bytes, verb: str, rest: list[Any]) -> bytes:
    match verb, rest:
        case "splice", [offset, removed, text]:
            return texts.splice(data, offset, removed, text)
        case "recode", [encoding]:
            return data.decode("utf-8", "replace").encode(encoding, "replace")
        case "json", [None, *edit]:
            return texts.edit_json(data, *edit)
        case "json", [line, *edit]:
            lines = data.split(b"\n")
            if line < len(lines):
                lines[line] = texts.edit_json(lines[line], *edit)
            return b"\n".join(lines)
    return data


def _members(data: bytes) -> dict[str, Any]:
    """What is in an archive; nothing if it cannot be read to its end."""
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            return {name: archive.read(name) for name in archive.namelist()}
    except _UNREADABLE:
        return {}


def _in_archive(data: Any, edit: Edit) -> Any:
    if not isinstance(data, bytes):
        return data
    members = _members(data)
    if not members:
        return data
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in edited(members, edit).items():
            if isinstance(content, bytes):
                entry = zipfile.ZipInfo(name.replace("\0", ""), (1980, 1, 1, 0, 0, 0))
                entry.compress_type = zipfile.ZIP_DEFLATED
                archive.writestr(entry, content)
    return made.getvalue()


def write(tree: Mapping[str, Any], folder: Path) -> None:
    """Write the files; what does not go together with what stands there is left out."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, data in tree.items():
        path = folder / name
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            if isinstance(data, bytes):
                path.write_bytes(data)
            elif data.kind == "directory":
                path.mkdir()
            elif data.kind == "pipe":
                os.mkfifo(path)
            else:
                path.symlink_to(data.target)
        except (OSError, ValueError):
            continue


def contents(folder: Path) -> dict[str, bytes | str]:
    """Every file below a folder, and what kind everything else is of."""
    found: dict[str, bytes | str] = {}
    for path in folder.rglob("*"):
        name = str(path.relative_to(folder))
        if path.is_symlink():
            found[name] = f"link to {path.readlink()}"
        else:
            found[name] = path.read_bytes() if path.is_file() else "no file"
    return found


def draw_edit(tree: Mapping[str, Any], random: Random) -> Edit:
    """Draw an edit of a file, or of which files there are."""
    path = random.choice([*tree])
    data = tree[path]
    if random.random() < 0.1 or not isinstance(data, bytes):
        return _draw_of_set(tree, path, random)
    if zipfile.is_zipfile(io.BytesIO(data)) and random.random() < 0.85:
        members = _members(data)
        if members:
            verb, inner, *rest = draw_edit(members, random)
            return [verb, f"{path}!{inner}", *rest]
    if random.random() < 0.8:
        edit = _draw_json(data, random)
        if edit is not None:
            return ["json", path, *edit]
    if random.random() < 0.1:
        return ["recode", path, random.choice(texts.ENCODINGS)]
    return ["splice", path, *texts.byte_edit(data, random)]


def _draw_json(data: bytes, random: Random) -> list[Any] | None:
    whole = texts.json_edit(data, random)
    if whole is not None:
        return [None, *whole]
    lines = data.split(b"\n")
    line = random.randrange(len(lines))
    edit = texts.json_edit(lines[line], random)
    return None if edit is None else [line, *edit]


def _draw_of_set(tree: Mapping[str, Any], path: str, random: Random) -> Edit:
    match random.randrange(6):
        case 0 | 1:
            return ["drop", path]
        case 2:
            return ["odd", path, "link", random.choice((*LINKS, random.choice([*tree])))]
        case 3:
            return ["odd", path, random.choice(("directory", "pipe")), ""]
        case 4:
            folder, _, name = path.rpartition("/")
            new = random.choice((f"{name}x", "0.json", "\udcff", "x" * 200, f"{name}/x", "\n"))
            return ["new", f"{folder}/{new}".lstrip("/"), texts.draw(random)]
    return ["copy", path, random.choice([*tree])]


class Recipes:
    """Mutations of recipes over bases; `extend` draws edits of further kinds."""

    def __init__(self, bases: Callable[[], Mapping[str, Tree]]) -> None:
        self._make = bases
        self._bases: Mapping[str, Tree] | None = None

    @property
    def bases(self) -> Mapping[str, Tree]:
        """The sets of valid files, made once."""
        if self._bases is None:
            self._bases = self._make()
        return self._bases

    def seeds(self) -> Iterable[bytes]:
        """The bases as they are."""
        return [encode(name, []) for name in self.bases]

    def tree(self, recipe: bytes) -> Tree:
        """The files that a recipe tells."""
        base, edits = decode(recipe)
        tree = self.bases[base]
        for edit in edits:
            tree = self.apply(tree, edit)
        return dict(tree)

    def apply(self, tree: Tree, edit: Edit) -> Tree:
        """Make one edit."""
        return edited(tree, edit)

    def draw(self, tree: Tree, random: Random) -> Edit:
        """Draw one edit."""
        return draw_edit(tree, random)

    def mutate(self, data: bytes, others: Sequence[bytes], random: Random) -> bytes:
        """One edit more, or less, or those of another recipe."""
        base, edits = decode(data)
        match random.random():
            case share if share < 0.1 and edits:
                edits.pop(random.randrange(len(edits)))
            case share if share < 0.2 and others:
                other_base, other = decode(random.choice(others))
                if other_base == base:
                    edits = (edits + other)[:12]
            case _:
                tree = self.tree(data)
                edits = [*edits[-11:], self.draw(tree or self.bases[base], random)]
        return encode(base, edits)
