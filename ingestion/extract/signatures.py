"""Magic bytes of what is not text: offset, bytes and the words in which it is refused."""

# Long enough to be no accident, or (the short ones) only asked of a file that holds a NUL byte.
BINARY_SIGNATURES: tuple[tuple[int, bytes, str], ...] = (
    (4, b"ftyp", "an audio or video file"),
    (0, b"\x1aE\xdf\xa3", "an audio or video file"),
    (0, b"\x1f\x8b\x08", "a gzip archive"),
    (0, b"BZh91AY&SY", "a bzip2 archive"),
    (0, b"\xfd7zXZ\x00", "an xz archive"),
    (0, b"7z\xbc\xaf\x27\x1c", "a 7z archive"),
    (0, b"Rar!\x1a\x07", "a RAR archive"),
    (257, b"ustar", "a tar archive"),
    (0, b"\x28\xb5\x2f\xfd", "a zstd archive"),
    (0, b"\x7fELF", "a program"),
    (0, b"\xcf\xfa\xed\xfe", "a program"),
    (0, b"\xca\xfe\xba\xbe", "a program"),
    (0, b"SQLite format 3\x00", "an SQLite database"),
)

OLE2 = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1"
ZIP = (b"PK\x03\x04", b"PK\x05\x06", b"PK\x07\x08")
PDF = b"%PDF-"
RTF = b"{\\rtf"
PARQUET = b"PAR1"

# A name that promises one of these around plain text is a mistake worth telling, not a text file.
_BINARY = (
    "pdf doc docx docm xls xlsx xlsm xlsb ppt pptx pptm odt ods odp epub rtf zip gz bz2 xz 7z rar tar tgz zst jar "
    "png jpg jpeg gif tif tiff bmp webp ico heic mp3 wav ogg flac m4a mp4 mov avi mkv webm parquet sqlite db exe dll so dylib class "
    "pyc bin iso dmg woff woff2 ttf otf"
)
BINARY_EXTENSIONS = frozenset(_BINARY.split())
