"""A pipeline as a picture: a Mermaid flowchart."""

from __future__ import annotations

from collections.abc import Iterator

from stagewire_orchestrator.config import EdgeBlock, OrchestratedStage, OrchestratorOptions


def flowchart(options: OrchestratorOptions) -> str:
    """Return the flowchart: stages with their provider, chunk edges thin, batch edges thick, files at the end."""
    return "\n".join(["flowchart LR", *(f"    {line}" for line in _lines(options)), ""])


def _lines(options: OrchestratorOptions) -> Iterator[str]:
    names = {name: f"s{number}" for number, name in enumerate(options.stages)}
    yield f"input([input]) --> {names[options.entry()]}"
    for name, block in options.stages.items():
        yield f"{names[name]}[{_label(name, block)}]"
    for edge in options.edges:
        yield f"{names[edge.source]} {_arrow(edge)} {names[edge.target]}"
    for number, (stage, output) in enumerate(options.outputs.items()):
        yield f"{names[stage]} --> f{number}[/{_quoted(output.file)}/]"


def _label(name: str, block: OrchestratedStage) -> str:
    extras = [f"join: {block.join}"] if block.join else []
    extras += [f"route: {block.route}"] if block.route else []
    extras += [f"× {block.replicas}"] if block.replicas > 1 else []  # noqa: RUF001 — the sign that a person expects
    return _quoted("<br>".join([name, block.use, *extras]))


def _arrow(edge: EdgeBlock) -> str:
    return f"-->|{edge.kind}|" if edge.kind == "chunk" else f"==>|{edge.kind}|"


def _quoted(text: str) -> str:
    escaped = text.replace("&", "&amp;").replace('"', "&quot;").replace("&lt;", "<")
    return f'"{escaped}"'
