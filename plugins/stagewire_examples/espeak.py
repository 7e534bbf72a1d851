"""eSpeak NG through ctypes: text to phonemes, and either of them to sound.

The C library is one per process and not thread-safe: it keeps the chosen voice, its buffers and its callback in static
memory. So there is one object for it here as well, and a lock that every call takes. A call speaks one sentence, in
some milliseconds, and hands its sound over whole: to hold the lock while somebody takes the sound block by block would
let one slow request stop all others.
"""

from __future__ import annotations

import ctypes
import difflib
import threading
from functools import cache
from pathlib import Path

from stagewire import StagewireError

MAX_TEXT = 20_000
"""Characters that may be spoken in one call; some 50 MB of sound."""

# From speak_lib.h.
_SYNCHRONOUS = 2
_DO_NOT_EXIT = 0x8000
_UTF8 = 1
_PHONEMES_IN_BRACKETS = 0x100
_POSITION_IN_CHARACTERS = 1
_RATE = 1
_OK = 0

_loading = threading.Lock()

_Callback = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_int, ctypes.c_void_p)


class SpeechError(StagewireError):
    """eSpeak NG cannot be used, or cannot do what was asked."""


class _Voice(ctypes.Structure):
    _fields_ = (
        ("name", ctypes.c_char_p),
        ("languages", ctypes.c_void_p),
        ("identifier", ctypes.c_char_p),
        ("gender", ctypes.c_ubyte),
        ("age", ctypes.c_ubyte),
        ("variant", ctypes.c_ubyte),
        ("reserved", ctypes.c_ubyte),
        ("score", ctypes.c_int),
        ("spare", ctypes.c_void_p),
    )


class Espeak:
    """The library, ready for use; get it from `load`. Methods may be called from any thread, and take turns."""

    def __init__(self, library: ctypes.CDLL, data: Path) -> None:
        self._library = _declare(library)
        self._lock = threading.Lock()
        self._sound: list[bytes] = []
        self._callback = _Callback(self._hear)  # the library keeps only its address: it must live as long
        self.sample_rate: int = library.espeak_Initialize(_SYNCHRONOUS, 0, bytes(data), _DO_NOT_EXIT)
        if self.sample_rate <= 0:
            raise SpeechError(f"eSpeak NG cannot read its data in {data}: reinstall espeakng-loader")
        library.espeak_SetSynthCallback(self._callback)
        self._voices = self._list_voices()

    def voice(self, name: str) -> str:
        """Return the identifier of a voice, by its language (``en-gb``), name or identifier. Raises `SpeechError`."""
        known = self._voices.get(name.lower())
        if known is None:
            close = difflib.get_close_matches(name.lower(), self._voices, n=5, cutoff=0.5)
            hint = f"did you mean {' or '.join(close)}?" if close else "languages are written as in en, en-us, de or fr"
            raise SpeechError(f"eSpeak NG has no voice {name!r}: {hint}")
        return known

    def phonemes(self, text: str, *, voice: str) -> list[str]:
        """Return the phonemes of each clause of ``text`` in eSpeak's own notation; ``voice`` is an identifier."""
        start = ctypes.create_string_buffer(_encode(text))
        position = ctypes.c_void_p(ctypes.addressof(start))
        clauses: list[str] = []
        with self._lock:
            self._choose(voice)
            while position.value:
                found: bytes = self._library.espeak_TextToPhonemes(ctypes.byref(position), _UTF8, 0)
                clauses.append(found.decode().strip("_: "))
        return [clause for clause in clauses if clause]

    def speak(self, text: str, *, voice: str, wpm: int, phonemes: bool) -> bytes:
        """Return 16-bit mono PCM, low byte first; with ``phonemes``, text in ``[[…]]`` is in eSpeak's notation."""
        encoded = _encode(text)
        flags = _UTF8 | (_PHONEMES_IN_BRACKETS if phonemes else 0)
        with self._lock:
            self._choose(voice)
            self._library.espeak_SetParameter(_RATE, wpm, 0)
            self._sound.clear()
            result = self._library.espeak_Synth(
                encoded, len(encoded) + 1, 0, _POSITION_IN_CHARACTERS, 0, flags, None, None
            )
            sound = b"".join(self._sound)
        if result != _OK:
            raise SpeechError(f"eSpeak NG failed with code {result}")
        return sound

    def _choose(self, voice: str) -> None:
        # Chosen anew each time, for it is the library's own state; without a voice the library crashes.
        if self._library.espeak_SetVoiceByName(voice.encode()) != _OK:
            raise SpeechError(f"eSpeak NG cannot load the voice {voice!r}")

    def _hear(self, samples: int | None, count: int, _events: int | None) -> int:
        if samples and count > 0:
            self._sound.append(ctypes.string_at(samples, count * ctypes.sizeof(ctypes.c_short)))
        return 0

    def _list_voices(self) -> dict[str, str]:
        """Return the identifiers by everything that a person may call a voice; the preferred one where several do."""
        voices = self._library.espeak_ListVoices(None)
        ranked: list[tuple[int, str, str]] = []
        at = 0
        while voices[at]:
            voice = voices[at].contents
            identifier = voice.identifier.decode()
            ranked += [(0, name, identifier) for name in (identifier, voice.name.decode())]
            ranked += [(rank, name, identifier) for rank, name in _languages(voice.languages)]
            at += 1
        return {name.lower(): identifier for _, name, identifier in sorted(ranked, reverse=True)}


