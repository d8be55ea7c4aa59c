"""Wake-ups. A task names a job and works a slice of it; every one may be lost or come twice."""

from uuid import UUID

from celery import shared_task

from retrieval import jobs


@shared_task(name="retrieval.work")
def work(kind: str, job_id: str) -> None:
    jobs.work(kind, UUID(job_id))
