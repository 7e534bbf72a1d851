from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from stagewire.cli import invoke

PLAY = """
import asyncio, sys, threading, time
from contextlib import suppress
from typing import Literal
from pydantic import Field
from stagewire import INPUT_DIRECTORY, Failure, Options, OutputFile, Progress, Provider, RunReport, hookimpl

class PlayOptions(Options):
    mode: str = Field(default="copy", description="What the play does.")
    fail: Literal["no", "yes"] = "no"

class Play:
    def __init__(self, options, context):
        self.options, self.context = options, context
        self.closed = asyncio.Event()

    def graph(self):
        return "flowchart LR\\n  a --> b\\n"

    async def run(self, job):
        return await getattr(self, self.options.mode)(job)

    async def prepare_shutdown(self):
        self.closed.set()

    async def shutdown(self):
        with suppress(BrokenPipeError):
            say("shutdown")

    async def copy(self, job):
        path, done = job.output / "copy.txt", 0
        with path.open("wb") as file:
            async for block in job.input or nothing():
                file.write(block)
                done += len(block)
                job.observe(Progress(done, job.input.size, {"blocks": done}))
                say(f"read {done}")
        return RunReport([OutputFile(path, "copy", 1, done)], rows=[("bytes", f"{done:,}")], details={"bytes": done})

    async def own_view(self, job):
        job.observe(Progress(view=lambda: "a table of its own"))
        return RunReport()

    async def broken_view(self, job):
        job.observe(Progress(view=lambda: 1 / 0))
        return RunReport()

    async def folder(self, job):
        say(f"folder {job.input_directory}, input {job.input}")
        return RunReport()

    async def failing(self, job):
        return RunReport(failures=[Failure("r1", "copy", "no\\nink")], rows=[("requests", "1")])

    async def broken(self, job):
        try:
            raise ValueError("no ink")
        except ValueError as error:
            return RunReport(failures=[Failure("r1", "copy", "ValueError: no ink", error)])

    async def raising(self, job):
        raise RuntimeError("the play\\nbroke off")

    async def quiet(self, job):
        return RunReport(rows=[("requests", "0")])

    async def chatty(self, job):
        print("a stage that prints")
        return RunReport()

    async def wait(self, job):
        say("ready")
        await self.closed.wait()
        return RunReport(stopped=True)

    async def finish(self, job):
        say("ready")
        await self.closed.wait()
        return RunReport()

    async def stubborn(self, job):
        say("ready")
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            return RunReport([OutputFile(job.output / "half.txt", "copy", 1, 4)], stopped=True)

    def waiting_for(self):
        return "stage 'ink'" if self.options.mode == "stubborn" else None

    async def deaf(self, job):
        say("ready")
        while True:
            try:
                await asyncio.Event().wait()
            except asyncio.CancelledError:
                pass

    async def blocked(self, job):
        say("ready")
        time.sleep(60)

    async def thread(self, job):
        threading.Thread(target=time.sleep, args=(60,)).start()
        return RunReport()

async def nothing():
    return
    yield

def say(text):
    print(text, file=sys.stderr, flush=True)

@hookimpl
def stagewire_pipelines():
    play = Provider(name="play", summary="A play.", options=PlayOptions, factory=Play)
    takes = frozenset({INPUT_DIRECTORY})
    return [play, Provider(name="gallery", summary="", options=PlayOptions, factory=Play, capabilities=takes)]
"""


@dataclass(frozen=True)
class Result:
    status: int
    out: str
    err: str


class Stage:
    """A folder with a configuration of the test's pipeline kind, and the program to run it with."""

    def __init__(self, folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
        self.folder = folder
        self.environ: dict[str, str] = {}
        self._capsys = capsys
        self._plugin = ModuleType("play_plugin")
        exec(compile(PLAY, "play_plugin.py", "exec", dont_inherit=True), self._plugin.__dict__)

    def config(self, text: str = "", name: str = "play.yaml") -> str:
        path = self.folder / name
        path.write_text(f"version: 1\npipeline: play\nlogging: {{level: error}}\n{text}")
        return str(path)

    def __call__(self, *arguments: str | Path, plugins: Mapping[str, object] | None = None) -> Result:
        """Run the program in this process."""
        plugins = {"play": self._plugin} if plugins is None else plugins
        status = invoke([str(each) for each in arguments], environ=self.environ, extra_plugins=plugins)
        return Result(status, *self._capsys.readouterr())

    def run(self, text: str = "", *arguments: str | Path) -> Result:
        """Run a configuration into the folder ``out``."""
        return self("run", self.config(text), "--output", self.folder / "out", *arguments)

    def install(self) -> dict[str, str]:
        """Install the pipeline kind as a plugin, and return the environment that finds it."""
        site = self.folder / "site"
        info = site / "play-1.0.dist-info"
        info.mkdir(parents=True, exist_ok=True)
        (site / "play_plugin.py").write_text(PLAY)
        (info / "METADATA").write_text("Metadata-Version: 2.1\nName: play\nVersion: 1.0\n")
        (info / "entry_points.txt").write_text("[stagewire.plugins]\nplay = play_plugin\n")
        return {**os.environ, "PYTHONPATH": str(site), "PYTHONUNBUFFERED": ""}  # buffered, as for most people

    def start(self, *arguments: str | Path, **options: Any) -> subprocess.Popen[str]:
        """Start the program as a process of its own."""
        command = [sys.executable, "-m", "stagewire", *(str(each) for each in arguments)]
        pipes = {"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE} | options
        return subprocess.Popen(command, cwd=self.folder, env=self.install(), text=True, **pipes)


@pytest.fixture
def stage(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Stage:
    return Stage(tmp_path, capsys)


@pytest.fixture
def started(stage: Stage) -> Iterator[Callable[..., subprocess.Popen[str]]]:
    """`Stage.start`, and the end of what it started."""
    processes: list[subprocess.Popen[str]] = []

    def start(*arguments: str | Path, **options: Any) -> subprocess.Popen[str]:
        process = stage.start(*arguments, **options)
        processes.append(process)
        return process

    yield start
    for process in processes:
        process.kill()
        process.communicate()
