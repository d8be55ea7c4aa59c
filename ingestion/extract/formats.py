"""The formats that are read: name -> extractor, imported when a file of that format comes."""

from config.registry import Registry
from ingestion.extract.base import Extractor

FORMATS: dict[str, str] = {
    "text": "ingestion.extract.text:TextExtractor",
    "markdown": "ingestion.extract.markdown:MarkdownExtractor",
    "html": "ingestion.extract.html:HtmlExtractor",
    "docx": "ingestion.extract.docx:DocxExtractor",
    "pptx": "ingestion.extract.pptx:PptxExtractor",
    "odt": "ingestion.extract.odf:OdfExtractor",
    "odp": "ingestion.extract.odf:OdfExtractor",
    "rtf": "ingestion.extract.rtf:RtfExtractor",
    "epub": "ingestion.extract.epub:EpubExtractor",
    "eml": "ingestion.extract.eml:EmlExtractor",
    "msg": "ingestion.extract.msg:MsgExtractor",
    "pdf": "ingestion.extract.pdf:PdfExtractor",
    "json": "ingestion.extract.json_data:JsonExtractor",
    "notebook": "ingestion.extract.notebook:NotebookExtractor",
    "xml": "ingestion.extract.xml_data:XmlExtractor",
    "rst": "ingestion.extract.rst:RstExtractor",
    "csv": "ingestion.extract.tabular.extractors:CsvExtractor",
    "xlsx": "ingestion.extract.tabular.extractors:XlsxExtractor",
    "xls": "ingestion.extract.tabular.extractors:XlsExtractor",
    "ods": "ingestion.extract.tabular.extractors:OdsExtractor",
    "parquet": "ingestion.extract.tabular.extractors:ParquetExtractor",
    "image": "ingestion.extract.image:ImageExtractor",
    "audio": "ingestion.extract.audio:AudioExtractor",
}

# Fewer characters than this are no document. PDF has the same minimum, which it applies itself: it can see whether there are pictures.
MINIMUM_CHARS: dict[str, int] = dict.fromkeys(("html", "docx", "pptx", "odt", "odp", "rtf", "epub"), 16)

EXTRACTORS: Registry[type[Extractor]] = Registry("format", FORMATS)
