"""Magic bytes of pictures and recordings: what has to be recognized before there is text."""

# (offset, bytes) pairs that all have to stand there, the format, and its media type.
MEDIA: tuple[tuple[tuple[tuple[int, bytes], ...], str, str], ...] = (
    (((0, b"\x89PNG\r\n\x1a\n"),), "image", "image/png"),
    (((0, b"\xff\xd8\xff"),), "image", "image/jpeg"),
    (((0, b"GIF87a"),), "image", "image/gif"),
    (((0, b"GIF89a"),), "image", "image/gif"),
    (((0, b"II*\x00"),), "image", "image/tiff"),
    (((0, b"MM\x00*"),), "image", "image/tiff"),
    (((0, b"RIFF"), (8, b"WEBPVP8")), "image", "image/webp"),
    (((0, b"BM"), (6, b"\0\0\0\0")), "image", "image/bmp"),
    (((0, b"RIFF"), (8, b"WAVE")), "audio", "audio/wav"),
    (((0, b"ID3\x02"),), "audio", "audio/mpeg"),
    (((0, b"ID3\x03"),), "audio", "audio/mpeg"),
    (((0, b"ID3\x04"),), "audio", "audio/mpeg"),
    (((0, b"OggS\x00"),), "audio", "audio/ogg"),
    (((0, b"fLaC\x00"),), "audio", "audio/flac"),
    (((4, b"ftypM4A "),), "audio", "audio/mp4"),
    (((4, b"ftypM4B "),), "audio", "audio/mp4"),
)
# An MPEG frame without a tag before it: two bytes that other binary files begin with too, so the name has to agree.
_MPEG_FRAMES = (b"\xff\xfb", b"\xff\xfa", b"\xff\xf3", b"\xff\xf2")
# Programs write recordings into MP4 files of every brand; only the name tells them from films.
_M4A_NAMES = ("m4a", "m4b")


def media_format(head: bytes, *, suffix: str) -> tuple[str, str] | None:
    """(format, media type) of a picture or recording by its first bytes; None for everything else."""
    for marks, format, media_type in MEDIA:
        if all(head.startswith(mark, offset) for offset, mark in marks):
            return format, media_type
    if suffix == "mp3" and head.startswith(_MPEG_FRAMES):
        return "audio", "audio/mpeg"
    if suffix in _M4A_NAMES and head.startswith(b"ftyp", 4):
        return "audio", "audio/mp4"
    return None
