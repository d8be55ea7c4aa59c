from django.urls import path

from retrieval.api import evaluations, judgements, recall_checks
from retrieval.api.views import CompareView, SearchView, TracesView, TraceView

_KB = "knowledge-bases/<str:kb_id>"

urlpatterns = [
    path("search", SearchView.as_view(), name="search"),
    path("search/compare", CompareView.as_view(), name="search-compare"),
    path("traces", TracesView.as_view(), name="traces"),
    path("traces/<str:trace_id>", TraceView.as_view(), name="trace"),
    path(f"{_KB}/judgements", judgements.Judgements.as_view()),
    path(f"{_KB}/judgements/hits", judgements.JudgedHits.as_view()),
    path(f"{_KB}/judgements/file", judgements.JudgementFile.as_view()),
    path(f"{_KB}/judgements/<str:judgement_id>", judgements.OneJudgement.as_view()),
    path(f"{_KB}/evaluations", evaluations.Evaluations.as_view()),
    path(f"{_KB}/evaluations/<str:evaluation_id>", evaluations.OneEvaluation.as_view()),
    path(f"{_KB}/evaluations/<str:evaluation_id>/cancel", evaluations.EvaluationCancel.as_view()),
    path(f"{_KB}/evaluations/<str:evaluation_id>/questions", evaluations.EvaluationQuestions.as_view()),
    path(f"{_KB}/recall-checks", recall_checks.RecallChecks.as_view()),
    path(f"{_KB}/recall-checks/<str:check_id>", recall_checks.OneRecallCheck.as_view()),
    path(f"{_KB}/recall-checks/<str:check_id>/cancel", recall_checks.RecallCheckCancel.as_view()),
]
