"""``stagewire logs``: the commands and their options. What they do is imported when one of them runs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import click

F = TypeVar("F", bound=Callable[..., Any])

LEVEL_NAMES = ("debug", "info", "warning", "error", "critical")


FORMAT = click.option("--format", "form", type=click.Choice(("text", "json")), default="text", show_default=True)


def shared(function: F) -> F:
    """Add the files and the filters."""
    for option in reversed(
        (
            click.argument("files", nargs=-1, metavar="[FILE]...", type=click.Path()),
            click.option("--since", metavar="TIME", help="From then on: ISO 8601, seconds since 1970, or 15m, 2h ago."),
            click.option("--until", metavar="TIME", help="Before then."),
            click.option("--level", type=click.Choice(LEVEL_NAMES), help="This level and louder ones."),
            click.option("--event", "events", multiple=True, metavar="PATTERN", help="Such as 'csp.*'; repeatable."),
            click.option(
                "--id", "ids", multiple=True, metavar="ID", help="Of a request, session, lease, trace, stage …"
            ),
            click.option("--rotated", is_flag=True, help="Read FILE.1, FILE.2.gz, FILE-20261201 … as well."),
        )
    ):
        function = option(function)
    return function


def reported(function: F) -> F:
    """Add how the result is given."""
    for option in reversed(
        (
            FORMAT,
            click.option(
                "--fail-on",
                "conditions",
                multiple=True,
                metavar="CONDITION",
                help="Exit with 1 when it holds: findings, errors>10, p99>2.5, csp_leak …; repeatable.",
            ),
            click.option(
                "--processes", type=click.IntRange(min=1), help="For large plain files; default: all processors."
            ),
        )
    ):
        function = option(function)
    return function


@click.group("logs", epilog="Exit status: 0 something was read, 1 a --fail-on condition holds, 2 nothing was read.")
def command() -> None:
    """Answer questions from logs: ours, and any that are JSON lines."""


@command.command("summary")
@shared
@reported
@click.pass_context
def summary(context: click.Context, /, **options: Any) -> None:
    """Requests, stages, edges, errors by cause, findings, and what of the log is damaged.

    Reads FILEs, plain, gzip or zstd, or standard input.
    """
    from stagewire_logs.run import report_on  # noqa: PLC0415 — takes time that `--help` need not pay

    context.exit(report_on("summary", **options))


@command.command("csp")
@shared
@reported
@click.pass_context
def csp(context: click.Context, /, **options: Any) -> None:
    """CSP runs: stock, permits, starvation, stalls, and what was acquired and never released."""
    from stagewire_logs.run import report_on  # noqa: PLC0415 — same

    context.exit(report_on("csp", **options))


@command.command("writes")
@shared
@reported
@click.pass_context
def writes(context: click.Context, /, **options: Any) -> None:
    """Write sessions: bytes by path, degradations, retries, repeats, keys and leases."""
    from stagewire_logs.run import report_on  # noqa: PLC0415 — same

    context.exit(report_on("writes", **options))


@command.command("schema")
def schema() -> None:
    """Print the JSON Schema of what --format json prints."""
    import json  # noqa: PLC0415 — same

    from stagewire_logs.results import json_schema  # noqa: PLC0415 — same

    click.echo(json.dumps(json_schema(), indent=2))


def _timeline_command(what: str) -> click.Command:
    @command.command(what, short_help=f"One {what} as a timeline: what happened where, with gaps marked.")
    @click.argument("name", metavar="ID")
    @shared
    @FORMAT
    @click.option("--gap", metavar="SECONDS", default=1.0, show_default=True, help="Mark silences of this length.")
    @click.pass_context
    def timeline(context: click.Context, /, **options: Any) -> None:
        from stagewire_logs.run import timeline_of  # noqa: PLC0415 — takes time that `--help` need not pay

        context.exit(timeline_of(**options))

    timeline.help = f"One {what} as a timeline: what happened where, with gaps marked."
    return timeline


request = _timeline_command("request")
session = _timeline_command("session")


@command.command("tail")
@shared
@click.option("-n", "--lines", "last", default=10, show_default=True, help="Lines that are there already.")
@click.option("--no-follow", is_flag=True, help="End when they are printed.")
@click.option("--raw", is_flag=True, help="Print the lines as they are.")
def tail(*, last: int, no_follow: bool, raw: bool, **options: Any) -> None:
    """Print lines as they come, readable, from any logger; follows through rotation."""
    from stagewire_logs.inputs import input_of  # noqa: PLC0415 — same
    from stagewire_logs.tail import tail as follow_files  # noqa: PLC0415 — same

    if not options["files"] or "-" in options["files"]:
        raise click.UsageError("name the FILE to follow")
    keep = input_of(**options, look=False).keep
    follow_files(options["files"], keep, last=last, raw=raw, follow=not no_follow)


@command.command("report")
@shared
@reported
@click.option("-o", "--output", metavar="FILE", required=True, type=click.Path(dir_okay=False), help="Write it here.")
@click.pass_context
def report(context: click.Context, /, **options: Any) -> None:
    """Write an HTML report with plots: one file that needs no network."""
    from stagewire_logs.run import report_file  # noqa: PLC0415 — same

    context.exit(report_file(**options))
