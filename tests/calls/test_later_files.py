"""Files that decide what runs later, and what a change of settings does, in words."""

from __future__ import annotations

import json
import subprocess
import tomllib
from importlib import resources
from pathlib import Path
from typing import Any

import pytest

from gemtui.calls.later_files import describe_settings_change, why_not_plain, why_runs_later
from tests.rows import each_row, table

TABLES = table("calls/later_files.json")

PROJECT = Path("/home/me/parser")
SETTINGS = PROJECT / ".gemini" / "settings.json"

LATER = """
.gemini/settings.json .gemini/commands/a/b.toml .gemini/agents/x.md .gemini/extensions/e/x.js
.gemini/policies/p.toml .gemini/hooks/h.sh .gemini/skills/s/SKILL.md .gemini/.env
.GEMINI/Settings.JSON
.husky/pre-commit sub/.husky/_/husky.sh .envrc .env .env.local sub/.env .npmrc .yarnrc .yarnrc.yml
.gitattributes sub/.gitattributes .gitmodules .github/workflows/ci.yml .github/actions/a/action.yml
.gitlab-ci.yml Jenkinsfile .circleci/config.yml .vscode/tasks.json .idea/workspace.xml .git/config
.git/hooks/pre-commit .pre-commit-config.yaml .mcp.json .claude/settings.json justfile Taskfile.yml
CLAUDE.md docs/CLAUDE.md CLAUDE.local.md .qwen/settings.json
.bashrc dotfiles/.profile gemini-extension.json .gem\u200dini/settings.json
.gemini/worktrees/one/.gemini/settings.json sitecustomize.py lib/a.pth .venv/bin/pytest .Rprofile
.helix/languages.toml .kiro/settings/mcp.json lefthook-local.toml .simple-git-hooks.json shell.nix
.pnp.cjs venv/bin/python .flaskenv vercel.json azure-pipelines.yaml Rakefile x.sublime-project
.hg/hgrc sub/HEAD .jj/repo/config.toml .bazelrc rust-toolchain.toml .pylintrc Directory.Build.props
.local/state/gemtui/runs/a/asked/1.json .local/bin/tool .config/tool/rc lib/site-packages/a.py
rules.mk Jamroot Jamfile.v2 plopfile.js knexfile.ts
noxfile.py tasks.py turbo.json nx.json Makefile.toml moon.yml mprocs.yaml process-compose.yaml
dodo.py
.project .run/Test.run.xml app/App.csproj .ddev/config.yaml .lando.yml ansible.cfg .rspec
.proverc .Renviron
user.bazelrc tools/bazel .watchmanconfig hk.pkl cog.toml cliff.toml cdk.json firebase.json build.rs
x.build.ps1 lib/a.gpr alire.toml fpm.toml src/Makevars _targets.R .lintr .php_cs phing.xml robo.php
nuke.json wireit.json werf.yaml dagger.cue west.yaml a.service b.desktop c.plist dbt_project.yml
airflow.cfg hooks/pre-commit git-hooks/post-merge tsconfig.app.json pom.xml sub/package.json
GNUmakefile a.bzl BUILD sub/WORKSPACE schema.prisma init.lua .lfsconfig dev.container x.wrap
vitest.config.mts jest.config.js phpunit.xml.dist pytest.ini .gitpod.yml Dockerfile.dev
packages/web/Nx.json
gulpfile.js/index.js docs/conf.py .ropeproject/config.py bin/hermit Brewfile .mocharc.cjs NOXFILE.PY
"""
HIDDEN = ".newtool/config.yml sub/.newtoolrc .newtoolrc.json .newtool.toml .newtool.sh .ci/run"
ORDINARY = """
src/main.py conftest.py tests/conftest.py README.md .gemini/GEMINI.md GEMINI.md .github/CODEOWNERS
venv/a.py gemini/settings.json settings.json environment.py .environment docs/.env-example.md
.gemini/tmp/abc/plans/plan.md .gemini/worktrees/one/src/main.py config/git.py .gitignore
.github/ISSUE_TEMPLATE/bug.yml .dockerignore .editorconfig .gitkeep .changeset/nice-cats-run.md
src/build.ts
src/tasks/list.py app/nox.py src/karma.py bucket.py src/compose.py src/mill/grind.py
tests/test_tasks.py
build/a.py workspace/b.py src/hooks/use-list.ts src/hooks/pre-fetch.ts update/hooks.py desktop/a.py
docs/tasks.md src/settings.xml data/project.csv src/copilot/a.ts package/snap/a.py
"""


@each_row("name", LATER.split())
def test_a_file_that_decides_what_runs_later_is_known(name: str) -> None:
    assert why_runs_later(PROJECT / name, PROJECT)


