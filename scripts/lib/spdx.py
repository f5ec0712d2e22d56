"""The rules of SPDX 2.3 for the documents that scripts/sbom writes; stricter
where the standard leaves a choice: every package is reached from the document."""

import re

DOCUMENT = {"spdxVersion", "dataLicense", "SPDXID", "name", "documentNamespace",
            "creationInfo", "packages", "relationships"}
PACKAGE = {"name", "SPDXID", "versionInfo", "downloadLocation", "filesAnalyzed",
           "licenseConcluded", "licenseDeclared", "copyrightText", "checksums",
           "externalRefs", "primaryPackagePurpose", "comment"}
NEEDED = PACKAGE - {"checksums", "externalRefs", "primaryPackagePurpose", "comment"}
PURPOSES = {"APPLICATION", "FRAMEWORK", "LIBRARY", "CONTAINER", "OPERATING-SYSTEM",
            "DEVICE", "FIRMWARE", "SOURCE", "ARCHIVE", "FILE", "INSTALL", "OTHER"}
RELATIONS = {"DESCRIBES", "CONTAINS", "STATIC_LINK"}
DIGITS = {"SHA1": 40, "SHA256": 64, "SHA512": 128}
ID = re.compile(r"SPDXRef-[a-zA-Z0-9.-]+")
LICENSE = r"\(?[A-Za-z0-9.-]+\+?( WITH [A-Za-z0-9.-]+)?\)?"
EXPRESSION = re.compile(rf"{LICENSE}( (AND|OR) {LICENSE})*")
PURL = re.compile(r"pkg:(deb/debian|npm)/[A-Za-z0-9%./_+-]+@[A-Za-z0-9%.+:~-]+(\?[\w=&%.-]+)?")


def document_faults(doc):
    out = [f"the document has no {k}" for k in sorted(DOCUMENT - doc.keys())]
    out += [f"the document has {k}, which is not known" for k in doc.keys() - DOCUMENT]
    for key, value in (("spdxVersion", "SPDX-2.3"), ("dataLicense", "CC0-1.0"),
                       ("SPDXID", "SPDXRef-DOCUMENT")):
        if doc.get(key) != value:
            out.append(f"{key} is not {value}")
    if not re.fullmatch(r"https?://[^\s#]+", doc.get("documentNamespace", "")):
        out.append("documentNamespace is not an address without a fragment")
    made = doc.get("creationInfo", {})
    if not re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ", made.get("created", "")):
        out.append("created is not a date like 2026-11-17T09:00:00Z")
    creators = made.get("creators", [])
    if not creators or not all(re.match(r"(Tool|Organization|Person): \S", c) for c in creators):
        out.append("creators are not Tool:, Organization: or Person:")
    return out


def package_faults(p):
    name = p.get("name", "?")
    out = [f"{name} has no {k}" for k in sorted(NEEDED - p.keys())]
    out += [f"{name} has {k}, which is not known" for k in p.keys() - PACKAGE]
    if not ID.fullmatch(p.get("SPDXID", "")):
        out.append(f"{name}: SPDXID is {p.get('SPDXID')}")
    if not p.get("versionInfo"):
        out.append(f"{name}: versionInfo is empty")
    if p.get("filesAnalyzed") is not False:
        out.append(f"{name}: filesAnalyzed is not false, but no file is listed")
    where = p.get("downloadLocation", "")
    if where not in ("NOASSERTION", "NONE") and not re.fullmatch(r"[a-z+]+://\S+", where):
        out.append(f"{name}: downloadLocation is {where}")
    for key in ("licenseConcluded", "licenseDeclared"):
        if not EXPRESSION.fullmatch(p.get(key, "")):
            out.append(f"{name}: {key} is {p.get(key)}")
    if p.get("primaryPackagePurpose", "OTHER") not in PURPOSES:
        out.append(f"{name}: primaryPackagePurpose is {p['primaryPackagePurpose']}")
    for sum_ in p.get("checksums", []):
        digits = DIGITS.get(sum_.get("algorithm"), -1)
        if not re.fullmatch(rf"[0-9a-f]{{{max(digits, 0)}}}", sum_.get("checksumValue", "")) or digits < 0:
            out.append(f"{name}: a checksum is wrong")
    for ref in p.get("externalRefs", []):
        if (ref.get("referenceCategory"), ref.get("referenceType")) != ("PACKAGE-MANAGER", "purl") or \
                not PURL.fullmatch(ref.get("referenceLocator", "")):
            out.append(f"{name}: {ref.get('referenceLocator')} is not a package URL")
    return out


def relation_faults(doc):
    ids = [doc.get("SPDXID"), *(p.get("SPDXID") for p in doc.get("packages", []))]
    out = [f"{i} is there twice" for i in sorted({i for i in ids if ids.count(i) > 1})]
    edges, seen = {}, set()
    for r in doc.get("relationships", []):
        row = tuple(r.get(k) for k in ("spdxElementId", "relationshipType", "relatedSpdxElement"))
        if row in seen:
            out.append(f"{row} is there twice")
        seen.add(row)
        if row[1] not in RELATIONS:
            out.append(f"{row[1]} is not a relationship of these documents")
        out += [f"{end} is in a relationship, but not there" for end in (row[0], row[2]) if end not in ids]
        edges.setdefault(row[0], []).append(row[2])
    reached, todo = set(), ["SPDXRef-DOCUMENT"]
    while todo:
        at = todo.pop()
        if at not in reached:
            reached.add(at)
            todo += edges.get(at, [])
    return out + [f"{i} is not reached from the document" for i in ids if i not in reached]


def faults(doc):
    """What is wrong with it, a line each."""
    out = document_faults(doc)
    for p in doc.get("packages", []):
        out += package_faults(p)
    return out + relation_faults(doc)
