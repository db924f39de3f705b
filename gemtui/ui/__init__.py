"""The screens of gemtui.

Only this package imports Textual or Rich.
"""
