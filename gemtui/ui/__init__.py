"""The screens of gemtui; no other package imports Textual or Rich."""