def load() -> Espeak:
    """Return the process's eSpeak NG, from the library that ``espeakng_loader`` brings; from any thread.

    Raises:
        SpeechError: The library or its data cannot be used; a later call tries again.
    """
    with _loading:  # a cache alone would let two stages that open at once initialise the library twice
        return _load_once()


@cache
def _load_once() -> Espeak:
    import espeakng_loader  # noqa: PLC0415 — a driver, loaded when a pipeline uses it

    path = espeakng_loader.get_library_path()
    try:
        library = ctypes.CDLL(path)
    except OSError as error:
        raise SpeechError(f"eSpeak NG cannot be loaded from {path}: {error}. Reinstall espeakng-loader") from error
    return Espeak(library, Path(espeakng_loader.get_data_path()))


def _declare(library: ctypes.CDLL) -> ctypes.CDLL:
    """Tell ctypes the signatures that are not ``int f(int, …)``."""
    library.espeak_Initialize.argtypes = (ctypes.c_int, ctypes.c_int, ctypes.c_char_p, ctypes.c_int)
    library.espeak_SetSynthCallback.argtypes = (_Callback,)
    library.espeak_SetVoiceByName.argtypes = (ctypes.c_char_p,)
    library.espeak_ListVoices.argtypes = (ctypes.c_void_p,)
    library.espeak_ListVoices.restype = ctypes.POINTER(ctypes.POINTER(_Voice))
    library.espeak_TextToPhonemes.argtypes = (ctypes.POINTER(ctypes.c_void_p), ctypes.c_int, ctypes.c_int)
    library.espeak_TextToPhonemes.restype = ctypes.c_char_p
    library.espeak_Synth.argtypes = (
        ctypes.c_char_p, ctypes.c_size_t, ctypes.c_uint, ctypes.c_int, ctypes.c_uint, ctypes.c_uint,
        ctypes.c_void_p, ctypes.c_void_p,
    )  # fmt: skip
    return library


def _languages(address: int) -> list[tuple[int, str]]:
    """Read a voice's languages: pairs of a rank (low is preferred) and a text, until a rank of 0."""
    languages = []
    while rank := ctypes.string_at(address, 1)[0]:
        name = ctypes.string_at(address + 1)
        languages.append((rank, name.decode()))
        address += 1 + len(name) + 1
    return languages


def _encode(text: str) -> bytes:
    if len(text) > MAX_TEXT:
        raise SpeechError(f"{len(text)} characters are too many to speak at once: put text.sentences in front")
    return text.replace("\0", " ").encode()
