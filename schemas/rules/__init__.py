"""The rules that documents obey, alone and together."""