@each_row("name", HIDDEN.split())
def test_a_hidden_file_of_an_unknown_program_is_asked_about(name: str) -> None:
    assert "gemtui doesn't know this one" in (why_runs_later(PROJECT / name, PROJECT) or "")


def test_each_pattern_of_the_table_has_a_source_and_matches_where_it_is_nested() -> None:
    text = resources.files("gemtui.calls").joinpath("later_files.toml").read_text(encoding="utf-8")
    for kind in tomllib.loads(text)["kinds"].values():
        for source, patterns in kind["files"].items():
            assert source
            assert patterns
            for pattern in patterns:
                name = pattern.replace("*", "x")
                assert why_runs_later(PROJECT / "web" / name, PROJECT), pattern
                assert why_runs_later(PROJECT / name.upper() / "below", PROJECT), pattern


@each_row("name", ORDINARY.split())
def test_an_ordinary_file_is_none_of_them(name: str) -> None:
    assert why_runs_later(PROJECT / name, PROJECT) is None
    assert why_not_plain(PROJECT / name) is None


def test_the_folders_above_a_project_do_not_count() -> None:
    project = Path("/home/me/.config/fish/tool")
    assert why_runs_later(project / "a.py", project) is None
    assert why_runs_later(project.parent / "config.fish", project)
    extension = Path("/home/me/.gemini/extensions/mine")
    assert why_runs_later(extension / "server.js", extension)


def test_files_to_which_links_in_the_home_folder_lead_are_known(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home, project = tmp_path / "home", tmp_path / "dotfiles"
    (home / ".config").mkdir(parents=True)
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.setenv("GEMTUI_CONFIG", str(project / "mine.toml"))
    for link, target in ((".gemini", "gemini"), (".bashrc", "bash"), (".config/gemtui", "gem")):
        (home / link).symlink_to(project / target)
    (home / "work").symlink_to(project)
    for name in ("gemini/settings.json", "bash", "gem/a", "mine.toml", "policies/a"):
        assert why_runs_later(project / name, project), name
    for name in ("gemini.md", "gemini/GEMINI.md", "bash2", "other/mine.toml"):
        assert why_runs_later(project / name, project) is None, name


def test_a_folder_becomes_no_git_repository_without_a_question(tmp_path: Path) -> None:
    """Not even one in which git would start a program of its configuration."""
    subprocess.run(["git", "init", "-q", "--bare", tmp_path / "from"], check=True)
    (tmp_path / "from" / "config").write_text("[core]\n\tbare = true\n")
    project = tmp_path / "project"
    for file in sorted(each for each in (tmp_path / "from").rglob("*") if each.is_file()):
        place = project / "sub" / file.relative_to(tmp_path / "from")
        if why_runs_later(place, project) is None:
            place.parent.mkdir(parents=True, exist_ok=True)
            place.write_bytes(file.read_bytes())
    (project / "sub" / "objects").mkdir(exist_ok=True)
    (project / "sub" / "refs").mkdir(exist_ok=True)
    git = ["git", "-C", str(project / "sub"), "rev-parse", "--git-dir"]
    assert subprocess.run(git, capture_output=True, check=False).returncode != 0
    (project / "sub" / "HEAD").write_text("ref: refs/heads/main\n")
    assert subprocess.run(git, capture_output=True, check=False).returncode == 0
    for name in ("config", "commondir", "hooks/post-checkout"):
        assert why_runs_later(project / "sub" / name, project)
    assert why_runs_later(project / "config", project) is None


ALLOWED = {"tools": {"allowed": ["write_file", "glob"]}}


@each_row("before, after, said", TABLES["what_a_change_of_settings_does_is_said"])
def test_what_a_change_of_settings_does_is_said(before: Any, after: Any, said: list[str]) -> None:
    texts = [
        None if value is None else f"// mine\n{json.dumps(value)}" for value in (before, after)
    ]
    found = describe_settings_change(SETTINGS, *texts)
    assert len(found) == len(said)
    assert all(each.startswith(words) for each, words in zip(found, said, strict=True))


@each_row("value", TABLES["values_of_any_type_are_no_error"])
def test_values_of_any_type_are_no_error(value: Any) -> None:
    names = ("tools", "mcpServers", "hooks", "security", "general", "policyPaths", "mcp")
    describe_settings_change(SETTINGS, None, json.dumps(dict.fromkeys(names, value)))
    inner = {"allowed": value, "core": value, "discoveryCommand": value, "AfterTool": value}
    describe_settings_change(SETTINGS, None, json.dumps(dict.fromkeys(names, inner)))


def test_other_files_are_not_taken_for_settings() -> None:
    assert describe_settings_change(PROJECT / "settings.json", None, json.dumps(ALLOWED)) == ()
    assert describe_settings_change(SETTINGS, json.dumps(ALLOWED), None) == ()
