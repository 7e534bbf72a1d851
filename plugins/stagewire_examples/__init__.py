"""The stages that the shipped configurations use, written as a third party would: they import only `stagewire`.

Begin with `plugin`, which says what there is; `encode` is the shortest stage with something to tell, `tone` one with
options, `speech` one that needs a driver and a thread.
"""

from stagewire_examples.encode import MorseEncode
from stagewire_examples.sentences import Sentences, SentencesOptions
from stagewire_examples.speech import Phonemes, Synthesize, SynthesizeOptions, VoiceOptions
from stagewire_examples.splitter import SentenceSplitter
from stagewire_examples.table import SentenceTable, WordCount
from stagewire_examples.tone import MorseTone, ToneOptions
from stagewire_examples.utf8 import InvalidText, TextReader

__all__ = [
    "InvalidText",
    "MorseEncode",
    "MorseTone",
    "Phonemes",
    "SentenceSplitter",
    "SentenceTable",
    "Sentences",
    "SentencesOptions",
    "Synthesize",
    "SynthesizeOptions",
    "TextReader",
    "ToneOptions",
    "VoiceOptions",
    "WordCount",
]
