"""Shared by the scripts of a release."""

import datetime
import json
import os
import pathlib
import re
import subprocess

TOP = pathlib.Path(__file__).resolve().parent.parent.parent
NAME = "mcp-orchestrator"
TITLE = "MCP Orchestrator"
ARCHES = ("amd64", "arm64")
NUMBER = r"(0|[1-9][0-9]*)"
WORD = r"(0|[1-9][0-9]*|[0-9]*[a-zA-Z-][0-9a-zA-Z-]*)"
# A version by semver.org, without build metadata: files are named by it.
SEMANTIC = re.compile(rf"{NUMBER}\.{NUMBER}\.{NUMBER}(-{WORD}(\.{WORD})*)?")


def version():
    text = (TOP / "meson.build").read_text()
    return re.search(r"version : '([^']+)'", text)[1]


def changes():
    """Version and date of the newest heading in CHANGES.md; the date may be
    "unreleased"."""
    head = re.search(r"^## (\S+) \((\d{4}-\d\d-\d\d|unreleased)\)$",
                     (TOP / "CHANGES.md").read_text(), re.M)
    return (head[1], head[2]) if head else ("missing", "unreleased")


def facts():
    """packaging/release.json, or the file that MO_RELEASE_FACTS names: the name
    in MCP registries, and where files and images are published."""
    path = os.environ.get("MO_RELEASE_FACTS") or TOP / "packaging/release.json"
    return json.loads(pathlib.Path(path).read_text())


def epoch():
    """The date of a release, in seconds: that of the commit."""
    return int(os.environ.get("SOURCE_DATE_EPOCH") or subprocess.run(
        ["git", "-C", TOP, "log", "-1", "--format=%ct"],
        capture_output=True, text=True, check=True).stdout)


def date():
    return datetime.datetime.fromtimestamp(epoch(), datetime.timezone.utc)
