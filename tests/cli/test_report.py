"""From evidence to a receipt and back: `check`, `report`, `verify-receipt` and `init` as their users meet them."""

from __future__ import annotations

import json
import shlex
import shutil
import sys
from collections.abc import Iterator
from importlib import resources
from pathlib import Path

import msgspec
import pytest
from foldproof.cli.at_hand import of_evidence, policy_files
from foldproof.cli.digests import policy_digest, policy_seen
from foldproof.cli.emitting import device_event
from foldproof.cli.evidence import shipped_folder
from foldproof.cli.recording import into, started
from foldproof.cli.replay import again as replay_again
from foldproof.cli.verifying import Checked, verify
from foldproof.gpu.bundle import bundled_capture
from foldproof.gpu.replay.receipts import read_receipts
from foldproof.impl import load_policy
from foldproof.impl.cases import case_bytes
from foldproof.reports.events import AnyEvent, CaseFound, LaunchesExamined, ObligationDecided, Record, TheoremJudged
from foldproof.reports.obligations import CaptureTable, load_config
from foldproof.reports.recorder import Recorder, recording
from foldproof.reports.store import Stored
from helpers import foldproof, i32, param, ptr, variant

KERNELS = [
    variant("A", param("P", "*bf16", div16=True), param("R")),
    variant("B", param("P", "*bf16"), consts={"R": {"int": 1}}),
]
CASE = {
    "name": "mixed pointer",
    "capture": {"kernels": KERNELS},
    "launch": {"fn": "k", "args": [ptr("P", 0x1000), i32("R", 1)], "consts": {}},
}

