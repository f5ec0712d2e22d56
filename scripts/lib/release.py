"""Shared by the scripts of a release."""

import pathlib
import re

TOP = pathlib.Path(__file__).resolve().parent.parent.parent


def version():
    text = (TOP / "meson.build").read_text()
    return re.search(r"version : '([^']+)'", text)[1]
