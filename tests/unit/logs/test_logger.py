from __future__ import annotations

import gc
import io
import os
import pathlib
import re
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from typing import Any

import pytest
import structlog

from stagewire import ConfigError, LoggingOptions, make_logger
from stagewire.logs import LogSink, configure_logging, fallback_logger, open_sink


def fail(error: Exception) -> None:
    raise error


def test_a_line_is_one_json_object_with_time_level_event_and_pipeline(book: Any) -> None:
    book.log.info("app.started", version="1.0")
    book.log.warning("second", text="two\nlines")
    first, second = book.lines
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z", first.pop("timestamp"))
    assert first == {"level": "info", "event": "app.started", "pipeline": "demo", "version": "1.0"}
    assert (second["level"], second["text"]) == ("warning", "two\nlines")
    assert book.text.count("\n") == 2


def test_bound_ids_stand_in_every_line_and_before_other_fields(book: Any) -> None:
    log = book.log.bind(stage="tone", replica=1)
    log.info("chunk.put", size=3, request_id="r1", chunk_id=7)
    assert list(book.last)[4:] == ["request_id", "stage", "replica", "chunk_id", "size"]
    assert "stage" not in (book.log.info("other"), book.last)[1]


def test_what_is_below_the_level_is_not_written(make_book: Any) -> None:
    book = make_book(level="warning")
    book.log.info("quiet")
    book.log.error("loud")
    assert [line["event"] for line in book.lines] == ["loud"]


def test_two_loggers_with_different_options_do_not_disturb_each_other(make_book: Any) -> None:
    loud, quiet = make_book(level="debug"), make_book(level="error")
    loud.log.debug("only here")
    quiet.log.error("only there")
    assert [line["event"] for line in (*loud.lines, *quiet.lines)] == ["only here", "only there"]


@pytest.mark.parametrize(
    ("format_", "terminal", "is_json"),
    [("auto", False, True), ("auto", True, False), ("json", True, True), ("console", False, False)],
)
def test_auto_is_console_on_a_terminal_and_json_otherwise(
    make_book: Any, format_: str, *, terminal: bool, is_json: bool
) -> None:
    book = make_book(format=format_, terminal=terminal)
    book.log.info("app.started", version="1.0")
    assert book.text.startswith("{") is is_json
    assert "app.started" in book.text