ZOO_FILE = Path(str(resources.files("foldproof.impl") / "zoo" / "exact-first.toml"))


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a capture and the evidence of one `check`, for copies."""
    folder = tmp_path_factory.mktemp("made")
    (folder / "aot.json").write_text(json.dumps({"kernels": KERNELS}))
    done = foldproof("check", "aot.json", "--policy", "exact-first", "--seconds", 0.2, cwd=folder)
    assert done.returncode == 0, done.stderr + done.stdout
    return folder


@pytest.fixture
def user(made: Path, tmp_path: Path) -> Path:
    """A copy of `made` to change."""
    return shutil.copytree(made, tmp_path / "user")


def test_a_check_writes_what_a_pull_request_takes_and_the_next_command_verifies_it(user: Path) -> None:
    out = user / "foldproof-report"
    for name in ("receipt.md", "summary.md", "report.html", "result.json", "cases.ndjson.gz"):
        assert (out / name).stat().st_size > 100, name
    text = (out / "receipt.md").read_text()
    assert "exact-first keeps all" in text.splitlines()[2]
    assert "| obligation " in text
    assert json.loads((out / "result.json").read_text())["captures"][0]["sha256"] in text
    assert "foldproof check aot.json --policy exact-first --seconds 0.2 --seed 0" in text
    done = foldproof("verify-receipt", "foldproof-report", cwd=user)
    assert done.returncode == 0, done.stdout
    assert "the receipt holds" in done.stdout


@pytest.mark.parametrize("part", ["records", "cases", "smt", "witnesses", "picks", "receipt.md", "report.html"])
def test_one_changed_byte_is_named(user: Path, part: str) -> None:
    out = user / "foldproof-report"
    file = out / part if "." in part else min((out / part).iterdir())
    content = bytearray(file.read_bytes())
    content[len(content) // 2] ^= 1
    file.write_bytes(bytes(content))
    first = next(verify(out))
    assert str(file.relative_to(out)) in {damage.file for damage in first.wrong}


@pytest.mark.slow
def test_verify_receipt_fails_and_names_the_file(user: Path) -> None:
    script = min((user / "foldproof-report" / "smt").iterdir())
    script.write_bytes(script.read_bytes()[:-2])
    done = foldproof("verify-receipt", "foldproof-report", cwd=user)
    assert done.returncode == 1
    assert f"smt/{script.name}: was changed" in done.stdout
    assert done.stdout.strip().splitlines()[-1].startswith("next: ")
    assert foldproof("report", "--formats", "summary", cwd=user).returncode == 1


@pytest.mark.slow
def test_report_again_gives_the_same_bytes_and_leaves_the_records_alone(user: Path) -> None:
    out = user / "foldproof-report"
    records = {file.name for file in (out / "records").iterdir()}
    for folder in ("one", "two"):
        assert foldproof("report", "--formats", "receipt,json,html,csv", "--out", folder, cwd=user).returncode == 0
    for file in (user / "one").rglob("*.*"):
        assert file.read_bytes() == (user / "two" / file.relative_to(user / "one")).read_bytes(), file.name
    assert (user / "one" / "receipt.md").read_bytes() == (out / "receipt.md").read_bytes()
    assert {file.name for file in (out / "records").iterdir()} == records
    inside = foldproof("report", "--formats", "receipt,junit", cwd=user)
    assert inside.returncode == 0
    assert not next(verify(out)).wrong


def test_another_capture_makes_what_was_said_of_the_old_one_owed(user: Path) -> None:
    (user / "aot.json").write_text(json.dumps({"kernels": KERNELS[:1]}))
    done = foldproof("report", "--formats", "receipt", cwd=user)
    assert done.returncode == 3
    assert "stale: made on another capture" in done.stdout
    assert done.stdout.strip().splitlines()[-1] == "next: foldproof check aot.json --policy exact-first"


def test_evidence_in_a_folder_of_another_name_is_settled_and_verified_there(user: Path) -> None:
    (user / "foldproof-report").rename(user / "my reports")
    (user / "aot.json").write_text(json.dumps({"kernels": KERNELS[:1]}))
    done = foldproof("report", "my reports", "--formats", "receipt", cwd=user)
    again = "foldproof check aot.json --policy exact-first --out 'my reports'"
    assert done.stdout.strip().splitlines()[-1] == f"next: {again}"
    text = (user / "my reports" / "receipt.md").read_text()
    assert again in text
    assert "foldproof verify-receipt 'my reports'" in text


@pytest.mark.slow
def test_a_campaign_of_no_case_is_settled_by_the_command_that_is_named(tmp_path: Path) -> None:
    (tmp_path / "aot.json").write_text(json.dumps({"kernels": KERNELS}))
    (tmp_path / "mine.toml").write_text(ZOO_FILE.read_text().replace("exact-first", "mine"))
    words = ("check", "aot.json", "--policy", "mine.toml")
    checked = foldproof(*words, "--seconds", 0, "--out", "out", cwd=tmp_path)
    assert checked.returncode == 0, checked.stderr
    assert "(foldproof replay aot.json --out out)" in " ".join(checked.stdout.split())
    done = foldproof("report", "out", "--formats", "receipt", "--annotations", "github", cwd=tmp_path)
    assert done.returncode == 3
    assert "foldproof replay aot.json --out out" in done.stdout
    settle = "foldproof check aot.json --policy mine.toml --out out"
    assert done.stdout.strip().splitlines()[-1] == f"next: {settle}"
    reproduce = (tmp_path / "out" / "receipt.md").read_text().partition("## Reproduce")[2]
    assert f"{settle.replace(' --out', ' --seconds 0 --seed 0 --out')}\nfoldproof verify-receipt out\n" in reproduce
    assert foldproof(*words, "--seconds", 0.2, "--out", "out", cwd=tmp_path).returncode == 0
    assert foldproof("report", "out", "--formats", "receipt", cwd=tmp_path).returncode == 0


@pytest.mark.parametrize(
    ("source", "stated"),
    [
        ("launches derived from its variants", ""),
        ("its recorded launches", ""),
        ("launches.json", "launches.json"),
        ("launches of today.ndjson", "launches of today.ndjson"),
    ],
)
def test_the_scene_of_the_records_names_launches_and_policy_as_their_run_did(
    source: str, stated: str, tmp_path: Path
) -> None:
    file = tmp_path / "my policy.toml"
    file.write_text('name = "mine"\nsummary = "x"\npromises = []\n[[pass]]\nrules = "exact"\n')
    policy = load_policy(str(file))
    examined = LaunchesExamined(
        source=source, capture="gone", capture_sha256="8" * 64, policy="mine", policy_sha256="9" * 64, rows=()
    )
    command = shlex.join(["foldproof", "check", "gone", "--policy", str(file)])
    events = (started("check", command), policy_seen(policy), examined)
    scene = of_evidence([Stored(f"r-{n}", Record(1, "r", n, event)) for n, event in enumerate(events)])
    assert scene.config.capture == (CaptureTable("gone", stated),)
    assert scene.at_hand.named["mine"] == str(file)
    assert scene.at_hand.policies["mine"] == policy_digest(policy)


def test_a_recorded_command_names_the_folder_where_the_verb_does_not_take_it_by_itself() -> None:
    assert into(Path("foldproof-report")) == []
    assert into(Path("./out")) == ["--out", "out"]
    assert into(Path("foldproof-report"), "foldproof-receipts") == ["--out", "foldproof-report"]
    words = replay_again(Path("zoo"), Path("t.json"), 8, 1, Path("out"), ablated=True)
    assert words == "foldproof replay zoo --ablate --trace t.json --sets 8 --seed 1 --out out"
    plain = replay_again(None, None, 8, 1, Path("foldproof-receipts"), ablated=False)
    assert plain == "foldproof replay --sets 8 --seed 1"


@pytest.mark.slow
def test_what_a_file_states_is_owed_until_there_is_evidence(user: Path) -> None:
    assert foldproof("init", cwd=user).returncode == 0
    assert foldproof("init", cwd=user).returncode == 2
    load_config(user / "foldproof.toml")
    selector = f"{sys.executable} -m foldproof.cli.main serve --policy exact-first"
    (user / "foldproof.toml").write_text(
        f'[policy]\nname = "exact-first"\n[fuzz]\nselector = "{selector}"\nseconds = 0.5\n'
        '[[capture]]\npath = "aot.json"\n[bits]\ndevices = ["H200"]\n[report]\nformats = ["summary"]\n'
    )
    done = foldproof("report", cwd=user)
    assert done.returncode == 3
    assert "no evidence" in done.stdout
    command = done.stdout.strip().splitlines()[-1]
    assert command.startswith("next: foldproof fuzz --selector")
    assert command.endswith("--seconds 0.5 --seed 0 --out foldproof-report")
    assert (
        foldproof("fuzz", "--selector", selector, "--against", "exact-first", "--seconds", 0.6, cwd=user).returncode
        == 0
    )
    done = foldproof("report", cwd=user)
    assert done.returncode == 3
    assert "next: foldproof replay aot.json" in done.stdout
    text = (user / "foldproof-report" / "summary.md").read_text()
    assert "⏳ owed" in text
    (user / "foldproof.toml").write_text('[policy]\nname = "exact-first"\n[prove]\ntheorem = ["T01"]\n')
    bad = foldproof("report", cwd=user)
    assert bad.returncode == 2
    assert "foldproof.toml: $.prove: Object contains unknown field `theorem`" in bad.stderr


@pytest.mark.slow
def test_a_policy_file_that_changes_makes_its_proofs_stale(tmp_path: Path) -> None:
    policy = tmp_path / "mine.toml"
    policy.write_text('name = "mine"\nsummary = "x"\npromises = ["T02"]\n[[pass]]\nrules = "exact"\n')
    done = foldproof(
        "prove", "--policy", "mine.toml", "--theorem", "T02", "--out", "out", "--bounded", "2x2", cwd=tmp_path
    )
    assert done.returncode == 0, done.stderr
    (tmp_path / "foldproof.toml").write_text('[policy]\nname = "mine.toml"\n[report]\nformats = ["summary"]\n')
    assert "T02 of mine: exact-first" in foldproof("report", "out", cwd=tmp_path).stdout
    policy.write_text(policy.read_text().replace('rules = "exact"', 'rules = "general"'))
    done = foldproof("report", "out", cwd=tmp_path)
    assert "stale: the policy mine has changed" in done.stdout
    assert "foldproof prove --policy mine.toml --theorem T02 --out out" in done.stdout


@pytest.mark.slow
def test_device_verdicts_stand_with_date_and_device_until_one_cubin_byte_changes(tmp_path: Path) -> None:
    shutil.copytree(bundled_capture(), tmp_path / "capture")
    words = ("check", "capture", "--policy", "exact-first", "--seconds", 0.2)
    assert foldproof(*words, cwd=tmp_path).returncode == 0
    text = (tmp_path / "foldproof-report" / "receipt.md").read_text()
    line = next(line for line in text.splitlines() if "finite" in line and "NVIDIA H200" in line)
    assert "2026-12-01" in line
    assert "64 differs" in line
    assert line.rstrip(" |").endswith("fresh")
    cubin = min((tmp_path / "capture" / "cubins").iterdir())
    cubin.write_bytes(cubin.read_bytes()[:-1] + bytes([cubin.read_bytes()[-1] ^ 1]))
    for again in (("report", "--formats", "receipt"), words):
        foldproof(*again, cwd=tmp_path)
        text = (tmp_path / "foldproof-report" / "receipt.md").read_text()
        lines = [line for line in text.splitlines() if "| NVIDIA H200" in line]
        assert len(lines) == 2
        assert all("stale: 1 cubins have other bytes" in line and "owed" in line for line in lines)
        assert "64 differs" not in text


# What a forger could write: records whose digests fit, and whose claims do not hold.

SAT, UNSAT = b"(set-logic ALL)\n(check-sat)\n", b"(set-logic ALL)\n(assert false)\n(check-sat)\n"
RULES = load_policy("single-guard")


def checks(folder: Path, *events: AnyEvent) -> Iterator[Checked]:
    with recording(folder, started("check", "foldproof check")) as to:
        to.emit(policy_seen(RULES))
        for event in events:
            to.emit(event)
    return verify(folder)


def decided(to: Path, content: bytes, z3: str, cvc5: str) -> ObligationDecided:
    ref = Recorder(to, "x").file("smt/T01.smt2", content)
    return ObligationDecided(name="T01", says="a claim", script=ref, z3=z3, cvc5=cvc5)


def proved(*obligations: str) -> TheoremJudged:
    return TheoremJudged(
        policy="single-guard", policy_sha256=policy_digest(RULES), theorem="T01", name="n", sentence="s",
        verdict="proved", promised=True, scope="unbounded", obligations=obligations,
    )  # fmt: skip


def wrong(found: Iterator[Checked]) -> list[str]:
    return [one.why for check in found for one in check.wrong]


def test_a_recorded_command_names_policy_files_by_their_options() -> None:
    command = "foldproof fuzz --selector s --against 'my rules.toml' --seed 1"
    assert policy_files(command) == ["my rules.toml"]
    assert policy_files("foldproof prove --old a.toml --new b.toml --theorem T09") == ["a.toml", "b.toml"]
    assert policy_files("foldproof report out --config foldproof.toml") == []
    assert policy_files("foldproof check --policy 'a.toml") == []


def test_a_script_is_decided_again_by_both_solvers(tmp_path: Path) -> None:
    good = decided(tmp_path / "a", UNSAT, "unsat", "unsat")
    assert wrong(checks(tmp_path / "a", good, proved("T01"))) == []
    bad = decided(tmp_path / "b", SAT, "unsat", "unsat")
    assert wrong(checks(tmp_path / "b", bad)) == ["Z3 says sat, cvc5 says sat; its record says unsat and unsat"]


def test_a_proof_needs_scripts_that_hold(tmp_path: Path) -> None:
    (why,) = wrong(checks(tmp_path / "a", proved()))
    assert why == "says T01 is proved; no script does not hold by both solvers"
    sat = decided(tmp_path / "b", SAT, "sat", "sat")
    (why,) = wrong(checks(tmp_path / "b", sat, proved("T01")))
    assert why == "says T01 is proved; T01 does not hold by both solvers"


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({}, ""),
        ({"expect": {"pick": "B", "pass": "general"}}, "single-guard answers {'pick': 'A', 'pass': 'runtime-one'}"),
        ({"launch": CASE["launch"] | {"args": [ptr("P", 8), i32("R", 1)]}}, "does not break T01 of single-guard"),
        ({"launch": {"fn": "k"}}, "args"),
    ],
)
def test_a_counterexample_is_replayed(tmp_path: Path, change: dict[str, object], says: str) -> None:
    ref = Recorder(tmp_path, "x").file("cases/T01.json", case_bytes(CASE | change))
    case = CaseFound(
        stage="theorem", title="T01", theorem="T01", policy="single-guard", policy_sha256=policy_digest(RULES),
        why="w", file=ref, command="c",
    )  # fmt: skip
    found = wrong(checks(tmp_path, case))
    assert bool(found) == bool(says)
    assert says in "".join(found)


def test_a_device_verdict_says_what_its_receipt_says(tmp_path: Path) -> None:
    (receipt,) = [r for r in read_receipts(shipped_folder()) if r.kind == "scenarios"]
    file = next(shipped_folder().glob("scenarios-*"))
    ref = Recorder(tmp_path / "a", "x").file(f"receipts/{file.name}", file.read_bytes())
    event = device_event(receipt, ref)
    assert wrong(checks(tmp_path / "a", event)) == []
    Recorder(tmp_path / "b", "x").file(f"receipts/{file.name}", file.read_bytes())
    lied = msgspec.structs.replace(event, counts={"scenarios": {"equal": 7}})
    (why,) = wrong(checks(tmp_path / "b", lied))
    assert why == f"says something else than receipts/{file.name}"
