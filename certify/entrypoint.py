"""The plugin that an installed halfulp adds to every pytest run: options, nothing else.

It imports the standard library alone and defines the ``--halfulp-*`` options. Only when one of them is used does it
load ``halfulp.certify.plugin``, which does the work. The plugin defines the same options under their short names
(``--backend`` for ``--halfulp-backend``) where nobody else has taken them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

PLUGIN = "halfulp.certify.plugin"
GROUP = "halfulp"


@dataclass(frozen=True)
class Setting:
    """One option.

    Attributes:
        name: the option is ``--halfulp-<name>``; its value is ``config.option.halfulp_<name>`` (with underscores), None
            where not given.
        metavar, help: for ``pytest --help``.
        bare: the plugin offers it as ``--<name>`` too.
        flag: it takes no value.
    """

    name: str
    metavar: str
    help: str
    bare: bool = True
    flag: bool = False

    @property
    def dest(self) -> str:
        return f"halfulp_{self.name}".replace("-", "_")

    @property
    def short(self) -> str:
        return f"--{self.name}"

    @property
    def twin(self) -> str:
        return f"--halfulp-{self.name}"

    def attributes(self) -> dict[str, Any]:
        """Keyword arguments of ``addoption``. No default: None says that the option was not given."""
        shape = {"action": "store_const", "const": "yes"} if self.flag else {"metavar": self.metavar}
        return {"dest": self.dest, "default": None, "help": self.help, **shape}


SETTINGS: tuple[Setting, ...] = (
    Setting(
        "backend",
        "SPEC",
        "the backend to put on trial: the name of an installed adapter (see `halfulp backends`), MODULE:CLASS, "
        "or pipe:COMMAND. Without it no property is run.",
    ),
    Setting("seed", "N", "what random inputs are derived from: an integer, or `random` to draw one. Default: 0."),
    Setting(
        "depth",
        "DEPTH",
        "how many inputs: quick (seconds to a minute), standard (minutes, the default) or deep (hours).",
    ),
    Setting(
        "clauses",
        "GLOB[,GLOB]",
        "only the properties that check a matching clause, e.g. 5.2* or intent:4-b; see `halfulp clauses`.",
    ),
    Setting("dialect", "NAME", "the language whose rules are applied. Default and only choice: intent."),
    Setting("json", "FILE", "write the report as JSON to FILE.", bare=False),
    Setting(
        "ulp-ledger",
        "FILE",
        "compare measured errors with those in FILE, and fail if one has risen or an entry is missing.",
    ),
    Setting("update-ledger", "", "write what is new or lower to the ledger; never where CI is set.", flag=True),
    Setting("accept-regression", "REASON", "write what has risen, too, and REASON with it; implies --update-ledger."),
)


def pytest_addoption(parser: Any) -> None:
    group = parser.getgroup(GROUP, "halfulp: put a kernel compiler on trial")
    for setting in SETTINGS:
        group.addoption(setting.twin, **setting.attributes())


def pytest_configure(config: Any) -> None:
    """Load the plugin when it is asked for; it may be there already (``-p``, or a conftest)."""
    asked = any(getattr(config.option, setting.dest, None) is not None for setting in SETTINGS)
    if asked and not config.pluginmanager.has_plugin(PLUGIN):
        config.pluginmanager.import_plugin(PLUGIN)
