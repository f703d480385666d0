#!/usr/bin/env python3
"""Makes debian-12-packages.el.gz: the dependency graph of Debian 12's packages, from this machine's own package lists.

    sudo apt-get update                      # once, so that the lists are there
    python3 examples/debian_packages.py      # writes examples/debian-12-packages.el.gz

One line an edge, `package dependency`, sorted; needs Debian 12 (apt) and Python's standard library, nothing else.

- A vertex is the name of a binary package of the suite `bookworm`, component `main`, architecture amd64.
- An edge goes from a package to each package named in its Depends and Pre-Depends. Of alternatives `a | b` each one
  that exists gives an edge. Version constraints and architecture qualifiers (`perl:any`) are left out.
- A virtual package (a name that only stands in Provides) is not a vertex: the edge goes to every package that provides it.
- A name that is neither a package nor provided gives no edge; neither does a package that provides its own dependency.
- A package without edges either way is not in the file.
"""

import argparse
import collections
import gzip
import io
import pathlib
import re
import subprocess
import sys

LISTS = pathlib.Path("/var/lib/apt/lists")
SUITE = "*_dists_bookworm_main_binary-amd64_Packages*"
RELEASE = "*_dists_bookworm_InRelease"


def one(pattern):
    found = [path for path in sorted(LISTS.glob(pattern)) if not path.name.endswith(".diff_Index")]
    if len(found) != 1:
        sys.exit(f"{len(found)} files match {LISTS}/{pattern}, expected one: run `apt-get update` on Debian 12 first")
    return found[0]


def records(text):
    """The records of a control file: one dictionary a paragraph, continuation lines left out (no field we read has any)."""
    record = {}
    for line in text.splitlines():
        if not line:
            if record:
                yield record
            record = {}
        elif not line[0].isspace():
            field, _, value = line.partition(":")
            record[field] = value.strip()
    if record:
        yield record


def names(relation):
    """The package names in a relation field such as `libc6 (>= 2.34), perl:any | python3`."""
    for item in re.split(r"[,|]", relation):
        name = re.split(r"[\s(:\[<]", item.strip(), maxsplit=1)[0]
        if name:
            yield name


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    default = pathlib.Path(__file__).with_name("debian-12-packages.el.gz")
    parser.add_argument("-o", "--output", type=pathlib.Path, default=default)
    output = parser.parse_args().output

    # apt keeps its lists compressed in a form that Python cannot read; its own helper prints any of them.
    command = ["/usr/lib/apt/apt-helper", "cat-file", str(one(SUITE))]
    packages = list(records(subprocess.run(command, check=True, stdout=subprocess.PIPE).stdout.decode()))
    release = dict(re.findall(r"^(Version|Date): (.*)$", one(RELEASE).read_text(), re.MULTILINE))

    real = {package["Package"] for package in packages}
    providers = collections.defaultdict(set)
    for package in packages:
        for name in names(package.get("Provides", "")):
            providers[name].add(package["Package"])

    edges, missing = set(), set()
    for package in packages:
        source = package["Package"]
        for name in names(package.get("Pre-Depends", "") + "," + package.get("Depends", "")):
            targets = {name} if name in real else providers.get(name, set())
            if not targets:
                missing.add(name)
            edges.update((source, target) for target in targets if target != source)
    vertices = {name for edge in edges for name in edge}

    lines = [
        f"# Debian {release['Version']} (bookworm, main, amd64), lists of {release['Date']}",
        f"# {len(vertices)} packages, {len(edges)} dependencies; made by examples/debian_packages.py",
        *(f"{source} {target}" for source, target in sorted(edges)),
    ]
    # No file name and no time in the gzip header: the same lists give the same bytes.
    compressed = io.BytesIO()
    with gzip.GzipFile(filename="", mode="wb", fileobj=compressed, compresslevel=9, mtime=0) as stream:
        stream.write(("\n".join(lines) + "\n").encode())
    output.write_bytes(compressed.getvalue())
    print(
        f"{output}: {len(vertices)} of {len(real)} packages, {len(edges)} edges, {len(compressed.getvalue())} bytes; "
        f"{len(missing)} names that no package of the suite has or provides"
    )


if __name__ == "__main__":
    main()
