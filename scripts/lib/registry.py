"""The rules for server.json: the registry's schema of 2025-12-11, and what the
official registry demands of mcpb and oci packages beyond it."""

import re
import urllib.parse

from release import SEMANTIC

SCHEMA = "https://static.modelcontextprotocol.io/schemas/2025-12-11/server.schema.json"

TEXT = {"$schema", "name", "title", "description", "version", "websiteUrl"}
SERVER = TEXT | {"packages", "remotes", "repository", "icons", "_meta"}
PACKAGE = {"registryType", "identifier", "version", "registryBaseUrl", "fileSha256",
           "runtimeHint", "runtimeArguments", "packageArguments",
           "environmentVariables", "transport"}
INPUT = {"choices", "default", "description", "format", "isRequired", "isSecret",
         "placeholder", "value"}
ARGUMENT = INPUT | {"type", "name", "valueHint", "isRepeated", "variables"}


def unknown(value, known, where):
    return [f"{where}: {key} is not known" for key in value if key not in known]


def input_faults(value, where):
    out = []
    if value.get("format", "string") not in ("string", "number", "boolean", "filepath"):
        out.append(f"{where}: format is {value['format']}")
    out += [f"{where}: {k} is not a text" for k in ("default", "description", "value", "placeholder")
            if not isinstance(value.get(k, ""), str)]
    return out + [f"{where}: {k} is not a flag" for k in ("isRequired", "isSecret")
                  if not isinstance(value.get(k, False), bool)]


def argument_faults(value, where):
    out = unknown(value, ARGUMENT, where) + input_faults(value, where)
    kind = value.get("type")
    if kind not in ("positional", "named"):
        out.append(f"{where}: type is {kind}")
    if kind == "named" and not value.get("name"):
        out.append(f"{where}: a named argument has a name")
    if kind == "positional" and "value" not in value and "valueHint" not in value:
        out.append(f"{where}: a positional argument has value or valueHint")
    variables = value.get("variables", {})
    for name in re.findall(r"\{(\w+)\}", value.get("value", "")):
        if name not in variables:
            out.append(f"{where}: {{{name}}} is not among its variables")
    for name, variable in variables.items():
        out += unknown(variable, INPUT, f"{where} {name}") + input_faults(variable, f"{where} {name}")
    return out


def bundle_faults(package, where):
    out = [f"{where}: an mcpb package has no {k}" for k in ("version", "registryBaseUrl") if k in package]
    address = urllib.parse.urlsplit(package.get("identifier", ""))
    if address.scheme != "https" or not address.netloc:
        out.append(f"{where}: identifier is not an https address")
    if "mcp" not in package.get("identifier", "").lower():
        out.append(f"{where}: the address of a bundle has the letters mcp")
    if not re.fullmatch(r"[a-f0-9]{64}", package.get("fileSha256", "")):
        out.append(f"{where}: fileSha256 is not a SHA-256")
    return out


def image_faults(package, where):
    out = [f"{where}: an oci package has no {k}"
           for k in ("version", "registryBaseUrl", "fileSha256") if k in package]
    if not re.fullmatch(r"[a-z0-9.-]+(:\d+)?(/[a-z0-9._-]+)+(:[\w.-]{1,128}|@sha256:[a-f0-9]{64})",
                        package.get("identifier", "")):
        out.append(f"{where}: identifier is not host/name:tag")
    return out


def package_faults(package, where):
    out = unknown(package, PACKAGE, where)
    if package.get("transport", {}).get("type") != "stdio":
        out.append(f"{where}: transport is not stdio")
    for key in ("runtimeArguments", "packageArguments"):
        for i, argument in enumerate(package.get(key, [])):
            out += argument_faults(argument, f"{where} {key} {i + 1}")
    if "runtimeArguments" in package and "runtimeHint" not in package:
        out.append(f"{where}: runtimeArguments need a runtimeHint")
    kind = package.get("registryType")
    if kind == "mcpb":
        out += bundle_faults(package, where)
    elif kind == "oci":
        out += image_faults(package, where)
    else:
        out.append(f"{where}: registryType is {kind}")
    return out


def faults(server):
    """What is wrong with it, a line each."""
    out = unknown(server, SERVER, "server")
    out += [f"{k} is not a text" for k in TEXT if not isinstance(server.get(k, ""), str)]
    if server.get("$schema") != SCHEMA:
        out.append("$schema is another one")
    if not re.fullmatch(r"[a-zA-Z0-9.-]+/[a-zA-Z0-9._-]+", server.get("name", "")) or \
            len(server["name"]) > 200:
        out.append("name is not namespace/name")
    if not 1 <= len(server.get("description", "")) <= 100:
        out.append("description has not 1 to 100 characters")
    if not 1 <= len(server.get("title", "x")) <= 100:
        out.append("title has not 1 to 100 characters")
    if not SEMANTIC.fullmatch(server.get("version", "")):
        out.append("version is not semantic")
    if not server.get("packages"):
        out.append("there is no package")
    for i, package in enumerate(server.get("packages", [])):
        out += package_faults(package, f"package {i + 1}")
    return out
