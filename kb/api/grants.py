"""Who may use a private knowledge base. For its editors and the organization's administrators."""

from drf_spectacular.utils import extend_schema
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from config.body import parse_body
from config.errors import NotFound
from config.openapi import PAGE_PARAMETERS, Paged
from config.paging import limit_of, take_page
from kb import access, listing, services
from kb.access import Level
from kb.api.shapes import GrantAnswer, GrantInput, answer, answer_page


class Grants(APIView):
    @extend_schema(parameters=PAGE_PARAMETERS, responses=Paged[GrantAnswer])
    def get(self, request: Request, kb_id: str) -> Response:
        """The users that the knowledge base is open to by a grant. Administrators need none."""
        rows = listing.grants(access.get_knowledge_base(request.user, kb_id, Level.EDIT))
        return answer_page(take_page(rows, cursor=request.query_params.get("cursor"), limit=limit_of(request)), GrantAnswer)


class OneGrant(APIView):
    @extend_schema(request=GrantInput, responses=GrantAnswer)
    def put(self, request: Request, kb_id: str, user_id: str) -> Response:
        """Open the knowledge base to a member of the organization, as a viewer or an editor."""
        found = access.get_knowledge_base(request.user, kb_id, Level.EDIT)
        body = parse_body(request, GrantInput)
        user = number_of(user_id)
        services.set_grant(found, user_id=user, level=body.level)
        return answer(GrantAnswer.model_validate(listing.grants(found).get(user_id=user)))

    @extend_schema(responses={204: None})
    def delete(self, request: Request, kb_id: str, user_id: str) -> Response:
        """Close the knowledge base to a user again."""
        services.remove_grant(access.get_knowledge_base(request.user, kb_id, Level.EDIT), user_id=number_of(user_id))
        return Response(status=204)


def number_of(text: str) -> int:
    """A user's number in a path; anything else names nobody."""
    if not (text.isascii() and text.isdigit() and len(text) <= 9):
        raise NotFound()
    return int(text)
