"""Completion for a shell: commands, options and their choices.

source <(quercus completion bash)
quercus completion zsh > ~/.zfunc/_quercus
quercus completion fish > ~/.config/fish/completions/quercus.fish
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator

from quercus.cli import exits

SHELLS = ("bash", "zsh", "fish")


def add(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("shell", choices=SHELLS)


def run(args: argparse.Namespace) -> int:
    print({"bash": bash, "zsh": zsh, "fish": fish}[args.shell]())
    return exits.OK


def commands() -> dict[str, argparse.ArgumentParser]:
    from quercus.cli.parser import made

    for action in made()._actions:
        if isinstance(action, argparse._SubParsersAction):
            return dict(action.choices)
    return {}


def options(parser: argparse.ArgumentParser) -> Iterator[argparse.Action]:
    return (a for a in parser._actions if a.option_strings)


def _choices(action: argparse.Action) -> list[str]:
    return [str(c) for c in action.choices] if action.choices is not None else []


def _help(action: argparse.Action) -> str:
    text = (action.help or "").replace("%%", "%")
    return text.replace("'", "").replace("[", "(").replace("]", ")").replace(":", "")


def bash() -> str:
    """Words after a command; after an option with choices, these; else files."""
    lines = [
        "_quercus() {",
        '  local cur="${COMP_WORDS[COMP_CWORD]}" prev="${COMP_WORDS[COMP_CWORD-1]}" cmd="${COMP_WORDS[1]}"',
        "  COMPREPLY=()",
        "  if [ $COMP_CWORD -eq 1 ]; then",
        f'    COMPREPLY=($(compgen -W "{" ".join(commands())} --help --version" -- "$cur")); return',
        "  fi",
        '  case "$cmd:$prev" in',
    ]
    for name, parser in commands().items():
        for a in options(parser):
            if _choices(a):
                where = "|".join(f"{name}:{o}" for o in a.option_strings)
                lines.append(f'    {where}) COMPREPLY=($(compgen -W "{" ".join(_choices(a))}" -- "$cur")); return;;')
    lines += ["  esac", '  case "$cmd" in']
    for name, parser in commands().items():
        words = [o for a in options(parser) for o in a.option_strings]
        words += [c for a in parser._actions if not a.option_strings for c in _choices(a)]
        lines.append(f'    {name}) COMPREPLY=($(compgen -W "{" ".join(words)}" -- "$cur"));;')
    lines += [
        "  esac",
        '  [[ "$cur" == -* ]] || COMPREPLY+=($(compgen -f -- "$cur"))',
        "}",
        "complete -o filenames -F _quercus quercus",
    ]
    return "\n".join(lines)


def zsh() -> str:
    lines = ["#compdef quercus", "_quercus() {", "  local -a commands", "  commands=("]
    lines += [f"    '{name}:{_about(parser)}'" for name, parser in commands().items()]
    lines += ["  )", "  if (( CURRENT == 2 )); then _describe command commands; return; fi", "  case $words[2] in"]
    for name, parser in commands().items():
        specs = [f"'{o}[{_help(a)}]{_zsh_value(a)}'" for a in options(parser) for o in a.option_strings]
        plain = [c for a in parser._actions if not a.option_strings for c in _choices(a)]
        rest = f"'*:value:({' '.join(plain)})'" if plain else "'*:file:_files'"
        lines.append(f"    {name}) shift words; (( CURRENT-- )); _arguments {' '.join(specs)} {rest};;")
    lines += ["  esac", "}", "compdef _quercus quercus"]
    return "\n".join(lines)


def _zsh_value(a: argparse.Action) -> str:
    if a.nargs == 0:
        return ""
    return f":value:({' '.join(_choices(a))})" if _choices(a) else ":value:_files"


def fish() -> str:
    lines = [
        f"complete -c quercus -n __fish_use_subcommand -f -a {name} -d '{_about(parser)}'"
        for name, parser in commands().items()
    ]
    for name, parser in commands().items():
        here = f"complete -c quercus -n '__fish_seen_subcommand_from {name}'"
        for a in options(parser):
            words = [f"-l {o[2:]}" if o.startswith("--") else f"-s {o[1:]}" for o in a.option_strings]
            value = "" if a.nargs == 0 else f" -x -a '{' '.join(_choices(a))}'" if _choices(a) else " -r"
            lines.append(f"{here} {' '.join(words)}{value} -d '{_help(a)}'")
        plain = [c for a in parser._actions if not a.option_strings for c in _choices(a)]
        if plain:
            lines.append(f"{here} -f -a '{' '.join(plain)}'")
    return "\n".join(lines)


def _about(parser: argparse.ArgumentParser) -> str:
    first = (parser.description or "").strip().splitlines()[0]
    return first.replace("'", "").replace(":", ",").rstrip(".")
