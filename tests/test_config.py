from __future__ import annotations

from pathlib import Path

import pytest

from gemtui.config import Config, Scope, keep_setting, load_config, settings
from gemtui.errors import ConfigError
from gemtui.sessions.catalog.columns import Sort


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "config.toml"


def failure(file: Path, text: str) -> ConfigError:
    file.write_text(text)
    with pytest.raises(ConfigError) as caught:
        load_config(file)
    assert caught.value.path == file
    assert str(file) in str(caught.value)
    assert "\n" not in str(caught.value)
    return caught.value


def test_missing_file_means_defaults(file: Path) -> None:
    assert load_config(file) == Config()


def test_settings_are_read(file: Path) -> None:
    file.write_text('theme = "nord"\nmouse = false\nscope = "everywhere"\nsort = "tokens"\n')
    config = load_config(file)
    assert (config.theme, config.mouse) == ("nord", False)
    assert (config.scope, config.sort) == (Scope.EVERYWHERE, Sort.TOKENS)


def test_unknown_key_names_the_nearest(file: Path) -> None:
    error = failure(file, "mose = true\n")
    assert error.key == "mose"
    assert 'did you mean "mouse"' in str(error)


def test_unknown_key_without_a_near_one_lists_all(file: Path) -> None:
    error = failure(file, "zzzzzz = 1\n")
    assert all(each.name in str(error) for each in settings())


@pytest.mark.parametrize("text", ['ascii = "yes"', "ascii = 1", "theme = true", "editor = []"])
def test_wrong_type_names_key_and_what_fits(file: Path, text: str) -> None:
    error = failure(file, text)
    assert error.key == text.split()[0]
    assert "it must be " in str(error)


def test_bad_value_lists_the_choices(file: Path) -> None:
    error = failure(file, 'sort = "fastest"')
    assert error.key == "sort"
    assert all(choice in str(error) for choice in Sort)


def test_broken_toml_names_the_line(file: Path) -> None:
    assert "line 2" in str(failure(file, 'theme = "nord"\nmouse = \n'))


def test_bytes_that_are_no_text_are_an_error_of_the_file(file: Path) -> None:
    file.write_bytes(b"\xff\xfe\x00")
    with pytest.raises(ConfigError, match="can't be read"):
        load_config(file)


def test_a_folder_in_its_place_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="can't be read"):
        load_config(tmp_path)


def test_every_setting_as_it_is_described_gives_the_defaults(file: Path) -> None:
    file.write_text("\n".join(each.toml for each in settings()))
    assert load_config(file) == Config()


def test_a_kept_setting_leaves_the_rest_of_the_file_alone(file: Path) -> None:
    file.write_text("# mine\nmouse = false  # no mouse\n")
    keep_setting(file, "theme", "nord")
    assert load_config(file) == Config(theme="nord", mouse=False)
    assert file.read_text().startswith("# mine\nmouse = false  # no mouse\n")


def test_a_kept_setting_makes_the_file(tmp_path: Path) -> None:
    file = tmp_path / "new" / "config.toml"
    keep_setting(file, "theme", "nord")
    keep_setting(file, "theme", "dracula")
    assert load_config(file).theme == "dracula"


def test_nothing_is_kept_in_a_broken_file(file: Path) -> None:
    file.write_text("theme = \n")
    with pytest.raises(ConfigError):
        keep_setting(file, "theme", "nord")
    assert file.read_text() == "theme = \n"
