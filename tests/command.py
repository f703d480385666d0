"""The command that is tested, and what it wrote."""
import hashlib
import os
import pathlib
import subprocess

ROOT = pathlib.Path(__file__).resolve().parents[1]
MIB = 1 << 20


def command():
    """The command that is tested."""
    if "GRAPHMILL" in os.environ:
        return os.environ["GRAPHMILL"]
    subprocess.run(["cargo", "build", "--locked", "-p", "graphmill-cli"], cwd=ROOT, check=True)
    return str((ROOT / os.environ.get("CARGO_TARGET_DIR", "target") / "debug/graphmill").resolve())


def digest(path):
    """Of a file, or of all files in a folder with their names."""
    found = hashlib.sha256()
    for file in [path] if path.is_file() else sorted(path.rglob("*")):
        if file.is_file():
            found.update(str(file.relative_to(path)).encode())
            with open(file, "rb") as bytes_of:
                while piece := bytes_of.read(MIB):
                    found.update(piece)
    return found.hexdigest()


def remove(path):
    subprocess.run(["rm", "-rf", path], check=True)
