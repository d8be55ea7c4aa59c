from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("kb", "0020_metadata_types")]

    operations = [
        migrations.AddField(
            model_name="embeddingmodel",
            name="vector_index",
            field=models.CharField(
                choices=[("halfvec", "halfvec"), ("binary", "binary")],
                default="halfvec",
                help_text="What the index of a large space is made of: the vectors, or their signs, which take a tenth of the room.",
                max_length=16,
            ),
        ),
    ]
