"""Check what a built wheel holds: `python -m tests.wheel DIST`."""

import sys
import zipfile
from pathlib import Path

PACKAGES = {"acl", "exporters", "ledger", "runtime"}


def strangers(wheel: Path) -> list[str]:
    """Members of the wheel that belong to none of the four packages nor to its metadata."""
    with zipfile.ZipFile(wheel) as archive:
        names = archive.namelist()
    tops = {name: name.split("/", 1)[0] for name in names}
    return [
        name
        for name, top in tops.items()
        if (top not in PACKAGES and not top.endswith(".dist-info")) or "__pycache__" in name
    ]


def main() -> None:
    (wheel,) = Path(sys.argv[1]).glob("*.whl")
    found = strangers(wheel)
    if found:
        sys.exit(f"{wheel.name} holds what it should not: {found}")
    print(f"{wheel.name}: the four packages and nothing else")


if __name__ == "__main__":
    main()
