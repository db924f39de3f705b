"""Which command prefixes are proposed, and which never are."""

from __future__ import annotations

from gemtui.policy.suggest.prefixes import NoPrefix, Prefix, prefix_of
from tests.rows import each_row

PROPOSED = {
    "pytest -q tests/x.py": "pytest",
    'pytest "tests/a b.py"': "pytest",
    "ls -la": "ls",
    "cd src": "cd",
    "git status": "git status",
    "git diff --stat HEAD": "git diff",
    "npm test": "npm test",
    "npm run build -- --watch": "npm run build",
    "npm ci": "npm ci",
    "cargo test": "cargo test",
    "go test ./...": "go test",
    "go mod tidy": "go mod tidy",
    "make test": "make test",
    "docker compose up -d": "docker compose up",
    "docker ps": "docker ps",
    "kubectl get pods": "kubectl get",
    "pip install -r requirements.txt": "pip install",
    "pip3 list": "pip3 list",
    "uv run pytest -x": "uv run pytest",
    "uv pip list": "uv pip list",
    "poetry run mypy .": "poetry run mypy",
    "python -m pytest -q": "python -m pytest",
    "python3.12 -m pip install x": "python3.12 -m pip install",
    "python3 hello.py --name x": "python3 hello.py",
    "node build.js": "node build.js",
    "bash scripts/test.sh": "bash scripts/test.sh",
    "./scripts/test.sh -v": "./scripts/test.sh",
    "npx eslint .": "npx eslint",
    "timeout 60 pytest": "timeout 60 pytest",
    "gh pr view 12": "gh pr view",
    "pipx run black x.py": "pipx run black",
    "pipx install black": "pipx install",
    "conda run pytest": "conda run pytest",
    "rustup run stable cargo test": "rustup run stable cargo test",
}

REFUSED = [
    "",
    "rm x",
    "rm -rf /",
    "/bin/rm x",
    "sudo ls",
    "dd if=/dev/zero of=x",
    "chmod +x a",
    "chown me a",
    "mkfs.ext4 /dev/sda",
    "curl http://x",
    "wget http://x",
    "sh",
    "bash",
    "bash -c 'ls'",
    "bash -lc ls",
    "sh -c ls",
    "zsh -ic ls",
    "eval ls",
    "source x",
    ". x",
    "xargs ls",
    "find . -name x",
    "find . -exec rm {} +",
    "env ls",
    "nohup ls",
    "exec ls",
    "time ls",
    "timeout -k 1 2 ls",
    "timeout 5 rm x",
    "timeout 5",
    "sed -i s/a/b/ x",
    "awk '{print}' x",
    "tee x",
    "mv a b",
    "cp a b",
    "git",
    "git push",
    "git push --force",
    "git reset --hard",
    "git clean -fd",
    "git checkout .",
    "git -C . status",
    "git -c core.pager=x log",
    "git config --global x y",
    "git 'push'",
    "npm publish",
    "npm exec x",
    "npm run",
    "npx",
    "npx -y x",
    "npx rm x",
    "uv run rm x",
    "uv run --with x y",
    "uv run python -c x",
    "docker run -v /:/x alpine",
    "docker exec x sh",
    "docker compose exec x sh",
    "kubectl delete pod x",
    "kubectl apply -f x",
    "gh pr merge 1",
    "gh api /x",
    "terraform apply",
    "python",
    "python -c 'x'",
    "python -",
    "python -m timeit x",
    "python3 -i",
    "node -e x",
    "perl -e x",
    "make",
    "make -C x test",
    "FOO=1 pytest",
    "'rm' x",
    "\\rm x",
    "$CMD x",
    "r''m x",
    "export PATH=x",
    "alias ls=rm",
    "kill 1",
    "systemctl stop x",
    "apt-get install x",
    "ssh host ls",
    "pipx run",
    "pipx run --spec x y",
    "conda run python -c x",
    "conda run -n base python",
    "rustup run nightly",
    "rustup run nightly cargo publish",
    "cargo +nightly publish",
    "yarn node -e x",
    "rails runner x",
    "xvfb-run rm x",
    "RM x",
    "uniq a b",
    "xxd -r a b",
    "crontab x",
    "coproc rm x",
    "test -f x",
    "printf x",
    "unset x",
    "read x",
    "ls\u00a0x/e.sh",
    "git\u2003log",
]


@each_row(("command", "prefix"), PROPOSED.items())
def test_a_prefix_says_what_is_done(command: str, prefix: str) -> None:
    found = prefix_of(command)
    assert isinstance(found, Prefix)
    assert found.text == prefix
    assert found.opens.startswith("with any arguments")


@each_row("command", REFUSED)
def test_what_could_do_anything_gets_none(command: str) -> None:
    found = prefix_of(command)
    assert isinstance(found, NoPrefix)
    assert found.why
    assert len(found.what) <= 40 or " " in found.what


def test_installing_is_called_so() -> None:
    found = prefix_of("npm install left-pad")
    assert isinstance(found, Prefix)
    assert "any package" in found.opens