def test_only_a_terminal_gets_colour(make_book: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("NO_COLOR", raising=False)
    coloured, plain = make_book(format="console", terminal=True), make_book(format="console")
    monkeypatch.setenv("NO_COLOR", "1")
    wished_plain = make_book(format="console", terminal=True)
    for book in (coloured, plain, wished_plain):
        book.log.info("app.started")
    assert ["\x1b[" in book.text for book in (coloured, plain, wished_plain)] == [True, False, False]


def test_the_console_shows_an_exception_as_a_person_reads_it(make_book: Any) -> None:
    book = make_book(format="console")
    try:
        fail(ExceptionGroup("several", [ValueError("first"), OSError("second")]))
    except ExceptionGroup:
        book.log.exception("app.failed")
    assert re.search(r"test_logger\.py:\d+ in fail", book.text)
    assert "ExceptionGroup: several" in book.text
    assert "  | ValueError: first" in book.text


@pytest.mark.parametrize("format_", ["json", "console"])
def test_fields_named_as_the_renderers_own_are_kept_beside_them(make_book: Any, format_: str) -> None:
    book = make_book(format=format_)
    fields = dict.fromkeys(("timestamp", "level", "exception", "stack", "logger", "logger_name"), 3)
    book.log.info("app.started", **fields)
    assert "app.started" in book.text
    assert all(f"field_{name}" in book.text for name in fields)


def test_a_terminal_cannot_be_controlled_through_a_value(make_book: Any) -> None:
    book = make_book(format="console")
    book.log.info("app.started\x1b[2J", request_id="a\x1b[2Jb\nc\x9b")
    assert "\x1b" not in book.text
    assert "\x9b" not in book.text
    assert book.text.count("\n") == 1


def test_a_file_is_appended_to(tmp_path: Any) -> None:
    path = tmp_path / "run.log"
    path.write_text("before\n")
    for _ in range(2):
        make_logger(LoggingOptions(file=str(path)), pipeline="demo").info("app.started")
    assert len(path.read_text().splitlines()) == 3


def test_every_line_is_in_the_file_at_once_and_whole(tmp_path: Any) -> None:
    path = tmp_path / "run.log"
    log = make_logger(LoggingOptions(file=str(path)), pipeline="demo")
    for number in range(5):
        log.info("app.started", number=number)
        assert len(path.read_text().splitlines()) == number + 1


def test_a_file_gets_json_whatever_the_terminal(tmp_path: Any) -> None:
    path = tmp_path / "run.log"
    make_logger(LoggingOptions(file=str(path)), pipeline="demo", stream=io.StringIO()).info("app.started")
    assert path.read_text().startswith('{"timestamp"')


def test_a_file_in_no_directory_is_a_config_error_that_names_it(tmp_path: Any) -> None:
    with pytest.raises(
        ConfigError, match=r"logging\.file: cannot log to .*run\.log: the directory .*none does not exist"
    ):
        open_sink(LoggingOptions(file=str(tmp_path / "none" / "run.log")))


def test_a_file_that_is_a_directory_is_a_config_error(tmp_path: Any) -> None:
    with pytest.raises(ConfigError, match="Is a directory"):
        make_logger(LoggingOptions(file=str(tmp_path)), pipeline="demo")


class Broken(io.StringIO):
    def write(self, _text: str, /) -> int:
        raise OSError(28, "No space left on device")


def test_a_closed_or_full_stream_is_swallowed_and_counted() -> None:
    closed = io.StringIO()
    closed.close()
    for stream in (Broken(), closed):
        sink = open_sink(LoggingOptions(), stream)
        log = make_logger(LoggingOptions(), pipeline="demo", sink=sink)
        for _ in range(3):
            log.info("app.started")
        assert sink.dropped == 3


def test_a_closed_sink_drops_and_counts(tmp_path: Any) -> None:
    path = tmp_path / "run.log"
    sink = open_sink(LoggingOptions(file=str(path)))
    log = make_logger(LoggingOptions(), pipeline="demo", sink=sink)
    log.info("kept")
    sink.close()
    sink.close()
    log.info("dropped")
    assert sink.dropped == 1
    assert len(path.read_text().splitlines()) == 1


def test_a_full_disk_is_swallowed_and_counted() -> None:
    sink = open_sink(LoggingOptions(file="/dev/full"))
    sink.write("line")
    assert sink.dropped == 1
    sink.close()


def test_a_line_after_a_half_written_one_begins_anew(tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    path, real_write, calls = tmp_path / "run.log", os.write, list[int]()

    def write(fd: int, data: memoryview) -> int:
        calls.append(1)
        if len(calls) == 2:
            raise OSError(28, "No space left on device")
        return real_write(fd, data[:4] if len(calls) == 1 else data)

    monkeypatch.setattr("stagewire.logs.sink.os.write", write)
    sink = open_sink(LoggingOptions(file=str(path)))
    for line in ("first line", "second line", "third line"):
        sink.write(line)
    sink.close()
    assert sink.dropped == 1
    assert path.read_text() == "firs\nsecond line\nthird line\n"


def test_a_short_write_is_continued(tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    path, real_write = tmp_path / "run.log", os.write
    monkeypatch.setattr("stagewire.logs.sink.os.write", lambda fd, data: real_write(fd, data[:3]))
    sink = open_sink(LoggingOptions(file=str(path)))
    sink.write("a long line")
    sink.close()
    assert path.read_text() == "a long line\n"


def test_threads_do_not_mix_their_lines(book: Any) -> None:
    start = threading.Barrier(4)

    def work(worker: int) -> None:
        start.wait()
        for number in range(100):
            book.log.info("app.started", worker=worker, number=number)

    threads = [threading.Thread(target=work, args=(worker,)) for worker in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for worker in range(4):
        assert [line["number"] for line in book.lines if line["worker"] == worker] == list(range(100))


def test_a_stream_is_written_to_by_one_thread_at_a_time() -> None:
    class Watchful(io.StringIO):
        inside = overlaps = 0

        def write(self, text: str, /) -> int:
            self.inside += 1
            self.overlaps += self.inside > 1
            time.sleep(0.0001)  # lets other threads run, so that they would get in
            self.inside -= 1
            return super().write(text)

    stream, start = Watchful(), threading.Barrier(4)
    log = make_logger(LoggingOptions(), pipeline="demo", stream=stream)

    def work() -> None:
        start.wait()
        for _ in range(20):
            log.info("app.started")

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert (stream.overlaps, stream.getvalue().count("\n")) == (0, 80)


def test_a_finalizer_may_log_while_a_line_is_being_written() -> None:
    class Reentrant(io.StringIO):
        def write(self, text: str, /) -> int:
            if "outer" in text:
                log.info("inner")
            return super().write(text)

    stream = Reentrant()
    log = make_logger(LoggingOptions(), pipeline="demo", stream=stream)
    log.info("outer")
    assert stream.getvalue().count("\n") == 2


def open_files() -> int:
    return len(list(pathlib.Path("/proc/self/fd").iterdir()))


def test_an_unused_log_file_is_closed_when_it_is_let_go_of(tmp_path: Any) -> None:
    before = open_files()
    for _ in range(20):
        make_logger(LoggingOptions(file=str(tmp_path / "run.log")), pipeline="demo").info("app.started")
    gc.collect()
    assert open_files() <= before


@pytest.fixture
def restored() -> Iterator[None]:
    assert not structlog.is_configured()
    yield
    structlog.reset_defaults()


@pytest.mark.usefixtures("restored")
def test_configure_logging_makes_foreign_structlog_loggers_write_the_same() -> None:
    stream = io.StringIO()
    configure_logging(LoggingOptions(), pipeline="demo", stream=stream)
    structlog.get_logger().bind(stage="tone").info("theirs", password="x")
    assert '"event":"theirs","pipeline":"demo","stage":"tone","password":"***"' in stream.getvalue()


def test_a_line_is_one_line_for_every_reader(book: Any) -> None:
    awkward = "".join(map(chr, (*range(0x20), *range(0x7F, 0xA0), 0x2028, 0x2029)))
    book.log.info("app.started", value=awkward)
    assert len(book.text.splitlines()) == 1
    assert book.last["value"] == awkward
    assert not any(character in book.text for character in awkward.replace("\n", ""))


def test_make_logger_touches_nothing_global(book: Any) -> None:
    book.log.info("app.started")
    assert not structlog.is_configured()


def test_the_fallback_logs_warnings_to_standard_error(capsys: pytest.CaptureFixture[str]) -> None:
    log = fallback_logger()
    log.info("quiet")
    log.warning("loud")
    written = capsys.readouterr().err
    assert "loud" in written
    assert "quiet" not in written


def test_a_sink_may_be_shared(book: Any) -> None:
    sink = open_sink(LoggingOptions(), book.stream)
    assert isinstance(sink, LogSink)
    for pipeline in ("a", "b"):
        make_logger(LoggingOptions(), pipeline=pipeline, sink=sink).info("app.started")
    assert [line["pipeline"] for line in book.lines] == ["a", "b"]


def test_importing_stagewire_loads_neither_structlog_nor_rich() -> None:
    code = "import sys, stagewire, stagewire.lifecycle; print([m for m in ('structlog', 'rich') if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
