"""Routes of knowledge bases, of the registry and of an organization's administration."""

from django.urls import path

from kb.api import bundles, channels, embedding_models, grants, knowledge_bases, organization, rerankers, usage, versions

urlpatterns = [
    path("knowledge-bases", knowledge_bases.KnowledgeBases.as_view()),
    path("knowledge-bases/schema", knowledge_bases.KnowledgeBaseSchema.as_view()),
    path("knowledge-bases/import", bundles.Import.as_view()),
    path("knowledge-bases/<str:kb_id>", knowledge_bases.OneKnowledgeBase.as_view()),
    path("knowledge-bases/<str:kb_id>/versions", versions.Versions.as_view()),
    path("knowledge-bases/<str:kb_id>/versions/<str:number>", versions.OneVersion.as_view()),
    path("knowledge-bases/<str:kb_id>/diff", versions.VersionDiff.as_view()),
    path("knowledge-bases/<str:kb_id>/rollback", versions.Rollback.as_view()),
    path("knowledge-bases/<str:kb_id>/duplicate", versions.Duplicate.as_view()),
    path("knowledge-bases/<str:kb_id>/export", bundles.Export.as_view()),
    path("knowledge-bases/<str:kb_id>/grants", grants.Grants.as_view()),
    path("knowledge-bases/<str:kb_id>/grants/<str:user_id>", grants.OneGrant.as_view()),
    path("knowledge-bases/<str:kb_id>/usage", usage.KnowledgeBaseUsage.as_view()),
    path("usage", usage.OrganizationUsage.as_view()),
    path("embedding-models", embedding_models.EmbeddingModels.as_view()),
    path("embedding-models/<str:model_id>", embedding_models.OneEmbeddingModel.as_view()),
    path("embedding-models/<str:model_id>/test", embedding_models.EmbeddingModelTest.as_view()),
    path("rerankers", rerankers.Rerankers.as_view()),
    path("rerankers/<str:reranker_id>", rerankers.OneReranker.as_view()),
    path("rerankers/<str:reranker_id>/test", rerankers.RerankerTest.as_view()),
    path("channels", channels.Channels.as_view()),
    path("channels/policy-schema", channels.PolicySchema.as_view()),
    path("channels/<str:channel_id>", channels.OneChannel.as_view()),
    path("channels/<str:channel_id>/policy", channels.ChannelPolicy.as_view()),
    path("service-bindings", channels.ServiceBindings.as_view()),
    path("service-bindings/<str:binding_id>", channels.OneServiceBinding.as_view()),
    path("secrets", organization.Secrets.as_view()),
    path("secrets/<str:secret_id>", organization.OneSecret.as_view()),
    path("api-keys", organization.ApiKeys.as_view()),
    path("api-keys/<str:key_id>", organization.OneApiKey.as_view()),
    path("organization", organization.OneOrganization.as_view()),
    path("members", organization.Members.as_view()),
    path("members/<str:user_id>", organization.OneMember.as_view()),
]
