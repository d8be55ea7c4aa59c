"""Recordings made by code: a tone that stands for speech, and silence."""

import io
import wave

import numpy as np


def wav_file(*spans: tuple[float, float], rate: int = 16_000, channels: int = 1, width: int = 2) -> bytes:
    """(seconds, loudness 0 to 1) after each other; the tone wavers as a voice does."""
    pieces = []
    for seconds, loudness in spans:
        time = np.arange(int(seconds * rate)) / rate
        pieces.append(loudness * np.sin(2 * np.pi * 180 * time) * (0.6 + 0.4 * np.sin(2 * np.pi * 4 * time)))
    samples = np.repeat(np.concatenate(pieces)[:, None], channels, axis=1)
    out = io.BytesIO()
    with wave.open(out, "wb") as sound:
        sound.setnchannels(channels)
        sound.setsampwidth(width)
        sound.setframerate(rate)
        scaled = samples * (2 ** (8 * width - 1) - 1)
        if width == 1:
            sound.writeframes((scaled + 128).astype(np.uint8).tobytes())
        else:
            data = scaled.astype("<i4")
            sound.writeframes(data.view(np.uint8).reshape(*data.shape, 4)[..., :width].tobytes())
    return out.getvalue()


def encoded(wav: bytes, *, format: str, codec: str) -> bytes:
    """The recording in a compressed form; needs PyAV."""
    import av

    out = io.BytesIO()
    with av.open(io.BytesIO(wav)) as given, av.open(out, "w", format=format) as container:
        sound = given.streams.audio[0]
        stream = container.add_stream(codec, rate=sound.rate, layout="mono")
        for frame in given.decode(sound):
            container.mux(stream.encode(frame))
        container.mux(stream.encode(None))
    return out.getvalue()
