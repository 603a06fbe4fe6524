"""What lint can find: one rule an id, with its severity, why it matters and how to fix it; and the findings.

Longer than 250 lines because the rules are one table, read and numbered as a whole.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from enum import StrEnum

import msgspec
from foldproof.impl.errors import FoldproofError


class Severity(StrEnum):
    """How bad a finding is. A note is a fact to know; nothing is wrong with a capture that has notes alone."""

    ERROR = "error"
    WARNING = "warning"
    NOTE = "note"


ORDER = (Severity.NOTE, Severity.WARNING, Severity.ERROR)


class Rule(msgspec.Struct, frozen=True):
    """One thing that lint looks for. `says` names the fault, `why` what it leads to, `fix` what to do."""

    id: str
    name: str
    severity: Severity
    says: str
    why: str
    fix: str


class Finding(msgspec.Struct, frozen=True):
    """One fault: its rule, its JSON path in `aot.json` (or a file of the capture), and what is there."""

    rule: str
    name: str
    severity: Severity
    where: str
    what: str
    why: str
    fix: str


def _rules() -> dict[str, Rule]:
    rows = [Rule(id_, name, Severity(level), *text) for id_, name, level, *text in _ROWS]
    return {rule.id: rule for rule in rows}


_REFUSED = "the loader refuses the whole capture"
_ROWS: tuple[tuple[str, str, str, str, str, str], ...] = (
    ("L001", "no-capture", "error", "this is no capture", _REFUSED, "write the aot.json again"),
    (
        "L002",
        "repeated-key",
        "error",
        "a JSON key is repeated",
        "either saying may be the assumption that a launch breaks; " + _REFUSED,
        "keep one of them",
    ),
    ("L003", "malformed", "error", "a field breaks the format", _REFUSED, "see docs/reference/formats.md"),
    (
        "L004",
        "unknown-attribute",
        "error",
        "a param has an unknown attribute",
        "it may be an assumption that no selector tests; " + _REFUSED,
        "remove it, or use a foldproof that knows it",
    ),
    (
        "L005",
        "bad-hash",
        "error",
        "the hash is no plain file name",
        "the cubin would be looked for outside the capture",
        "use the hex digest of the variant",
    ),
    (
        "L101",
        "param-and-const",
        "error",
        "a name is both param and const of one variant",
        "the arg has two places; " + _REFUSED,
        "drop the one that the cubin does not have",
    ),
    (
        "L102",
        "repeated-param",
        "error",
        "two params have one name",
        "an arg is matched by name; " + _REFUSED,
        "give each param its own name",
    ),
    (
        "L103",
        "div16-through-a-switch",
        "error",
        "div16 on a nospec or noalign param",
        "the switch rules out what div16 claims: an int is then never matched, a pointer never exactly",
        "clear div16, or the switch",
    ),
    (
        "L104",
        "div16-without-alignment",
        "warning",
        "div16 on a float or bool param",
        "it says nothing: no selector looks at it",
        "clear div16",
    ),
    (
        "L105",
        "repeated-hash",
        "error",
        "two entries share one hash",
        "a hash names one cubin; " + _REFUSED,
        "drop one entry, or give the other its own hash",
    ),
    (
        "L106",
        "duplicate",
        "warning",
        "two hashes have equal function, params, constants, options and source",
        "chance decides which of them runs",
        "keep the one that was validated",
    ),
    ("L107", "annotated-no-integer", "error", "annotated on a param that is no integer", _REFUSED, "clear annotated"),
    (
        "L108",
        "range32-no-pointer",
        "error",
        "range32 on a param that is no pointer",
        "no launch can meet it",
        "clear range32",
    ),
    (
        "L109",
        "unlaunchable-type",
        "error",
        "no arg has the type of the param",
        "no launch can ever reach the variant",
        "use a type that the launcher gives, or annotate the integer",
    ),
    (
        "L201",
        "free-constants",
        "warning",
        "variants of one function differ in constants that a launch need not name",
        "a launch that names none of them gets whichever stands first",
        "name the constants in every launch, or select with the policy recommended, which refuses",
    ),
    (
        "L202",
        "two-sources",
        "error",
        "one function name stands for two sources",
        "a launch that says no source may run the other kernel",
        "say the source in every launch, or rename one function",
    ),
    (
        "L203",
        "two-signatures",
        "warning",
        "variants of one function take different sets of arguments",
        "two kernels of one name may be mixed, and no source is recorded to tell them apart",
        "record the source, or rename one function",
    ),
    (
        "L204",
        "untellable-options",
        "warning",
        "variants differ only in options that no launch can tell apart",
        "a launch that pins an option fits those that record none too",
        "record num_stages, arch and enable_fp_fusion in every entry; keep one num_ctas and pdl",
    ),
    (
        "L205",
        "unpinned-options",
        "note",
        "variants differ only in options that a launch may pin",
        "a launch that pins none of them gets whichever stands first",
        "pin the options in every launch",
    ),
    (
        "L301",
        "shadowed",
        "warning",
        "no launch is served by the variant: others are always preferred",
        "it is dead weight, and its absence from the answers is easily overlooked",
        "remove it, or the variants that shadow it",
    ),
    (
        "L302",
        "unreachable",
        "error",
        "no launch can meet the rules of the variant",
        "it can never be selected",
        "compile it again with assumptions that a launch can meet",
    ),
    (
        "L311",
        "folded-twin-missing",
        "warning",
        "a 1 is read at run time, and other variants fold it",
        "this fallback may compute other bits than the folded variant would",
        "compile the folded variant",
    ),
    (
        "L312",
        "runtime-twin-missing",
        "note",
        "the fold has no twin that reads the arg at run time",
        "any other value of the arg misses",
        "compile the run-time variant, if the engine gives other values",
    ),
    (
        "L401",
        "scratch",
        "error",
        "the variant needs scratch memory",
        "loaders that pass null scratch pointers refuse it, or the kernel writes to address 0",
        "compile it without scratch, or use a loader that allocates it",
    ),
    (
        "L501",
        "cubin-missing",
        "error",
        "the cubin is not in the capture, and others are",
        "a launch that selects the variant cannot run",
        "copy the cubin, or drop the entry",
    ),
    (
        "L502",
        "digest-differs",
        "error",
        "the file is not the one in the manifest",
        "the code is not the validated one",
        "restore the file, or build the capture again",
    ),
    (
        "L503",
        "no-elf",
        "error",
        "the cubin is no whole ELF file for CUDA",
        "the driver refuses to load it",
        "copy it again; it may be cut short",
    ),
    (
        "L504",
        "other-arch",
        "error",
        "the cubin is for another architecture",
        "the driver refuses to load it",
        "compile for the architecture that aot.json names",
    ),
    (
        "L505",
        "symbol-missing",
        "error",
        "the cubin has no function of the entry's name",
        "the loader finds no kernel, or the cubin is another's",
        "restore the cubin of this hash",
    ),
    (
        "L506",
        "param-count",
        "error",
        "the cubin takes another number of parameters",
        "every parameter after the gap is read from the wrong place",
        "restore the cubin or the entry; they are not of one compilation",
    ),
    (
        "L507",
        "param-layout",
        "error",
        "a parameter of the cubin has another size or offset",
        "the kernel reads other bytes than the launcher wrote",
        "restore the cubin or the entry; they are not of one compilation",
    ),
    (
        "L508",
        "registers",
        "error",
        "a block needs more registers than the device has",
        "every launch fails",
        "compile with fewer warps or a register limit",
    ),
    (
        "L509",
        "shared-memory",
        "error",
        "a block needs more shared memory than the device has",
        "every launch fails",
        "compile with fewer stages or smaller blocks",
    ),
    (
        "L510",
        "identical-code",
        "note",
        "several hashes hold identical code",
        "their bytes are equal: a fallback from one to the other changes nothing",
        "nothing to do; one of them may be dropped",
    ),
    (
        "L511",
        "other-functions-code",
        "error",
        "entries of different functions hold identical files",
        "one of the cubins was copied over the other",
        "restore both cubins",
    ),
    (
        "L512",
        "threads",
        "error",
        "the cubin was compiled for another number of threads",
        "the launch fails, or threads are missing",
        "restore the cubin or num_warps; they are not of one compilation",
    ),
    (
        "L513",
        "unlisted-file",
        "warning",
        "a cubin belongs to no entry",
        "nothing selects it",
        "remove it, or add its entry",
    ),
)
RULES: Mapping[str, Rule] = _rules()


def finding(rule: str, where: str, what: str, severity: Severity | None = None) -> Finding:
    """A finding of the rule of that id."""
    r = RULES[rule]
    return Finding(r.id, r.name, severity or r.severity, where, what, r.why, r.fix)


def chosen(findings: Iterable[Finding], select: Iterable[str], ignore: Iterable[str]) -> list[Finding]:
    """The findings of the selected rules (all, where none is named), less the ignored, worst first.

    A rule is named by its id, the beginning of an id (L5), or its name. Raises `FoldproofError` for an unknown one.
    """
    wanted, unwanted = _ids(select), _ids(ignore)
    kept = [f for f in findings if (not wanted or f.rule in wanted) and f.rule not in unwanted]
    return sorted(kept, key=lambda f: (-ORDER.index(f.severity), f.rule))


def _ids(names: Iterable[str]) -> set[str]:
    found: set[str] = set()
    for name in names:
        matching = {rule.id for rule in RULES.values() if name and (rule.name == name or rule.id.startswith(name))}
        if not matching:
            raise FoldproofError(f"no lint rule is named {name!r}", fix="see foldproof lint --rules")
        found |= matching
    return found


def at_or_above(findings: Iterable[Finding], level: str) -> bool:
    """Whether some finding is as bad as `level`, or worse; "never" is met by none."""
    if level == "never":
        return False
    return any(ORDER.index(f.severity) >= ORDER.index(Severity(level)) for f in findings)
