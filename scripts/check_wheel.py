"""Build the wheel, install it into an empty environment and use it from ``/``: what a person gets from the index.

Checks what an editable install hides: that every package is inside, that nothing else is, and that the program starts
without the repository around it.
"""

import pathlib
import subprocess
import sys
import tempfile
import venv
import zipfile

ROOT = pathlib.Path(__file__).resolve().parent.parent
ROOTS = ("core", "plugins", "transports")
WAV_HEADER = 44


def expected_packages() -> set[str]:
    return {init.parent.name for root in ROOTS for init in (ROOT / root).glob("*/__init__.py")}


def build(into: pathlib.Path) -> pathlib.Path:
    command = (sys.executable, "-m", "build", "--wheel", "--no-isolation", "--outdir", str(into), str(ROOT))
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    (wheel,) = into.glob("*.whl")
    return wheel


def check_content(wheel: pathlib.Path) -> None:
    names = zipfile.ZipFile(wheel).namelist()
    found = {name.split("/")[0] for name in names if not name.split("/")[0].endswith(".dist-info")}
    assert found == expected_packages(), f"the wheel holds {sorted(found)}, expected {sorted(expected_packages())}"
    untyped = {package for package in found if f"{package}/py.typed" not in names}
    assert not untyped, f"without py.typed: {sorted(untyped)}"


def check_use(wheel: pathlib.Path, home: pathlib.Path) -> None:
    venv.create(home / "venv", with_pip=True)
    python = str(home / "venv" / "bin" / "python")
    program = str(home / "venv" / "bin" / "stagewire")
    subprocess.run((python, "-m", "pip", "install", "--quiet", str(wheel)), check=True)
    for name in ("quickstart.yaml", "quickstart.txt"):
        (home / name).write_bytes((ROOT / "configs" / name).read_bytes())
    out = home / "out"
    for arguments in (
        ("version",),
        ("plugins", "list"),
        ("check", str(home / "quickstart.yaml")),
        ("run", str(home / "quickstart.yaml"), "--input", str(home / "quickstart.txt"), "--output", str(out)),
    ):
        subprocess.run((program, *arguments), cwd="/", check=True, stdout=subprocess.DEVNULL)
    assert (out / "tone.wav").stat().st_size > WAV_HEADER, "the installed quickstart made no sound"


def main() -> None:
    with tempfile.TemporaryDirectory() as directory:
        home = pathlib.Path(directory)
        wheel = build(home)
        check_content(wheel)
        check_use(wheel, home)
    print("wheel: complete, and works in an empty environment")


if __name__ == "__main__":
    main()
