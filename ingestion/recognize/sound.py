"""Recordings as samples: how long one is, and a stretch of it, cut where nobody speaks. PCM in WAV needs nothing; the rest needs PyAV."""

import io
import wave
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np

from config.errors import ExtractionError

RATE = 16_000  # what every engine for speech wants
STRETCH_SECONDS = 60.0
SHORTEST_SECONDS = 15.0  # a shorter rest belongs to the stretch before it
SEARCHED_SECONDS = 3.0  # before and after a border, for the quietest place
QUIET_SECONDS = 0.3
SILENT_BELOW = 0.002  # -54 dB of full scale, in the loudest half second
INSTALL_DECODER = "An operator installs requirements/audio.txt for web and workers; or save it as WAV."


def stretches(seconds: float) -> list[tuple[float, float]]:
    """(start, end) of about a minute each."""
    borders = [0.0]
    while seconds - borders[-1] > STRETCH_SECONDS + SHORTEST_SECONDS:
        borders.append(borders[-1] + STRETCH_SECONDS)
    return list(zip(borders, [*borders[1:], seconds], strict=True))


def duration(path: Path, *, name: str) -> float:
    """Seconds, by its frames and not by what its header says. Raises ExtractionError."""
    with _damage(name):
        if sound := _pcm(path):
            with sound:
                return sound.getnframes() / sound.getframerate()
        with _container(path, name=name) as container:
            stream = _stream(container, name=name)
            ends = ((packet.pts + (packet.duration or 0)) for packet in container.demux(stream) if packet.pts is not None)
            return float(max(ends, default=0) * stream.time_base)


def stretch(path: Path, start: float, end: float, *, last: bool, name: str) -> tuple[np.ndarray, float]:
    """Samples (float32, -1 to 1) from about `start` to about `end`, and where they really begin: at the quietest place near each border,
    so that no word is cut in two. Neighbours find the same place."""
    before = min(SEARCHED_SECONDS, start)
    with _damage(name):
        samples = _samples(path, start - before, end + SEARCHED_SECONDS, name=name)
    first = _quietest(samples, before - SEARCHED_SECONDS, before + SEARCHED_SECONDS) if start else 0
    until = len(samples) if last else _quietest(samples, end - start + before - SEARCHED_SECONDS, end - start + before + SEARCHED_SECONDS)
    return samples[first:until], start - before + first / RATE


def is_silent(samples: np.ndarray) -> bool:
    """Whether nothing is to be heard: engines make up words for silence."""
    size = RATE // 2
    if not len(samples):
        return True
    loudness = [float(np.sqrt(np.mean(np.square(samples[at : at + size])))) for at in range(0, len(samples), size)]
    return max(loudness) < SILENT_BELOW


def wav(samples: np.ndarray) -> bytes:
    """16-bit mono, as services take it."""
    out = io.BytesIO()
    with wave.open(out, "wb") as sound:
        sound.setnchannels(1)
        sound.setsampwidth(2)
        sound.setframerate(RATE)
        sound.writeframes((np.clip(samples, -1, 1) * 32767).astype("<i2").tobytes())
    return out.getvalue()


def _quietest(samples: np.ndarray, begin: float, finish: float) -> int:
    """The middle of the quietest moment between two times of the samples."""
    low, high, size = max(0, int(begin * RATE)), min(len(samples), int(finish * RATE)), int(QUIET_SECONDS * RATE)
    if high - low <= size:
        return max(0, min(len(samples), (low + high) // 2))
    power = np.concatenate(([0.0], np.cumsum(np.square(samples[low:high], dtype=np.float64))))
    return low + int(np.argmin(power[size:] - power[:-size])) + size // 2


def _samples(path: Path, start: float, end: float, *, name: str) -> np.ndarray:
    if sound := _pcm(path):
        with sound:
            return _resampled(_frames(sound, start, end), sound.getframerate())
    return _decoded(path, start, end, name=name)


def _pcm(path: Path) -> wave.Wave_read | None:
    try:
        sound = wave.open(str(path), "rb")  # noqa: SIM115 - the caller closes it
    except (wave.Error, EOFError):
        return None
    return sound if sound.getsampwidth() in (1, 2, 3, 4) and sound.getframerate() > 0 else None


def _frames(sound: wave.Wave_read, start: float, end: float) -> np.ndarray:
    rate, width = sound.getframerate(), sound.getsampwidth()
    first = min(int(start * rate), sound.getnframes())
    sound.setpos(first)
    data = sound.readframes(max(0, int(end * rate) - first))
    if width == 1:
        values = (np.frombuffer(data, np.uint8).astype(np.float32) - 128) / 128
    elif width == 3:
        wide = np.zeros((len(data) // 3, 4), np.uint8)
        wide[:, 1:] = np.frombuffer(data[: len(data) // 3 * 3], np.uint8).reshape(-1, 3)
        values = wide.view("<i4").ravel().astype(np.float32) / 2**31
    else:
        whole = data[: len(data) // width * width]
        values = np.frombuffer(whole, f"<i{width}").astype(np.float32) / 2 ** (8 * width - 1)
    channels = sound.getnchannels()
    return values[: len(values) // channels * channels].reshape(-1, channels).mean(axis=1)


def _resampled(samples: np.ndarray, rate: int) -> np.ndarray:
    """At RATE. What lies above the new band is averaged away first."""
    if rate == RATE or not len(samples):
        return samples.astype(np.float32)
    if rate > RATE and (width := rate // RATE) > 1:
        samples = np.convolve(samples, np.ones(width, np.float32) / width, mode="same")
    places = np.arange(int(len(samples) * RATE / rate)) * (rate / RATE)
    return np.interp(places, np.arange(len(samples)), samples).astype(np.float32)


def _decoded(path: Path, start: float, end: float, *, name: str) -> np.ndarray:
    import av

    resampler = av.AudioResampler(format="s16", layout="mono", rate=RATE)
    pieces: list[np.ndarray] = []
    begun: float | None = None
    with _container(path, name=name) as container:
        if start > 1:
            container.seek(int((start - 1) * av.time_base))
        for frame in container.decode(_stream(container, name=name)):
            if frame.time is not None and frame.time > end:
                break
            begun = (frame.time or 0.0) if begun is None else begun
            pieces += [piece.to_ndarray().ravel() for piece in resampler.resample(frame)]
    samples = np.concatenate(pieces).astype(np.float32) / 32768 if pieces else np.zeros(0, np.float32)
    first = max(0, int((start - (begun or 0.0)) * RATE))
    return samples[first : first + int((end - start) * RATE)]


@contextmanager
def _container(path: Path, *, name: str) -> Iterator[Any]:
    if find_spec("av") is None:
        happened = f"{name} is a compressed recording, and nothing here unpacks those."
        raise ExtractionError(happened, advice=INSTALL_DECODER, reason="no_engine")
    import av

    with av.open(str(path), mode="r", metadata_errors="ignore") as container:
        yield container


def _stream(container: Any, *, name: str) -> Any:
    if not container.streams.audio:
        raise ExtractionError(f"{name} holds no sound.", advice="Upload a recording.", reason="empty", retires=True)
    return container.streams.audio[0]


@contextmanager
def _damage(name: str) -> Iterator[None]:
    try:
        yield
    except ExtractionError:
        raise
    except (OSError, ValueError, EOFError, wave.Error) as error:  # PyAV's errors are OSError and ValueError
        happened = f"{name} is damaged: the recording cannot be read ({str(error)[:100] or type(error).__name__})."
        raise ExtractionError(happened, advice="Save it again.", reason="damaged", retires=True) from error
